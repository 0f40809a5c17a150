#!/bin/sh
# ScALPEL's case study: what `dgemm_` of several BLAS libraries costs inside a LINPACK-like program, with event sets that take turns every
# 100 calls, against runs that count one set each. Not for CI: it takes some minutes. Debian's packages are libopenblas0-openmp,
# libblis4-openmp, libblas3 and libatlas3-base; a library that is missing is left out.
# Usage: tests/scalpel/run.sh FOLDER [ROUNDS] (outside of the repository; the command is $OMPFUSE, or ompfuse)
# Counters are simulated. With EVENTS=instructions,cycles,... those of the processor are read instead.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?usage: tests/scalpel/run.sh FOLDER [ROUNDS]}
rounds=${2:-10}
ompfuse=${OMPFUSE:-ompfuse}
libraries=/usr/lib/x86_64-linux-gnu
counted=${EVENTS:+--events $EVENTS}
counted=${counted:---simulate}
mkdir -p "$folder"
cd "$folder"
# One thread: a call's counts are the calling thread's. OpenBLAS has 60 KB of thread-local variables.
export OMP_NUM_THREADS=1 GLIBC_TUNABLES=glibc.rtld.optional_static_tls=131072

names="openblas blis reference atlas"
for name in $names; do
    case $name in
        openblas) build=openblas-openmp/libopenblas.so.0 ;;
        blis) build=blis-openmp/libblas.so.3 ;;
        reference) build=blas/libblas.so.3 ;;
        atlas) build=atlas/libblas.so.3 ;;
    esac
    [ -e "$libraries/$build" ] || { echo "$libraries/$build is missing" >&2; continue; }
    gcc -O2 -g "$here/linpack.c" "$libraries/$build" -Wl,-rpath,"$libraries/${build%%/*}" -lm -o "linpack.$name"
    rm -rf "$name.turns" "$name.sets" "$name.fast"
    recorded() { # FOLDER OPTION...
        to=$1
        shift
        "$ompfuse" record -q --slots 4 --functions 'lib:lib*blas*:dgemm_' --select fn:dgemm_ -o "$to" "$@" -- \
            "./linpack.$name" "$rounds" >"$to.out"
    }
    # shellcheck disable=SC2086 # several words
    recorded "$name.sets" $counted
    # shellcheck disable=SC2086
    recorded "$name.turns" $counted --rotate 100
    recorded "$name.fast" --events none
    # As many results as runs: all are one.
    [ "$(cat "$name".*.out | sort -u | wc -l)" = 1 ]
    "$ompfuse" export --to chrome "$name.turns/run-0001" -o "$name.trace.json"
    for run in "$name".sets/run-*; do
        "$ompfuse" report "$run" --format json >"$run.json"
    done
    "$ompfuse" report "$name.fast" --format json >"$name.fast.json"
done
# shellcheck disable=SC2086
python3 "$here/compare.py" $names
