"""The stacks of samples that exported files hold, read by software that isn't ours, as JSON on standard output.

usage: stacks.py SPEEDSCOPE_SCHEMA FOLDER   with the files `perfetto`, `speedscope`, `firefox`, `pprof.json` (of pprof.mjs), `collapsed`
                                            (times) and `samples` (collapsed, too)

By format a list of [constructs, functions, samples]. A function is [name, line]; the line is null where the format has none.
"""

import collections
import json
import re
import sys
from pathlib import Path

import jsonschema_rs
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto


def divided(stacks, constructs):
    """Sums of equal stacks of (name, line). What is exact tells which frames are constructs: those come first."""
    sums = collections.Counter()
    for frames, samples in stacks:
        depth = next((at for at, (name, _) in enumerate(frames) if name not in constructs), len(frames))
        assert 0 < depth < len(frames), f"a construct, and what was executed in it: {frames}"
        sums[tuple(name for name, _ in frames[:depth]), tuple(frames[depth:])] += samples
    return [[around, functions, samples] for (around, functions), samples in sums.items()]


class Interned:
    """What packets of one sequence refer to."""

    FIELDS = ["event_names", "function_names", "mapping_paths", "source_paths", "mappings", "frames", "callstacks"]

    def __init__(self):
        for field in self.FIELDS:
            setattr(self, field, {})

    def add(self, data):
        for field in self.FIELDS:
            for entry in getattr(data, field):
                assert entry.iid not in getattr(self, field), f"{field} {entry.iid} is there twice"
                getattr(self, field)[entry.iid] = entry

    def stack(self, iid):
        for frame in (self.frames[f] for f in self.callstacks[iid].frame_ids):
            mapping = self.mappings[frame.mapping_id]
            assert mapping.start < mapping.end and self.mapping_paths[mapping.path_string_ids[0]].str
            assert not frame.source_path_iid or self.source_paths[frame.source_path_iid].str
            yield self.function_names[frame.function_name_id].str.decode(), frame.line_number or None


def of_perfetto(path):
    trace = perfetto.Trace()
    trace.ParseFromString(path.read_bytes())
    interned, threads, stacks, constructs = {}, set(), [], set()
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        if packet.track_descriptor.HasField("thread"):
            threads.add((packet.track_descriptor.thread.pid, packet.track_descriptor.thread.tid))
        if packet.sequence_flags & 1:
            interned[sequence] = Interned()
            assert packet.trace_packet_defaults.perf_sample_defaults.timebase.period > 0
        if sequence in interned:
            interned[sequence].add(packet.interned_data)
            constructs.update(name.name for name in packet.interned_data.event_names)
        if packet.HasField("perf_sample"):
            sample = packet.perf_sample
            assert packet.timestamp > 0 and (sample.pid, sample.tid) in threads
            stacks.append((list(interned[sequence].stack(sample.callstack_iid)), 1))
    return divided(stacks, constructs)


def of_speedscope(path, schema):
    profile = json.loads(path.read_text())
    jsonschema_rs.validate(json.loads(Path(schema).read_text()), profile)
    frames = [(frame["name"], frame.get("line")) for frame in profile["shared"]["frames"]]
    stacks, constructs = [], set()
    for thread in profile["profiles"]:
        if thread["type"] == "evented":
            constructs.update(frames[event["frame"]][0] for event in thread["events"])
            continue
        assert thread["name"].endswith(", samples") and len(set(thread["weights"])) == 1
        assert thread["endValue"] == sum(thread["weights"]) and len(thread["weights"]) == len(thread["samples"])
        stacks += [([frames[at] for at in stack], 1) for stack in thread["samples"]]
    return divided(stacks, constructs)


def of_firefox(path):
    profile = json.loads(path.read_text())
    stacks, constructs = [], set()
    for thread in profile["threads"]:
        strings, samples, table = thread["stringArray"], thread["samples"], thread["stackTable"]
        constructs.update(strings[name] for name in thread["markers"]["name"])
        assert samples["length"] == len(samples["stack"]) and set(samples["weight"]) <= {1}
        for stack in samples["stack"]:
            names = []
            while stack is not None:
                names.append(strings[thread["funcTable"]["name"][thread["frameTable"]["func"][table["frame"][stack]]]])
                stack = table["prefix"][stack]
            stacks.append((names[::-1], 1))
    with_line = re.compile(r"(.*) \S+:(\d+)$")

    def frame(name):
        found = with_line.match(name)
        return (found[1], int(found[2])) if found and name not in constructs else (name, None)

    return divided([([frame(name) for name in names], n) for names, n in stacks], constructs)


def of_pprof(path):
    samples = json.loads(path.read_text())
    exact = [sample for sample in samples if not sample["values"]["samples"]]
    constructs = {name for sample in exact for name in sample["stack"]}
    stacks = []
    for sample in samples:
        values = dict(sample["values"])
        number, cpu = values.pop("samples"), values.pop("cpu")
        assert (number > 0) == (cpu > 0) and not (number and any(values.values())), sample
        if number:
            # A construct has its place as function, and a function its line.
            lines = [line or None for line in sample["lines"]]
            stacks.append((list(zip(sample["stack"], lines)), number))
    return divided(stacks, constructs)


def of_collapsed(path, times):
    def read(path):
        lines = [line.rsplit(" ", 1) for line in path.read_text().splitlines()]
        assert len({stack for stack, _ in lines}) == len(lines), "two lines of one stack"
        return [([(name, None) for name in stack.split(";")], int(value)) for stack, value in lines]

    return divided(read(path), {name for frames, _ in read(times) for name, _ in frames})


folder = Path(sys.argv[2])
json.dump(
    {
        "perfetto": of_perfetto(folder / "perfetto"),
        "speedscope": of_speedscope(folder / "speedscope", sys.argv[1]),
        "firefox": of_firefox(folder / "firefox"),
        "pprof": of_pprof(folder / "pprof.json"),
        "collapsed": of_collapsed(folder / "samples", folder / "collapsed"),
    },
    sys.stdout,
)
