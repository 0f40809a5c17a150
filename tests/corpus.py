"""Counts what scans found: tests/corpus.py FOLDER NAME reads the dumps of tests/corpus.sh.

A construct has a probe if the site where it begins has one; a rule is a construct with its schedule.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys


# What Debian compiles a suite with: packages have no `.comment`.
SUITES = {"bookworm": "gcc 12 (bookworm)", "trixie": "gcc 14 (trixie)"}


def compiler(file, origin):
    """What made most of a file; other versions made its start-up code."""
    said = subprocess.run(["readelf", "-p", ".comment", file], capture_output=True, text=True, errors="replace").stdout
    named = re.findall(r"(GCC|clang|flang|Intel).*?(\d+)\.\d+", said)
    # The last is the newest of those that were linked together.
    return f"{named[-1][0].lower()} {named[-1][1]}" if named else SUITES.get(origin, origin)


def without_addresses(reason):
    """One text for all places."""
    return re.sub(r"( at)? 0x[0-9a-f]+", "", reason)


def rule(site):
    """What the site was found as."""
    detail = site["detail"] or ""
    how = "call" if site["entry"] else "inlined"
    schedule = f", {detail}" if detail.startswith(("static", "or equivalent", "two loops")) else ""
    return f"{site['construct']}{schedule} ({how})"


def main(folder, name):
    """Prints the table."""
    counts = collections.defaultdict(collections.Counter)
    reasons = collections.defaultdict(collections.Counter)
    refused = collections.Counter()
    files = collections.Counter()
    probes = collections.Counter()
    dumps = pathlib.Path(folder, "dumps", name)
    for dump in sorted(dumps.iterdir()):
        path = pathlib.Path(folder, "files", re.sub(r"\.json(\.refused)?$", "", dump.name).replace("@", "/", 2))
        by = compiler(path, dump.name.split("@")[0])
        files[by] += 1
        if dump.suffix == ".refused":
            said = dump.read_text(errors="replace").strip()
            refused[without_addresses(said.split(": ")[-1])] += 1
            continue
        scan = json.loads(dump.read_bytes())
        for site in scan["sites"]:
            info, action = site["info"], site["action"]
            if action and "Inline" in action:
                probes[action["Inline"]["probe"]] += 1
            if info["region"] != info["id"] or info["outcome"] == "service":
                continue
            what = rule(info)
            counts[what][by, info["outcome"]] += 1
            if info["outcome"] == "skipped":
                reasons[what][without_addresses(info["reason"] or "")] += 1
    print(f"{sum(files.values())} files: " + ", ".join(f"{n} of {by}" for by, n in sorted(files.items())))
    for why, n in refused.most_common():
        print(f"refused {n}: {why}")
    print("\nrule: compiler: with probe, without")
    for what in sorted(counts):
        print(f"{what}: {sum(n for (_, o), n in counts[what].items() if o == 'patchable')}, {sum(reasons[what].values())}")
        for by in sorted({by for by, _ in counts[what]}):
            print(f"    {by}: {counts[what][by, 'patchable']}, {counts[what][by, 'skipped']}")
        for why, n in reasons[what].most_common():
            print(f"        {n}: {why}")
    print("\ninlined probes: " + ", ".join(f"{n} {probe}" for probe, n in sorted(probes.items())))


main(*sys.argv[1:])
