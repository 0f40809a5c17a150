"""What call-path profiles hold, read by software that isn't ours, as JSON on standard output.

usage: profiles.py values FOLDER...   each with the files `cube`, `pprof.json` (of pprof.mjs), `collapsed` and `caliper.cali`, and the
                                      folder `tau`
       profiles.py models JSON_LINES CUBE_FOLDER THREADS
       profiles.py together CALIPER_FILE...

Of values: for each folder by format, by path, by rank and thread, by metric [own, with what is inside]. A path is the places in the source,
joined by `>`. Together: by path, the times of each file. Of models: by format, by place what Extra-P says of visits with so many threads.
"""

import contextlib
import json
import re
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

PLACE = re.compile(r"[\w.]+:\d+")


def place(name):
    """Functions have none."""
    return "hostile" if "hostile" in name else (PLACE.findall(name) or [None])[-1]


class Profile:
    def __init__(self):
        self.paths = {}

    def add(self, names, who, metric, own, inside):
        """A value of the last of some names. The first is the program."""
        places = [place(name) for name in names[1:]]
        if places and places[-1] is None:
            return
        path = ">".join(["program"] + [p for p in places if p])
        metrics = self.paths.setdefault(path, {}).setdefault(who, {})
        value = metrics.setdefault(metric.lower().replace("-", "_").replace(" ", "_"), [0, 0])
        value[0] += own
        value[1] += inside

    def add_stacks(self, stacks):
        """Adds own values by stack, rank and thread, and metric."""
        for (stack, who, metric), value in stacks.items():
            for depth in range(1, len(stack) + 1):
                self.add(stack[:depth], who, metric, value if depth == len(stack) else 0, value)


def of_cube(path):
    from pycubexr import CubexParser

    profile = Profile()
    with CubexParser(path) as cube:
        (machine,) = cube._anchor_result.system_tree_nodes
        who = [f"{g.rank}/{l.rank}" for g in machine.all_location_groups() for l in g.all_locations()]
        assert [l.id for l in cube.get_locations()] == list(range(len(who))), "numbers of locations"

        def walk(metric, values, node, names):
            names = names + [cube.get_region(node).name]
            own = values.cnode_values(node, convert_to_exclusive=True)
            inside = values.cnode_values(node, convert_to_inclusive=True)
            for at, one in enumerate(who):
                profile.add(names, one, metric.name, own[at].item(), inside[at].item())
            for child in node.get_children():
                walk(metric, values, child, names)

        (root,) = cube.get_root_cnodes()
        for metric in cube.all_metrics():
            # Metrics without a value have no file that this reader takes for one.
            walk(metric, cube.get_metric_values(metric), root, [])
    return profile.paths


def of_pprof(path):
    stacks = {}
    for sample in json.loads(path.read_text()):
        for metric, value in sample["values"].items():
            key = (tuple(sample["stack"]), sample["who"], metric)
            stacks[key] = stacks.get(key, 0) + value
    profile = Profile()
    profile.add_stacks(stacks)
    return profile.paths


def of_collapsed(path):
    stacks = {}
    for line in path.read_text().splitlines():
        stack, value = line.rsplit(" ", 1)
        key = (tuple(stack.split(";")), "all", "time")
        assert key not in stacks, f"two lines of {stack}"
        stacks[key] = int(value)
    profile = Profile()
    profile.add_stacks(stacks)
    return profile.paths


def of_tau(path):
    import hatchet

    profile = Profile()
    graph = hatchet.GraphFrame.from_tau(str(path))
    rows = graph.dataframe.reset_index().to_dict("records")
    metrics = graph.exc_metrics
    for row in rows:
        names = [node.frame["name"] for node in row["node"].path()]
        who = f"{row.get('rank', 0)}/{row.get('thread', 0)}"
        for metric in metrics:
            profile.add(names, who, metric, row[metric], row[metric + " (inc)"])
        profile.add(names, who, "visits", row["Calls"], 0)
    return profile.paths


def of_caliper(path):
    import hatchet

    profile = Profile()
    graph = hatchet.GraphFrame.from_caliperreader(str(path))
    assert graph.metadata["threads"] > 0, graph.metadata
    for row in graph.dataframe.reset_index().to_dict("records"):
        names = [node.frame["name"] for node in row["node"].path()]
        for metric in graph.exc_metrics:
            profile.add(names, f"{int(row.get('rank', 0))}/all", metric, row[metric], 0)
    return profile.paths


def values(folders):
    read = {"cube": of_cube, "pprof.json": of_pprof, "collapsed": of_collapsed, "tau": of_tau, "caliper.cali": of_caliper}
    return [{name: function(folder / name) for name, function in read.items()} for folder in map(Path, folders)]


def together(files):
    # It tells on standard output which of its parts are missing.
    with contextlib.redirect_stdout(sys.stderr):
        import thicket

        read = thicket.Thicket.from_caliperreader(files, disable_tqdm=True)
    assert len(read.metadata) == len(files), read.metadata
    times = {}
    for (node, _), row in read.dataframe.iterrows():
        names = [place(n.frame["name"]) for n in node.path()[1:]]
        if not names or names[-1]:
            path = ">".join(["program"] + list(filter(None, names)))
            times.setdefault(path, []).append(row["time"])
    return times


def models(lines, cubes, threads):
    from extrap.fileio.file_reader.cube_file_reader2 import CubeFileReader2
    from extrap.fileio.file_reader.jsonlines_file_reader import read_jsonlines_file
    from extrap.modelers.model_generator import ModelGenerator

    reader = CubeFileReader2()
    reader.scaling_type = "strong"
    found = {}
    for name, experiment in [("lines", read_jsonlines_file(lines)), ("cube", reader.read_experiment(cubes))]:
        generator = ModelGenerator(experiment)
        generator.model_all()
        found[name] = {}
        for (callpath, metric), model in generator.models.items():
            at = place(callpath.name.split("->")[-1])
            if metric.name == "visits" and at:
                value = float(model.hypothesis.function.evaluate(threads))
                found[name].setdefault(at, []).append(value)
    return found


if sys.argv[1] == "values":
    result = values(sys.argv[2:])
elif sys.argv[1] == "together":
    result = together(sys.argv[2:])
else:
    result = models(sys.argv[2], sys.argv[3], int(sys.argv[4]))
json.dump(result, sys.stdout)
