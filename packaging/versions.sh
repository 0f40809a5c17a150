#!/usr/bin/env bash
# Fails unless a command and each library inside it start with a version of glibc. Usage: packaging/versions.sh COMMAND VERSION
set -euo pipefail
command=$1 version=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
files=0
# Files inside begin as the command does. The same bytes stand elsewhere too, without a file behind them.
for at in $(LC_ALL=C grep --byte-offset --only-matching --text --perl-regexp '\x7fELF\x02\x01\x01\x00{9}\x03\x00\x3e\x00' "$command" | cut -d : -f 1); do
    tail -c "+$((at + 1))" "$command" >"$folder/file"
    # What the dynamic linker looks at before it loads a file.
    newest=$(readelf --wide --version-info "$folder/file" | sed -n 's/.*Name: GLIBC_\([0-9.]*\) .*/\1/p' | sort --version-sort | tail -n 1)
    echo "the file at $at needs glibc $newest"
    printf '%s\n' "$newest" "$version" | sort --version-sort --check 2>/dev/null || {
        echo "packaging: it needs a newer one than $version" >&2
        exit 1
    }
    # Without a version it would be missing from an older glibc, and nothing would say so before it is called.
    bare=$(objdump --dynamic-syms "$folder/file" | awk '/\*UND\*/ && !/ w / && NF == 5 && $NF !~ /^qemu_plugin_/ { print $NF }')
    [ -z "$bare" ] || {
        echo "packaging: it needs functions of no version:" $bare >&2
        exit 1
    }
    files=$((files + 1))
done
[ "$files" -eq 4 ] || {
    echo "packaging: $files files in $command, of the command, the recording and the auditing library, and the simulator's plugin" >&2
    exit 1
}
