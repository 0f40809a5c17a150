//! Exported traces, read back by software that isn't ours: totals by place are the report's, units those of the table.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, process, schema, skip, table, target};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `tests/setup.sh` installs: an interpreter with the packages of `tests/foreign/requirements.txt`, and speedscope's schema.
pub(crate) struct Foreign {
    pub(crate) python: PathBuf,
    pub(crate) schema: PathBuf,
}

pub(crate) fn foreign() -> Option<Foreign> {
    let folder = target().0.join("foreign");
    let found = Foreign {
        python: folder.join("python/bin/python"),
        schema: folder.join("node_modules/speedscope/dist/release/file-format-schema.json"),
    };
    if !found.python.is_file() || !found.schema.is_file() {
        skip("readers of traces are not installed (tests/setup.sh)");
        return None;
    }
    Some(found)
}

/// What a trace has at a place of the source.
#[derive(Debug, Default, PartialEq)]
struct AtPlace {
    self_ns: u64,
    number: u64,
    labels: BTreeSet<String>,
    events: BTreeMap<String, u64>,
}

/// By file and line. Names end with them.
fn by_place(found: &Value) -> BTreeMap<String, AtPlace> {
    let mut places: BTreeMap<String, AtPlace> = BTreeMap::new();
    for (name, sums) in found.as_object().expect("sums by name") {
        let place = name.rsplit(' ').next().unwrap_or_default();
        if !place.contains(':') {
            continue; // the program
        }
        let at = places.entry(place.to_owned()).or_default();
        at.self_ns += sums["self_ns"].as_u64().expect("a number");
        at.number += sums["number"].as_u64().expect("a number");
        let labels = sums["labels"].as_array().expect("a list").iter();
        at.labels
            .extend(labels.filter_map(Value::as_str).map(str::to_owned));
        for (event, count) in sums["events"].as_object().expect("counts by name") {
            *at.events.entry(event.clone()).or_default() += count.as_u64().expect("a count");
        }
    }
    places
}

/// Exports a run to all formats, with these options, and reads them.
pub(crate) fn exported(run: &Path, folder: &Path, options: &[&str], foreign: &Foreign) -> Value {
    let formats = ["perfetto", "chrome", "speedscope", "firefox"];
    let files = formats.map(|format| folder.join(format));
    for (format, file) in formats.iter().zip(&files) {
        let args = [
            Path::new("export"),
            run,
            Path::new("--to"),
            Path::new(format),
        ];
        let output = [Path::new("-o"), file];
        let options = options.iter().map(Path::new);
        command::ok(args.into_iter().chain(output).chain(options));
    }
    let mut reader = Command::new(&foreign.python);
    reader.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/traces.py"));
    reader.arg(&foreign.schema).args(&files);
    let read = process::run(&mut reader).ok(&format!("reading traces of {}", run.display()));
    serde_json::from_slice(&read.stdout).expect("JSON")
}

#[test]
fn totals_are_those_of_the_report() {
    let Some(foreign) = foreign() else { return };
    let folder = tempfile::tempdir().expect("there is room for runs");
    for name in [
        "tasking", "loops", "locks", "taskloop", "sections", "teams", "ordered",
    ] {
        let Some(build) = Fixture::open(name)
            .ordinary_builds("gcc")
            .into_iter()
            .next()
        else {
            return;
        };
        let out = folder.path().join(name);
        table::record(&build.path, &[], 2, &out, &table::ONE_EVENT).ok(name);
        let run = &table::runs(&out)[0];
        let read = exported(run, &out, &[], &foreign);
        let connected = read["connected_tasks"].as_u64().expect("a number");
        assert!(connected > 40 || name != "tasking", "{name}: {connected}");
        let report: Value = serde_json::from_str(&schema::report(run)).expect("JSON");
        let mut expected: BTreeMap<String, (f64, u64)> = BTreeMap::new();
        for region in report["regions"].as_array().expect("a list") {
            let source = &region["source"];
            let Some(file) = source["file"].as_str() else {
                continue;
            };
            let file = file.rsplit('/').next().unwrap_or(file);
            let at = expected
                .entry(format!("{file}:{}", source["line"]))
                .or_default();
            at.0 += region["time_s"].as_f64().expect("a time");
            at.1 += region["events"]["task-clock"].as_u64().unwrap_or(0);
        }
        assert!(!expected.is_empty(), "{name}");
        let xus = table::export(run);
        let labels: BTreeSet<String> = xus.iter().map(|x| x.label.clone()).collect();
        for format in ["perfetto", "chrome", "speedscope", "firefox"] {
            let places = by_place(&read[format]);
            let all = read[format].as_object().expect("sums by name");
            let slices: u64 = all.values().filter_map(|s| s["number"].as_u64()).sum();
            for (place, (seconds, count)) in &expected {
                let at = places.get(place);
                let at = at.unwrap_or_else(|| panic!("{name}: {format} has nothing at {place}"));
                let found = at.self_ns as f64 / 1e9;
                // Half a nanosecond for each begin and end, those of nested slices too.
                let rounding = 2e-9 * (slices + 2) as f64;
                assert!(
                    (found - seconds).abs() <= rounding,
                    "{name}: {format} has {found} s at {place}, the report {seconds}"
                );
                if format != "speedscope" {
                    let counts = at.events.get("task-clock").copied().unwrap_or(0);
                    assert_eq!(counts, *count, "{name}: {format} at {place}");
                }
            }
            if format != "speedscope" {
                let found: BTreeSet<String> =
                    places.into_values().flat_map(|at| at.labels).collect();
                assert_eq!(found, labels, "{name}: {format}");
            }
        }
    }
}

/// Arrows are the dependences that the program has, and who is on the critical path is told: `tests/sources/graphs.c`.
#[test]
fn dependences_are_drawn() {
    let Some(foreign) = foreign() else { return };
    let Some(reader) = super::otf2::reader() else {
        return;
    };
    for (compiler, folder) in crate::shares::programs("graphs") {
        let program = folder.path().join("graphs");
        // The longest way through the tree may be that of the block that creates it.
        for (mode, dependences, critical) in
            [("chain", 9, 10), ("wavefront", 24, 7), ("tree", 0, 0)]
        {
            let out = folder.path().join(mode);
            let options = ["--events", "none"];
            table::record(&program, &[mode, "4000"], 2, &out, &options).ok(mode);
            let run = &table::runs(&out)[0];
            let read = exported(run, folder.path(), &[], &foreign);
            assert_eq!(read["dependences"], dependences, "{compiler} {mode}");
            let on_path = read["critical"].as_u64().expect("a number");
            assert!(on_path >= critical, "{compiler} {mode}: {on_path}");
            let archive = super::otf2::archive(run, &format!("otf2-{mode}"), &[]);
            let read = &reader.read(&[archive])[0];
            assert_eq!(read["dependences"], dependences, "{compiler} {mode}");
            assert_eq!(read["critical"], on_path, "{compiler} {mode}");
        }
    }
}
