#!/usr/bin/env python3
"""Which sentences about lost time no planted or generated program reaches.

usage: tests/sentences.py FOLDER...     (such as target/planted target/generated, which the benchmarks of these names leave)

A sentence is a text of two words or more in the sources of the first block of a report. It is reached if some report.txt in the folders has
its words, with anything in the place of its values. Prints those that aren't, and the share of them.
"""
import pathlib
import re
import sys

SOURCES = ["causes.rs", "causes/*.rs", "running.rs", "verdict.rs"]
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"', re.S)
VALUE = re.compile(r"\{[^{}]*\}")


def sentences(root):
    for pattern in SOURCES:
        for path in sorted((root / "report/src/words").glob(pattern)):
            source = path.read_text().split("#[cfg(test)]")[0]
            lines = [line for line in source.split("\n") if not line.strip().startswith("//")]
            for found in LITERAL.finditer("\n".join(lines)):
                text = re.sub(r"\\\n\s*", "", found.group(1)).replace('\\"', '"')
                words = VALUE.sub(" ", text)
                if len(re.findall(r"[A-Za-z]{2,}", words)) >= 2:
                    yield path.name, text


def is_reached(sentence, text):
    pieces = [re.escape(" ".join(p.split())) for p in VALUE.split(sentence)]
    pieces = [p for p in pieces if re.search("[A-Za-z]{2}", p)]
    return re.search(".{0,120}?".join(pieces), text) is not None


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    root = pathlib.Path(__file__).resolve().parent.parent
    folders = map(pathlib.Path, sys.argv[1:])
    # A report cuts its lines by the width of a terminal.
    reports = [p for f in folders for p in f.glob("**/report.txt")]
    text = "\n".join(" ".join(p.read_text().split()) for p in reports)
    known = list(dict.fromkeys(sentences(root)))
    missing = [(name, s) for name, s in known if not is_reached(s, text)]
    for name, sentence in missing:
        print(f"{name}: {sentence}")
    print(f"{len(missing)} of {len(known)} sentences ({100 * len(missing) / len(known):.0f} %) are in none of {len(reports)} reports")


if __name__ == "__main__":
    main()
