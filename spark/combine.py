"""Combines partitioned units by Spark: it brings the units of a type together, and `ompfuse combine-groups` does the rest.

`ompfuse combine --engine spark[:URL]` starts this, and reads the line of JSON that it prints. An error is one line on standard error, and
status 1.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading

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


def worker(options):
    """What Spark calls for each of its partitions, which are whole groups."""

    def groups(batches):
        import pyarrow
        from pyspark import SparkFiles

        first = next(batches, None)
        if first is None:
            return
        command = [SparkFiles.get("ompfuse"), "combine-groups"]
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
        broken = None
        try:
            with pyarrow.ipc.open_stream(child.stdout) as result:
                yield from result
        except (pyarrow.ArrowInvalid, OSError) as error:
            broken = error
        status = child.wait()
        for thread in threads:
            thread.join()
        lines = b"".join(said).decode(errors="replace").strip().splitlines()
        if status != 0:
            why = lines[-1].removeprefix(MARK) if lines else f"combine-groups ended with status {status}"
            raise RuntimeError(MARK + why)
        for error in failures + [broken]:
            if error is not None:
                raise RuntimeError(f"{MARK}cannot feed combine-groups: {error}")

    return groups


def schema_of_result(args, options, units):
    """The columns of the result: what the process answers if it gets nothing."""
    import pyarrow
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, to_arrow_schema(units.schema)):
        pass
    manifest = os.path.join(args.units, "manifest.json")
    command = [args.ompfuse, "combine-groups", "--manifest", manifest, *options]
    said = subprocess.run(command, input=sink.getvalue().to_pybytes(), capture_output=True)
    if said.returncode != 0:
        fail(said.stderr.decode(errors="replace").strip().removeprefix(MARK))
    return from_arrow_schema(pyarrow.ipc.open_stream(said.stdout).schema)


def one_line(error):
    """What a worker said, or else the first line of what Spark says."""
    lines = str(error).splitlines()
    told = [line[line.index(MARK) + len(MARK) :] for line in lines if MARK in line]
    return (told or lines or [type(error).__name__])[0]


def combine(args):
    from pyspark.sql import SparkSession

    with open(os.path.join(args.units, "manifest.json")) as file:
        manifest = json.load(file)
    units = sum(group["units"] for part in manifest["parts"] for group in part["groups"])
    options = ["--strategy", args.strategy, "--relax", args.relax, "--by", args.by]
    builder = SparkSession.builder.appName("ompfuse combine").master(args.master)
    builder = builder.config("spark.ui.showConsoleProgress", "true" if sys.stderr.isatty() else "false")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.sparkContext.addFile(args.ompfuse)
    spark.sparkContext.addFile(os.path.join(args.units, "manifest.json"))
    read = spark.read.option("mergeSchema", "true").option("basePath", os.path.join(args.units, "units"))
    table = read.parquet(os.path.join(args.units, "units"))
    schema = schema_of_result(args, options, table)
    keys = ["module", "type"] + (["rank"] if args.by == "rank" else [])
    number = max(units // ROWS, 2 * spark.sparkContext.defaultParallelism)
    # A number of its own keeps Spark from dividing groups or putting partitions together.
    table = table.repartition(number, *keys).sortWithinPartitions(*keys)
    result = table.mapInArrow(worker(options), schema)
    partial = args.output.rstrip("/") + ".partial"
    result.write.mode("overwrite").parquet(partial)
    rows = spark.read.parquet(partial).count()
    spark.stop()
    os.rename(partial, args.output)
    print(json.dumps({"xus": rows}))


def main():
    parser = argparse.ArgumentParser()
    for name in ("ompfuse", "units", "output", "master", "strategy", "relax", "by"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        fail(
            f"cannot combine by Spark: {sys.executable} has no {error.name}; `pip install pyspark pyarrow`, or name an "
            "interpreter that has them by OMPFUSE_PYTHON"
        )
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        fail("cannot combine by Spark: there is no java; install a Java runtime (17 or later), or set JAVA_HOME")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        combine(args)
    except Exception as error:  # Spark has many, with hundreds of lines each.
        fail(f"cannot combine by Spark: {one_line(error)}")


if __name__ == "__main__":
    main()
