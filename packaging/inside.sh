#!/usr/bin/env bash
# Compiles the command inside a root folder, with this machine's rust toolchain and its fetched crates. Runs in a mount namespace of its
# own, which takes the mounts away when it ends. Usage: unshare --mount packaging/inside.sh ROOT SOURCES TARGET
set -euo pipefail
root=$1 sources=$2 target=$3
mount_at() {
    mkdir -p "$root/$2"
    mount --bind "$1" "$root/$2"
}
mkdir -p "$target"
mount_at "$sources" ompfuse/sources
mount_at "$target" ompfuse/target
mount_at "${RUSTUP_HOME:-$HOME/.rustup}" ompfuse/rustup
mount_at "${CARGO_HOME:-$HOME/.cargo}" ompfuse/cargo
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" env -i HOME=/root PATH=/ompfuse/cargo/bin:/usr/bin:/bin RUSTUP_HOME=/ompfuse/rustup CARGO_HOME=/ompfuse/cargo \
    CARGO_TARGET_DIR=/ompfuse/target CARGO_NET_OFFLINE=true \
    cargo build --release --locked --manifest-path /ompfuse/sources/Cargo.toml
