#!/usr/bin/env python3
"""Records all functions and loops of ordinary programs, compares what they do with the originals, and calls and iterations with what
callgrind counts.

Not for CI: it takes some minutes. It needs valgrind and uftrace, and the programs themselves (Debian: sqlite3, git, ripgrep,
libpython3.11-testsuite; gcc and g++ for the fixtures).

Usage: tests/everything/run.py FOLDER [CASE...]   (the command is $OMPFUSE, or ompfuse)
Writes FOLDER/table.md, and one folder for each case. Ends with status 1 if a recorded program behaves differently.
"""

import collections
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

import cases

OMPFUSE = os.environ.get("OMPFUSE", "ompfuse")
RUNS = 3
# No random hashes, and no work that goes to whichever thread is free.
SAME = {
    "LC_ALL": "C",
    "OMP_NUM_THREADS": "2",
    "PERL_HASH_SEED": "0",
    "PERL_PERTURB_KEYS": "0",
    "PYTHONHASHSEED": "0",
    "RAYON_NUM_THREADS": "1",
}
SMALL = "few instructions without call and loop"
# The same addresses in every run: some programs count on them.
FIXED = ["setarch", "-R"]


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(argv, case, extra=()):
    """Status, output, errors and processor seconds of a command in the case's folder, with all that it starts."""
    # Shells look whether it is right, which that around valgrind makes it.
    env = {**os.environ, **SAME, "PWD": str(case.folder), **dict(extra)}
    stdin = open(case.stdin, "rb") if case.stdin else subprocess.DEVNULL
    begin = processor_seconds()
    done = subprocess.run(argv, cwd=case.folder, env=env, stdin=stdin, capture_output=True)
    return done.returncode, done.stdout, done.stderr, processor_seconds() - begin


def behaviour(case, done):
    """What has to be equal: status, output, and errors without our own lines and what changes from run to run."""
    status, output, errors, _ = done
    lines = [line for line in errors.splitlines() if not line.startswith(b"ompfuse: ")]
    return status, case.normal(output), case.normal(b"\n".join(lines))


def ompfuse(*args, **kwargs):
    done = subprocess.run([OMPFUSE, *map(str, args)], capture_output=True, **kwargs)
    if done.returncode != 0:
        sys.exit(f"{args}: {done.stderr.decode()}")
    return json.loads(done.stdout)


# What is recorded: the option, the region's kind, and the number of the report that callgrind counts where the first probe is.
FUNCTIONS = ("--functions", "function", "executions")
LOOPS = ("--loops", "natural-loop", "iterations")


def found(case, kind):
    """Functions (or loops) with probes by the address of their first one, and the reasons why others have none."""
    option, construct, _ = kind
    scan = ompfuse("scan", case.program, option, "*", "--format", "json")
    begins = [s for s in scan["sites"] if s["construct"] == construct and s["region"] == s["id"]]
    reasons = collections.Counter(
        re.sub(r" ?0x[0-9a-f]+", "", s["reason"]) for s in begins if s["outcome"] == "skipped"
    )
    probed = {int(s["address"], 16): s["function"] for s in begins if s["outcome"] == "patchable"}
    return probed, reasons


def more_variables(case):
    """As many variables as a recorded program has more than one under valgrind: shells and perl look at each."""
    def number(*tool):
        out = subprocess.run([*tool, shutil.which("env")], capture_output=True, cwd=case.folder)
        return len(out.stdout.splitlines())

    ours = number(OMPFUSE, "record", "-q", "--units=sums", "--events", "none", "--functions", "*", "-o", "env", "--")
    theirs = number("valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    return {f"MORE_{n}": "x" for n in range(max(0, ours - theirs))}


def counted_by_callgrind(case, addresses):
    """How often the instructions at some addresses of the program are executed, and the seconds that it takes."""
    for old in case.folder.glob("cg.*"):
        old.unlink()
    tool = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--callgrind-out-file=cg.%p"]
    done = run([*FIXED, *tool, *case.argv], case, more_variables(case))
    counts = collections.Counter()
    real = os.path.realpath(case.program)
    for file in case.folder.glob("cg.*"):
        names, at, inside, skip = {}, 0, False, False
        for line in open(file, errors="replace"):
            if line.startswith(("ob=", "cob=")):
                key, _, name = line[line.index("=") + 1 :].strip().partition(" ")
                if name:
                    names[key] = name
                if line.startswith("ob="):
                    inside = names.get(key) == real
            elif line.startswith("calls="):
                skip = True
            elif line[0] in "0123456789+-*" and len(line.split()) >= 3:
                where, _, cost = line.split()[:3]
                # Addresses are told from line to line.
                if where[0] == "*":
                    pass
                elif where[0] in "+-":
                    at += int(where)
                else:
                    at = int(where, 16)
                # The line behind `calls=` has what the callee took.
                if inside and not skip and at in addresses:
                    counts[at] += int(cost)
                skip = False
    return counts, done


def recorded(case, where, kind):
    """The outcome of a recording, the program's own processor seconds, and the calls of functions (or loops' iterations) by address.

    `where`: at the same addresses each time, or not.
    """
    out = case.folder / "out"
    subprocess.run(["rm", "-rf", out])
    option, construct, number = kind
    options = ["--units=sums", "--events", "none", option, "*"]
    done = run([*where, OMPFUSE, "record", "-q", *options, "-o", out, "--", *case.argv], case)
    report = ompfuse("report", *out.glob("run-*"), "--format", "json")
    calls = {
        int(r["address"], 16): r[number]
        for r in report["regions"]
        if r["construct"] == construct and r["file"] is None
    }
    ends = [json.loads(end.read_text()) for end in out.glob("run-*/process-*.end.json")]
    return done, sum(end["cpu_ns"] for end in ends) / 1e9, calls


def by_uftrace(case):
    """Functions that uftrace gives probes (all that it finds), and seconds; `None` if it or the program fails."""
    subprocess.run(["rm", "-rf", case.folder / "uftrace"])
    record = ["uftrace", "record", "-P", ".", "-v", "--no-libcall", "-d", "uftrace"]
    try:
        done = run([*FIXED, *record, *case.argv], case)
    except OSError:
        return None, None, None
    patched = re.search(rb"dynamic: +patched[^\d\n]*(\d+)", done[1] + done[2])
    if done[0] != case.status or not patched:
        return int(patched[1]) if patched else None, None, done
    return int(patched[1]), done[3], done


def judge(case):
    """One row of the table."""
    plain = [run([*FIXED, *case.argv], case) for _ in range(RUNS)]
    case.status = plain[0][0]
    expected = behaviour(case, plain[0])
    row = {"case": case.name, "constant": all(behaviour(case, p) == expected for p in plain)}
    row["equal"] = True
    own, vary, probed = {}, {}, {}
    for kind, name in ((FUNCTIONS, ""), (LOOPS, "loops ")):
        probed[name], reasons = found(case, kind)
        row[name + "found"] = len(probed[name]) + sum(reasons.values())
        row[name + "probed"] = len(probed[name])
        row[name + "small"] = sum(n for why, n in reasons.items() if why.startswith(SMALL))
        row[name + "refused"] = row[name + "found"] - row[name + "probed"] - row[name + "small"]
        row[name + "reasons"] = {why: n for why, n in reasons.most_common() if not why.startswith(SMALL)}
        done, _, own[name] = recorded(case, FIXED, kind)
        row["equal"] &= behaviour(case, done) == expected
        times, vary[name] = [], set()
        for _ in range(RUNS):
            done, seconds, others = recorded(case, [], kind)
            row["equal"] &= behaviour(case, done) == expected
            times.append(seconds)
            vary[name] |= {at for at in probed[name] if own[name].get(at) != others.get(at)}
        row[name + "recorded_s"] = min(times)
        row[name + "number"] = sum(own[name].values())
    row["plain_s"] = min(p[3] for p in plain)
    counts, done = counted_by_callgrind(case, set(probed[""]) | set(probed["loops "]))
    row["callgrind_s"] = done[3]
    for name, own in own.items():
        called = [at for at in probed[name] if counts[at] or own.get(at)]
        row[name + "called"], row[name + "vary"] = len(called), len(vary[name])
        differ = [at for at in called if at not in vary[name] and counts[at] != own.get(at, 0)]
        row[name + "other"] = [(hex(at), probed[name][at], counts[at], own.get(at, 0)) for at in differ]
    row["uftrace"], row["uftrace_s"], _ = by_uftrace(case)
    (case.folder / "row.json").write_text(json.dumps(row, indent=1))
    return row


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("|" + "|".join(f" {cell} " for cell in line).replace(" --- ", "---") + "|\n" for line in lines)


def table(rows):
    def times(row, key):
        return "" if row[key] is None else f"{row[key] / row['plain_s']:.1f} times"

    def first(row, name):
        keys = ["found", "probed", *([] if name else ["small"]), "refused", "called", "number", "vary"]
        return [row["case"], *(row[name + key] for key in keys), len(row[name + "other"])]

    equal = {(True, True): "yes", (True, False): "**no**"}
    functions = [
        [
            *first(r, ""), f"{r['plain_s']:.2f} s", times(r, "recorded_s"), times(r, "callgrind_s"), times(r, "uftrace_s"), r["uftrace"] or 0,
            equal.get((r["constant"], r["equal"]), "changes by itself"),
        ]
        for r in rows
    ]
    loops = [[*first(r, "loops "), times(r, "loops recorded_s")] for r in rows]
    counts = ["counts vary", "counts differ"]
    return (
        markdown(
            ["program", "functions", "with probes", "too small", "refused", "called", "calls", *counts, "alone", "recorded", "callgrind",
             "uftrace", "its probes", "behaves equally"],
            functions,
        )
        + "\n"
        + markdown(["program", "loops", "with probes", "refused", "executed", "iterations", *counts, "recorded"], loops)
    )


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: tests/everything/run.py FOLDER [CASE...]")
    folder = pathlib.Path(sys.argv[1]).absolute()
    rows = []
    for case in cases.all_of(folder, OMPFUSE, sys.argv[2:]):
        row = judge(case)
        rows.append(row)
        print(json.dumps({k: v[:5] if k.endswith("other") else v for k, v in row.items()}), flush=True)
    (folder / "table.md").write_text(table(rows))
    print(table(rows))
    sys.exit(any(r["constant"] and not r["equal"] for r in rows))


main()
