#!/usr/bin/env bash
# Runs groups of end-to-end tests N times in a row, beside processes that keep all processors busy. None may fail.
# usage: tests/repeat.sh N [GROUP...]; without a group those that look at times.
set -euo pipefail
cd "$(dirname "$0")/.."

times=${1:?how often}
shift
[ $# -gt 0 ] || set -- truth:: mutexes:: ompp:: inputs:: traces::totals otf2::stretches exports::values cost:: \
    volume::an_interrupt pipeline::times ranks::one_job
tests=(cargo test --quiet --profile tests -p ompfuse-tests --test e2e --locked)
"${tests[@]}" --no-run

busy=()
log=$(mktemp)
trap 'kill "${busy[@]}"; rm -f "$log"' EXIT
for _ in $(seq "$(nproc)"); do
    while :; do :; done &
    busy+=($!)
done

failed=0
for n in $(seq "$times"); do
    if ! "${tests[@]}" -- "$@" >"$log" 2>&1; then
        failed=$((failed + 1))
        cat "$log"
    fi
    echo "$n of $times: $(grep '^test result:' "$log" || echo "no result")"
done
echo "$failed of $times failed"
[ "$failed" -eq 0 ]
