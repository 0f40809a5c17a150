//! Units for engines: partitioned, fed to processes in groups, and combined as `combine` does it, unit by unit.

mod spark;

use super::ranks::{self, IMPLEMENTATIONS};
use ompfuse_tests::{command, process, repository, skip, target};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The interpreter with duckdb and pyarrow.
pub(crate) fn python() -> Option<PathBuf> {
    let python = target().0.join("foreign/tables/python/bin/python");
    if !python.is_file() {
        skip("readers of tables are not installed (tests/setup.sh)");
        return None;
    }
    Some(python)
}

/// What `tests/src/exchange.py` prints.
#[track_caller]
pub(crate) fn script(python: &Path, args: &[&str]) -> Value {
    let mut command = Command::new(python);
    process::clean(&mut command, 2);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/exchange.py"));
    let said =
        process::within(command.args(args), Duration::from_secs(600)).ok(&format!("{args:?}"));
    serde_json::from_slice(&said.stdout).expect("JSON")
}

/// Partitions and combines, and has both compared.
#[track_caller]
fn compare(python: &Path, folder: &Path, inputs: &[PathBuf], strategies: &[(&str, &str)]) -> u64 {
    std::fs::create_dir_all(folder).expect("there is room for a folder");
    let units = folder.join("units");
    let mut partition = command::with_threads(2);
    partition
        .arg("partition")
        .args(inputs)
        .args(["--buckets", "5", "-o"])
        .arg(&units);
    process::run(&mut partition).ok("partition");
    let [units, ompfuse] = [&*units, command::path()].map(|p| p.to_str().expect("UTF-8"));
    let mut rows = 0;
    for (strategy, by) in strategies {
        let profile = folder.join(format!("{strategy}.parquet"));
        let mut combine = command::with_threads(2);
        combine
            .arg("combine")
            .args(inputs)
            .args(["--strategy", strategy, "-o"])
            .arg(&profile);
        process::run(&mut combine).ok("combine");
        let profile = profile.to_str().expect("UTF-8");
        let found = script(python, &["equal", ompfuse, units, strategy, by, profile]);
        rows = found.as_u64().expect("a number");
        assert!(rows > 0, "{strategy}");
        if *strategy == "lgl" {
            assert_eq!(script(python, &["join", units, profile]), rows);
        }
    }
    rows
}

/// Another recorder's tables.
#[test]
fn groups_of_tables_are_combined_as_all_of_them() {
    let Some(python) = python() else { return };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuse/tests/data");
    let inputs = |prefix: &str, n: usize, width: usize| -> Vec<PathBuf> {
        (1..=n)
            .map(|i| data.join(format!("{prefix}{i:0width$}.csv")))
            .collect()
    };
    let folder = tempfile::tempdir().expect("there is room for units");
    let chain = [("bc", "type"), ("joint", "type")];
    compare(
        &python,
        &folder.path().join("bc"),
        &inputs("a_bc_in_", 15, 2),
        &chain,
    );
    let lgl = [("lgl", "type"), ("ctc", "type")];
    compare(
        &python,
        &folder.path().join("lgl"),
        &inputs("a_lgl_in_", 7, 1),
        &lgl,
    );
}

/// A program's runs, and runs of all ranks of a job by type, and by type and rank.
#[test]
fn groups_of_runs_are_combined_as_all_of_them() {
    let Some(python) = python() else { return };
    let (compiler, launcher) = IMPLEMENTATIONS[0];
    let Some((folder, _program)) = ranks::build(compiler) else {
        return;
    };
    let record = "record --events task-clock,page-faults --slots 1";
    let line = format!("\"$OMPFUSE\" {record} -o out -- {launcher} -n 2 ./ranks");
    ranks::run(folder.path(), &line).ok(&line);
    let runs = ["run-0001", "run-0002"].map(|run| folder.path().join("out").join(run));
    let all = [
        ("lgl", "type"),
        ("lgl", "rank"),
        ("ctc", "type"),
        ("joint", "type"),
    ];
    let rows = compare(&python, folder.path(), &runs, &all);
    assert!((1..=32).contains(&rows), "{rows}");
}

/// Each rank's folder by itself, in any order, twice, gives what all at once give.
#[test]
fn ranks_are_partitioned_by_themselves() {
    let (compiler, launcher) = IMPLEMENTATIONS[0];
    let Some((folder, _program)) = ranks::build(compiler) else {
        return;
    };
    let line = format!("{launcher} -n 2 \"$OMPFUSE\" record --events none -o job/%r -- ./ranks");
    ranks::run(folder.path(), &line).ok(&line);
    let partition =
        |line: &str| ranks::run(folder.path(), &format!("\"$OMPFUSE\" partition {line}"));
    let said = partition("job -o at-once").ok("all at once");
    assert!(
        said.text().contains("32 units of 1 runs, in 2 parts"),
        "{said:?}"
    );
    for line in [
        "job/1 -o one-by-one",
        "job/0 -o one-by-one",
        "job/1 -o one-by-one",
        "-o one-by-one",
    ] {
        partition(line).ok(line);
    }
    let manifest = |of: &str| -> Value {
        let text = std::fs::read(folder.path().join(of).join("manifest.json"));
        serde_json::from_slice(&text.expect("it was written")).expect("it is JSON")
    };
    assert_eq!(manifest("at-once"), manifest("one-by-one"));
    let whole = manifest("at-once");
    let parts = whole["parts"].as_array().expect("a list").iter();
    let ranks: Vec<&Value> = parts.map(|p| &p["groups"][0]["rank"]).collect();
    assert_eq!(ranks, [0, 1]);
    let refused = partition("job/0 --buckets 3 -o one-by-one");
    assert!(
        refused.errors().contains("other events or buckets"),
        "{refused:?}"
    );
    let line = format!("{launcher} -n 1 \"$OMPFUSE\" record --events none -o less/%r -- ./ranks");
    ranks::run(folder.path(), &line).ok(&line);
    partition("less/0 --run 1 -o one-by-one").ok("a run without a rank");
    let line = "\"$OMPFUSE\" combine --engine spark one-by-one -o result";
    let refused = ranks::run(folder.path(), line);
    let errors = refused.errors();
    assert!(
        errors.contains("run 1 has no part 1, and run 0 has it: partition that rank of run 1, too"),
        "{refused:?}"
    );
    assert_eq!(errors.lines().count(), 1, "{refused:?}");
    let refused = partition("-o nothing");
    assert!(refused.errors().contains("has no part"), "{refused:?}");
}

/// A process that has not all of a group, or something else, says so, and its output has no end.
#[test]
fn what_is_not_whole_is_refused() {
    let Some(python) = python() else { return };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuse/tests/data");
    let folder = tempfile::tempdir().expect("there is room for units");
    let units = folder.path().join("units");
    let mut partition = command::with_threads(2);
    let inputs = [1, 2].map(|i| data.join(format!("a_lgl_in_{i}.csv")));
    partition
        .arg("partition")
        .args(inputs)
        .arg("-o")
        .arg(&units);
    process::run(&mut partition).ok("partition");
    let [units, ompfuse] = [&*units, command::path()].map(|p| p.to_str().expect("UTF-8"));
    for (kind, says) in [
        ("back", "came back: the rows of a group must stand together"),
        ("column", "the input has no column own_ns"),
        ("early", "the input ends early"),
        ("cut", "the input"),
        ("count", "and the manifest has"),
        ("twice", "and the manifest has"),
        ("label", "has another hash"),
        ("rank", "joint matches units of all ranks: group by type"),
    ] {
        let found = script(&python, &["wrong", ompfuse, units, kind]);
        let said = found[1].as_str().expect("a text");
        assert_eq!(found[0], 1, "{kind}: {said}");
        assert!(said.contains(says), "{kind}: {said}");
        assert_eq!(said.lines().count(), 1, "{kind}: {said}");
        assert_eq!(found[2], false, "{kind}");
    }
}

/// The script for Slurm's clusters is one of a shell; more can't be tried without a cluster.
#[test]
fn the_script_for_slurm_has_a_shells_syntax() {
    let mut shell = Command::new("bash");
    shell.arg("-n").arg(repository().join("spark/slurm.sh"));
    process::run(&mut shell).ok("bash -n");
}

/// What Spark needs is told where it is missing; nothing is written.
#[test]
fn an_engine_says_what_it_needs() {
    let Some(python) = python() else { return };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuse/tests/data");
    let folder = tempfile::tempdir().expect("there is room for units");
    let units = folder.path().join("units");
    let table = data.join("a_lgl_in_1.csv");
    command::ok([Path::new("partition"), &table, Path::new("-o"), &units]);
    let run = |args: &[&str], units: &Path| {
        let mut command = command::with_threads(2);
        command
            .env("OMPFUSE_PYTHON", &python)
            .current_dir(folder.path());
        command.args(["combine", "--engine", "spark", "-o", "result"]);
        process::run(command.args(args).arg(units))
    };
    let said = run(&["--strategy", "lgl"], &units);
    let errors = said.errors();
    let failures = errors.lines().filter(|l| l.starts_with("ompfuse: cannot"));
    assert_eq!((said.status, failures.count()), (1, 1), "{said:?}");
    assert!(
        said.errors()
            .contains("has no pyspark; `pip install pyspark pyarrow pandas`"),
        "{said:?}"
    );
    // PySpark without one of its packages: it says so before it starts a session, which takes minutes.
    let package = folder.path().join("packages/pyspark/sql/pandas");
    std::fs::create_dir_all(&package).expect("there is room for a package");
    for part in ["..", ".", "../.."] {
        std::fs::write(package.join(part).join("__init__.py"), "").expect("the folder is ours");
    }
    let needs = "def require_minimum_pyarrow_version(): pass\n\
                 def require_minimum_pandas_version(): raise ImportError('Pandas >= 2.2.0 must be installed.')\n";
    std::fs::write(package.join("utils.py"), needs).expect("the folder is ours");
    let mut without = command::with_threads(2);
    without
        .env("OMPFUSE_PYTHON", &python)
        .env("PYTHONPATH", folder.path().join("packages"));
    without.args(["combine", "--engine", "spark", "--strategy", "lgl", "-o"]);
    let said = process::run(without.arg(folder.path().join("result")).arg(&units));
    assert!(
        said.errors()
            .contains("lacks a package: Pandas >= 2.2.0 must be installed; `pip install"),
        "{said:?}"
    );
    let said = run(&["--strategy", "bc-unlabelled"], &units);
    assert!(
        said.errors()
            .contains("name --strategy lgl, joint, ctc or bc"),
        "{said:?}"
    );
    let said = run(&["--strategy", "lgl"], folder.path());
    assert!(
        said.errors()
            .contains("`ompfuse partition` has not written it"),
        "{said:?}"
    );
    // A run isn't partitioned yet.
    let run = folder.path().join("run a");
    std::fs::create_dir(&run).expect("there is room for a folder");
    let said = process::run(
        command::with_threads(2)
            .args(["combine", "--engine", "spark", "-o", "result"])
            .arg(&run),
    );
    let shown = format!("`ompfuse partition '{}' -o units`", run.display());
    assert!(said.errors().contains(&shown), "{said:?}");
    assert_eq!(
        (said.status, said.errors().lines().count()),
        (1, 1),
        "{said:?}"
    );
    assert!(!folder.path().join("result").exists());
}
