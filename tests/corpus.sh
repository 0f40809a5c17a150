#!/usr/bin/env bash
# Scans files of others that use OpenMP, and counts what was found. Usage: tests/corpus.sh [FOLDER [NAME [EARLIER]]]
#
# Packages of Debian that depend on libgomp, and wheels, are downloaded into FOLDER (target/corpus) once, some 600 MB. What a scan hands
# to the next stage is kept for each file in FOLDER/dumps/NAME (now). With EARLIER, the name of other dumps, files that differ are named.
# The table counts constructs by rule and compiler, as `.comment` tells it, else by where the file is from; and why the others have no
# probe. OMPFUSE_BIN names the command, STAGE the stage (sites).
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-target/corpus} name=${2:-now} earlier=${3:-}
mkdir -p "$folder/packages" "$folder/files" "$folder/dumps/$name"
folder=$(cd "$folder" && pwd)
ompfuse=${OMPFUSE_BIN:-$PWD/target/tests/ompfuse} stage=${STAGE:-sites}
[ -x "$ompfuse" ] || { echo "corpus: there is no $ompfuse; build it, or set OMPFUSE_BIN" >&2; exit 1; }

# Small packages are many files by many compilers; the others hold many loops.
wheels='scikit-learn lightgbm xgboost-cpu faiss-cpu pyscf implicit gensim pot'
bookworm='openmolcas libgraphblas7 rawtherapee darktable libdnnl2 libgromacs7 psi4 relion mrtrix3 libopenblas0-openmp libtorch1.13'
trixie='rawtherapee libgraphicsmagick-q16-3t64 libmagickcore-7.q16-10 darktable muscle'

# Packages of a suite: those up to so many bytes, and these. The suite has lists of its own, so that it needn't be this machine's.
debian() { # SUITE BYTES PACKAGE...
    local suite=$1 bytes=$2 packages=$folder/packages/$1 lists=$folder/packages/$1.apt mirror
    shift 2
    [ ! -e "$packages/.done" ] || return 0
    mirror=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -m 1 '/debian/*$' || echo http://deb.debian.org/debian)
    mkdir -p "$packages" "$lists/lists/partial" "$lists/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$lists/sources.list"
    cat >"$lists/apt.conf" <<CONF
Dir::Etc::sourcelist "$lists/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$lists/lists";
Dir::State::status "/dev/null";
Dir::Cache "$lists/cache";
CONF
    export APT_CONFIG=$lists/apt.conf
    apt-get update -qq
    apt-cache rdepends libgomp1 | tail -n +3 | tr -d ' |' | sort -u | xargs apt-cache show --no-all-versions 2>/dev/null |
        awk -v most="$bytes" '/^Package:/ { name = $2 } /^Size:/ && $2 < most { print name }' >"$packages/names"
    printf '%s\n' "$@" >>"$packages/names"
    (cd "$packages" && sort -u names | xargs -n 40 apt-get -qq download)
    unset APT_CONFIG
    touch "$packages/.done"
}

# Of what a package holds, the files that need an OpenMP runtime.
unpack() { # SUITE PACKAGE
    local out=$folder/files/$1/$(basename "${2%.*}" | cut -d_ -f1)
    [ ! -e "$out" ] || return 0
    mkdir -p "$out" "$folder/unpacked"
    case $2 in
    *.deb) dpkg-deb -x "$2" "$folder/unpacked" ;;
    *) python3 -m zipfile -e "$2" "$folder/unpacked" ;;
    esac
    find "$folder/unpacked" -type f -size +4k -print0 | while IFS= read -r -d '' file; do
        if [ "$(head -c 4 "$file" | tr -d '\0')" = $'\x7fELF' ] && readelf -d "$file" 2>/dev/null | grep -q 'NEEDED.*lib\(gomp\|omp\|iomp5\)[-.]'; then
            cp "$file" "$out/"
        fi
    done
    rm -rf "$folder/unpacked"
}

debian bookworm 3000000 $bookworm
debian trixie 500000 $trixie
if [ ! -e "$folder/packages/wheels/.done" ]; then
    mkdir -p "$folder/packages/wheels"
    python3 -m pip -q download --no-deps --only-binary :all: -d "$folder/packages/wheels" $wheels
    touch "$folder/packages/wheels/.done"
fi
for package in "$folder"/packages/*/*.{deb,whl}; do
    [ ! -e "$package" ] || unpack "$(basename "$(dirname "$package")")" "$package"
done

# A dump, or why there is none, for each file. Names of folders become part of the file's.
dump() { # FILE
    local file=$1 to=${1#"$folder/files/"}
    to=$folder/dumps/$name/${to//\//@}.json
    cd "$folder/files"
    "$ompfuse" scan --dump "$stage" "${file#"$folder/files/"}" >"$to" 2>"$to.refused" || rm -f "$to"
    [ -s "$to.refused" ] && [ ! -e "$to" ] || rm -f "$to.refused"
}
export -f dump
export folder name ompfuse stage
rm -rf "${folder:?}/dumps/$name" && mkdir -p "$folder/dumps/$name"
find "$folder/files" -type f -print0 | sort -z | xargs -0 -n 1 -P "$(nproc)" bash -c 'dump "$1"' dump
[ "$stage" != sites ] || python3 tests/corpus.py "$folder" "$name" >"$folder/dumps/$name.txt"
[ "$stage" != sites ] || cat "$folder/dumps/$name.txt"
if [ -n "$earlier" ]; then
    diff -rq "$folder/dumps/$earlier" "$folder/dumps/$name" | tee "$folder/dumps/$name.differs"
    echo "corpus: $(wc -l <"$folder/dumps/$name.differs") files differ from $earlier"
fi
