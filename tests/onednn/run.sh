#!/bin/sh
# One oneDNN release, built by Intel's compiler with libiomp5 and by gcc with libgomp: both are recorded unmodified and compared, and the
# pairs are checked against what each operation executes alone. Not for CI: it downloads 145 MB from PyPI, once.
# Usage: tests/onednn/run.sh FOLDER (outside of the repository; the command is $OMPFUSE, or ompfuse)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?usage: tests/onednn/run.sh FOLDER}
ompfuse=${OMPFUSE:-ompfuse}
version=2023.2.0
mkdir -p "$folder"
cd "$folder"
for package in onednn-cpu-gomp onednn-cpu-iomp onednn-devel-cpu-gomp intel-openmp intel-cmplr-lib-rt; do
    wheel=$(echo "$package" | tr - _)-$version
    [ -e "unpacked/$wheel" ] && continue
    python3 -m pip -q download --no-deps -d wheels "$package==$version"
    python3 -m zipfile -e wheels/"$wheel"-*.whl "unpacked/$wheel"
done
of() { # the folder of a file in a package
    dirname "$(find "$PWD/unpacked/$1-$version" -name "$2" | head -n 1)"
}
gomp=$(of onednn_cpu_gomp libdnnl.so.3)
iomp=$(of onednn_cpu_iomp libdnnl.so.3):$(of intel_openmp libiomp5.so):$(of intel_cmplr_lib_rt libsvml.so)
# Without symbols: the driver's own functions would tell each operation.
g++ -O2 -s -I "$(of onednn_devel_cpu_gomp dnnl.hpp)" "$here/driver.cpp" -L "$gomp" -ldnnl -o driver
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" OMP_WAIT_POLICY=passive

# compared NAME [OPERATION...]: records both builds, and compares them in NAME.json.
compared() {
    name=$1
    shift
    rm -rf "runs/$name"
    LD_LIBRARY_PATH=$gomp "$ompfuse" record -q --events none -o "runs/$name/gomp" -- ./driver "$@" >"$name.gomp.out"
    LD_LIBRARY_PATH=$iomp "$ompfuse" record -q --events none -o "runs/$name/iomp" -- ./driver "$@" >"$name.iomp.out"
    cmp "$name.gomp.out" "$name.iomp.out"
    "$ompfuse" diff "runs/$name/gomp" "runs/$name/iomp" --anyway --format json >"$name.json"
}

# Both builds choose the same implementations, as oneDNN itself says.
for build in gomp iomp; do
    eval "libraries=\$$build"
    LD_LIBRARY_PATH=$libraries ONEDNN_VERBOSE=1 ./driver | grep ',exec,' | cut -d, -f4,5,8,9,10 | uniq -c >"chosen.$build"
done
cmp chosen.gomp chosen.iomp

compared all
"$ompfuse" diff runs/all/gomp runs/all/iomp --top 100
operations=$(LD_LIBRARY_PATH=$gomp ./driver --list)
for operation in $operations; do
    compared "$operation" "$operation"
    set -- "$@" "$operation=$operation.json"
done
shift
python3 "$here/check.py" all.json "$@"
