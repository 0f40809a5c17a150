"""Patches files of others with and without --count: tests/counted.py FOLDER [FILES] reads what tests/corpus.sh has downloaded.

Of as many files (300), spread evenly, it tells which ones are refused with --count only, how much of their code is counted, why the rest
isn't, and what counting costs in processor time. OMPFUSE_BIN names the command.
"""

import collections
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile


def patched(command, file, out, *options):
    """Status, what was printed, and seconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([command, "patch", *options, "--format", "json", "-o", out, file], capture_output=True, text=True, errors="replace")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main(folder, files):
    """Prints the table."""
    command = os.environ.get("OMPFUSE_BIN", "target/tests/ompfuse")
    found = sorted(p for p in pathlib.Path(folder, "files").rglob("*") if p.is_file())
    chosen = found[:: max(1, len(found) // files)][:files]
    taken, shares, reasons, ratios = 0, [], collections.Counter(), []
    instructions = 0
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "patched")
        for file in chosen:
            plain, seconds = patched(command, file, out)
            if plain.returncode:
                continue
            taken += 1
            counted, more = patched(command, file, out, "--count")
            if counted.returncode:
                print(f"refused with --count only: {file.relative_to(folder)}: {counted.stderr.strip()}")
                continue
            told = json.loads(counted.stdout)["counted"]
            lost = sum(r["instructions"] for r in told["refused"])
            share = told["instructions"] / max(1, told["instructions"] + lost)
            shares.append((share, str(file.relative_to(folder))))
            ratios.append((more / seconds, seconds, more, str(file.relative_to(folder))))
            instructions += told["instructions"] + lost
            for refused in told["refused"]:
                reasons[refused["reason"]] += refused["instructions"]
    shares.sort()
    ratios.sort()
    print(f"{taken} files are patched, {len(shares)} of them with --count")
    for least in (0.99, 0.95, 0.9, 0.8):
        print(f"at least {least:.0%} of the code counted: {sum(s >= least for s, _ in shares) / len(shares):.1%} of the files")
    print("of all instructions are not counted:")
    for reason, lost in reasons.most_common():
        print(f"  {lost / instructions:.2%}  {reason}")
    middle = ratios[len(ratios) // 2]
    print(f"processor time with --count, of that without: median {middle[0]:.1f}, all together {sum(r[2] for r in ratios) / sum(r[1] for r in ratios):.1f}")
    for share, file in shares[:10]:
        print(f"  {share:.1%} counted: {file}")
    for ratio, seconds, more, file in ratios[-10:]:
        print(f"  {ratio:.0f} times, {seconds:.1f} -> {more:.1f} s: {file}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 300)
