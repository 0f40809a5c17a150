"""Combines partitioned units by Spark: it brings the units of a type together, and `ompfuse combine-groups` does the rest.

`ompfuse combine --engine spark[:URL]` starts this, and gives the folder its name when all parts are there. Each part gets its name when
it is whole, and then a mark; what was interrupted goes on from there. An error is one line on standard error, and status 1.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time

# What an error's line begins with, wherever it comes from.
MARK = "ompfuse: "

# A bucket of units has about so many rows, if types allow it.
ROWS = 200_000


def fail(why):
    sys.stderr.write(f"{MARK}{why}\n")
    sys.exit(1)


def feed(batches, first, child, failures):
    """Writes batches to a process: in a thread, since the process answers before it has all of them."""
    import pyarrow

    try:
        with pyarrow.ipc.new_stream(child.stdin, first.schema) as stream:
            stream.write_batch(first)
            for batch in batches:
                stream.write_batch(batch)
        child.stdin.close()
    except BaseException as error:
        failures.append(error)
        # Without the end of the stream the process fails, too.
        try:
            child.stdin.close()
        except OSError:
            pass


def worker(folder, options):
    """What Spark calls for each of its partitions, which are whole groups. It leaves a file, and then what was combined, as its mark."""

    def groups(batches):
        import pyarrow
        import pyarrow.parquet
        from pyspark import SparkFiles, TaskContext

        first = next(batches, None)
        if first is None:
            return
        task = TaskContext.get()
        part, attempt = task.partitionId(), task.taskAttemptId()
        # Another attempt may be under way elsewhere: each has files of its own, and renames them when they are whole.
        begun = os.path.join(folder, f".{name_of(part)}-{os.uname().nodename}-{os.getpid()}-{attempt}")
        told, file = f"{begun}.json", f"{begun}.parquet"
        command = [SparkFiles.get("ompfuse"), "combine-groups", "--done", told]
        command += ["--manifest", SparkFiles.get("manifest.json"), *options]
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        failures, said = [], []
        threads = [
            threading.Thread(target=feed, args=(batches, first, child, failures), daemon=True),
            threading.Thread(target=lambda: said.append(child.stderr.read()), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            broken = None
            try:
                write(child.stdout, file)
            except (pyarrow.ArrowInvalid, OSError) as error:
                broken = error
                child.stdout.close()
            status = child.wait()
            for thread in threads:
                thread.join()
            # A full disk ends the process, too, and is why.
            if isinstance(broken, OSError) and broken.errno:
                raise RuntimeError(f"{MARK}cannot write {file}: {os.strerror(broken.errno)}")
            lines = b"".join(said).decode(errors="replace").strip().splitlines()
            if status != 0:
                why = lines[-1].removeprefix(MARK) if lines else f"combine-groups ended with status {status}"
                raise RuntimeError(MARK + why)
            for error in failures + [broken]:
                if error is not None:
                    raise RuntimeError(f"{MARK}cannot feed combine-groups: {error}")
            os.rename(file, os.path.join(folder, f"{name_of(part)}.parquet"))
            os.rename(told, mark_of(folder, part))
        finally:
            for left in (told, file):
                if os.path.exists(left):
                    os.remove(left)
        yield pyarrow.RecordBatch.from_pydict({"part": pyarrow.array([part], pyarrow.int32())})

    return groups


def write(stream, file):
    """Writes what a process answers as Parquet."""
    import pyarrow
    import pyarrow.parquet

    with pyarrow.ipc.open_stream(stream) as result, open(file, "xb") as into:
        with pyarrow.parquet.ParquetWriter(into, result.schema, compression="zstd") as writer:
            for batch in result:
                writer.write_batch(batch)
        into.flush()
        os.fsync(into.fileno())


def name_of(part):
    return f"part-{part:05}"


def mark_of(folder, part):
    return os.path.join(folder, "_done", f"{name_of(part)}.json")


def units_in(folder, part):
    """Number of units that a finished part was made of; 0 if it isn't finished, or damaged."""
    import pyarrow
    import pyarrow.parquet

    try:
        with open(mark_of(folder, part)) as mark:
            done = json.load(mark)
        rows = pyarrow.parquet.read_metadata(os.path.join(folder, f"{name_of(part)}.parquet")).num_rows
        return done["units"] if rows == done["combined"] else 0
    except (OSError, ValueError, KeyError, pyarrow.ArrowInvalid):
        return 0


def schema_of(manifest):
    """The columns of units. Files of runs with other events lack some."""
    texts = "module type label kind"
    numbers = (
        "unit hash_high hash_low process process_number process_ordinal thread first iterations start_ns end_ns own_ns parts"
    )
    columns = [(name, "string") for name in texts.split()] + [(name, "long") for name in numbers.split()]
    columns += [("rank", "int"), ("cpu", "int"), ("disturbed", "boolean"), ("run", "int"), ("bucket", "int")]
    events = dict.fromkeys(event for part in manifest["parts"] for event in part["events"])
    columns += [(f"count:{event}", "long") for event in events]
    return ", ".join("`" + name.replace("`", "``") + f"` {kind}" for name, kind in columns)


def expected_of(spark, manifest, place):
    """Number of units of each part that has some."""
    groups = {}
    for part in manifest["parts"]:
        for group in part["groups"]:
            key = (group["module"], group["type"], group["rank"])
            groups[key] = groups.get(key, 0) + group["units"]
    rows = [(*key, units) for key, units in groups.items()]
    table = spark.createDataFrame(rows, "module string, type string, rank int, units long")
    found = {}
    for part, units in table.selectExpr(f"{place} AS part", "units").collect():
        found[part] = found.get(part, 0) + units
    return found


def planned(args, bytes, number):
    """The number of parts: that of what goes on here, if it was interrupted."""
    plan = {name: getattr(args, name) for name in ("strategy", "relax", "by", "first")}
    plan |= {"manifest": hashlib.sha256(bytes).hexdigest(), "parts": number}
    file = os.path.join(args.folder, "_plan.json")
    os.makedirs(os.path.join(args.folder, "_done"), exist_ok=True)
    if os.path.exists(file):
        with open(file) as known:
            known = json.load(known)
        if known | {"parts": number} != plan:
            fail(f"cannot go on with {args.folder}: it is of other units or another strategy; remove it")
        return known["parts"]
    with open(file + ".new", "w") as into:
        json.dump(plan, into)
    os.rename(file + ".new", file)
    return number


def one_line(error):
    """What a worker said, or a file that can't be read, or else the first line that tells anything."""
    lines = [line.strip().lstrip(": ") for line in str(error).splitlines()]
    told = [line[line.index(MARK) + len(MARK) :] for line in lines if MARK in line]
    told += [line for line in lines if "while reading file" in line]
    told += [line for line in lines if line and not line.startswith("An error occurred while calling")]
    return (told or [type(error).__name__])[0]


def combine(args):
    from pyspark.sql import SparkSession

    with open(os.path.join(args.units, "manifest.json"), "rb") as file:
        bytes = file.read()
    manifest = json.loads(bytes)
    units = sum(group["units"] for part in manifest["parts"] for group in part["groups"])
    options = ["--strategy", args.strategy, "--relax", args.relax, "--by", args.by, "--first", args.first]
    builder = SparkSession.builder.appName("ompfuse combine").master(args.master)
    builder = builder.config("spark.ui.showConsoleProgress", "true" if sys.stderr.isatty() else "false")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.sparkContext.addFile(args.ompfuse)
    spark.sparkContext.addFile(os.path.join(args.units, "manifest.json"))
    number = planned(args, bytes, max(units // ROWS, 2 * spark.sparkContext.defaultParallelism))
    keys = ["module", "type"] + (["rank"] if args.by == "rank" else [])
    # Where Spark puts a row; what comes is counted, so if it does otherwise, it is seen.
    place = f"pmod(hash({', '.join(keys)}), {number})"
    expected = expected_of(spark, manifest, place)
    done = [part for part, units in expected.items() if units_in(args.folder, part) == units]
    if done:
        sys.stderr.write(f"{MARK}going on: {len(done)} of {len(expected)} parts are combined already\n")
    if len(done) < len(expected):
        read = spark.read.schema(schema_of(manifest)).option("basePath", os.path.join(args.units, "units"))
        table = read.parquet(os.path.join(args.units, "units"))
        if done:
            table = table.where(f"{place} NOT IN ({', '.join(map(str, done))})")
        # A number of its own keeps Spark from dividing groups or putting partitions together.
        table = table.repartition(number, *keys).sortWithinPartitions(*keys)
        table.mapInArrow(worker(args.folder, options), "part int").collect()
    spark.stop()
    for part, units in expected.items():
        if (came := units_in(args.folder, part)) != units:
            fail(f"cannot combine by Spark: {came} of {units} units came in part {part}: files of {args.units} are missing or damaged")


def end_with(parent):
    """Ends this if the command that started it was killed: it may be started again."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def missing_package():
    """Which package Spark would miss, once a session has started; None if it has all. PySpark knows the versions that it needs."""
    try:
        from pyspark.sql.pandas.utils import require_minimum_pandas_version, require_minimum_pyarrow_version

        require_minimum_pyarrow_version()
        require_minimum_pandas_version()
    except ImportError as error:
        return f"has no {error.name}" if error.name else f"lacks a package: {one_line(error).rstrip('.')}"
    return None


def main():
    parser = argparse.ArgumentParser()
    for name in ("ompfuse", "units", "folder", "master", "strategy", "relax", "by", "first"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    if missing := missing_package():
        fail(
            f"cannot combine by Spark: {sys.executable} {missing}; `pip install pyspark pyarrow pandas`, or name an "
            "interpreter that has them by OMPFUSE_PYTHON"
        )
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        fail("cannot combine by Spark: there is no java; install a Java runtime (17 or later), or set JAVA_HOME")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    try:
        combine(args)
    except Exception as error:  # Spark has many, with hundreds of lines each.
        fail(f"cannot combine by Spark: {one_line(error)}")


def command():
    """`ompfuse-spark ARGUMENT...`: combines by Spark with this interpreter, which the wheel has given what Spark needs."""
    os.environ["OMPFUSE_PYTHON"] = sys.executable
    args = sys.argv[1:]
    engine = [] if any(arg.split("=")[0] == "--engine" for arg in args) else ["--engine", "spark"]
    try:
        os.execvp("ompfuse", ["ompfuse", "combine", *engine, *args])
    except OSError as error:
        fail(f"cannot start ompfuse: {error.strerror}; install it, or add its folder to PATH")


if __name__ == "__main__":
    main()
