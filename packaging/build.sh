#!/usr/bin/env bash
# Builds what users install: a wheel, a Debian package and a portable tarball, in target/packaging.
# Usage: packaging/build.sh [wheel|deb|tarball|all]
#
# The command is compiled in a Debian 11 root that links for glibc 2.28 (packaging/glibc.sh), so it starts on that and on all later
# systems. That needs root, debootstrap, python3 with venv, and the rust toolchain of this machine, which is mounted there.
# OMPFUSE_HERE=1 compiles on this machine instead: the result needs a glibc as new as this machine's.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}
case $what in wheel | deb | tarball | all) ;; *)
    echo "packaging/build.sh: unknown package $what; give wheel, deb, tarball or all" >&2
    exit 2
    ;;
esac
out=$PWD/target/packaging
mkdir -p "$out"

# Compiles the command into $out/target/release, and makes a wheel of it.
[ -x "$out/tools/bin/maturin" ] || {
    python3 -m venv "$out/tools"
    "$out/tools/bin/pip" install --quiet 'maturin>=1.9,<2'
}
rm -f "$out"/*.whl
if [ "${OMPFUSE_HERE:-0}" = 1 ]; then
    CARGO_TARGET_DIR=$out/target "$out/tools/bin/maturin" build --release --out "$out"
else
    packaging/root.sh bullseye "$out/roots/build" gcc,g++,libc6-dev
    packaging/glibc.sh 2.28 "$out/roots/build" "$out/tools"
    cargo fetch --locked
    unshare --mount packaging/inside.sh "$out/roots/build" "$PWD" "$out"
fi
command=$out/target/release/ompfuse
[ "$what" != wheel ] || {
    ls -sh "$out"/*.whl
    exit
}

# Manual pages and completions, written by the command itself.
files=$out/files
rm -rf "$files"
mkdir -p "$files/man" "$files/completions"
"$command" man --to "$files/man"
"$command" completions bash >"$files/completions/ompfuse.bash"
"$command" completions zsh >"$files/completions/_ompfuse"
"$command" completions fish >"$files/completions/ompfuse.fish"
gzip --best --no-name --keep "$files"/man/*.1

version=$("$command" --version | cut -d ' ' -f 2)
if [ "$what" != deb ]; then
    name=ompfuse-$version-x86_64-linux
    rm -rf "${out:?}/$name"
    mkdir -p "$out/$name"/{bin,include,share/man/man1,share/bash-completion/completions,share/zsh/site-functions,share/fish/vendor_completions.d,share/doc/ompfuse}
    install -m 755 "$command" "$out/$name/bin"
    install -m 644 "$files"/man/*.1 "$out/$name/share/man/man1"
    install -m 644 "$files/completions/ompfuse.bash" "$out/$name/share/bash-completion/completions/ompfuse"
    install -m 644 "$files/completions/_ompfuse" "$out/$name/share/zsh/site-functions"
    install -m 644 "$files/completions/ompfuse.fish" "$out/$name/share/fish/vendor_completions.d"
    install -m 644 include/ompfuse.h "$out/$name/include"
    install -m 644 README.md LICENSE-APACHE LICENSE-MIT "$out/$name/share/doc/ompfuse"
    # Equal files give an equal tarball: order, owners and times are fixed.
    tar --create --gzip --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
        --file "$out/$name.tar.gz" --directory "$out" "$name"
    rm -rf "${out:?}/$name"
fi
if [ "$what" != tarball ]; then
    cargo deb --version >/dev/null 2>&1 || cargo install --locked cargo-deb
    CARGO_TARGET_DIR=$out/target cargo deb --package ompfuse-cli --no-build --no-strip --output "$out"
fi
ls -sh "$out"/*.whl "$out"/*.deb "$out"/*.tar.gz 2>/dev/null
