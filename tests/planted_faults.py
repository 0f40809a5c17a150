#!/usr/bin/env python3
"""Plants faults, one after the other, in a copy of what is committed, and counts those that `tests/run.sh quick` finds.

usage: tests/planted_faults.py [HOW_MANY [FOLDER]]

The faults are in tests/planted-faults.tsv; HOW_MANY of them are spread over it (all without it). The copy, and what is built of it, stay
in FOLDER (target/planted-faults): the first run builds everything. A line says of each fault whether it was found, and after how many
seconds; the last one counts. Exit status 1: a fault's place isn't there any more, or fewer than four of five were found.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Whoever hangs was found, but only after this long, in seconds.
PATIENCE = float(os.environ.get("OMPFUSE_PATIENCE", "900"))


def faults(how_many):
    lines = (ROOT / "tests/planted-faults.tsv").read_text().splitlines()
    every = [line.split("\t") for line in lines if line and not line.startswith("#")]
    chosen = range(len(every)) if how_many is None else (n * len(every) // how_many for n in range(how_many))
    return [every[n] for n in chosen]


def quick(tree, target):
    """Whether the quick tests pass, and after how many seconds."""
    begin = time.monotonic()
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    with open(tree.parent / "log", "w") as log:
        tests = subprocess.Popen(
            ["tests/run.sh", "quick"], cwd=tree, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            status = tests.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(tests.pid, signal.SIGKILL)
            status = tests.wait()
    return status == 0, time.monotonic() - begin


def main():
    how_many = int(sys.argv[1]) if len(sys.argv) > 1 else None
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "target/planted-faults"
    folder = folder.resolve()
    tree, target = folder / "tree", folder / "target"
    folder.mkdir(parents=True, exist_ok=True)
    if tree.exists():
        subprocess.run(["git", "-C", tree, "fetch", "--quiet", ROOT, "HEAD"], check=True)
        subprocess.run(["git", "-C", tree, "reset", "--quiet", "--hard", "FETCH_HEAD"], check=True)
    else:
        subprocess.run(["git", "clone", "--quiet", ROOT, tree], check=True)

    found, gone, planted = 0, 0, 0
    for file, there, fault in faults(how_many):
        path = tree / file
        text = path.read_text() if path.exists() else ""
        if text.count(there) != 1:
            gone += 1
            print(f"gone: {file}: {there}", flush=True)
            continue
        if planted == 0:
            # What fails without a fault finds none.
            path.write_text(text + "\n")
            passed, took = quick(tree, target)
            path.write_text(text)
            if not passed:
                sys.exit(f"without a fault the tests fail: {folder}/log")
            print(f"without a fault: {took:.0f} s, with what had to be built", flush=True)
        path.write_text(text.replace(there, fault))
        passed, took = quick(tree, target)
        path.write_text(text)
        planted += 1
        found += not passed
        print(f"{'missed' if passed else 'found'}: {took:.0f} s, {file}: {fault}", flush=True)
    print(f"{found} of {planted} faults were found; {gone} have no place any more")
    sys.exit(gone > 0 or found * 5 < planted * 4)


if __name__ == "__main__":
    main()
