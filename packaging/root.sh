#!/usr/bin/env bash
# Makes a Debian root folder, once. Usage: packaging/root.sh SUITE FOLDER PACKAGE,PACKAGE...
set -euo pipefail
suite=$1 folder=$2 packages=$3
[ ! -e "$folder/.made" ] || exit 0
[ "$(id -u)" -eq 0 ] || {
    echo "packaging: a $suite root needs root's rights; run this as root, or build for this machine's glibc by OMPFUSE_HERE=1" >&2
    exit 1
}
command -v debootstrap >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap
# The mirror that this machine's packages come from.
mirror=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -m 1 '/debian/*$' || echo http://deb.debian.org/debian)
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
debootstrap --variant=minbase --include="$packages" "$suite" "$folder" "$mirror" >"$folder.log" 2>&1 || {
    echo "packaging: debootstrap of $suite failed; $folder.log says why" >&2
    exit 1
}
touch "$folder/.made"
