#!/usr/bin/env bash
# Installs what the tests compile the fixtures with, where it is missing and apt-get can: clang 19 with libomp, gfortran,
# g++, binutils, lld, LLVM's tools, gdb, qemu-user, valgrind, tmux, a browser, and rustfmt and clippy. Without it the tests say what they skip; with CI=true a skip is a failure.
set -euo pipefail

missing=()
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
command -v g++ >/dev/null || missing+=(g++)
command -v gfortran >/dev/null || missing+=(gfortran)
command -v objdump >/dev/null || missing+=(binutils)
command -v dwz >/dev/null || missing+=(dwz)
command -v gdb >/dev/null || missing+=(gdb)
command -v ld.lld >/dev/null || missing+=(lld)
command -v llvm-objcopy-19 >/dev/null || missing+=(llvm-19)
command -v qemu-x86_64 >/dev/null || missing+=(qemu-user)
command -v valgrind >/dev/null || missing+=(valgrind)
command -v tmux >/dev/null || missing+=(tmux)
command -v less >/dev/null || missing+=(less)
command -v setpriv >/dev/null || missing+=(util-linux)
command -v clang-19 >/dev/null || missing+=(clang-19)
# The versions of fixtures/matrix.toml.
for version in 11 12; do
    command -v gcc-$version >/dev/null || missing+=(gcc-$version)
    command -v g++-$version >/dev/null || missing+=(g++-$version)
    command -v gfortran-$version >/dev/null || missing+=(gfortran-$version)
done
for version in 14 16; do
    command -v clang-$version >/dev/null || missing+=(clang-$version)
done
[ -e /usr/lib/llvm-16/lib/clang/16/lib/linux/libclang_rt.asan-x86_64.a ] || missing+=(libclang-rt-16-dev)
command -v flang-new-19 >/dev/null || missing+=(flang-19)
# Both implementations of MPI.
command -v mpirun.openmpi >/dev/null || missing+=(openmpi-bin)
command -v mpicc.openmpi >/dev/null || missing+=(libopenmpi-dev)
command -v mpirun.mpich >/dev/null || missing+=(mpich)
command -v mpicc.mpich >/dev/null || missing+=(libmpich-dev)
[ -e /usr/lib/llvm-19/lib/libomp.so ] || missing+=(libomp-19-dev)
# Installed software that is profiled as it is.
command -v heaptrack >/dev/null || missing+=(heaptrack)
command -v gm >/dev/null || missing+=(graphicsmagick)
[ -e /usr/include/fftw3.h ] || missing+=(libfftw3-dev)
[ -e /usr/lib/x86_64-linux-gnu/openblas-openmp ] || missing+=(libopenblas0-openmp)
[ -e /usr/lib/python3/dist-packages/numpy ] || missing+=(python3-numpy)
# Opens pages; npm gets what drives it (tests/page).
command -v chromium >/dev/null || missing+=(chromium)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
# Writes OTF2, and prints it.
command -v otf2-print >/dev/null || missing+=(otf2-tools)
# Readers of what is exported (tests/foreign).
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)

# An engine for units (tests/run.sh engine).
[ "${1:-}" != engine ] || command -v java >/dev/null || missing+=(default-jre-headless)

if [ ${#missing[@]} -gt 0 ]; then
    if ! command -v apt-get >/dev/null; then
        echo "setup: no apt-get here; please install: ${missing[*]}" >&2
    else
        as_root=()
        [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
        export DEBIAN_FRONTEND=noninteractive
        "${as_root[@]}" apt-get update -qq &&
            "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
            echo "setup: could not install ${missing[*]}: tests that need them are skipped" >&2
    fi
fi

if command -v rustup >/dev/null; then
    cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
    cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
fi

# Their packages, beside what the tests build.
cd "$(dirname "$0")/.."
foreign="${CARGO_TARGET_DIR:-target}/foreign"
mkdir -p "$foreign"
# An interpreter with the packages that a file lists, and those beside it that are installed without what they need. Nothing is
# compiled ahead: each is used once or twice.
python_with() {
    lists=("$(dirname "$1")"/*.txt)
    cat "${lists[@]}" | cmp -s - "$2/requirements.txt" && return
    alone="$(dirname "$1")/without-dependencies.txt"
    mkdir -p "$2"
    python3 -m venv "$2/python" &&
        "$2/python/bin/python" -m pip install -q --no-compile -r "$1" &&
        { [ ! -e "$alone" ] || "$2/python/bin/python" -m pip install -q --no-compile --no-deps -r "$alone"; } &&
        cat "${lists[@]}" >"$2/requirements.txt" ||
        echo "setup: could not install the Python packages of $1: tests that need them are skipped" >&2
}
python_with tests/foreign/requirements.txt "$foreign"
python_with tests/foreign/tables/requirements.txt "$foreign/tables"
[ "${1:-}" != engine ] || python_with tests/foreign/spark/requirements.txt "$foreign/spark"
if ! cmp -s tests/foreign/package-lock.json "$foreign/package-lock.json"; then
    cp tests/foreign/package.json tests/foreign/package-lock.json "$foreign/" &&
        (cd "$foreign" && npm ci --silent --ignore-scripts) || {
        rm -f "$foreign/package-lock.json"
        echo "setup: could not install npm's packages of tests/foreign: tests that need them are skipped" >&2
    }
fi
