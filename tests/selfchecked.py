#!/usr/bin/env python3
"""Runs programs that check themselves: alone, patched, recorded, and recorded with --count.

usage: tests/selfchecked.py FOLDER...       (sources of such programs: C, C++, Fortran)

Such as gcc's own tests of libgomp, out of Debian's sources:

    apt-get download gcc-12-source && dpkg-deb -x gcc-12-source_*.deb here
    tar -xf here/usr/src/gcc-12/gcc-12*.tar.xz -C here --wildcards '*/libgomp/testsuite/*'
    tests/selfchecked.py here/gcc-12*/libgomp/testsuite/libgomp.c{,-c++-common}

Comments of DejaGnu (`dg-options` and others) say how a source is built and run. A row for each program: equal, or what differs, or why it
wasn't compared. A program differs if its exit status or its output isn't the original's; then both run again, up to five times, since
some tests depend on luck. Exit status 1 if one differs. OMPFUSE_BIN names the command, GCC the version (12), TESTS so many at a time (2).
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

GCC = os.environ.get("GCC", "12")
COMPILERS = {".c": "gcc-", ".C": "g++-", ".cc": "g++-", ".cpp": "g++-", ".f90": "gfortran-", ".F90": "gfortran-", ".f": "gfortran-"}
# A program, and a command of ompfuse, have so many seconds.
SECONDS = 60
AGAIN = 5
DIRECTIVE = re.compile(r"\{\s*dg-([a-z-]+)\s+(.*?)\s*\}\s*(?:\*/|$)", re.M)
# What this machine's compiler is, in the words of DejaGnu.
HERE = ["x86_64-*-*", "lp64", "sse2_runtime", "sse2", "openacc_host_selected"]
MISSING = ["offload", "ia32", "nvptx", "gcn", "avx512", "int128_missing"]


class NotCompared(Exception):
    """Why a program wasn't compared."""


def selected(rest):
    """Whether a directive's `{ target ... }` is this machine."""
    found = re.search(r"\{\s*target\s+(.*)", rest)
    return not found or any(word in found[1] for word in HERE) and not any(word in found[1] for word in MISSING)


class Source:
    """A source, and what its comments say."""

    def __init__(self, path):
        self.path, self.options, self.env, self.others = path, ["-O2"], {}, []
        for name, rest in DIRECTIVE.findall(path.read_text(errors="replace")):
            words = re.match(r'"([^"]*)"|(\S+)', rest)
            first = (words[1] if words[1] is not None else words[2]) if words else ""
            if name == "do" and not rest.startswith("run"):
                raise NotCompared(f"is no program to run ({first})")
            if name == "require-effective-target" and any(word in rest for word in MISSING):
                raise NotCompared(f"needs {first}")
            if name in ("skip-if", "xfail-if", "xfail-run-if", "shouldfail"):
                raise NotCompared(f"is expected to fail ({name})")
            if name == "options" and selected(rest):
                self.options = shlex.split(first)
            if name == "additional-options" and selected(rest):
                self.options += shlex.split(first)
            if name == "additional-sources":
                self.others += [str(path.parent / other) for other in first.split()]
            if name == "set-target-env-var":
                variable, value = shlex.split(rest)[:2]
                self.env[variable] = value

    def build(self, folder):
        """Compiles it."""
        program = folder / "program"
        compiler = COMPILERS[self.path.suffix] + GCC
        options = [option for option in self.options if not option.startswith(("-fdump", "-foffload"))]
        command = [compiler, "-fopenmp", "-g", "-w", *options, "-o", program, self.path, *self.others, "-lm", "-latomic"]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if said.returncode:
            lines = [line for line in said.stderr.splitlines() if "error" in line] or said.stderr.splitlines()
            raise NotCompared(f"doesn't compile: {lines[0] if lines else said.returncode}")
        return program


def run(command, env, folder):
    """Exit status, output, and what was said on standard error."""
    try:
        done = subprocess.run(command, env=env, cwd=folder, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return ("no end", b""), b""
    return (done.returncode, done.stdout), done.stderr.decode(errors="replace")


def judge(path, ompfuse):
    """What differs; `None` if nothing does."""
    source = Source(path)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = source.build(folder)
        env = os.environ | {"OMP_WAIT_POLICY": "passive"} | source.env
        alone, _ = run([program], env, folder)
        if alone[0] != 0:
            raise NotCompared(f"fails without ompfuse: {alone[0]}")
        if run([program], env, folder)[0] != alone:
            raise NotCompared("differs between two runs without ompfuse")
        patched = folder / "patched"
        answer = subprocess.run([ompfuse, "patch", program, "-o", patched], capture_output=True, text=True)
        if answer.returncode:
            said = answer.stderr.strip().splitlines()[0]
            if "no OpenMP" in said or "nothing to patch" in said:
                raise NotCompared("has no site")
            return f"isn't patched: {said}"
        record = [ompfuse, "record", "-q", "--events", "none", "-o"]
        ways = {
            "patched": lambda n: [patched],
            "recorded": lambda n: [*record, f"out{n}", "--", program],
            "counted": lambda n: [*record, f"counts{n}", "--count", "--", program],
        }
        for way, command in ways.items():
            for turn in range(AGAIN):
                now, errors = run(command(turn), env, folder)
                if now == alone:
                    break
            else:
                return f"{way}: status {now[0]}, output {now[1][-100:]!r}, {errors.strip()[-300:]!r}"
            if way != "patched" and not (folder / command(turn)[command(turn).index("-o") + 1]).exists():
                return f"{way}: nothing recorded: {errors.strip()[-300:]!r}"
            if turn:
                print(f"{path.name}: {way}: equal at attempt {turn + 1}", flush=True)
    return None


def main(folders):
    """Prints the rows."""
    ompfuse = os.path.abspath(os.environ.get("OMPFUSE_BIN", "target/tests/ompfuse"))
    sources = sorted(p for f in folders for p in pathlib.Path(f).resolve().glob("*") if p.suffix in COMPILERS)
    if not sources:
        sys.exit(__doc__)
    equal, differ, skipped = 0, 0, collections.Counter()

    def row(path):
        try:
            return path, judge(path, ompfuse), False
        except NotCompared as why:
            return path, str(why), True

    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("TESTS", "2"))) as workers:
        for path, text, not_compared in workers.map(row, sources):
            name = f"{path.parent.name}/{path.name}"
            if not_compared:
                skipped[text.split(" (")[0].split(":")[0]] += 1
                print(f"{name}: not compared: {text}", flush=True)
            elif text:
                differ += 1
                print(f"{name}: DIFFERS: {text}", flush=True)
            else:
                equal += 1
    print(f"{equal} programs are equal in all ways, {differ} differ; not compared:")
    for text, count in skipped.most_common():
        print(f"  {count}  {text}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
