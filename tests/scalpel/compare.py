"""Compares counts of `dgemm_` that were taken in turns with those of runs that counted everything: a table for each library.

compare.py NAME...: for each, NAME.trace.json (the run with turns), NAME.sets/run-*.json (reports of one set each), NAME.fast.json.
"""
import collections
import glob
import json
import os
import sys


def load(path):
    with open(path) as file:
        return json.load(file)


def dgemm(report):
    (region,) = [r for r in report["regions"] if r["function"] == "dgemm_"]
    return region


for name in sys.argv[1:]:
    if not os.path.exists(f"{name}.trace.json"):
        continue
    whole, calls = {}, None
    for path in sorted(glob.glob(f"{name}.sets/run-*.json")):
        region = dgemm(load(path))
        whole.update(region["events"])
        assert calls in (None, region["executions"])
        calls = region["executions"]
    spans = load(f"{name}.trace.json")["traceEvents"]
    spans = [s for s in spans if s["ph"] == "X" and s["name"].startswith("dgemm_")]
    assert len(spans) == calls, (len(spans), calls)
    sums, taken = collections.Counter(), collections.Counter()
    for span in spans:
        for event, count in span["args"].items():
            if event in whole:
                sums[event] += count
                taken[event] += 1
    fast = dgemm(load(f"{name}.fast.json"))
    print(f"\n{name}: {calls} calls, {fast['times']['exec_s'] / calls * 1e6:.2f} µs each without simulation\n")
    print("| event | in all calls | a call | calls counted | scaled to all calls | difference |")
    print("|---|---|---|---|---|---|")
    for event, count in whole.items():
        if not taken[event]:
            print(f"| {event} | {count} | {count / calls:.0f} | 0 | | |")
            continue
        scaled = sums[event] * calls / taken[event]
        difference = f"{(scaled - count) / count * 100:+.1f} %" if count else ""
        print(f"| {event} | {count} | {count / calls:.0f} | {taken[event]} | {scaled:.0f} | {difference} |")
