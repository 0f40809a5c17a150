#!/usr/bin/env bash
# Makes the files *.s of this folder: what compilers that Debian 12 does not have make of its sources, as assembly text that older
# assemblers read. Needs the roots of trixie and sid that tests/elsewhere.sh makes. Usage: tests/sources/newer/make.sh
set -euo pipefail
cd "$(dirname "$0")"
roots=$(cd ../../.. && pwd)/target/elsewhere
make() { # SUITE COMPILER FLAG...
    local suite=$1 compiler=$2
    shift 2
    for source in $sources; do
        cp "$source" "$roots/$suite/root/tmp/"
        chroot "$roots/$suite/root" bash -c '
            command -v "$1" >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1
            cd /tmp && "$1" -O2 -fPIE -fopenmp -fno-ident -fno-asynchronous-unwind-tables "${@:3}" -S "$2" -o -' make "$compiler" "$source" "$@" |
            # No notes, and no directive that is newer than binutils 2.40.
            sed -E 's/[[:space:]]*#.*//; /^\.Lfunc_begin|^[[:space:]]*\.(cfi_|att_syntax|file)|^$/d; s/\.prefalign\t4.*/.p2align\t4/' >"${source%.c}-$compiler.s"
    done
}
gcc=(-fcf-protection=none -w) clang=(-fno-addrsig -fno-unroll-loops)
sources=static.c
make trixie gcc-13 "${gcc[@]}"
make trixie gcc-14 "${gcc[@]}"
make trixie clang-17 "${clang[@]}"
sources="static.c others.c"
make sid gcc-16 "${gcc[@]}"
make sid clang-23 "${clang[@]}"
