"""Says how much of two builds' time `ompfuse diff` has paired, and whether each pair is of one operation of the driver.

check.py ALL [OPERATION=FILE...]: ALL is the comparison (JSON) of both builds executing everything, each FILE that of both executing one
operation alone. What a side executes then is that operation's: nothing else is known of a region here but its place in its build and who
called it. Exit status 1 if a pair joins regions of different operations.
"""
import json
import sys


def load(path):
    with open(path) as file:
        return json.load(file)


def identity(key):
    calls = [(c["module"], c.get("function"), c.get("address")) for c in key.get("callers", [])]
    return key["build"], key["construct"], tuple(key["addresses"]), tuple(calls)


def sides(comparison):
    """The regions of both sides, those without a partner too."""
    for side, lone in (("a", "only_a"), ("b", "only_b")):
        keys = [key for pair in comparison["pairs"] for key in pair[side]]
        yield side, keys + [one["key"] for one in comparison[lone]]


everything = load(sys.argv[1])
operations = {"a": {}, "b": {}}
for argument in sys.argv[2:]:
    operation, path = argument.split("=", 1)
    for side, keys in sides(load(path)):
        for key in keys:
            operations[side].setdefault(identity(key), set()).add(operation)

right = wrong = unknown = 0
by_confidence = {}
for pair in everything["pairs"]:
    told = {}
    for side in "ab":
        known = [operations[side].get(identity(key)) for key in pair[side]]
        told[side] = None if None in known else set().union(*known)
    name = pair["b"][0].get("callers", [{}])[-1].get("function", "?")
    if None in told.values():
        unknown += 1
        print("not executed alone:", told, name)
    elif told["a"] != told["b"]:
        wrong += 1
        print("WRONG:", told, name)
    else:
        right += 1
        entry = by_confidence.setdefault((pair["basis"], pair["confidence"], pair["is_group"]), [0, set()])
        entry[0] += 1
        entry[1] |= told["a"]
for (basis, confidence, is_group), (count, of) in sorted(by_confidence.items()):
    print(f"{count} pairs by {basis}, {confidence}{', groups' if is_group else ''}: {', '.join(sorted(of))}")
a, b = everything["matched"]
alone = [sum(one["share"] for one in everything[side]) for side in ("only_a", "only_b")]
print(f"paired: {100 * a:.1f} % of A's time, {100 * b:.1f} % of B's; regions without a partner: "
      f"{len(everything['only_a'])} ({100 * alone[0]:.1f} %) and {len(everything['only_b'])} ({100 * alone[1]:.1f} %)")
paired = set().union(*(of for _, of in by_confidence.values())) if by_confidence else set()
print(f"{right} pairs are right, {wrong} wrong, {unknown} not judged; operations: {len(paired)} of {len(sys.argv) - 2}")
sys.exit(wrong > 0)
