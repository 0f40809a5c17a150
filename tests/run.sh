#!/usr/bin/env bash
# All tests. The last line sums them up.
#
#   tests/run.sh [quick|first|second|whole|engine|lint]
#
# `quick` has what the last edit may have broken, in a minute or so. `second` has what needs other tools: readers of exported files, a
# browser, MPI. `first` has all else. `whole` takes every fixture, level and seed where the others take a few (an hour). `lint` has no
# tests: it checks all crates with clippy, whose compilation of them no test shares. `engine` installs a Java runtime and PySpark
# (500 MB), and tests what runs on them.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
"") what=() ;;
quick) exec tests/quick.sh ;;
first) what=(-- --skip second::) ;;
second) what=(--test e2e -- second::) ;;
whole)
    what=()
    export OMPFUSE_TESTS=whole
    ;;
engine)
    tests/setup.sh engine
    exec cargo test --profile tests --workspace --test e2e --locked -- --ignored exchange::spark
    ;;
lint)
    cargo fmt --all --check
    exec cargo clippy --profile tests --workspace --all-targets --locked -- -D warnings
    ;;
*)
    echo "usage: tests/run.sh [quick|first|second|whole|engine|lint]" >&2
    exit 2
    ;;
esac

tests/setup.sh

[ "${1:-}" = second ] || cargo fmt --all --check

# Many tests sleep, or wait for programs that do.
export RUST_TEST_THREADS=$((2 * $(nproc)))
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo test --profile tests --workspace --locked --no-fail-fast "${what[@]}" 2>&1 | tee "$log" || status=$?
if [ "${1:-}" = whole ]; then
    cargo test --profile tests -p ompfuse-tests --test e2e --locked -- --ignored --skip by_time:: --skip pipeline::times 2>&1 | tee -a "$log" || status=$?
fi
awk '
    /^test result:/ { passed += $4; failed += $6; ignored += $8; binaries++ }
    END {
        printf "test result: %s. %d passed; %d failed; %d ignored; in %d test binaries\n",
            failed || status ? "FAILED" : "ok", passed, failed, ignored, binaries
    }' status="$status" "$log"
exit "$status"
