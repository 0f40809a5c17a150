"""Lists the parallel regions of a report (JSON on standard input): thread time, executions, and the functions that led there."""
import json
import sys

report = json.load(sys.stdin)
calls = {call["id"]: call for call in report["contexts"]}
paths = [path for path in report["call_paths"] if path.get("wall_s") is not None]
for path in sorted(paths, key=lambda path: -path["inclusive_s"]):
    print(f"{path['inclusive_s']:9.4f} {path['executions']:6}", end="")
    call = calls.get(path.get("context"))
    while call:
        name = call["function_demangled"] or f"{call['file']}+{call['address']}"
        print(f"  {name}", end="")
        if name == "main":
            break
        call = calls.get(call["caller"])
    print()
