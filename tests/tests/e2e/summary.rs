//! What threads sum up themselves (`record --units sums`), against what is summed up from their records: one run that keeps both
//! has one report.
//!
//! Equal are all counts, and all times but for the rounding of each interval's ticks to nanoseconds. Not compared:
//! * quotients of numbers that are compared (shares, imbalance): rounding makes them differ where times are short;
//! * of tasks in parts (untied ones of KMPC), which thread the whole is counted to and how long it went on, shortest and longest
//!   included: each part is added where and when it is executed, and nobody knows there which one is the last;
//! * distributions, which only sums have, and locks by address, which only records have;
//! * causes, work and span: they need units.

mod lives;

use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::{command, is_whole, recorded, some, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Threads of runs with sums only, so that teams are real.
const THREADS: usize = 4;

/// Seconds, as a sum of rounding over a fixture's intervals; and the same in proportion.
const ROUNDED: f64 = 2e-6;
const IN_PROPORTION: f64 = 1e-6;

/// The same of the time in outermost regions: where those of several root threads overlap, it begins when the first of them enters
/// its probe, which is before its fork.
const OF_UNION: f64 = 1e-2;

/// Quotients, what only one form has, and lists by size.
const NOT_COMPARED: [&str; 24] = [
    "share",
    "spread",
    "probes_share",
    "coverage",
    "distribution",
    "name",
    "notes",
    "shortcomings",
    "sums_only",
    "losses",
    "properties",
    "serial_share",
    "speedup_limit",
    "most",
    "most_at",
    "scaling",
    "parts",
    "load",
    "efficiency",
    "of_program",
    "locks",
    "efficiencies",
    "states",
    "of_available",
];

/// Where two reports differ.
fn differences(place: &str, records: &Value, sums: &Value, found: &mut Vec<String>) {
    match (records, sums) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys
                .into_iter()
                .filter(|k| !NOT_COMPARED.contains(&k.as_str()))
            {
                let [a, b] = [a, b].map(|of| of.get(key).unwrap_or(&Value::Null));
                differences(&format!("{place}.{key}"), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{place}[{at}]"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => {
            // What takes no time at all has, from records, that of rounding.
            let time = |v: &Value| v.as_f64().or(v.is_null().then_some(0.0));
            let is_time = a.is_f64() || b.is_f64();
            let is_near = match (time(a), time(b)) {
                (Some(a), Some(b)) => {
                    let proportion = match place {
                        ".parallel_s" => OF_UNION,
                        _ => IN_PROPORTION,
                    };
                    (a - b).abs() <= ROUNDED + proportion * a.abs().max(b.abs())
                }
                _ => false,
            };
            if !is_time || !is_near {
                found.push(format!("{place}: {a} from records, {b} from sums"));
            }
        }
    }
}

/// Lists that are sorted by places' positions or times, which may differ in rounding, by what their rows are.
fn arranged(mut report: Value) -> Value {
    let paths = report["call_paths"].as_array().cloned().unwrap_or_default();
    let chain = |at: usize| {
        let mut chain = vec![];
        let mut next = Some(at as u64);
        while let Some(at) = next {
            let path = &paths[at as usize];
            chain.push(format!("{} {}", path["region"], path["context"]));
            next = path["parent"].as_u64();
        }
        chain.reverse();
        chain.join(" > ")
    };
    let named = paths.iter().enumerate().map(|(at, path)| {
        let mut path = path.clone();
        path["parent"] = Value::Null;
        (chain(at), path)
    });
    report["call_paths"] = Value::Object(named.collect());
    for (list, key) in [("regions", "id"), ("overheads", "region")] {
        let rows = report[list].as_array().cloned().unwrap_or_default();
        let by_key = rows.into_iter().map(|row| (row[key].to_string(), row));
        report[list] = Value::Object(by_key.collect());
    }
    report
}

/// Whether a task was executed in several parts.
fn has_units_in_parts(sums: &Value) -> bool {
    let regions = sums["regions"].as_array().expect("a list of regions");
    let further = |r: &Value| r["distribution"]["further_parts"].as_u64();
    regions.iter().filter_map(further).any(|parts| parts > 0)
}

/// Executions and units by region, and each thread's account.
fn counted(report: &Value) -> (Vec<(u64, u64, u64)>, &Value) {
    let regions = report["regions"].as_array().expect("a list of regions");
    let number = |r: &Value, key: &str| r[key].as_u64().expect("a region has numbers");
    let mut all: Vec<(u64, u64, u64)> = regions
        .iter()
        .map(|r| (number(r, "id"), number(r, "executions"), number(r, "xus")))
        .collect();
    all.sort_unstable();
    (all, &report["accounting"])
}

/// The report of a run, from records or from sums.
fn report(run: &Path, flags: &[&str]) -> Value {
    let args = ["report", "--format=json"]
        .into_iter()
        .chain(flags.iter().copied());
    command::json(args.map(Path::new).chain([run]))
}

/// Nanoseconds in each state of the account in which threads do something.
fn working(report: &Value) -> BTreeMap<String, f64> {
    let states = report["account"]["states"].as_array().expect("a list");
    let of = |s: &Value| {
        let name = s["state"].as_str().expect("a name").to_owned();
        (name, s["ns"].as_f64().expect("nanoseconds"))
    };
    let all = states.iter().map(of);
    all.filter(|(name, _)| !name.starts_with("idle_")).collect()
}

fn sums_are_those_of_the_records(name: &str, compiler: &str) {
    let builds = Fixture::open(name).ordinary_builds(compiler);
    for build in some(builds) {
        let run = recorded::run_with_sums(&build, Matrix::get().ordinary_threads()).ok();
        let (records, sums) = (run.report(), report(&run.folder, &["--from-sums"]));
        if has_units_in_parts(&sums) {
            // By thread and by unit they differ by nature: how many there were, and where, does not.
            assert_eq!(counted(&records), counted(&sums), "{build}");
            continue;
        }
        let mut found = vec![];
        differences(
            "",
            &arranged(records.clone()),
            &arranged(sums.clone()),
            &mut found,
        );
        // Its threads number loops differently, and records count labels (`docs/guide/sums.md`).
        found.retain(|f| name != "mg" || !f.contains(".executions: "));
        // Sums have no times to compare those of samples with.
        found.retain(|f| !f.starts_with(".sampled") && !f.contains(".behind"));
        // What is worth trying depends on small differences, and so do numbers in a sentence.
        found.retain(|f| !f.starts_with(".to_try") && !f.starts_with(".running.told"));
        // How idle time is divided follows from the time in regions, which differs a little.
        let [of_records, of_sums] = [&records, &sums].map(working);
        assert_eq!(
            of_records.keys().collect::<Vec<_>>(),
            of_sums.keys().collect::<Vec<_>>()
        );
        for (state, ns) in of_records {
            let off = (ns - of_sums[&state]).abs() * 1e-9;
            let most = ROUNDED + IN_PROPORTION * ns * 1e-9;
            assert!(off <= most, "{build}: {state} is {off} s off");
        }
        // Sums don't tell when regions were executed: how many threads there were at once is an estimate where they may overlap.
        if records["account"]["threads"] != sums["account"]["threads"] {
            let of_base = [
                ".account.",
                ".available_s",
                ".losses_of_s",
                ".lost_s",
                ".running.",
            ];
            found.retain(|f| !of_base.iter().any(|key| f.starts_with(key)));
        }
        assert!(found.is_empty(), "{build}: {found:#?}");
        let regions = sums["regions"].as_array().expect("a list of regions");
        let counted = regions.iter().any(|r| r["events"]["task-clock"].is_u64());
        assert!(counted, "{build}: {sums:#}");
    }
}

for_each_fixture!(super::sums_are_those_of_the_records);

/// A program that is recorded with sums only.
fn summed_up(build: &Build, folder: &Path, args: &[&str], flags: &[&str]) -> PathBuf {
    let patched = table::patch(build, folder, &[]);
    let out = folder.join("runs");
    let flags: Vec<&str> = ["--units=sums"].iter().chain(flags).copied().collect();
    table::record(&patched, args, THREADS, &out, &flags).ok(&build.to_string());
    out
}

/// Bytes of a run's record files.
fn bytes(run: &Path) -> u64 {
    let files = std::fs::read_dir(run).expect("a run is a folder").flatten();
    let records = files.filter(|f| f.path().extension().is_some_and(|e| e == "rec"));
    records
        .map(|f| f.metadata().expect("it is there").len())
        .sum()
}

fn builds(name: &'static str) -> impl Iterator<Item = Build> {
    let of = move |compiler| {
        Fixture::open(name)
            .ordinary_builds(compiler)
            .into_iter()
            .take(1)
    };
    ["gcc", "clang"].into_iter().flat_map(of)
}

#[test]
fn a_longer_run_takes_no_more_space() {
    for build in builds("loops") {
        let [short, long] = ["1", "8"].map(|times| {
            let folder = tempfile::tempdir().expect("there is room for a recording");
            let out = summed_up(&build, folder.path(), &[times], &["--events", "none"]);
            let run = table::runs(&out).pop().expect("a run was recorded");
            let report = report(&run, &[]);
            (bytes(&run), report["xus"].as_u64().expect("units"))
        });
        assert!(long.1 > 3 * short.1, "{build}: {short:?}, {long:?}");
        // A thread that has got nothing of some construct has no entry of it.
        assert!(4 * long.0 < 5 * short.0, "{build}: {short:?}, {long:?}");
    }
}

/// Sums of a run that was killed are those of what had ended by then.
#[test]
fn a_killed_run_has_its_sums() {
    let Some(build) = builds("lifecycle").next() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a program");
    let patched = table::patch(&build, folder.path(), &[]);
    let mut all = 0;
    let kills = if is_whole() { 40 } else { 12 };
    for kill in 0..kills {
        let microseconds = kill * 12_361 % 20_000;
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let (file, out) = (folder.path().join("done"), folder.path().join("runs"));
        let time = microseconds.to_string();
        let path = file.to_str().expect("temporary folders have plain names");
        let ended = table::record(
            &patched,
            &["1", "timer", &time, path],
            2,
            &out,
            &["--units=sums"],
        );
        assert_eq!(ended.status, 128 + 9, "{ended:?}");
        let number = std::fs::read(file).expect("the program made it");
        let done = u64::from_le_bytes(number.try_into().expect("one number"));
        let run = table::runs(&out).pop().expect("a run was recorded");
        let report = report(&run, &[]);
        let regions = report["regions"].as_array().expect("a list of regions");
        let tasks = regions.iter().filter(|r| r["construct"] == "task");
        let summed: u64 = tasks.filter_map(|r| r["xus"].as_u64()).sum();
        // A task counts itself as its last act, and is added right after.
        assert!(
            summed <= done && done <= summed + 2,
            "killed after {microseconds} us: {done} done, {summed} in the sums"
        );
        all += done;
    }
    assert!(
        all > kills * 20,
        "{all} tasks: the kills came before the work"
    );
}

/// Several event sets: regions have the counts of the run that has counted them.
#[test]
fn runs_of_several_event_sets_are_one_report() {
    for build in builds("sections") {
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let out = summed_up(&build, folder.path(), &[], &["--events", "task-clock"]);
        summed_up(&build, folder.path(), &[], &["--events", "page-faults"]);
        let found = table::runs(&out);
        assert_eq!(found.len(), 2, "{build}");
        let report = report(&out, &[]);
        let first = report_of(&found[0]);
        let of = |event: &str| {
            let events = report["events"].as_array().expect("a list of events");
            let found = events
                .iter()
                .find(|e| e["name"] == event && e["grain"] == "unit");
            found.unwrap_or_else(|| panic!("no {event}: {report:#}"))["run"].clone()
        };
        assert_ne!(of("task-clock"), of("page-faults"), "{build}");
        assert_eq!(report["xus"], first["xus"], "{build}");
        let regions = report["regions"].as_array().expect("a list of regions");
        let both = regions.iter().filter(|r| {
            ["task-clock", "page-faults"]
                .iter()
                .all(|&e| r["events"][e].is_u64())
        });
        assert!(both.count() > 0, "{build}: {report:#}");
    }
}

fn report_of(run: &Path) -> Value {
    report(run, &[])
}

/// What needs units says that there are none, and what to do.
#[test]
fn what_needs_units_says_so() {
    let Some(build) = builds("sections").next() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let out = summed_up(&build, folder.path(), &[], &["--events", "none"]);
    let run = table::runs(&out).pop().expect("a run was recorded");
    let refused = |args: &[&str]| {
        let output = command::run(args.iter().map(Path::new).chain([&*run]));
        assert_eq!(output.status, 1, "{output:?}");
        let error = output.errors();
        assert!(
            error.contains("--units sums") && error.trim().lines().count() == 1,
            "{error}"
        );
    };
    refused(&["export", "--to", "csv"]);
    let shown = [Path::new("report"), Path::new("--show=units"), &run];
    let text = command::ok(shown).text();
    assert!(
        text.contains("How long XUs took") && text.contains("only sums"),
        "{text}"
    );
    for option in [
        "--units=sums,every=4",
        "--units=sums,cost=5",
        "--units=sums,longer=1us",
        "--rotate=3",
    ] {
        let output = command::run(["record", "--units=sums", option, "--", "true"]);
        assert_eq!(output.status, 2, "{option}: {output:?}");
    }
}
