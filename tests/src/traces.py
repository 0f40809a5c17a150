"""What traces hold, read by software that isn't ours: sums by name as JSON on standard output.

usage: traces.py SPEEDSCOPE_SCHEMA PERFETTO CHROME SPEEDSCOPE FIREFOX
"""

import collections
import json
import sys

import jsonschema_rs
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto


def sums():
    return {"self_ns": 0, "own_ns": 0, "number": 0, "labels": [], "events": collections.Counter()}


class Track:
    """Nested slices of one thread, in the order of time."""

    def __init__(self, found):
        self.found, self.open, self.now = found, [], None

    def at(self, ns):
        assert self.now is None or ns >= self.now, "time goes back"
        if self.open:
            self.found[self.open[-1]]["self_ns"] += ns - self.now
        self.now = ns

    def begin(self, ns, name, args):
        self.at(ns)
        self.open.append(name)
        self.add(name, args)

    def end(self, ns, name=None):
        self.at(ns)
        last = self.open.pop()
        assert name in (None, last), f"{name} ends where {last} is open"

    def add(self, name, args):
        of_name = self.found[name]
        of_name["number"] += 1
        for key, value in args.items():
            if key == "label":
                of_name["labels"].append(value)
            elif key == "own_ns":
                of_name["own_ns"] += value
            else:
                of_name["events"][key] += value


def read_perfetto(file):
    trace = perfetto.Trace()
    with open(file, "rb") as stream:
        trace.ParseFromString(stream.read())
    found, names, tracks = collections.defaultdict(sums), {}, {}
    critical = 0
    flows = collections.defaultdict(list)
    types = perfetto.TrackEvent
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            if packet.track_descriptor.HasField("thread"):
                assert packet.track_descriptor.parent_uuid != 0
                tracks[packet.track_descriptor.uuid] = Track(found)
            continue
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & 1:
            names[sequence] = ({}, {}, {})
        for interned in packet.interned_data.event_names:
            names[sequence][0][interned.iid] = interned.name
        for interned in packet.interned_data.debug_annotation_names:
            names[sequence][1][interned.iid] = interned.name
        for interned in packet.interned_data.event_categories:
            names[sequence][2][interned.iid] = interned.name
        if not packet.HasField("track_event"):
            continue
        event, track = packet.track_event, tracks[packet.track_event.track_uuid]
        if event.type == types.TYPE_SLICE_END:
            track.end(packet.timestamp)
            continue
        args = {}
        for a in event.debug_annotations:
            args[names[sequence][1][a.name_iid]] = a.string_value or a.uint_value
        name = names[sequence][0][event.name_iid]
        critical += "critical path" in [names[sequence][2][iid] for iid in event.category_iids]
        for flow in event.flow_ids:
            flows[flow].append((packet.timestamp, name.split(" ")[0]))
        if event.type == types.TYPE_SLICE_BEGIN:
            track.begin(packet.timestamp, name, args)
        else:
            track.add(name, args)
    assert all(not track.open for track in tracks.values()), "something is left open"
    return found, {**arrows(flows), "critical": critical}


def arrows(flows):
    """How many go from a task's creation to its execution, and from one task to another that depends on it; all others would be wrong."""
    connected = dependences = 0
    for flow, slices in flows.items():
        # A task that is executed at once may begin in the same nanosecond.
        kinds = [kind for _, kind in sorted(slices, key=lambda of_slice: of_slice[0])]
        if flow >> 63:
            assert kinds == ["task", "task"], kinds
            dependences += 1
            continue
        assert set(kinds[1:]) <= {"task"} and kinds[0] in ("task-create", "task"), kinds
        connected += kinds[0] == "task-create" and len(kinds) > 1
    return {"connected_tasks": connected, "dependences": dependences}


def add_slices(found, slices):
    """Adds complete slices of one thread: begin, length, name and arguments. Those that end later come later."""
    track, ends = Track(found), []
    order = sorted(range(len(slices)), key=lambda at: (slices[at][0], -slices[at][1], -at))
    # What begins with another one and ends later is around it.
    for begin, length, name, args in (slices[at] for at in order):
        while ends and ends[-1] <= begin:
            track.end(ends.pop())
        assert not ends or begin + length <= ends[-1], "slices overlap"
        track.begin(begin, name, args)
        ends.append(begin + length)
    while ends:
        track.end(ends.pop())


def read_chrome(file):
    with open(file) as stream:
        trace = json.load(stream, parse_float=lambda text: int(text.replace(".", "")))
    found, threads = collections.defaultdict(sums), collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            slice_of = (event["ts"], event["dur"], event["name"], event["args"])
            threads[event["pid"], event["tid"]].append(slice_of)
        elif event["ph"] == "i":
            Track(found).add(event["name"], event["args"])
        else:
            assert event["ph"] == "M", event
    for slices in threads.values():
        add_slices(found, slices)
    return found


def read_firefox(file):
    with open(file) as stream:
        profile = json.load(stream)
    found = collections.defaultdict(sums)
    for thread in profile["threads"]:
        markers, strings = thread["markers"], thread["stringArray"]
        slices = []
        for at in range(markers["length"]):
            data, name = markers["data"][at], strings[markers["name"][at]]
            args = {k: int(v) for k, v in data.items() if k not in ("type", "own", "label") and v is not None}
            if data["own"] is not None:
                args["own_ns"] = round(data["own"] * 1e6)
            if strings[data["label"]]:
                args["label"] = strings[data["label"]]
            begin = round((markers["startTime"][at] or 0) * 1e6)
            if markers["phase"][at] == 1:
                slices.append((begin, round(markers["endTime"][at] * 1e6) - begin, name, args))
            else:
                Track(found).add(name, args)
        add_slices(found, slices)
    return found


def read_speedscope(file, schema):
    with open(file) as stream:
        profile = json.load(stream)
    with open(schema) as stream:
        jsonschema_rs.validate(json.load(stream), profile)
    found = collections.defaultdict(sums)
    frames = [frame["name"] for frame in profile["shared"]["frames"]]
    for thread in profile["profiles"]:
        if thread["type"] == "sampled":
            continue  # stacks.py
        track = Track(found)
        for event in thread["events"]:
            assert thread["startValue"] <= event["at"] <= thread["endValue"]
            if event["type"] == "O":
                track.begin(event["at"], frames[event["frame"]], {})
            else:
                track.end(event["at"], frames[event["frame"]])
        assert not track.open, "something is left open"
    return found


slices, ordered = read_perfetto(sys.argv[2])
json.dump(
    {
        "perfetto": slices,
        **ordered,
        "chrome": read_chrome(sys.argv[3]),
        "speedscope": read_speedscope(sys.argv[4], sys.argv[1]),
        "firefox": read_firefox(sys.argv[5]),
    },
    sys.stdout,
)
