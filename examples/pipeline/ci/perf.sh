#!/bin/sh
# Watches the performance of waves, in a pipeline or by hand:
#   ci/perf.sh counts       compares what is executed with perf/baseline.json.gz: exact, on any machine
#   ci/perf.sh times BASE   compares times with those of commit BASE, which is built and run here, too
#   ci/perf.sh accept       takes what was counted last as the baseline; commit it
#   ci/perf.sh keep         adds what was measured last to the branch perf-history
#   ci/perf.sh history      shows what changed over the commits of that branch
# Exit status: 0 nothing got worse, 3 something did, others: it could not be told.
set -eu
cd "$(dirname "$0")/.."

# Another number of threads executes other units.
export OMP_NUM_THREADS=2 OMP_DYNAMIC=false OMP_WAIT_POLICY=passive
runs=${PERF_RUNS:-5}
baseline=perf/baseline.json.gz
out=perf/out
kept=refs/remotes/origin/perf-history
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
        --format markdown="$out/$name.md" --format junit="$out/$name.xml" --format gitlab="$out/$name.json"
}

compare_counts() {
    make --silent waves
    rm -rf "$out/counted"
    # Twice: what the two runs have in common is exact.
    ompfuse record --quiet --count --repeat 2 --events none -o "$out/counted" -- ./waves >/dev/null
    ompfuse baseline --counts "$out/counted" -o "$out/baseline.json.gz"
    [ -e "$baseline" ] || { echo "no $baseline yet: ci/perf.sh accept makes it"; return; }
    report counts "$baseline" "$out/counted" \
        --fail-on 'region("*").instructions>0.5%' \
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
    ompfuse baseline "$out/both/b" -o "$out/times.json.gz"
    report times "$out/both/a" "$out/both/b" \
        --fail-on 'time>10%' \
        --fail-on 'region("*").time>25%' \
        --fail-on 'region("*").synchronization>50%' \
        --fail-on 'region("*").imbalance-time>50%'
}

# The history as origin has it, if it has one.
fetch() {
    git fetch --quiet origin "+refs/heads/perf-history:$kept" 2>/dev/null || true
}

# A file for this commit and each kind of measurement, in a branch that has nothing else. Nothing is checked out.
keep() {
    commit=$(git rev-parse HEAD)
    for try in 1 2 3; do # another pipeline may have pushed meanwhile
        fetch
        parent=$(git rev-parse --verify --quiet "$kept" || true)
        kept_commit=$(
            export GIT_INDEX_FILE="$PWD/$out/index"
            git read-tree "${parent:---empty}"
            for kind in baseline times; do
                [ -e "$out/$kind.json.gz" ] || continue
                file=$(git hash-object -w "$out/$kind.json.gz")
                git update-index --add --cacheinfo "100644,$file,$commit-$kind.json.gz"
            done
            git -c user.name=performance -c user.email=performance@localhost \
                commit-tree "$(git write-tree)" ${parent:+-p "$parent"} -m "Keep $commit"
        )
        git push --quiet origin "$kept_commit:refs/heads/perf-history" && return
    done
    return 1
}

show_history() {
    fetch
    ompfuse history origin/perf-history:. --html "$out/history.html" --badge "$out/badge.svg"
}

mkdir -p "$out"
case ${1-} in
counts) compare_counts ;;
times) compare_times "${2:?the commit to compare with}" ;;
accept) cp "$out/baseline.json.gz" "$baseline" ;;
keep) keep ;;
history) show_history ;;
*) sed -n '2,7s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
