"""Reads exported tables and metrics by libraries that had no part in writing them.

read EVENT FOLDER...       prints what the libraries find in each folder's tables, as JSON; EVENT: name of a column
page FILE EXPRESSION...    executes a page's blocks of Python one after the other, and prints the expressions' values as JSON
metrics FILE               prints the sums of metrics by family and region as JSON

Libraries are imported where they are needed, since that takes longer than what they do.
"""

import contextlib
import io
import json
import math
import pathlib
import sys


def frames(folder, table):
    """The same table by each reader, as lists by column: what is null is None."""
    import duckdb
    import pandas
    import polars
    import pyarrow

    def of_pandas(frame):
        return frame.astype(object).where(frame.notna(), None).to_dict("list")

    file = lambda ending: str(folder / f"{table}.{ending}")
    return {
        "pandas": of_pandas(pandas.read_parquet(file("parquet"))),
        "polars": polars.read_parquet(file("parquet")).to_dict(as_series=False),
        "duckdb": duckdb.sql(f"SELECT * FROM '{file('parquet')}'").pl().to_dict(as_series=False),
        "arrow": pyarrow.ipc.open_file(file("arrow")).read_all().to_pydict(),
        "feather": of_pandas(pandas.read_feather(file("arrow"))),
        "csv": of_pandas(pandas.read_csv(file("csv"))),
    }


def total(values):
    """The sum, and how many are known."""
    known = [value for value in values if value is not None]
    return [sum(known) if known else None, len(known)]


def units(columns, events):
    return {
        "own_ns": total(columns["own_ns"]),
        "labels": sorted(label for label in columns["label"] if label is not None),
        "events": {event: total(columns[event]) for event in events},
    }


def regions(columns, events):
    found = {}
    numbers = [name for name in columns if name.endswith("_s") or name.endswith("_count") or name == "xus"]
    for row, region in enumerate(columns["region"]):
        sums = found.setdefault(str(int(region)), {"threads": 0})
        sums["threads"] += 1
        for name in [*numbers, *events]:
            value = columns[name][row]
            if value is None:
                continue
            value = float(value)
            if name.startswith("region_"):
                assert sums.get(name, value) == value, f"{name} differs between threads"
                sums[name] = value
            else:
                sums[name] = math.fsum([sums.get(name, 0.0), value])
    return found


def described(folder, table):
    """What is known of each column, by both formats."""
    import pyarrow
    import pyarrow.parquet

    schemas = [
        pyarrow.parquet.read_schema(folder / f"{table}.parquet"),
        pyarrow.ipc.open_file(folder / f"{table}.arrow").schema,
    ]
    known = [
        {field.name: {k.decode(): v.decode() for k, v in (field.metadata or {}).items()} for field in schema}
        for schema in schemas
    ]
    assert known[0] == known[1], f"{table}: {known}"
    return known[0]


def metrics(path):
    """By family and region the sum of all samples."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    text = path.read_bytes().decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            of_family = found.setdefault(family.name, {})
            place = sample.labels.get("address", "")
            of_family[place] = of_family.get(place, 0.0) + sample.value
    return found


def read(folder, event):
    folder, events = pathlib.Path(folder), [event]
    result = {"metrics": metrics(folder / "metrics.txt")}
    for table, sums in [("units", units), ("regions", regions)]:
        result[table] = {reader: sums(columns, events) for reader, columns in frames(folder, table).items()}
        result[f"{table}_described"] = described(folder, table)
    return result


def page(file, expressions):
    names, block = {}, None
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for line in pathlib.Path(file).read_text().splitlines():
            if line == "```python":
                block = []
            elif line == "```" and block is not None:
                exec("\n".join(block), names)
                block = None
            elif block is not None:
                block.append(line)
    print(said.getvalue(), file=sys.stderr)
    return [eval(expression, names) for expression in expressions]


if __name__ == "__main__":
    what, first, *rest = sys.argv[1:]
    result = {
        "read": lambda: [read(folder, first) for folder in rest],
        "page": lambda: page(first, rest),
        "metrics": lambda: metrics(pathlib.Path(first)),
    }[what]()
    json.dump(result, sys.stdout, default=lambda value: value.item())
