#!/usr/bin/env bash
# Lets a Debian root link for an older glibc than its own: what is compiled there asks for no newer version of any function.
# Usage: packaging/glibc.sh VERSION ROOT TOOLS (a Python environment, whose pip brings zig)
#
# zig knows which functions each glibc had, and makes libraries without code to link with. gcc links with them here. zig itself
# would link its own unwinder into the libraries inside the command, but they must use that of the program (cli/build/versions.rs).
set -euo pipefail
version=$1 root=$2 tools=$3
[ ! -e "$root/ompfuse/glibc/$version" ] || exit 0
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
"$tools/bin/pip" install --quiet --target "$cache/zig" ziglang
echo 'int main(void) { return 0; }' >"$cache/empty.c"
ZIG_GLOBAL_CACHE_DIR=$cache "$cache/zig/ziglang/zig" cc -target "x86_64-linux-gnu.$version" "$cache/empty.c" -o "$cache/empty"
mkdir -p "$root/ompfuse/glibc"
cp "$cache"/o/*/lib*.so.* "$root/ompfuse/glibc"
usr=$root/usr/lib/x86_64-linux-gnu
for library in libm.so.6 libpthread.so.0 libdl.so.2 libutil.so.1 libresolv.so.2; do
    ln -sfn "/ompfuse/glibc/$library" "$usr/${library%.so.*}.so"
done
# Its clocks are libc's since glibc 2.17. Nothing else of it is used.
ln -sfn /ompfuse/glibc/libc.so.6 "$usr/librt.so"
# A linker script, which names a static library too.
sed -i 's# /lib/x86_64-linux-gnu/libc.so.6 # /ompfuse/glibc/libc.so.6 #' "$usr/libc.so"
grep -q /ompfuse/glibc/ "$usr/libc.so"
touch "$root/ompfuse/glibc/$version"
