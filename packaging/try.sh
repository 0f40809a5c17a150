#!/usr/bin/env bash
# Checks that the packages of target/packaging need no newer glibc than 2.28. Then installs them in fresh Debian roots, and profiles a
# program in each. Usage: packaging/try.sh [SUITE...] (default: bullseye bookworm trixie: glibc 2.31, 2.36, 2.41)
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/target/packaging
packaging/versions.sh "$out/target/release/ompfuse" 2.28
[ $# -gt 0 ] || set -- bullseye bookworm trixie
# A program for the oldest of them, compiled where the command was.
build=$out/roots/build
packaging/root.sh bullseye "$build" gcc,g++,libc6-dev
packaging/glibc.sh 2.28 "$build" "$out/tools"
cp examples/tutorial/primes.c "$build/tmp"
# libgomp needs the root's own libdl, which asks for what only its own libc has.
chroot "$build" gcc -O2 -g -fopenmp -Wl,--allow-shlib-undefined /tmp/primes.c -o /tmp/primes
for suite in "$@"; do
    root=$out/roots/$suite
    packaging/root.sh "$suite" "$root" libgomp1,man-db,python3-venv
    rm -rf "$root/try"
    mkdir "$root/try"
    cp "$out"/ompfuse_*_amd64.deb "$out"/ompfuse-*-x86_64-linux.tar.gz "$out"/ompfuse-*.whl "$out/target/release/ompfuse" \
        "$build/tmp/primes" packaging/check.sh "$root/try"
    unshare --mount --pid --fork bash -c 'mount -t proc proc "$0/proc" && exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root bash /try/check.sh' "$root"
done
