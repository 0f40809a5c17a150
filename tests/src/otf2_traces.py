"""Strict reading of OTF2 archives with the Python package of OTF2's authors, which had no part in writing them. otf2-print accepts
unbalanced regions and undefined identifiers; here each is an error. What the archives hold is printed as JSON, a list with one item each.

usage: otf2_traces.py FOLDER...
"""

import collections
import json
import sys

import otf2
from otf2 import events as kinds
from otf2.enums import GroupType, Paradigm, RegionRole


class Thread:
    """What one location has executed, event by event."""

    def __init__(self, found):
        self.found = found
        self.number = 0
        self.now = 0
        self.regions = []  # name, time of entering, time of what was nested, sums then, sums of what was nested
        self.sums = collections.Counter()
        self.teams, self.forks, self.locks = [], 0, {}
        self.task = None
        self.counted = None  # begin and end of the last region that something was counted in

    def event(self, event):
        self.number += 1
        assert event.time >= self.now, "time goes back"
        self.now = event.time

    def enter(self, event):
        name = event.region.name
        if self.regions:
            self.regions[-1]["children"].append(name)
        self.regions.append(
            {"name": name, "from": event.time, "nested": 0, "sums": self.sums.copy(), "counted": collections.Counter(), "children": []}
        )
        values = {a.name: v for a, v in (event.attributes or {}).items()}
        of_name = self.found[name]
        if "label" in values:
            assert values["label"].count("*") == 1, values
            of_name["labels"].append(values["label"].replace("*", str(values["number"])))
        of_name["iterations"] += values.get("iterations", 0)

    def leave(self, event):
        region = self.regions.pop()
        assert region["name"] == event.region.name, f"{event.region.name} is left in {region['name']}"
        length = event.time - region["from"]
        counted = self.sums - region["sums"]
        of_name = self.found[region["name"]]
        of_name["number"] += 1
        of_name["self_ns"] += length - region["nested"]
        own = counted - region["counted"]
        of_name["events"].update(own)
        if own and length > 1 and "@" in region["name"]:
            self.counted = [region["from"], event.time]
        if self.regions:
            self.regions[-1]["nested"] += length
            self.regions[-1]["counted"].update(counted)

    def metric(self, event):
        members = event.metric.members
        assert len(members) == len(event.values)
        for member, value in zip(members, event.values):
            assert value >= self.sums[member.name], "a sum decreases"
            self.sums[member.name] = value

    def end(self):
        assert not self.regions, f"left open: {self.regions}"
        assert not self.teams and not self.forks and not self.locks


def task_of(event):
    """Numbers of a thread's tasks are its own, whichever team it is in."""
    return (event.thread_team.group.members[event.creating_thread], event.generation_number)


def read(folder):
    found = collections.defaultdict(
        lambda: {"self_ns": 0, "number": 0, "iterations": 0, "labels": [], "events": collections.Counter()}
    )
    kinds_found = collections.Counter()
    created, executed, completed = {}, collections.defaultdict(list), {}
    last, held = 0, collections.defaultdict(list)
    precedes, depends, critical = {}, {}, 0
    with otf2.reader.open(folder + "/traces.otf2") as trace:
        definitions = trace.definitions
        clock = definitions.clock_properties
        assert clock.timer_resolution == 10**9
        threads = {location: Thread(found) for location in definitions.locations}
        for location, event in trace.events:
            thread = threads[location]
            thread.event(event)
            last = max(last, event.time)
            kinds_found[type(event).__name__] += 1
            if isinstance(event, kinds.Enter):
                thread.enter(event)
                told = {attribute.name: value for attribute, value in (event.attributes or {}).items()}
                precedes.update((number, event.time) for number in told.get("precedes", "").split())
                depends.update((number, event.time) for number in told.get("depends on", "").split())
                critical += told.get("critical path", 0)
            elif isinstance(event, kinds.Leave):
                thread.leave(event)
            elif isinstance(event, kinds.Metric):
                thread.metric(event)
            elif isinstance(event, kinds.ThreadFork):
                thread.forks += 1
            elif isinstance(event, kinds.ThreadJoin):
                thread.forks -= 1
                assert thread.forks >= 0
            elif isinstance(event, kinds.ThreadTeamBegin):
                assert location in event.thread_team.group.members, "a thread isn't in its team"
                thread.teams.append(event.thread_team)
            elif isinstance(event, kinds.ThreadTeamEnd):
                assert thread.teams.pop() == event.thread_team
            elif isinstance(event, kinds.ThreadTaskCreate):
                assert thread.regions[-1]["name"].startswith("!$omp create task")
                task = task_of(event)
                assert task not in created, f"{task} is created twice"
                created[task] = event.time
            elif isinstance(event, kinds.ThreadTaskSwitch):
                assert thread.teams[-1] == event.thread_team, "a task of another team"
                thread.task = task_of(event)
                if event.generation_number:
                    executed[thread.task].append(event.time)
            elif isinstance(event, kinds.ThreadTaskComplete):
                task = task_of(event)
                assert thread.task == task and task not in completed
                completed[task] = event.time
            elif isinstance(event, kinds.ThreadAcquireLock):
                thread.locks[(event.lock_id, event.acquisition_order)] = event.time
            elif isinstance(event, kinds.ThreadReleaseLock):
                taken = thread.locks.pop((event.lock_id, event.acquisition_order))
                held[event.lock_id].append((taken, event.time, location.name))
            else:
                raise AssertionError(f"nobody writes {event}")
        for location, thread in threads.items():
            thread.end()
            assert location.number_of_events == thread.number, "another number of events is declared"
        for region in definitions.regions:
            if "@" in region.name:
                expected = Paradigm.MPI if region.name.startswith("MPI_") else Paradigm.OPENMP
                assert region.paradigm == expected and region.region_role != RegionRole.UNKNOWN, region
        for group in definitions.groups:
            if group.group_type == GroupType.COMM_GROUP:
                assert len(set(group.members)) == len(group.members)
        assert clock.trace_length >= last
        for times in held.values():
            times.sort()
            for (_, given_back, by), (taken, _, next_by) in zip(times, times[1:]):
                assert given_back <= taken or by == next_by, "two threads have a lock"
        assert precedes.keys() == depends.keys()
        assert all(precedes[number] <= time for number, time in depends.items())
        assert all(created[task] <= min(times) for task, times in executed.items() if task in created)
        assert all(max(executed[task]) <= end for task, end in completed.items())
        return {
            "regions": found,
            "kinds": kinds_found,
            "dependences": len(depends),
            "critical": critical,
            "tasks": {"created": len(created), "executed": len(executed), "completed": len(completed)},
            "counted": max((t.counted for t in threads.values() if t.counted), default=None, key=lambda span: span[1]),
            "times": [min((t.now for t in threads.values() if t.number), default=0), last],
            "threads": sorted(location.name for location in definitions.locations),
            "processes": sorted(group.name for group in definitions.location_groups),
            "hosts": [node.name for node in definitions.system_tree_nodes],
            "teams": sorted({len(comm.group.members) for comm in definitions.comms}),
            "sources": sorted({r.source_file for r in definitions.regions if r.source_file}),
        }


json.dump([read(folder) for folder in sys.argv[1:]], sys.stdout)
