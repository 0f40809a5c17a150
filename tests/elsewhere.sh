#!/usr/bin/env bash
# End-to-end tests in another Debian release, with its newest compilers and its C library. Usage: tests/elsewhere.sh SUITE [FILTER...]
#
#   tests/elsewhere.sh trixie                    # gcc 14, clang 22, glibc 2.41
#   tests/elsewhere.sh sid matrix:: counts::     # some groups
#
# Command and tests are built here. They run in a root folder of that release (target/elsewhere/SUITE; remove it for newer packages),
# whose newest compilers build the fixtures: they stand for gcc 12 and clang 19, and those before them for gcc 11, clang 16 and 14.
# Left out is what needs other tools: readers of files, a browser, MPI (`second::`, `foreign::`), cargo (`documents::`). Nothing is
# simulated: newer qemu's don't take the plugin. What lacks a tool is skipped, and said. Needs root's rights; five minutes for a new
# root, and a quarter of an hour for all tests.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "usage: tests/elsewhere.sh SUITE [FILTER...]" >&2; exit 2; }
suite=$1
shift
folder=$PWD/target/elsewhere/$suite root=$PWD/target/elsewhere/$suite/root
mkdir -p "$folder/fixtures"
packaging/root.sh "$suite" "$root" ca-certificates

# Runs a command there: with the kernel's folders, and with this folder at its path. Fixtures are apart from those of here.
inside() {
    unshare --mount bash -c '
        root=$1 here=$2 fixtures=$3
        shift 3
        mkdir -p "$root$here"
        mount --bind "$here" "$root$here"
        mkdir -p "$here/target/fixtures"
        mount --bind "$fixtures" "$root$here/target/fixtures"
        for kernels in proc sys dev; do mount --rbind "/$kernels" "$root/$kernels"; done
        [ ! -e /etc/resolv.conf ] || cp -L /etc/resolv.conf "$root/etc/resolv.conf"
        exec chroot "$root" "$@"' inside "$root" "$PWD" "$folder/fixtures" "$@"
}

if [ ! -e "$folder/tools" ]; then
    inside env DEBIAN_FRONTEND=noninteractive bash -euc '
        apt-get update -qq -o Acquire::Check-Valid-Until=false # a mirror may be some weeks old
        versions() { apt-cache pkgnames "$1-" | grep -E "^$1-[0-9]+$" | sort -rV | head "-$2" | sed "s/.*-//"; }
        gcc=($(versions gcc 2)) clang=($(versions clang 3))
        wanted="libomp-$clang-dev llvm-$clang lld-$clang libclang-rt-$clang-dev flang-$clang libc6-dev binutils binutils-gold dwz gdb tmux
            less procps git make valgrind python3 python3-numpy heaptrack graphicsmagick libfftw3-dev libopenblas0-openmp"
        for version in "${gcc[@]}"; do wanted+=" gcc-$version g++-$version gfortran-$version"; done
        for version in "${clang[@]}"; do wanted+=" clang-$version"; done
        there=$(for package in $wanted; do apt-cache pkgnames "$package" | grep -x -F -- "$package" || echo "elsewhere: no package $package" >&2; done)
        apt-get install -y -qq --no-install-recommends $there
        name() { ln -sf "$1" "/usr/local/bin/$2"; }
        for tool in gcc g++ gfortran; do
            name "/usr/bin/$tool-$gcc" "$tool"
            name "/usr/bin/$tool-$gcc" "$tool-12"
            name "/usr/bin/$tool-${gcc[1]}" "$tool-11"
        done
        for tool in "/usr/lib/llvm-$clang/bin"/*; do name "$tool" "${tool##*/}-19"; done
        for tool in clang clang++; do
            name "/usr/bin/$tool-${clang[1]}" "$tool-16"
            name "/usr/bin/$tool-${clang[2]}" "$tool-14"
        done
        name "/usr/lib/llvm-$clang/bin/flang" flang-new-19
        name "/usr/lib/llvm-$clang/bin/ld.lld" ld.lld
        # Where another release has libomp itself, it has only that.
        [ -e /usr/lib/llvm-19 ] || ln -s "/usr/lib/llvm-$clang" /usr/lib/llvm-19
        [ -e /usr/lib/llvm-19/lib/libomp.so ] || ln -s libomp.so.5 /usr/lib/llvm-19/lib/libomp.so
        include=lib/clang/19/include
        mkdir -p "/usr/lib/llvm-19/$include"
        [ -e "/usr/lib/llvm-19/$include/omp.h" ] || ln -s /usr/lib/llvm-$clang/lib/clang/$clang/include/omp*.h "/usr/lib/llvm-19/$include"' >"$folder/tools.log" 2>&1 || {
        echo "elsewhere: packages could not be installed; $folder/tools.log says why" >&2
        exit 1
    }
    touch "$folder/tools"
fi

cargo build --profile tests --workspace --locked --bins --test e2e
tests=$(cargo test --profile tests --workspace --locked --test e2e --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')
[ -e "$tests" ] || { echo "elsewhere: cargo names no test" >&2; exit 1; }
# Others may build meanwhile.
cp --remove-destination target/tests/ompfuse "$folder/ompfuse"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
inside env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=xterm OMPFUSE_BIN="$folder/ompfuse" RUST_TEST_THREADS="$((2 * $(nproc)))" \
    bash -c 'cd "$1" && shift && for tool in gcc-11 gcc-12 clang-14 clang-16 clang-19 flang-new-19; do "$tool" --version 2>&1 | head -1; done && "$@"' inside \
    "$PWD/tests" "$PWD/${tests#"$PWD/"}" --skip second:: --skip foreign:: --skip documents:: "$@" 2>&1 | tee "$log" || status=$?
awk '
    /^test result:/ { passed += $4; failed += $6; ignored += $8 }
    /^SKIPPED:/ { skipped++ }
    END {
        printf "test result in %s: %s. %d passed; %d failed; %d ignored; %d times a tool was missing\n",
            suite, failed || status ? "FAILED" : "ok", passed, failed, ignored, skipped
    }' suite="$suite" status="$status" "$log"
exit "$status"
