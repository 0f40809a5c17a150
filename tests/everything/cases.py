"""Programs to record, each with what it is to do."""

import pathlib
import re
import shutil
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

PERL = """
my %h;
for my $i (1..20000) { my $k = "k" . ($i * 7919 % 997); $h{$k} .= chr(65 + $i % 26); }
print join("\\n", map { "$_ " . length($h{$_}) . " " . substr(reverse($h{$_}), 0, 5) } sort keys %h), "\\n";
my $s = join(",", 1..5000);
$s =~ s/(\\d)(\\d)/$2$1/g;
print length $s, " ", $s =~ tr/1//, "\\n";
eval { die "caught\\n" };
print $@;
printf "%.3f\\n", sin(1) + sqrt(2);
"""

BASH = """
f() { if [ "$1" -le 1 ]; then r=1; else f $(($1 - 1)); r=$((r * $1 % 1000007)); fi; }
for i in {1..150}; do f $i; echo $r; done
declare -A m
for w in a b c a b a; do m[$w]=$((m[$w] + 1)); done
for k in a b c; do echo $k ${m[$k]}; done
[[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo ${BASH_REMATCH[2]}
printf '%05d %s\\n' 42 x
trap 'echo bye' EXIT
"""

SQL = """
create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000) insert into t select x, hex(x * 7919) from c;
create index i on t(b);
select count(*), sum(a), max(b) from t;
select b, count(*) from t group by substr(b, 1, 2) order by 2 desc, 1 limit 5;
select group_concat(a) from (select a from t where b like '3%9' order by a limit 20);
select json_group_array(a) from (select a from t order by a limit 5);
"""

PYTHON = "test_list test_dict test_generators test_struct test_tuple test_int test_float"


class Case:
    """A program with its arguments, in a folder of its own."""

    def __init__(self, folder, name, argv, stdin=None, changing=()):
        self.folder = folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name, self.argv, self.stdin = name, [str(a) for a in argv], stdin
        self.program = shutil.which(self.argv[0]) or self.argv[0]
        self.argv[0] = self.program
        self.changing = [re.compile(c) for c in changing]

    def normal(self, text):
        """Without what changes from run to run."""
        for pattern in self.changing:
            text = pattern.sub(b"", text)
        return text


def of_tools(folder, ompfuse):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("p.pl", PERL), ("b.sh", BASH), ("q.sql", SQL)):
        (folder / name).write_text(text)
    data = folder / "data"
    with open(shutil.which("gdb") or shutil.which("git"), "rb") as file:
        data.write_bytes(file.read(3_000_000))
    rust = REPOSITORY / "rewriter/src"
    python = shutil.which("python3.11", path="/usr/bin:/bin")
    times = rb"\d+(\.\d+)? ?(ms|sec|s|min)\b|\d+:\d\d:\d\d load avg: [\d.]+|0x[0-9a-f]+|test_python_\w+|PID \d+"
    yield Case(folder, "gzip", ["gzip", "-c", data])
    yield Case(folder, "xz", ["xz", "-1", "-T1", "-c", data])
    yield Case(folder, "bzip2", ["bzip2", "-c", data])
    yield Case(folder, "sort", ["sort", "-n", data])
    yield Case(folder, "sqlite3", ["sqlite3", ":memory:"], stdin=folder / "q.sql")
    yield Case(folder, "perl", ["perl", folder / "p.pl"])
    yield Case(folder, "bash", ["bash", folder / "b.sh"])
    yield Case(folder, "git", ["/usr/bin/git", "-C", REPOSITORY, "log", "--stat", "-40"])
    if python:
        yield Case(folder, "python", [python, "-m", "test", "-v", *PYTHON.split()], changing=[times])
    yield Case(folder, "ripgrep", ["rg", "-c", "-j1", "--no-config", "--sort", "path", "fn .*self", rust])
    yield Case(folder, "ompfuse", [ompfuse, "scan", shutil.which("gzip"), "--functions", "*"])


def of_fixtures(folder):
    """The programs of the tests, built once each."""
    sources = [*REPOSITORY.glob("fixtures/*/*.c"), *REPOSITORY.glob("fixtures/*/*.cpp")]
    for source in sorted(sources):
        name = source.stem
        if source.parent.name in ("behaviour", "kinds") or name in ("target", "probecost", "oldabi", "kmpcalls"):
            continue  # programs of several files, or that say what time something takes
        program = folder / "fixtures" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        compiler = "g++" if source.suffix == ".cpp" else "gcc"
        built = subprocess.run([compiler, "-O2", "-g", "-fopenmp", source, "-o", program, "-lm"], capture_output=True)
        if built.returncode == 0:
            yield Case(folder, f"fixture {name}", [program])


def all_of(folder, ompfuse, names):
    """Those with these names, or all."""
    for cases in (of_tools(folder, ompfuse), of_fixtures(folder)):
        for case in cases:
            if not names or case.name in names or ("fixtures" in names and case.name.startswith("fixture ")):
                yield case
