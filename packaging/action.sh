#!/bin/sh
# The commands of action.yml:
#   action.sh key       names the folder to keep, and these sources by a hash
#   action.sh install   compiles ompfuse into that folder, if it wasn't kept
#   action.sh compare   records OMPFUSE_RUN and compares it with OMPFUSE_BASELINE
# Exit status of compare: 0 nothing got worse or there is no baseline yet, 3 something did, others: it could not be told.
set -eu
sources=$(cd "$(dirname "$0")/.." && pwd)
folder=${OMPFUSE_FOLDER:-$HOME/.cache/ompfuse-action}
out=${RUNNER_TEMP:-/tmp}/ompfuse
# GitHub has a file for each; by hand it is the terminal.
outputs=${GITHUB_OUTPUT:-/dev/stdout}
summary=${GITHUB_STEP_SUMMARY:-/dev/stdout}

key() {
    hash=$(cd "$sources" && find . -type f ! -path './target/*' ! -path './.git/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum)
    printf 'folder=%s\nkey=%s\n' "$folder" "${hash%% *}" >>"$outputs"
}

install() {
    cargo install --quiet --locked --path "$sources/cli" --root "$folder"
}

compare() {
    PATH=$folder/bin:$PATH
    rm -rf "$out"
    eval "set -- $OMPFUSE_RUN"
    # Twice: what the two runs have in common is exact.
    ompfuse record --quiet --count --repeat 2 --events none -o "$out/runs" -- "$@" >/dev/null
    ompfuse baseline --counts "$out/runs" -o "$out/baseline.json.gz"
    echo "baseline=$out/baseline.json.gz" >>"$outputs"
    if [ ! -e "$OMPFUSE_BASELINE" ]; then
        echo "::notice::There is no $OMPFUSE_BASELINE yet: commit the output \`baseline\` of this step as that file."
        return
    fi
    set --
    while IFS= read -r condition; do
        [ -z "$condition" ] || set -- "$@" --fail-on "$condition"
    done <<CONDITIONS
$OMPFUSE_FAIL_ON
CONDITIONS
    status=0
    ompfuse diff "$OMPFUSE_BASELINE" "$out/runs" --source-root "$PWD" --format github --format markdown="$out/diff.md" "$@" || status=$?
    [ ! -e "$out/diff.md" ] || cat "$out/diff.md" >>"$summary"
    return "$status"
}

case ${1-} in
key | install | compare) "$1" ;;
*) sed -n '2,6s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
