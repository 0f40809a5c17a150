//! Spark brings groups together: `tests/run.sh engine`. What its results are read with is not ours.

mod cluster;

use super::super::ranks::{self, IMPLEMENTATIONS};
use super::{python, script};
use ompfuse_tests::process::Output;
use ompfuse_tests::{command, has, is_whole, process, repository, skip, target};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The interpreter with Spark, which `tests/run.sh engine` installs.
fn spark() -> Option<PathBuf> {
    let python = target().0.join("foreign/spark/python/bin/python");
    if !python.is_file() || !has("java") {
        skip("Spark is not installed (tests/run.sh engine)");
        return None;
    }
    Some(python)
}

/// What a Java runtime is told: most of its time goes into compiling itself for jobs that are over before that pays off.
const JAVA: (&str, &str) = (
    "JAVA_TOOL_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
);

/// Most time that Spark takes on a busy machine: it starts for many seconds of processor time.
const LONGEST: Duration = Duration::from_secs(600);

fn engine_ends(command: &mut Command) -> Output {
    process::within(command, LONGEST)
}

/// Tables, what is partitioned of them, and what is combined.
struct Units {
    folder: tempfile::TempDir,
    python: PathBuf,
    spark: PathBuf,
    inputs: Vec<PathBuf>,
}

impl Units {
    /// Of tables or runs.
    fn new(inputs: impl FnOnce(&Path, &Path) -> Vec<PathBuf>) -> Option<Units> {
        let (python, spark) = (python()?, spark()?);
        let folder = tempfile::tempdir().expect("there is room for units");
        let inputs = inputs(&python, folder.path());
        let units = Units {
            folder,
            python,
            spark,
            inputs,
        };
        let mut partition = command::with_threads(2);
        partition.arg("partition").args(&units.inputs);
        partition.args(["-o", &units.path("units")]);
        engine_ends(&mut partition).ok("partition");
        Some(units)
    }

    /// Published tables.
    fn of_tables(prefix: &str) -> Option<Units> {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuse/tests/data");
        let table = |i| data.join(format!("{prefix}{i}.csv"));
        Units::new(|_, _| (1..=4).map(table).collect())
    }

    /// Made tables of four runs with so many units each.
    fn of_generator(units: u64) -> Option<Units> {
        Units::new(|python, folder| {
            let into = folder.to_str().expect("UTF-8");
            script(python, &["generate", into, &units.to_string(), "4"]);
            let table = |i| folder.join(format!("run-{i}.parquet"));
            (0..4).map(table).collect()
        })
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    }

    /// The command that combines by Spark.
    fn engine(&self, master: &str, strategy: &str, into: &str) -> Command {
        let mut command = command::with_threads(2);
        command
            .env("OMPFUSE_PYTHON", &self.spark)
            .env(JAVA.0, JAVA.1);
        command.args(["combine", "--engine", &format!("spark:{master}")]);
        command.args(["--strategy", strategy, &self.path("units"), "-o"]);
        command.arg(self.path(into));
        command
    }

    /// By Spark, into `result`, and in one process; both are the same.
    #[track_caller]
    fn combine(&self, strategy: &str) -> Output {
        let said = engine_ends(&mut self.engine("local[2]", strategy, "result")).ok(strategy);
        self.combine_alone(strategy);
        let rows = self.same("result");
        let told = format!("{rows} execution units");
        assert!(said.text().contains(&told), "{said:?}");
        said
    }

    fn combine_alone(&self, strategy: &str) {
        let mut combine = command::with_threads(2);
        combine.arg("combine").args(&self.inputs);
        combine.args(["--strategy", strategy, "-o", &self.path("profile.parquet")]);
        engine_ends(&mut combine).ok("combine");
    }

    /// Compares a result with the profile of one process.
    #[track_caller]
    fn same(&self, result: &str) -> Value {
        let args = ["same", &self.path(result), &self.path("profile.parquet")];
        script(&self.python, &args)
    }

    /// The same by SQL.
    #[track_caller]
    fn by_sql(&self, result: &str) -> Value {
        let args = ["sql", &self.path(result), &self.path("profile.parquet")];
        script(&self.python, &args)
    }

    /// A failure is one line, and there is no result.
    #[track_caller]
    fn refused(&self, said: &Output, into: &str, why: &str) {
        assert_eq!(said.status, 1, "{said:?}");
        let errors = said.errors();
        let own: Vec<&str> = errors
            .lines()
            .filter(|l| l.starts_with("ompfuse: cannot"))
            .collect();
        assert!(matches!(&own[..], [line] if line.contains(why)), "{said:?}");
        assert!(!Path::new(&self.path(into)).exists());
    }
}

/// By labels, by behaviour, and as `combine` does by default.
#[test]
#[ignore = "tests/run.sh engine"]
fn it_combines_as_one_process_does() {
    for (strategy, prefix) in [
        ("lgl", "a_lgl_in_"),
        ("ctc", "a_lgl_in_"),
        ("joint", "a_bc_in_0"),
        ("bc", "a_bc_in_0"),
        ("default", "a_bc_in_0"),
    ] {
        let Some(units) = Units::of_tables(prefix) else {
            return;
        };
        units.combine(strategy);
        // It is not written again.
        let again = engine_ends(&mut units.engine("local[2]", strategy, "result"));
        assert!(again.errors().contains("it is there already"), "{again:?}");
    }
}

/// Many units, ten times as many with OMPFUSE_TESTS=whole: unit by unit those of one process, and of a join in SQL.
#[test]
#[ignore = "tests/run.sh engine"]
fn many_units_are_combined_as_by_others() {
    let number = if is_whole() { 3_000_000 } else { 300_000 };
    let Some(units) = Units::of_generator(number) else {
        return;
    };
    units.combine_alone("lgl");
    engine_ends(&mut units.engine("local[2]", "lgl", "result")).ok("lgl");
    assert_eq!(units.by_sql("result"), number);
    let args = [
        "large",
        &units.path("units"),
        &units.path("profile.parquet"),
    ];
    assert_eq!(script(&units.python, &args), number);
}

/// The wheel brings the driver and a command; what is installed combines as well.
#[test]
#[ignore = "tests/run.sh engine"]
fn the_wheel_is_installed_and_combines() {
    let Some(units) = Units::of_tables("a_lgl_in_") else {
        return;
    };
    units.combine_alone("lgl");
    let source = units.path("source");
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(repository().join("spark")).arg(&source);
    process::run(&mut copy).ok("a copy");
    let pip = |args: &[&str]| {
        let mut pip = Command::new(&units.spark);
        process::clean(&mut pip, 2);
        pip.args(["-m", "pip", "-q", "--disable-pip-version-check"]);
        process::run(pip.args(args)).ok("pip")
    };
    let (wheels, installed) = (units.path("wheels"), units.path("installed"));
    pip(&["wheel", "--no-deps", &source, "-w", &wheels]);
    let wheel = std::fs::read_dir(&wheels)
        .expect("it was made")
        .flatten()
        .next();
    let wheel = wheel.expect("there is a wheel").path();
    let wheel = wheel.to_str().expect("UTF-8");
    pip(&["install", "--no-deps", "--target", &installed, wheel]);
    let own = command::path().parent().expect("it is in a folder");
    let known = std::env::var("PATH").unwrap_or_default();
    let mut combine = Command::new(format!("{installed}/bin/ompfuse-spark"));
    process::clean(&mut combine, 2);
    combine.env("PYTHONPATH", &installed).env(JAVA.0, JAVA.1);
    combine.env("PATH", format!("{}:{known}", own.display()));
    combine.args([
        "--engine=spark:local[1]",
        "--strategy",
        "lgl",
        &units.path("units"),
        "-o",
    ]);
    combine.arg(units.path("result"));
    engine_ends(&mut combine).ok("installed");
    units.same("result");
}

/// Three runs counted the same, so that the one in the middle is typical: it comes first, by Spark as in one process.
#[test]
#[ignore = "tests/run.sh engine"]
fn the_typical_run_gives_the_times() {
    let units = Units::new(|python, folder| {
        let into = folder.to_str().expect("UTF-8");
        script(python, &["generate", into, "2000", "4", "alike"]);
        (0..4)
            .map(|i| folder.join(format!("run-{i}.parquet")))
            .collect()
    });
    let Some(units) = units else { return };
    let said = units.combine("default");
    assert!(
        said.errors()
            .contains("run 2 is the most typical of 3 runs"),
        "{said:?}"
    );
}

/// Whoever reads profiles reads these, and finds the same; so do pandas, polars and duckdb.
#[test]
#[ignore = "tests/run.sh engine"]
fn its_result_is_one_table() {
    let Some(units) = Units::of_tables("a_lgl_in_") else {
        return;
    };
    units.combine("lgl");
    let [result, profile] = ["result", "profile.parquet"].map(|name| units.path(name));
    let said = |args: &[&str]| command::ok(args).text();
    let both = |args: &[&str], rest: &[&str]| {
        let [one, other] = [&result, &profile].map(|input| {
            let args = [args, &[input.as_str()], rest].concat();
            said(&args).replace(input, "INPUT")
        });
        assert_eq!(one, other, "{args:?}");
    };
    both(&["report"], &[]);
    both(&["report", "--format", "json"], &[]);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuse/tests/data");
    let references = [1, 2, 3].map(|i| {
        let table = data.join(format!("a_lgl_in_{i}.csv"));
        table.to_str().expect("UTF-8").to_owned()
    });
    let [one, ..] = &references;
    both(&["evaluate"], &["--reference", one, one, one]);
    let rows = |input: &str| {
        let file = units.path("rows.csv");
        said(&["export", "--to", "csv", input, "-o", &file]);
        let text = std::fs::read_to_string(&file).expect("it was written");
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        rows.sort();
        rows
    };
    assert_eq!(rows(&result), rows(&profile));
    let read = script(&units.python, &["readers", &result, &profile]);
    assert_eq!(read, 600);
    // A part that is missing or cut off is named.
    let part = Path::new(&result).join("part-00001.parquet");
    let bytes = std::fs::read(&part).expect("it was written");
    std::fs::write(&part, &bytes[..bytes.len() / 2]).expect("it can be written");
    let export = |file: &str| command::run(["export", "--to", "csv", &*result, "-o", file]);
    let refused = export(&units.path("none.csv"));
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(
        refused.errors().contains("part-00001.parquet is damaged"),
        "{refused:?}"
    );
    std::fs::remove_file(&part).expect("it is there");
    let refused = export(&units.path("none.csv"));
    assert!(
        refused.errors().contains("part-00001.parquet"),
        "{refused:?}"
    );
    assert!(!Path::new(&units.path("none.csv")).exists());
}

/// A program's runs have regions, which are compared; a job's ranks have units by type.
#[test]
#[ignore = "tests/run.sh engine"]
fn results_of_runs_and_jobs_are_reported_and_compared() {
    let (compiler, launcher) = IMPLEMENTATIONS[0];
    let Some((program, _built)) = ranks::build(compiler) else {
        return;
    };
    let record = "record --events task-clock,page-faults --slots 1";
    let line = format!("\"$OMPFUSE\" {record} -o out -- {launcher} -n 2 ./ranks");
    ranks::run(program.path(), &line).ok(&line);
    let runs = |_: &Path, _: &Path| {
        let run = |run| program.path().join("out").join(run);
        ["run-0001", "run-0002"].map(run).to_vec()
    };
    let Some(units) = Units::new(runs) else {
        return;
    };
    units.combine("lgl");
    let [result, profile] = ["result", "profile.parquet"].map(|name| units.path(name));
    let said = |args: &[&str]| command::ok(args).text();
    let report = |input: &str| said(&["report", input]).replace(input, "INPUT");
    assert_eq!(report(&result), report(&profile));
    let other = format!("{launcher} -n 2 \"$OMPFUSE\" record --events none -o job/%r -- ./ranks");
    ranks::run(program.path(), &other).ok(&other);
    let compared = |input: &str| {
        let text = said(&["diff", input, &profile]);
        text.replace(input, "INPUT").replace(&profile, "INPUT")
    };
    assert_eq!(compared(&result), compared(&profile));
    // Each rank a part.
    let job = |_: &Path, _: &Path| vec![program.path().join("job")];
    let Some(units) = Units::new(job) else { return };
    let mut engine = units.engine("local[2]", "lgl", "result");
    engine_ends(&mut engine).ok("a job");
    let report = said(&["report", &units.path("result")]);
    assert!(report.contains("32 XUs"), "{report}");
}

/// Waits until so many parts are finished.
fn wait_for_marks(partial: &Path, number: usize) {
    let begun = Instant::now();
    let marks = || std::fs::read_dir(partial.join("_done")).map_or(0, Iterator::count);
    while marks() < number {
        assert!(begun.elapsed() < LONGEST, "no part is done");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The command is killed; started again it takes over what is finished, unless that is damaged.
#[test]
#[ignore = "tests/run.sh engine"]
fn a_killed_driver_goes_on() {
    let Some(units) = Units::of_generator(300_000) else {
        return;
    };
    units.combine_alone("lgl");
    let partial = PathBuf::from(units.path("result.partial"));
    let mut child = units
        .engine("local[1]", "lgl", "result")
        .spawn()
        .expect("it starts");
    wait_for_marks(&partial, 2);
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
    assert!(!Path::new(&units.path("result")).exists());
    // Another combination is not mixed with it.
    let other = engine_ends(&mut units.engine("local[1]", "ctc", "result"));
    units.refused(&other, "result", "it is of other units or another strategy");
    let mut parts: Vec<PathBuf> = std::fs::read_dir(&partial)
        .expect("it is there")
        .map(|entry| entry.expect("it is there").path())
        .filter(|p| p.to_string_lossy().contains("/part-"))
        .collect();
    parts.sort();
    let marks = std::fs::read_dir(partial.join("_done")).map_or(0, Iterator::count);
    std::fs::write(&parts[0], "damaged").expect("it can be written");
    let said = engine_ends(&mut units.engine("local[1]", "lgl", "result")).ok("again");
    let line = format!("going on: {} of ", marks - 1);
    assert!(said.errors().contains(&line), "{line}: {said:?}");
    units.same("result");
    let left = std::fs::read_dir(units.path("result")).expect("it is there");
    let names = left.map(|entry| entry.expect("it is there").file_name());
    let is_ours = |name: &str| name == "_profile.json" || name.starts_with("part-");
    assert!(names.into_iter().all(|n| is_ours(&n.to_string_lossy())));
}

/// What is missing, damaged or has no room is one line, and there is no result.
#[test]
#[ignore = "tests/run.sh engine"]
fn what_fails_is_one_line() {
    let Some(units) = Units::of_tables("a_lgl_in_") else {
        return;
    };
    let run = |into: &str| engine_ends(&mut units.engine("local[2]", "lgl", into));
    let manifest = units.path("units/manifest.json");
    let text = std::fs::read_to_string(&manifest).expect("it was written");
    let mut wrong: Value = serde_json::from_str(&text).expect("it is JSON");
    let count = &mut wrong["parts"][0]["groups"][0]["units"];
    *count = (count.as_u64().expect("a number") + 1).into();
    std::fs::write(&manifest, wrong.to_string()).expect("it can be written");
    units.refused(&run("count"), "count", "and the manifest has");
    std::fs::write(&manifest, text).expect("it can be written");
    let find = |run: u32| -> PathBuf {
        let buckets = std::fs::read_dir(units.path(&format!("units/units/run={run}")));
        let first = buckets.expect("it was written").next().expect("it has one");
        first.expect("it is there").path().join("part-0.parquet")
    };
    let file = find(1);
    let bytes = std::fs::read(&file).expect("it was written");
    std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("it can be written");
    units.refused(&run("damaged"), "damaged", "part-0.parquet");
    std::fs::write(&file, bytes).expect("it can be written");
    // All of a type is gone, so that no process gets any of it.
    let bucket = file.parent().and_then(Path::file_name).expect("it has one");
    for run in 0..4 {
        let gone = units.path(&format!("units/units/run={run}"));
        std::fs::remove_dir_all(Path::new(&gone).join(bucket)).expect("it is there");
    }
    units.refused(&run("missing"), "missing", "are missing or damaged");
}

/// A disk that is full.
#[test]
#[ignore = "tests/run.sh engine"]
fn a_full_disk_is_one_line() {
    let owner = std::fs::metadata("/proc/self").expect("it is there").uid();
    if owner != 0 || !has("unshare") {
        skip("only root can make a small disk");
        return;
    }
    let Some(units) = Units::of_generator(20_000) else {
        return;
    };
    let disk = units.path("disk");
    std::fs::create_dir(&disk).expect("there is room for a folder");
    let engine = units.engine("local[2]", "lgl", "disk/result");
    let mut small = Command::new("unshare");
    small.args(["-m", "sh", "-c"]);
    small.arg(format!(
        "mount -t tmpfs -o size=200k none {disk} && \"$@\"; status=$?; ls -A {disk}; exit $status"
    ));
    small
        .arg("sh")
        .arg(engine.get_program())
        .args(engine.get_args());
    for (name, value) in engine.get_envs() {
        match value {
            Some(value) => small.env(name, value),
            None => small.env_remove(name),
        };
    }
    let said = engine_ends(&mut small);
    units.refused(&said, "disk/result", "No space left on device");
    assert_eq!(said.text().trim(), "result.partial", "{said:?}");
}
