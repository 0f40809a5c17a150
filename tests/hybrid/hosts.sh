#!/bin/sh
# Two hosts on one machine, for root: each has a network namespace and a name of its own, and MPICH's messages go through a bridge. Both ranks
# must be in one report, with the calls and bytes that a library counts through MPI's profiling interface; receives and messages
# of two hosts aren't compared.
#
# usage: tests/hybrid/hosts.sh [OMPFUSE [FOLDER]]
set -eu
ompfuse=$(realpath "${1:-target/release/ompfuse}")
folder=${2:-$(mktemp -d)}
sources=$(realpath "$(dirname "$0")/../sources")
mkdir -p "$folder" && cd "$folder" && folder=$PWD
mpicc.mpich -O1 -shared -fPIC "$sources/mpicount.c" -o libmpicount.so
mpicc.mpich -w -O1 -g -fopenmp "$sources/messages.c" -o messages "$folder/libmpicount.so"

# What MPICH starts on a host instead of ssh: OPTIONS HOST COMMAND.
cat >agent <<'AGENT'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0" && exec sh -c "$*"' "$host" "$@"
AGENT
# In namespaces of its own, which end with it.
cat >network <<'NETWORK'
#!/bin/sh
set -e
mount -t tmpfs none /run
mkdir /run/netns
ip link set lo up
ip link add bridge type bridge
ip address add 10.77.0.1/24 dev bridge
ip link set bridge up
number=2
for host in red blue; do
    ip netns add $host
    ip link add to-$host type veth peer name eth0 netns $host
    ip link set to-$host master bridge up
    ip netns exec $host ip link set lo up
    ip netns exec $host ip address add 10.77.0.$number/24 dev eth0
    ip netns exec $host ip link set eth0 up
    number=$((number + 1))
done
exec "$@"
NETWORK
chmod +x agent network
export OMP_NUM_THREADS=2 OMPFUSE_JOB=two-hosts
rm -rf run
unshare --net --mount ./network mpirun.mpich -launcher ssh -launcher-exec "$folder/agent" -localhost 10.77.0.1 -hosts red,blue -n 2 \
    "$ompfuse" profile --events none -o run -- ./messages >said.txt 2>&1
"$ompfuse" report --format json run >report.json
python3 - <<'PYTHON'
import json
report = json.load(open("report.json"))
ranks = report["mpi"]["ranks"]
told = sorted((r["host"], r["exit"]) for r in ranks)
assert [host for host, _ in told] == ["blue", "red"], told
for rank in ranks:
    lines = [[int(n) for n in line.split()[1:]] for line in open(f"counts.{rank['rank']}")]
    bytes_of = [sum(line[at] for line in lines) for at in (1, 2, 3)]
    of = rank["transfer"]
    assert bytes_of == [of["bytes_out"], of["bytes_in"], of["bytes_at_most"]], (bytes_of, of)
    assert of["late_sender"] is None, of
    print(f"rank {rank['rank']} on {rank['host']}: {of['calls']} calls, {of['bytes_out']} bytes out, {of['bytes_in']} in, {of['bytes_at_most']} at most, as counted")
PYTHON
