"""Feeds partitioned units to `ompfuse combine-groups` as an engine does, by libraries that had no part in writing them.

equal OMPFUSE UNITS STRATEGY BY PROFILE   two processes get half of the groups each; their result must be the profile's. Prints the rows
same FOLDER PROFILE                       the same of what an engine has written
generate FOLDER UNITS RUNS [alike]     tables of as many runs, with 64 types; "alike": three of them count the same, the third is typical
sql RESULT PROFILE                        the same as `same` by SQL, in little memory
large UNITS PROFILE                       the same as `join` in little memory
readers FOLDER PROFILE                 pandas, polars and duckdb read the same of both
join UNITS PROFILE                        the same by a join in SQL: labels decide
ranks OMPFUSE UNITS PROFILE...            the same of a job by labels and ranks; each profile is of one rank
wrong OMPFUSE UNITS KIND                  a process gets something wrong. Prints its status, and what it says
"""

import io
import json
import pathlib
import subprocess
import sys

import duckdb
import pyarrow as pa

ORDER = "ORDER BY module, type, rank, unit % 7, run"


def units(folder):
    """All units, in groups; inside of a group in an order of no meaning."""
    files = f"{folder}/units/*/*/*.parquet"
    options = "hive_partitioning=true, union_by_name=true"
    query = f"SELECT * FROM read_parquet('{files}', {options}) {ORDER}"
    return duckdb.sql(query).to_arrow_table()


def stream(table, whole=True):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    bytes = sink.getvalue()
    return bytes if whole else bytes[:-8]


def combine(ompfuse, folder, args, bytes):
    command = [ompfuse, "combine-groups", "--manifest", f"{folder}/manifest.json", *args]
    return subprocess.run(command, input=bytes, capture_output=True)


def halves(table):
    """By type, so that groups stay whole."""
    types = sorted({str(t) for t in table["type"].to_pylist()})
    first = set(types[::2])
    mask = pa.array([str(t) in first for t in table["type"].to_pylist()])
    inverse = pa.array([not m.as_py() for m in mask])
    return [table.filter(mask), table.filter(inverse)]


def rows_of_profile(profile):
    """Rows of a profile as `combine-groups` has them."""
    table = pa.parquet.read_table(profile)
    names = table.column_names
    events = [n.removeprefix("run:") for n in names if n.startswith("run:")]
    found = []
    for row in table.to_pylist():
        hash = row["label_hash"]
        halves = [None, None]
        if hash is not None:
            halves = [int.from_bytes(hash[i : i + 8], "big", signed=True) for i in (0, 8)]
        kept = {
            "type": row["type"],
            "module": row["module"],
            "label": row["label"],
            "hash": halves,
            "thread": row["thread"],
            "start_ns": row["start_ns"],
            "end_ns": row["end_ns"],
            "own_ns": row["own_ns"],
            "parts": row["parts"],
            "kind": row["kind"],
            "process": row["process"],
            "rank": row["mpi_rank"],
            "iterations": row["iterations"] or 0,
            "confidence": row.get("confidence"),
        }
        for event in events:
            kept[event] = (row[event], row[f"run:{event}"], row.get(f"xu:{event}"))
        found.append(kept)
    return found, events


def rows_of_groups(tables, events):
    found = []
    for row in (row for table in tables for row in table.to_pylist()):
        kept = {name: row[name] for name in ("type", "module", "label", "thread", "start_ns", "end_ns", "own_ns", "parts", "kind")}
        kept |= {name: row[name] for name in ("process", "rank", "iterations")}
        kept["hash"] = [row["hash_high"], row["hash_low"]]
        kept["confidence"] = row.get("confidence")
        for event in events:
            unit = row.get(f"unit:{event}")
            position = None if unit is None else unit & 0xFFFFFFFF
            kept[event] = (row[f"count:{event}"], row[f"run:{event}"], position)
        found.append(kept)
    return found


def sorted_rows(rows):
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def equal(ompfuse, folder, strategy, by, profile):
    tables = []
    for half in halves(units(folder)):
        said = combine(ompfuse, folder, ["--strategy", strategy, "--by", by], stream(half))
        assert said.returncode == 0, said.stderr
        tables.append(pa.ipc.open_stream(said.stdout).read_all())
    expected, events = rows_of_profile(profile)
    compare(tables, expected, events)


def ranks(ompfuse, folder, *profiles):
    tables = []
    for half in halves(units(folder)):
        said = combine(ompfuse, folder, ["--strategy", "lgl", "--by", "rank"], stream(half))
        assert said.returncode == 0, said.stderr
        tables.append(pa.ipc.open_stream(said.stdout).read_all())
    expected, events = [], []
    for profile in profiles:
        rows, events = rows_of_profile(profile)
        expected += rows
    found = rows_of_groups(tables, events)
    # Positions, and numbers of processes, are those in the run of all ranks.
    for row in found + expected:
        row["process"] = None
        row |= {event: row[event][:2] for event in events}
    found, expected = sorted_rows(found), sorted_rows(expected)
    assert found == expected, (found[:3], expected[:3], len(found), len(expected))
    print(len(found))


def same(folder, profile):
    """What an engine has written."""
    files = sorted(pathlib.Path(folder).glob("*.parquet"))
    compare([pa.parquet.read_table(file) for file in files], *rows_of_profile(profile))


def generate(folder, units, runs, kind=""):
    """A table of each run: labels are in all of them, behaviour and times are each one's own."""
    for run in range(int(runs)):
        events, shift = [f"E{run}_{i}" for i in range(4)], 0
        if kind == "alike":
            events = ["A", "B"] if run != 1 else ["C"]
            shift = [0, 0, 40, 90][run]
        counts = ", ".join(f"(hash(u * 31 + {run * 7 + i}) % 1000 + {shift})::BIGINT AS {e}" for i, e in enumerate(events))
        duckdb.sql(
            f"""COPY (SELECT u % 64 AS type, '0.' || u % 64 || '.' || u // 64 AS label, (hash(u + {run}) % 16)::INT AS thread,
            (u * 1000)::BIGINT AS t0_ns, (u * 1000 + 500 + hash(u * 3 + {run}) % 400)::BIGINT AS t1_ns, {counts}
            FROM range({units}) t(u)) TO '{folder}/run-{run}.parquet'"""
        )
    print(int(units))


def readers(folder, profile):
    """Counts by others' hands."""
    import pandas
    import polars

    events = [n.removeprefix("run:") for n in pa.parquet.read_schema(profile).names if n.startswith("run:")]
    expected = duckdb.sql(f"SELECT {', '.join(f'sum({chr(34)}{e}{chr(34)})' for e in events)} FROM '{profile}'").fetchall()[0]
    columns = [f"count:{e}" for e in events]
    frame = pandas.read_parquet(folder)[columns]
    lazy = polars.read_parquet(f"{folder}/*.parquet").select(columns)
    query = f"SELECT {', '.join(f'sum({chr(34)}{c}{chr(34)})' for c in columns)} FROM '{folder}/*.parquet'"
    for found in (frame.sum(), lazy.sum().row(0), duckdb.sql(query).fetchall()[0]):
        assert [int(n) for n in found] == [int(n) for n in expected]
    assert len(frame) == lazy.height
    print(lazy.height)


def compare(tables, expected, events):
    found, expected = sorted_rows(rows_of_groups(tables, events)), sorted_rows(expected)
    for a, b in zip(found, expected):
        assert a == b, f"\n{a}\n{b}"
    assert len(found) == len(expected), (len(found), len(expected))
    print(len(found))


def joined(folder, units):
    """A query of labels that are in every run, once."""
    manifest = json.loads(pathlib.Path(folder, "manifest.json").read_text())
    runs = {part["run"]: part["events"] for part in manifest["parts"]}
    key = "type, module, hash_high, hash_low, process_ordinal"
    same = "IS NOT DISTINCT FROM"
    columns, joins, events = [], [], []
    for run, counted in sorted(runs.items()):
        new = [e for e in counted if e not in events]
        events += new
        columns += [f'r{run}."count:{e}" AS "{e}"' for e in new]
        values = ", ".join(f'any_value("{v}") AS "{v}"' for v in ["label", "start_ns", *(f"count:{e}" for e in new)])
        once = (
            f"(SELECT {key}, {values} FROM {units} WHERE run = {run} AND hash_high IS NOT NULL "
            f"GROUP BY {key} HAVING count(*) = 1) r{run}"
        )
        on = " AND ".join(f"r0.{k} {same} r{run}.{k}" for k in key.split(", "))
        joins.append(once if run == 0 else f"JOIN {once} ON {on}")
    return f"SELECT r0.label, r0.start_ns, {', '.join(columns)} FROM {' '.join(joins)}", events


def join(folder, profile):
    duckdb.register("all_units", units(folder))
    query, events = joined(folder, "all_units")
    found = duckdb.sql(query).to_arrow_table().to_pylist()
    expected, _ = rows_of_profile(profile)
    kept = [{"label": r["label"], "start_ns": r["start_ns"]} | {e: r[e][0] for e in events} for r in expected]
    assert sorted_rows(found) == sorted_rows(kept)
    print(len(kept))


def in_little_memory():
    duckdb.sql("SET memory_limit = '3GB'; SET threads = 2; SET preserve_insertion_order = false")


def rows_in_both(one, other):
    """Number of rows of two queries, which have the same ones."""
    counts = [duckdb.sql(f"SELECT count(*) FROM ({q})").fetchall()[0][0] for q in (one, other)]
    for a, b in ((one, other), (other, one)):
        found = duckdb.sql(f"SELECT * FROM ({a} EXCEPT ALL {b}) LIMIT 3").fetchall()
        assert not found, found
    assert counts[0] == counts[1], counts
    return counts[0]


def sql(folder, profile):
    in_little_memory()
    names = pa.parquet.read_schema(profile).names
    events = [n.removeprefix("run:") for n in names if n.startswith("run:")]
    same = "type, module, label, thread, start_ns, end_ns, own_ns, parts, kind, process, coalesce(iterations, 0) AS iterations"
    of_run = ", ".join(f'"{e}" AS c{i}, "run:{e}" AS r{i}' for i, e in enumerate(events))
    of_groups = ", ".join(f'"count:{e}" AS c{i}, "run:{e}" AS r{i}' for i, e in enumerate(events))
    unsigned = [f"lpad(hex({half}), 16, '0')" for half in ("hash_high", "hash_low")]
    one = f"SELECT {same}, {' || '.join(unsigned)} AS hash, {of_groups} FROM '{folder}/*.parquet'"
    other = f"SELECT {same}, hex(label_hash) AS hash, {of_run} FROM '{profile}'"
    print(rows_in_both(one, other))


def large(folder, profile):
    in_little_memory()
    files = f"read_parquet('{folder}/units/*/*/*.parquet', hive_partitioning = true, union_by_name = true)"
    query, events = joined(folder, files)
    counts = ", ".join(f'"{e}"' for e in events)
    print(rows_in_both(query, f"SELECT label, start_ns, {counts} FROM '{profile}'"))


def wrong(ompfuse, folder, kind):
    table = units(folder)
    whole, args = True, []
    if kind == "back":
        table = pa.concat_tables([table, table.slice(0, 1)])
    elif kind == "column":
        table = table.drop_columns(["own_ns"])
    elif kind == "early":
        whole = False
    elif kind == "count":
        table = table.slice(1)
    elif kind == "twice":
        table = pa.concat_tables([table.slice(0, 1), table])
    elif kind == "label":
        at = table.column_names.index("hash_low")
        low = pa.array([None if n is None else n ^ 1 for n in table["hash_low"].to_pylist()], pa.int64())
        table = table.set_column(at, "hash_low", low)
    elif kind == "rank":
        args = ["--strategy", "joint", "--by", "rank"]
    bytes = stream(table, whole)
    if kind == "cut":
        bytes = bytes[: len(bytes) // 2]
    said = combine(ompfuse, folder, args, bytes)
    ended = said.stdout.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    print(json.dumps([said.returncode, said.stderr.decode(), ended]))


if __name__ == "__main__":
    import pyarrow.parquet  # noqa: F401

    what, *args = sys.argv[1:]
    commands = (equal, same, sql, generate, readers, join, large, ranks, wrong)
    {command.__name__: command for command in commands}[what](*args)
