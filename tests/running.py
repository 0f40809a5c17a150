#!/usr/bin/env python3
"""The same process, recorded and looked at from outside at once: are the shares of its regions equal?

    tests/running.py OMPFUSE [FIXTURE...]

Each fixture is compiled by gcc and clang, and recorded with a size that takes some seconds; meanwhile `ompfuse profile -p` looks at it.
Shares of work by parallel region or task are compared, of rows with at least 100 samples. Prints a row for each program, and how many of
all rows are within three standard errors. A busy machine makes them differ: recorded work is time by the clock.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ["cg", "mandelbrot", "nqueens", "knapsack", "cholesky", "loops", "sync", "taskloop", "tasking", "sections", "ordered", "locks"]
COMPILERS = {"gcc": ["gcc"], "clang": ["clang-19"]}
# Constructs whose block is a function of its own: a stack tells them.
BODIES = {"parallel", "task", "taskloop", "teams"}
LEAST = 100


def compiled(fixture, compiler, out):
    source = min((ROOT / "fixtures" / fixture).glob("*.c*"))
    flags = [w for line in re.findall(r"//#Flags(?::\w+)? (.*)", source.read_text()) for w in line.split() if w != "-O0"]
    tool = [c.replace("clang", "clang++").replace("gcc", "g++") for c in compiler] if source.suffix == ".cc" else compiler
    command = [*tool, "-O1", "-g", "-fopenmp", *[f.replace("{dir}", str(source.parent)) for f in flags]]
    done = subprocess.run([*command, "-I", str(ROOT / "fixtures"), str(source), "-lm", "-o", out], capture_output=True)
    return done.returncode == 0


def size_of(program, environment):
    """A size with which it takes at least two seconds."""
    size = 4
    while size < 1 << 26:
        begin = time.time()
        try:
            done = subprocess.run([program, str(size)], env=environment, capture_output=True, timeout=8)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0:
            return None
        taken = time.time() - begin
        if taken >= 2:
            return size
        size = size * 2 if taken > 0.2 else size * 4
    return None


def child_of(pid):
    for _ in range(2000):
        path = Path(f"/proc/{pid}/task/{pid}/children")
        for child in path.read_text().split() if path.exists() else []:
            exe = os.path.basename(os.path.realpath(f"/proc/{child}/exe"))
            if not exe.startswith("ompfuse"):
                return int(child)
        time.sleep(0.002)
    return None


def by_body(report):
    """Recorded work by the innermost construct around it that has a function of its own."""
    regions = {r["id"]: r for r in report["regions"]}
    paths = report["call_paths"]
    above = defaultdict(set)
    for path in paths:
        at = path
        while at is not None:
            region = regions.get(at["region"])
            if region and region["construct"] in BODIES:
                break
            at = paths[at["parent"]] if at["parent"] is not None else None
        if path["region"] is not None:
            above[path["region"]].add(at["region"] if at else None)
    work = defaultdict(float)
    for number, region in regions.items():
        bodies = above[number]
        key = bodies.pop() if len(bodies) == 1 else None
        work[place(regions[key]) if key is not None else None] += region["work_s"]
    return work


def place(region):
    source = region.get("source") or {"file": region.get("file"), "line": region.get("line")}
    return (region["construct"], os.path.basename(source["file"] or "?"), source["line"])


def compare(ompfuse, fixture, name, compiler, folder):
    program = f"{folder}/{fixture}-{name}"
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
    if not compiled(fixture, compiler, program):
        return "isn't compiled", []
    size = size_of(program, environment)
    if size is None:
        return "has no size that takes some seconds", []
    recorded, sampled = f"{program}-recorded", f"{program}-sampled"
    record = [ompfuse, "record", "--events", "none", "--sampling", "off", "-o", recorded, "--", program, str(size)]
    going = subprocess.Popen(record, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid = child_of(going.pid)
    looked = subprocess.run([ompfuse, "record", "-p", str(pid), "--sampling", "1000", "-o", sampled], capture_output=True, text=True)
    if going.wait() != 0 or looked.returncode != 0:
        return f"failed: {looked.stderr.strip()}", []
    read = lambda path: json.loads(subprocess.run([ompfuse, "report", "--format", "json", path], capture_output=True, check=True).stdout)
    truth = by_body(read(recorded))
    found = {place(r): r["work"] for r in read(f"{sampled}/run-0001")["regions"] if r.get("construct") in BODIES}
    truth = {key: s for key, s in truth.items() if key is not None}
    n, all_s = sum(found.values()), sum(truth.values())
    rows = []
    for key, work in found.items():
        if work < LEAST or n == 0 or all_s == 0:
            continue
        share, true = work / n, truth.get(key, 0) / all_s
        error = max((true * (1 - true) / n) ** 0.5, 0.5 / n)
        rows.append((key, share, true, abs(share - true) / error))
    return f"{n} samples", rows


def main():
    ompfuse, *wanted = sys.argv[1:]
    within = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for fixture in wanted or FIXTURES:
            for name, compiler in COMPILERS.items():
                told, rows = compare(os.path.abspath(ompfuse), fixture, name, compiler, folder)
                print(f"{fixture} {name}: {told}")
                for (construct, file, line), share, true, errors in rows:
                    total += 1
                    within += errors <= 3
                    print(f"    {construct} {file}:{line}: {share:.3f}, recorded {true:.3f}, {errors:.1f} standard errors")
                sys.stdout.flush()
    print(f"{within} of {total} rows are within three standard errors")


if __name__ == "__main__":
    main()
