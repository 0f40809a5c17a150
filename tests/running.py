#!/usr/bin/env python3
"""The same process, recorded and looked at from outside at once: are the shares of its regions equal?

    tests/running.py OMPFUSE [PROGRAM...]

Each program of tests/sources/sampled/natural.c is compiled by gcc and clang, and recorded for some seconds; meanwhile `ompfuse record -p`
looks at it. Static programs can't be recorded: they are only looked at. Prints the share of each region: by construction, by samples, and
recorded, which is time by the clock and differs on a busy machine. Then how many rows with at least 100 samples are within three standard errors of the construction. Root gets precedence by nice.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "tests/sources/sampled/natural.c"
PROGRAMS = ["fixed", "dynamic", "tasks", "taskloops", "nested", "sections", "critical", "recursive", "orphaned", "library"]
COMPILERS = {"gcc": ["gcc"], "clang-19": ["clang-19"], "static": ["gcc", "-static"]}
# By line.
LINES = enumerate(SOURCE.read_text().splitlines(), 1)
SHARES = {at: int(m[1]) / int(m[2]) for at, line in LINES if (m := re.search(r"/\* (\d+) of (\d+) \*/", line))}
LEAST = 100
SECONDS = 6


def rounds_of(program, name, environment):
    """So many that it takes some seconds."""
    begin = time.time()
    subprocess.run([program, name, "100"], env=environment, check=True)
    return str(int(100 * SECONDS / (time.time() - begin)))


def child_of(pid):
    for _ in range(2000):
        path = Path(f"/proc/{pid}/task/{pid}/children")
        for child in path.read_text().split() if path.exists() else []:
            exe = os.path.basename(os.path.realpath(f"/proc/{child}/exe"))
            if not exe.startswith("ompfuse"):
                return int(child)
        time.sleep(0.002)
    return None


def look(ompfuse, program, name, environment):
    """Of a program that can't be recorded."""
    going = subprocess.Popen([program, name, rounds_of(program, name, environment)], env=environment, stdout=subprocess.DEVNULL)
    sampled = f"{program}-{name}-sampled"
    looked = [ompfuse, "record", "-p", str(going.pid), "-o", sampled]
    looked = subprocess.run(looked, capture_output=True, text=True)
    report = subprocess.run([ompfuse, "report", sampled, "--format", "json"], capture_output=True, text=True)
    if going.wait() != 0 or looked.returncode != 0 or report.returncode != 0:
        return f"failed: {looked.stderr.strip()} {report.stderr.strip()}", 0, []
    report = json.loads(report.stdout)
    regions = [r for r in report["regions"] if r.get("construct")]
    samples = sum(r["work"] for r in regions)
    row = lambda r: {"construct": r["construct"], "file": SOURCE.name, "line": r["line"], "a": None, "b": r["work"] / samples}
    rows = [{**row(r), "samples": samples} for r in regions if r["work"] >= LEAST and r["line"] in SHARES]
    unknown = sum(r["samples"] for r in report["regions"] if r.get("is_unknown")) / report["samples"]
    return f"{samples} samples", unknown, rows


def compare(ompfuse, program, name, environment):
    if program.endswith("static"):
        return look(ompfuse, program, name, environment)
    rounds = rounds_of(program, name, environment)
    recorded, sampled = f"{program}-{name}-recorded", f"{program}-{name}-sampled"
    record = [ompfuse, "record", "--events", "none", "--sampling", "off", "-o", recorded, "--", program, name, rounds]
    going = subprocess.Popen(record, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid = child_of(going.pid)
    looked = subprocess.run([ompfuse, "record", "-p", str(pid), "-o", sampled], capture_output=True, text=True)
    if going.wait() != 0 or looked.returncode != 0:
        return f"failed: {looked.stderr.strip()}", 0, []
    diff = subprocess.run([ompfuse, "diff", "--format", "json", recorded, sampled], capture_output=True, text=True)
    if diff.returncode != 0:
        return f"failed: {diff.stderr.strip()}", 0, []
    diff = json.loads(diff.stdout)
    samples, unknown = diff["b"]["samples"], diff["b"]["unknown"]
    rows = [{**row, "samples": samples} for row in diff["regions"] if row["b"] * samples >= LEAST]
    return f"{samples} samples", unknown, rows


def main():
    ompfuse, *wanted = sys.argv[1:]
    if os.geteuid() == 0:
        os.nice(-15)
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
    within = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for build, compiler in COMPILERS.items():
            program = f"{folder}/{build}"
            subprocess.run([*compiler, "-O1", "-g", "-fopenmp", str(SOURCE), "-lm", "-o", program], check=True)
            for name in wanted or PROGRAMS:
                told, unknown, rows = compare(os.path.abspath(ompfuse), program, name, environment)
                print(f"{name} {build}: {told}, {unknown:.3f} in constructs that aren't known")
                for row in rows:
                    share, samples = row["b"], row["samples"]
                    built = SHARES.get(row["line"], row["a"])
                    # Samples in constructs that aren't known may be its own.
                    apart = max(share - built, built - share - unknown, 0)
                    errors = apart / (built * (1 - built) / samples) ** 0.5
                    total += 1
                    within += errors <= 3
                    recorded = "" if row["a"] is None else f", {row['a']:.3f} recorded"
                    place = f"{row['construct']} {row['file']}:{row['line']}"
                    print(f"    {place}: {built:.3f}, {share:.3f} by samples ({errors:.1f} standard errors)" + recorded)
                sys.stdout.flush()
    print(f"{within} of {total} rows are within three standard errors of the construction")


if __name__ == "__main__":
    main()
