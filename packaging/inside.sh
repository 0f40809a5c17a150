#!/usr/bin/env bash
# Compiles the command inside a root folder, and makes a wheel of it, with this machine's rust toolchain and its fetched crates.
# Runs in a mount namespace of its own, which takes the mounts away when it ends. Usage: unshare --mount packaging/inside.sh ROOT SOURCES OUT
set -euo pipefail
root=$1 sources=$2 out=$3
mount_at() {
    mkdir -p "$root/$2"
    mount --bind "$1" "$root/$2"
}
mount_at "$sources" ompfuse/sources
mount_at "$out" ompfuse/out
mount_at "${RUSTUP_HOME:-$HOME/.rustup}" ompfuse/rustup
mount_at "${CARGO_HOME:-$HOME/.cargo}" ompfuse/cargo
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
# maturin is one static executable. It refuses a command that needs a newer glibc.
exec chroot "$root" env -i HOME=/root PATH=/ompfuse/cargo/bin:/usr/bin:/bin RUSTUP_HOME=/ompfuse/rustup CARGO_HOME=/ompfuse/cargo \
    CARGO_TARGET_DIR=/ompfuse/out/target CARGO_NET_OFFLINE=true \
    bash -c 'cd /ompfuse/sources && /ompfuse/out/tools/bin/maturin build --release --compatibility manylinux_2_28 --out /ompfuse/out'
