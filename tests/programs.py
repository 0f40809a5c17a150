#!/usr/bin/env python3
"""Counts the instructions of programs of Debian and PyPI: do they do what they do uncounted, and are two counts equal?

usage: tests/programs.py [NAME...]      (all of them; `--list` names them and what to install)

Each program gets a small input, one thread, and a folder of its own. It runs twice alone, which has to give the same. Lines with the time
of day are filtered by its command. Then it runs under `record --count`. Its output, its exit status and all files it writes have to be those
of the original. Two runs' counts have to be equal, in all and for each region.

Prints a row for each program. Exit status 1 if one differs, 2 if one isn't installed. OMPFUSE_BIN names the command.
"""
import itertools
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

EVENT = "instructions:exact"
# A program has so many seconds.
SECONDS = 300


def png(width, height, rows):
    """An image of three bytes a pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def inputs(folder):
    """Makes related sequences of bases and of amino acids, an image, a molecule, and a file of random bytes."""
    draw = random.Random(59)
    for name, letters, count, length in [
        ("bases.fa", "ACGT", 40, 400),
        ("acids.fa", "ACDEFGHIKLMNPQRSTVWY", 16, 120),
    ]:
        text = [draw.choice(letters) for _ in range(length)]
        with open(folder / name, "w") as out:
            for number in range(count):
                for _ in range(length // 40):
                    text[draw.randrange(length)] = draw.choice(letters)
                out.write(f">s{number}\n{''.join(text)}\n")
    strain = [draw.choice("ACGT") for _ in range(20000)]
    for number in range(4):
        for _ in range(200):
            strain[draw.randrange(20000)] = draw.choice("ACGT")
        (folder / f"strain{number}.fa").write_text(f">g{number}\n{''.join(strain)}\n")
    rows = b"".join(b"\0" + bytes((x * 3 + y * 5 * c) % 256 for x in range(128) for c in range(3)) for y in range(96))
    (folder / "image.png").write_bytes(png(128, 96, rows))
    (folder / "data.bin").write_bytes(draw.randbytes(100000))
    (folder / "water.mop").write_text("PM7 THREADS=1\nwater\n\nO 0 1 0 1 0 1\nH 0.96 1 0 1 0 1\nH -0.24 1 0.93 1 0 1\n")


LEARN = """
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor as Model
x = np.arange(4000).reshape(1000, 4) % 37 / 37
print(Model(max_iter=10, early_stopping=False).fit(x, x.sum(1) ** 2).predict(x[:20]))
"""
NEIGHBOURS = """
import numpy as np, faiss
faiss.omp_set_num_threads(1)
x = (np.arange(64000).reshape(4000, 16) * 7919 % 1009 / 1009).astype("float32")
index = faiss.IndexFlatL2(16)
index.add(x)
print(index.search(x[:50], 5)[1])
"""
# Name: the package, and a command of the shell.
PROGRAMS = {
    "muscle": ("muscle", "muscle -align acids.fa -output out.fa -threads 1 -quiet"),
    "clustalo": ("clustalo", "clustalo --threads=1 -i acids.fa -o out.fa"),
    "FastTreeMP": ("fasttree", "fasttreeMP -nopr -quiet -nt bases.fa"),
    "sumaclust": ("sumaclust", "sumaclust -p 2 -t 0.9 bases.fa"),
    "cd-hit": ("cd-hit", "cd-hit-est -T 1 -i bases.fa -o out | grep -v 'Started\\|CPU time'"),
    "andi": ("andi", "andi -t 1 strain0.fa strain1.fa strain2.fa strain3.fa"),
    "phylonium": ("phylonium", "phylonium -t 1 strain0.fa strain1.fa strain2.fa strain3.fa"),
    "par2": ("par2", "par2 create -q -q -t1 -r30 -s2000 data.par2 data.bin"),
    "sox": ("sox", "sox -R -n -r 8000 out.wav synth 2 sine 440 reverb rate 11025"),
    "pngquant": ("pngquant", "pngquant 16 -o out.png image.png"),
    "gm": ("graphicsmagick", "gm convert image.png -blur 0x3 -rotate 10 out.ppm"),
    "mopac": ("mopac", "mopac water.mop >/dev/null; grep -v ':[0-9][0-9]:\\|TIME' water.out; rm -f water.out water.arc"),
    "primecount": ("primecount-bin", "primecount -t 1 1e9 --meissel"),
    "scikit-learn": ("scikit-learn", LEARN),
    "faiss": ("faiss-cpu", NEIGHBOURS),
}


class Run:
    """A program's run in a new folder."""

    def __init__(self, name, before=(), folder="/tmp/ompfuse-programs"):
        _, text = PROGRAMS[name]
        command = [sys.executable, "-c", text] if "\n" in text else ["sh", "-c", text]
        # One name, as programs print it.
        shutil.rmtree(folder, ignore_errors=True)
        folder = pathlib.Path(folder)
        folder.mkdir()
        inputs(folder)
        env = os.environ | {"OMP_NUM_THREADS": "1", "OMP_THREAD_LIMIT": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "LC_ALL": "C"}
        done = subprocess.run([*before, *command], cwd=folder, env=env, capture_output=True, timeout=SECONDS)
        self.status, self.errors = done.returncode, done.stderr.decode(errors="replace")
        self.said = {"standard output": done.stdout.splitlines()}
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                self.said[str(file.relative_to(folder))] = file.read_bytes().splitlines()
        shutil.rmtree(folder)

    def differs(self, other):
        """What differs from another run."""
        if self.status != other.status:
            return f"status {self.status}, not {other.status}"
        if self.said.keys() != other.said.keys():
            return f"files {sorted(self.said.keys() ^ other.said.keys())}"
        for file, lines in self.said.items():
            for pair in itertools.zip_longest(lines, other.said[file]):
                if pair[0] != pair[1]:
                    return f"{file}: {pair[0]}, not {pair[1]}"
        return None


def counts(command, folder):
    """What a recorded run has counted: in all, and each region of each process."""
    said = subprocess.run([command, "report", str(folder), "--format", "json"], capture_output=True, text=True, check=True)
    report = json.loads(said.stdout)
    threads = [thread["total_counts"].get(EVENT, 0) for thread in report["accounting"]]
    regions = sorted((r["module"], r["address"], r["executions"], r["events"].get(EVENT, 0)) for r in report["regions"])
    return threads, regions


def judged(command, name):
    """A row of the table, and whether all is right."""
    first = Run(name)
    if first.status:
        return f"doesn't run: status {first.status}: {first.errors.strip()[-200:]}", False
    # A second that is printed is another one.
    time.sleep(1.1)
    if differs := Run(name).differs(first):
        return f"differs without ompfuse: {differs}", False
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        # The first run may wait for copies of its libraries.
        for turn in ["copies", "first", "other"]:
            out = pathlib.Path(scratch, turn)
            record = [command, "record", "-q", "--count", "--events", "none", "-o", str(out), "--"]
            run = Run(name, record)
            if differs := run.differs(first):
                return f"differs: {differs}: {run.errors.strip()[-300:]}", False
            if not out.exists():
                return f"nothing recorded: {run.errors.strip()[-300:]}", False
            losses = [line for line in run.errors.splitlines() if line.startswith("ompfuse: ")]
            if losses and turn != "copies":
                return f"not as it should be: {losses[0]}", False
            results.append(counts(command, out))
    _, one, two = results
    total = sum(one[0])
    if one != two:
        return f"counts differ: {total} and {sum(two[0])}", False
    if len(one[0]) > 1:
        return f"{len(one[0])} threads", False
    return f"{total} instructions, {len(one[1])} regions", total > 0


def main(names):
    if names == ["--list"]:
        for name, (package, _) in PROGRAMS.items():
            print(name, package)
        return 0
    command = os.path.abspath(os.environ.get("OMPFUSE_BIN", "target/tests/ompfuse"))
    status = 0
    for name in names or PROGRAMS:
        try:
            row, right = judged(command, name)
        except subprocess.TimeoutExpired as error:
            row, right = f"more than {error.timeout} s", False
        print(f"{name}: {'right' if right else 'WRONG'}: {row}", flush=True)
        status = max(status, 0 if right else 1)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
