#!/usr/bin/env bash
# Gathers what a release consists of in target/packaging/release: the packages that packaging/build.sh has made, a bill of materials
# (CycloneDX), checksums, and the changelog's notes. Usage: packaging/release.sh VERSION
#
# It needs `cargo install cargo-cyclonedx`.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: packaging/release.sh VERSION}
here=$(cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
print(next(p["version"] for p in json.load(sys.stdin)["packages"] if p["name"] == "ompfuse-cli"))')
[ "$version" = "$here" ] || {
    echo "packaging/release.sh: Cargo.toml has version $here, not $version" >&2
    exit 1
}
out=target/packaging release=target/packaging/release
rm -rf "$release"
mkdir -p "$release"
for package in "$out"/ompfuse_*_amd64.deb "$out"/ompfuse-*-x86_64-linux.tar.gz "$out"/ompfuse-*.whl; do
    [ -e "$package" ] || {
        echo "packaging/release.sh: $package is missing; make it with packaging/build.sh all" >&2
        exit 1
    }
    cp "$package" "$release"
done

# What stands below the version's heading in the changelog, up to the next one.
awk -v heading="## [$version]" '
    index($0, heading) == 1 { found = 1; next }
    found && /^## / { exit }
    found' CHANGELOG.md >"$release/NOTES"
grep -q . "$release/NOTES" || {
    echo "packaging/release.sh: CHANGELOG.md has nothing about $version" >&2
    exit 1
}

cargo cyclonedx --quiet --format json --manifest-path cli/Cargo.toml --override-filename bill-of-materials
mv cli/bill-of-materials.json "$release/ompfuse-$version.cdx.json"
find . -name bill-of-materials.json -not -path './target/*' -delete # one for each crate
(cd "$release" && sha256sum -- ompfuse* >SHA256SUMS)
ls -l "$release"
