#!/bin/sh
# Profiles Debian's CP2K (packages cp2k, cp2k-data), a hybrid program of 50 MB, as it is: two ranks of two threads. The patched program must
# compute the original's energy, and the report must have as many calls and bytes as a library that counts them through
# MPI's profiling interface (tests/sources/mpicount.c), by rank and function.
#
# usage: tests/hybrid/cp2k.sh [OMPFUSE [FOLDER]]
set -eu
ompfuse=$(realpath "${1:-target/release/ompfuse}")
folder=${2:-$(mktemp -d)}
here=$(realpath "$(dirname "$0")")
program=$(command -v cp2k.psmp) || {
    echo "cannot find cp2k.psmp: install Debian's packages cp2k and cp2k-data" >&2
    exit 1
}
mkdir -p "$folder" && cd "$folder"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMP_NUM_THREADS=2 CP2K_DATA_DIR=/usr/share/cp2k

# Functions of which mpicount.c knows no arguments are only counted: handing on fourteen of them does no harm.
{
    echo '#include "mpicount.c"'
    echo '#define ALL (P a, P b, P c, P d, P e, P f, P g, P h, P i, P j, P k, P l, P m, P n)'
    echo '#define HANDED_ON (a, b, c, d, e, f, g, h, i, j, k, l, m, n)'
    nm -D --undefined-only "$program" | sed -n 's/^ *U mpi_\([a-z_]*\)_\(@.*\)\?$/\1/p' | while read -r name; do
        case $name in
        irecv | isend | send | recv | sendrecv | waitall | allreduce | bcast | gather | alltoall | barrier | finalize) ;;
        wtime | wtick | get_address | init*) ;;
        *) echo "FUNCTION(\"$name\", $name, ALL, HANDED_ON, 0, 0, 0)" ;;
        esac
    done
} >count.c
# The same of calls that its libraries make in C (ScaLAPACK), but for those of MPI itself.
cat >count_c.c <<'COUNT'
#define COUNTS "counts-c"
#include "mpicount.c"
void tell_of_c(void) { tell(); }
void count_call(const char *name) { count(name, 0, 0, 0); }
COUNT
known=$(sed -n 's/^FUNCTION(\([A-Z][A-Za-z_]*\),.*/\1/p' "$here/../sources/mpicount.c")
{
    echo 'typedef void *P; void count_call(const char *);'
    ldd "$program" | sed -n 's/.*=> \([^ ]*\) .*/\1/p' | grep -v -e libmpi -e libopen- | xargs nm -D --undefined-only 2>/dev/null |
        sed -n 's/^ *U MPI_\([A-Z][A-Za-z_]*\)\(@.*\)\?$/\1/p' | sort -u | while read -r name; do
        case " $(echo $known) Finalize Init Init_thread Wtime Wtick Pcontrol " in
        *" $name "*) ;;
        *) printf 'int PMPI_%s();\nint MPI_%s(P a, P b, P c, P d, P e, P f, P g, P h, P i, P j, P k, P l) {\n count_call("MPI_%s");\n return PMPI_%s(a, b, c, d, e, f, g, h, i, j, k, l); }\n' "$name" "$name" "$name" "$name" ;;
        esac
    done
} >count_others.c
mpicc.openmpi -w -O1 -fPIC -c -DWITH_FORTRAN -I"$here/../sources" count.c
mpicc.openmpi -w -O1 -fPIC -c -I"$here/../sources" count_c.c
mpicc.openmpi -w -O1 -fPIC -c count_others.c
mpicc.openmpi -shared count.o count_c.o count_others.o -o libcount.so

launch() { mpirun.openmpi -n 2 -x LD_PRELOAD="$folder/libcount.so" cp2k.psmp -i "$here/water.inp"; }
energy() { sed -n 's/^ ENERGY| Total FORCE_EVAL.*: *//p' "$1"; }

begin=$(date +%s.%N)
launch >original.txt
between=$(date +%s.%N)
"$ompfuse" profile --events none -o run -- \
    mpirun.openmpi -n 2 -x LD_PRELOAD="$folder/libcount.so" cp2k.psmp -i "$here/water.inp" >patched.txt 2>said.txt
end=$(date +%s.%N)
"$ompfuse" report --format json run >report.json

# Sums depend on the order in which threads and messages come: in the original, too, the last digits differ from run to run on a busy machine.
is_same() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != 0 && d <= 1e-13 * (a < 0 ? -a : a)) }'; }
is_same "$(energy original.txt)" "$(energy patched.txt)" || {
    echo "cannot compare energies: $(energy original.txt) and $(energy patched.txt) in $folder" >&2
    exit 1
}
echo "energy $(energy original.txt) a.u., patched $(energy patched.txt) a.u.; original $(echo "$between - $begin" | bc) s, profiled $(echo "$end - $between" | bc) s, patching included"
python3 - <<'PYTHON'
import collections, json
report = json.load(open("report.json"))
counted = {}
for rank in range(2):
    for path in f"counts.{rank}", f"counts-c.{rank}":
        for line in open(path):
            name, *numbers = line.split()
            sum = counted.setdefault((rank, name.lower()), [0] * 4)
            for at, number in enumerate(numbers):
                sum[at] += int(number)
calls = collections.Counter()
told = {}
for region in report["regions"]:
    if region["construct"] != "mpi":
        continue
    name = region["detail"].split(",")[0].lower()
    calls[name] += region["executions"]
    for of in region.get("ranks", {}).get("per_rank", []):
        if of.get("transfer"):
            sum = told.setdefault((of["rank"], name), [0] * 4)
            for at, field in enumerate(("calls", "bytes_out", "bytes_in", "bytes_at_most")):
                sum[at] += of["transfer"][field]
with_bytes = {"mpi_" + n for n in ("irecv", "isend", "send", "recv", "sendrecv", "allreduce", "bcast", "reduce", "alltoall")}
print(f"{'function':24} {'counted':>8} {'recorded':>8} {'bytes out':>12} {'bytes in':>12} {'at most':>12}")
wrong = 0
names = sorted({name for _, name in counted} | set(calls))
for name in names:
    expected = [counted.get((rank, name), [0] * 4) for rank in range(2)]
    total = expected[0][0] + expected[1][0]
    own = [told.get((rank, name), [0] * 4) for rank in range(2)]
    sums = [own[0][at] + own[1][at] for at in range(4)]
    is_recorded = name in calls
    same = not is_recorded or calls[name] == total or name.startswith("mpi_init")
    if is_recorded and name in with_bytes:
        same = same and own == expected
    wrong += not same
    if is_recorded:
        print(f"{name:24} {total:8} {calls[name]:8} {sums[1]:12} {sums[2]:12} {sums[3]:12}{'' if same else '  differs: ' + str(expected) + ' ' + str(own)}")
others = [f"{name} {counted[0, name][0]}" for name in names if name not in calls and (0, name) in counted]
print("not recorded (no process waits in them), calls of rank 0:", ", ".join(others))
mpi = report["mpi"]
for rank in mpi["ranks"]:
    print(f"rank {rank['rank']}: wall {rank['wall_s']:.2f} s, work {rank['work_s']:.2f} s, MPI {rank['mpi_s']:.2f} s outside {rank['mpi_serial_s']:.2f} s inside {rank['mpi_parallel_s']:.2f} s of parallel regions")
raise SystemExit(f"{wrong} functions differ" if wrong else 0)
PYTHON
