//! Archives of the Open Trace Format 2, read back by the tools of its authors: nothing is unbalanced or undefined, totals by place are the
//! report's, units those of the table. Stretches of time and selections of all trace formats.

use crate::{ranks, traces};
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, has, process, schema, skip, table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The formats that are files.
const FILES: [&str; 4] = ["perfetto", "chrome", "speedscope", "firefox"];

/// Whoever reads archives.
pub(crate) struct Reader(traces::Foreign);

pub(crate) fn reader() -> Option<Reader> {
    if !has("otf2-print") {
        skip("otf2-print is not installed (tests/setup.sh)");
        return None;
    }
    traces::foreign().map(Reader)
}

impl Reader {
    /// What archives hold, after both readers have found nothing wrong.
    pub(crate) fn read(&self, archives: &[PathBuf]) -> Vec<Value> {
        for archive in archives {
            let mut print = Command::new("otf2-print");
            print
                .args(["--silent", "-Werror"])
                .arg(archive.join("traces.otf2"));
            process::run(&mut print).ok(&format!("printing {}", archive.display()));
        }
        let mut reader = Command::new(&self.0.python);
        reader.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/otf2_traces.py"));
        let read = process::run(reader.args(archives)).ok("reading OTF2");
        serde_json::from_slice(&read.stdout).expect("JSON")
    }
}

/// Exports a run into a folder beside it.
pub(crate) fn archive(run: &Path, name: &str, options: &[&str]) -> PathBuf {
    let to = run.with_file_name(name);
    let args = ["export", "--to", "otf2", "-o"].map(Path::new);
    let options = options.iter().map(Path::new);
    command::ok(args.into_iter().chain([&*to, run]).chain(options));
    to
}

/// Sums by file and line: time, and what was counted.
fn by_place(archive: &Value) -> BTreeMap<String, (u64, u64)> {
    let mut places: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (name, sums) in archive["regions"].as_object().expect("sums by name") {
        let Some((_, place)) = name.split_once('@') else {
            continue; // the program
        };
        let at = places.entry(place.to_owned()).or_default();
        at.0 += number(&sums["self_ns"]);
        at.1 += sums["events"]["task-clock"].as_u64().unwrap_or(0);
    }
    places
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Totals of an archive are those of the run's report and table. In the report of a killed run, start and end of parallel regions are
/// missing where a thread has not told them.
fn check_totals(what: &str, run: &Path, archive: &Value) {
    let report: Value = serde_json::from_str(&schema::report(run)).expect("JSON");
    let is_killed = what.contains("killed");
    // What recording took for itself meanwhile is in the archive's times.
    let threads = report["accounting"].as_array().expect("a list").iter();
    let ours: f64 = threads.filter_map(|t| t["recording_s"].as_f64()).sum();
    // Parts of libomp's untied tasks overlap what they begin in, and are cut.
    let is_cut = what == "tasking by clang";
    let mut expected: BTreeMap<String, (f64, u64)> = BTreeMap::new();
    for region in report["regions"].as_array().expect("a list") {
        if let Some(file) = region["source"]["file"].as_str() {
            let file = file.rsplit('/').next().unwrap_or(file);
            let place = format!("{file}:{}", region["source"]["line"]);
            let at = expected.entry(place).or_default();
            at.0 += region["time_s"].as_f64().expect("a time");
            at.1 += region["events"]["task-clock"].as_u64().unwrap_or(0);
        }
    }
    assert!(!expected.is_empty(), "{what}");
    let regions = archive["regions"].as_object().expect("sums by name");
    let found = by_place(archive);
    let ends: u64 = regions.values().map(|sums| number(&sums["number"])).sum();
    for (place, (seconds, count)) in &expected {
        let at = found.get(place);
        let at = at.unwrap_or_else(|| panic!("{what}: nothing at {place}"));
        // Half a nanosecond for each begin and end.
        let rounding = 2e-9 * (ends + 2) as f64;
        let time = at.0 as f64 / 1e9;
        assert!(
            (time - seconds).abs() <= rounding + ours || is_cut || (is_killed && time > *seconds),
            "{what}: {time} s at {place}, in the report {seconds}"
        );
        assert_eq!(at.1, *count, "{what} at {place}");
    }
    let xus = table::export(run);
    let labels: BTreeSet<&str> = xus.iter().map(|xu| &*xu.label).collect();
    let of_units = regions
        .values()
        .flat_map(|sums| sums["labels"].as_array().expect("a list"));
    let of_units: BTreeSet<&str> = of_units.filter_map(Value::as_str).collect();
    assert_eq!(of_units, labels, "{what}");
    let ranges = xus.iter().filter(|xu| xu.construct == "range");
    let iterations: u64 = ranges.map(|xu| xu.number("iterations")).sum();
    let found = regions
        .iter()
        .filter(|(name, _)| name.contains("for range"));
    let found: u64 = found.map(|(_, sums)| number(&sums["iterations"])).sum();
    assert_eq!(found, iterations, "{what}");
}

#[test]
fn totals_are_those_of_the_report() {
    let Some(reader) = reader() else { return };
    let folder = tempfile::tempdir().expect("there is room for runs");
    let mut runs = vec![];
    for (name, compiler) in [
        ("tasking", "gcc"),
        ("tasking", "clang"),
        ("locks", "gcc"),
        ("taskloop", "gcc"),
        ("teams", "clang"),
        ("loops", "clang"),
    ] {
        let builds = Fixture::open(name).ordinary_builds(compiler);
        let Some(build) = builds.into_iter().next() else {
            return;
        };
        let what = format!("{name} by {compiler}");
        let out = folder.path().join(&what);
        table::record(&build.path, &[], 3, &out, &table::ONE_EVENT).ok(&what);
        let run = table::runs(&out).remove(0);
        let to = archive(&run, "otf2", &[]);
        runs.push((what, run, to));
    }
    let archives: Vec<PathBuf> = runs.iter().map(|(.., to)| to.clone()).collect();
    for ((what, run, _), found) in runs.iter().zip(reader.read(&archives)) {
        check_totals(what, run, &found);
        let tasks = &found["tasks"];
        if what.starts_with("tasking") || what.starts_with("locks") {
            // Each task ends once, and is created once. libomp's untied tasks are created again for each part.
            assert!(number(&tasks["executed"]) > 40, "{what}: {tasks}");
            assert_eq!(tasks["completed"], tasks["executed"], "{what}");
            let is_sure = what.ends_with("gcc");
            assert!(
                tasks["created"] == tasks["executed"] || !is_sure,
                "{what}: {tasks}"
            );
        }
        let has = |kind: &str| found["kinds"][kind].as_u64().unwrap_or(0) > 0;
        assert!(has("ThreadFork") && has("ThreadTeamBegin"), "{what}");
        assert!(
            has("ThreadAcquireLock") || !what.starts_with("locks"),
            "{what}"
        );
        let sources = found["sources"].as_array().expect("a list");
        assert!(
            sources
                .iter()
                .any(|s| s.as_str().is_some_and(|s| s.ends_with(".c")))
        );
    }
}

#[test]
fn ranks_and_a_killed_run() {
    let Some(reader) = reader() else { return };
    let Some((folder, _)) = ranks::build("mpicc.openmpi") else {
        return;
    };
    let record = "$OMPFUSE record --events task-clock -o";
    let launch = "mpirun.openmpi -n 2 ./ranks";
    ranks::run(folder.path(), &format!("{record} all -- {launch}")).ok("record");
    // Rank 1 kills itself.
    ranks::run(folder.path(), &format!("{record} killed -- {launch} 1"));
    let runs = ["all", "killed"].map(|out| table::runs(&folder.path().join(out)).remove(0));
    let archives: Vec<PathBuf> = runs.iter().map(|run| archive(run, "otf2", &[])).collect();
    let read = reader.read(&archives);
    assert_eq!(
        read[0]["processes"],
        serde_json::json!(["MPI Rank 0", "MPI Rank 1"])
    );
    assert_eq!(read[0]["threads"].as_array().map(Vec::len), Some(4));
    for (run, found) in runs.iter().zip(&read) {
        check_totals(&run.display().to_string(), run, found);
    }
}

#[test]
fn stretches_of_time_add_up_and_a_selection_is_a_part() {
    let Some(reader) = reader() else { return };
    let folder = tempfile::tempdir().expect("there is room for runs");
    let builds = Fixture::open("locks").ordinary_builds("gcc");
    let Some(build) = builds.into_iter().next() else {
        return;
    };
    table::record(&build.path, &[], 2, folder.path(), &table::ONE_EVENT).ok("record");
    let run = &table::runs(folder.path())[0];
    let whole = reader.read(&[archive(run, "whole", &[])]).remove(0);
    // In the middle of what was counted last: its counts are lost, those of what had ended before are not.
    let [begin, end] = [0, 1].map(|n| number(&whole["counted"][n]));
    let middle = begin.midpoint(end);
    assert!(begin < middle && middle < end);
    let windows = [format!("..{middle}ns"), format!("{middle}ns..")];
    let times = |found: &Value| -> BTreeMap<String, u64> {
        let names = found.as_object().expect("sums by name").iter();
        names
            .map(|(name, sums)| (name.clone(), number(&sums["self_ns"])))
            .collect()
    };
    let added = |parts: &[BTreeMap<String, u64>]| {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (name, ns) in parts.iter().flatten() {
            *sums.entry(name.clone()).or_default() += ns;
        }
        sums
    };
    let halves = [0, 1].map(|n| archive(run, &format!("half{n}"), &["--interval", &windows[n]]));
    let halves = reader.read(&halves);
    assert!(number(&halves[0]["times"][1]) <= middle);
    let parts = [0, 1].map(|n| times(&halves[n]["regions"]));
    // What has no length may be in one half only.
    let without_empty = |sums: BTreeMap<String, u64>| -> BTreeMap<String, u64> {
        sums.into_iter().filter(|(_, ns)| *ns > 0).collect()
    };
    assert_eq!(
        without_empty(added(&parts)),
        without_empty(times(&whole["regions"]))
    );
    let all = traces::exported(run, folder.path(), &[], &reader.0);
    let halves = windows
        .map(|window| traces::exported(run, folder.path(), &["--interval", &window], &reader.0));
    for format in FILES {
        let parts = [0, 1].map(|n| times(&halves[n][format]));
        let [parts, whole] = [added(&parts), times(&all[format])].map(without_empty);
        assert_eq!(parts, whole, "{format}");
    }
    // Of a piece nothing is known that was counted, and `middle` cuts one.
    let counted = |found: &Value| -> u64 { by_place(found).values().map(|at| at.1).sum() };
    let archives = ["half0", "half1"].map(|name| run.with_file_name(name));
    let both: u64 = reader.read(&archives).iter().map(counted).sum();
    assert!(both < counted(&whole) && both > 0);
    let only = reader
        .read(&[archive(run, "only", &["--select", "critical"])])
        .remove(0);
    let of_critical = |found: &Value| -> BTreeMap<String, u64> {
        let all = times(&found["regions"]).into_iter();
        all.filter(|(name, _)| name.contains("critical")).collect()
    };
    assert!(!of_critical(&only).is_empty());
    assert_eq!(of_critical(&only), of_critical(&whole));
    assert!(times(&only["regions"]).len() < times(&whole["regions"]).len());
}

#[test]
fn what_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let builds = Fixture::open("sections").ordinary_builds("gcc");
    let Some(build) = builds.into_iter().next() else {
        return;
    };
    table::record(&build.path, &[], 2, folder.path(), &["--events", "none"]).ok("record");
    let run = &table::runs(folder.path())[0];
    let full = folder.path().join("full");
    std::fs::create_dir(&full).expect("there is room");
    std::fs::write(full.join("file"), "mine").expect("there is room");
    let to = folder.path().join("to");
    let path = |path: &PathBuf| {
        path.to_str()
            .expect("temporary folders have plain names")
            .to_owned()
    };
    let (run, full, to) = (path(run), path(&full), path(&to));
    let refused = |args: &[&str], status: i32, why: &str| {
        let said = command::run(["export", "--to"].iter().chain(args));
        assert_eq!(said.status, status, "{said:?}");
        let text = said.errors();
        assert!(
            text.contains(why) && text.trim().lines().count() <= 3,
            "{text}"
        );
    };
    refused(
        &["otf2", &run],
        2,
        "--to otf2 writes a folder; name it with -o",
    );
    refused(
        &["otf2", &run, "-o", &full],
        1,
        "the folder is not empty; name another folder",
    );
    refused(
        &["csv", &run, "--interval", "1s..2s"],
        2,
        "--interval is of use for traces only",
    );
    refused(
        &["otf2", &run, "-o", &to, "--interval", "2s..1s"],
        2,
        "it ends before it begins",
    );
    refused(
        &["otf2", &run, "-o", &to, "--select", "nothing.c"],
        1,
        "matches `nothing.c`",
    );
    // A limit that the library meets: nothing half-written is left.
    let command = format!(
        "ulimit -f 1; exec {} export --to otf2 {run} -o {to}",
        command::path().display()
    );
    let mut shell = Command::new("bash");
    let said = process::run(process::clean(&mut shell, 1).args(["-c", &command]));
    assert_eq!(said.status, 1, "{said:?}");
    assert!(
        said.errors()
            .starts_with(&format!("ompfuse: cannot write {to}: ")),
        "{said:?}"
    );
    let names = std::fs::read_dir(folder.path())
        .expect("a folder can be listed")
        .flatten();
    let mut names: Vec<String> = names
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["full", "run-0001"]);
    assert_eq!(
        std::fs::read(Path::new(&full).join("file")).ok(),
        Some(b"mine".to_vec())
    );
}
