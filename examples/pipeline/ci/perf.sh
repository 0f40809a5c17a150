#!/bin/sh
# Watches the performance of waves, in a pipeline or by hand:
#   ci/perf.sh counts       compares what is executed with perf/baseline.json.gz: exact, on any machine
#   ci/perf.sh times BASE   compares times with those of commit BASE, which is built and run here, too
#   ci/perf.sh accept       takes what was counted last as the baseline; commit it
# Exit status: 0 nothing got worse, 3 something did, others: it could not be told.
set -eu
cd "$(dirname "$0")/.."

# Another number of threads executes other units.
export OMP_NUM_THREADS=2 OMP_DYNAMIC=false OMP_WAIT_POLICY=passive
runs=${PERF_RUNS:-5}
baseline=perf/baseline.json.gz
out=perf/out
format=text
[ -z "${GITHUB_ACTIONS-}" ] || format=github # annotations are lines of the log

# The release build of a folder, with probes that sleep until `ompfuse record` wakes them.
build() {
    make --silent -C "$1" waves
    ompfuse patch "$1/waves" -o "$1/waves.rel" --dormant >/dev/null
}

# report NAME ARGUMENTS: compares, and writes what the pipeline shows.
report() {
    name=$1
    shift
    ompfuse diff "$@" --source-root "$PWD" --format "$format" \
        --markdown "$out/$name.md" --junit "$out/$name.xml" --gitlab "$out/$name.json"
}

compare_counts() {
    build .
    rm -rf "$out/counted"
    # Twice: what the two runs have in common is exact. Without the C library, whose functions depend on the processor.
    ompfuse record --quiet --simulate --repeat 2 --model libraries=no --events sim-instructions \
        -o "$out/counted" -- ./waves.rel >/dev/null
    ompfuse baseline "$out/counted" -o "$out/baseline.json.gz"
    [ -e "$baseline" ] || { echo "no $baseline yet: ci/perf.sh accept makes it"; return; }
    report counts "$baseline" "$out/counted" \
        --fail-on 'region("*").instructions>1%' \
        --fail-on 'region("*").units!=' \
        --fail-on 'executions!=' \
        --fail-on 'new-regions>0'
}

compare_times() {
    build .
    git worktree remove --force perf/base 2>/dev/null || true # left by a run that was broken off
    git worktree add --quiet --detach perf/base "$1"
    build perf/base
    rm -rf "$out/both"
    # In turns: a machine that gets slower meanwhile makes both slower.
    ompfuse record --quiet --events none -o "$out/both" --turns "$runs" \
        --against './waves.rel 8 32768' -- perf/base/waves.rel 8 32768 >/dev/null
    git worktree remove --force perf/base
    report times "$out/both/a" "$out/both/b" \
        --fail-on 'time>10%' \
        --fail-on 'region("*").time>25%' \
        --fail-on 'region("*").synchronization>50%' \
        --fail-on 'region("*").imbalance-time>50%'
}

mkdir -p "$out"
case ${1-} in
counts) compare_counts ;;
times) compare_times "${2:?the commit to compare with}" ;;
accept) cp "$out/baseline.json.gz" "$baseline" ;;
*) sed -n '2,5s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
