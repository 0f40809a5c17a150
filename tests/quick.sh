#!/usr/bin/env bash
# What an edit breaks, in a minute or so: the unit tests of the crates that it touches and of those that read what these write, and a
# handful of end-to-end tests for the rest. Whoever has more time takes tests/run.sh.
#
# The edit is what differs from the last commit; where nothing does, the last commit itself.
set -euo pipefail
cd "$(dirname "$0")/.."

changed=$(git status --porcelain --untracked-files=all | cut -c4-)
[ -n "$changed" ] || changed=$(git diff --name-only HEAD~1)

units=()
groups=()
# The first that fits: longer paths first.
while read -r file; do
    case $file in
    runtime/format/*) units+=(format fuse) groups+=(records) ;;
    runtime/* | include/*) units+=(runtime) groups+=(records) ;;
    rewriter/* | patterns/*) units+=(rewriter patterns) groups+=(sites records) ;;
    fuse/*) units+=(fuse account) groups+=(reports) ;;
    account/* | compare/*) units+=("${file%%/*}" report) groups+=(reports) ;;
    report/*) units+=(report) groups+=(reports) ;;
    export/*) units+=(export) groups+=(exports) ;;
    cli/*) units+=(cli) groups+=(reports commands) ;;
    progress/* | otf2/* | study/* | simpmu/*) units+=("${file%%/*}") ;;
    tests/* | fixtures/* | Cargo.*) groups+=(records commands) ;;
    esac
done <<<"$changed"

# Tests by what they look at; small programs, few runs.
declare -A tests=(
    [sites]="scan:: patch::loops patch::tasking patch::the_same_input counts::repeated"
    [records]="labels:: truth:: accounting::loops accounting::tasking executions::loops executions::tasking creation::"
    [reports]="prebuilt:: accounting::loops columns::listing11 few_tasks::"
    [exports]="traces:: exports::values"
    [commands]="errors:: prebuilt:: first_steps::"
)

run() {
    cargo test --quiet --profile quick --locked "$@"
}

packages=()
for unit in $(printf '%s\n' "${units[@]}" | sort -u); do packages+=(-p "ompfuse-$unit"); done
[ ${#packages[@]} -eq 0 ] || run "${packages[@]}" --lib --bins

filters=()
for group in $(printf '%s\n' "${groups[@]}" | sort -u); do
    for filter in ${tests[$group]}; do filters+=("$filter"); done
done
[ ${#filters[@]} -eq 0 ] || run -p ompfuse-tests --test e2e -- "${filters[@]}"
