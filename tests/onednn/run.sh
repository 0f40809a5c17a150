#!/bin/sh
# One oneDNN release, built by Intel's compiler with libiomp5 and by gcc with libgomp: both are recorded unmodified, and their call paths
# are listed and compared. Not for CI: it downloads 110 MB from PyPI. Usage: tests/onednn/run.sh FOLDER (the command is $OMPFUSE, or ompfuse)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?usage: tests/onednn/run.sh FOLDER}
ompfuse=${OMPFUSE:-ompfuse}
version=2023.2.0
mkdir -p "$folder"
cd "$folder"
for package in onednn-cpu-gomp onednn-cpu-iomp onednn-devel-cpu-gomp intel-openmp intel-cmplr-lib-rt; do
    python3 -m pip -q download --no-deps -d wheels "$package==$version"
done
for wheel in wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "unpacked/$(basename "$wheel" .whl)"
done
of() { # the folder of a file in a package
    dirname "$(find "$PWD"/unpacked/$1-* -name "$2" | head -n 1)"
}
gomp=$(of onednn_cpu_gomp libdnnl.so.3)
iomp=$(of onednn_cpu_iomp libdnnl.so.3):$(of intel_openmp libiomp5.so):$(of intel_cmplr_lib_rt libsvml.so)
g++ -O2 -I "$(of onednn_devel_cpu_gomp dnnl.hpp)" "$here/driver.cpp" -L "$gomp" -ldnnl -o driver
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" OMP_WAIT_POLICY=passive
rm -rf gomp iomp
LD_LIBRARY_PATH=$gomp "$ompfuse" record -q --events none -o gomp -- ./driver
LD_LIBRARY_PATH=$iomp "$ompfuse" record -q --events none -o iomp -- ./driver
for run in gomp iomp; do
    echo "$run: thread time in seconds, executions, callers"
    "$ompfuse" report "$run" --format json | python3 "$here/callers.py"
done
"$ompfuse" diff gomp iomp --anyway || true
