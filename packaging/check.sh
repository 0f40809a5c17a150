#!/usr/bin/env bash
# Runs inside a fresh root, in which /try holds the packages, their command and a program.
set -euo pipefail
cd /try
glibc=$(ldd --version | sed -n '1s/.* //p')
profile() { # what is installed, its command
    cmp "$(command -v "$2")" /try/ompfuse
    OMP_NUM_THREADS=2 "$2" profile -o "/try/out-$1" --report "/try/report-$1" -- ./primes >"/try/output-$1"
    ./primes >/try/output
    cmp /try/output "/try/output-$1"
    "$2" report "/try/out-$1" --format json | grep -q '"schema"\|"version"'
    [ -s "/try/report-$1" ]
}
dpkg --install ./ompfuse_*_amd64.deb >/dev/null
profile deb ompfuse
man --where ompfuse ompfuse-profile >/dev/null
[ -s /usr/share/bash-completion/completions/ompfuse ]
dpkg --purge ompfuse >/dev/null
! command -v ompfuse >/dev/null
tar --extract --file ompfuse-*-x86_64-linux.tar.gz
profile tarball "$(echo /try/ompfuse-*-x86_64-linux/bin/ompfuse)"
python3 -m venv /try/venv
/try/venv/bin/pip install --quiet --no-index ./ompfuse-*.whl
profile wheel /try/venv/bin/ompfuse
echo "glibc $glibc: the Debian package, the tarball and the wheel install, and profile a program"
