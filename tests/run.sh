#!/usr/bin/env bash
# Everything that has to hold before a change is merged: format, lints, all tests. The last line sums up the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

tests/setup.sh

cargo fmt --all --check
# One profile: build scripts and macros are then compiled once for lints and tests.
cargo clippy --profile tests --workspace --all-targets --locked -- -D warnings

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo test --profile tests --workspace --locked --no-fail-fast 2>&1 | tee "$log" || status=$?
awk '
    /^test result:/ { passed += $4; failed += $6; ignored += $8; binaries++ }
    END {
        printf "test result: %s. %d passed; %d failed; %d ignored; in %d test binaries\n",
            failed || status ? "FAILED" : "ok", passed, failed, ignored, binaries
    }' status="$status" "$log"
exit "$status"
