//! Graphs whose work and span are known (`tests/sources/graphs.c`): spans and critical paths. Predictions are the benchmark's
//! `prediction`, since they want processors of their own.

use crate::shares::{number, programs, reported};
use ompfuse_tests::{command, compile, process, repository, table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A mode's work and span in units, as the program says, and the report's scaling.
fn scaling(folder: &TempDir, mode: &str, threads: usize, unit_us: &str) -> ([f64; 2], Value) {
    let out = TempDir::new_in(folder.path()).expect("there is room for a run");
    let out = out.path().join(format!("{mode}-{threads}"));
    let program = folder.path().join("graphs");
    let run = table::record(
        &program,
        &[mode, unit_us],
        threads,
        &out,
        &["--events", "none"],
    )
    .ok(mode);
    let text = run.text();
    let mut units = text
        .split_whitespace()
        .map(|n| n.parse().expect("a number"));
    let [work, span] = [units.next(), units.next()].map(|n| n.expect("two numbers"));
    ([work, span], reported(&out)["scaling"].clone())
}

const MODES: [&str; 14] = [
    "chain",
    "readers",
    "tree",
    "wavefront",
    "cholesky",
    "pipeline",
    "some",
    "doacross",
    "ordered",
    "set",
    "inoutset",
    "loops",
    "group",
    "detach",
];

/// So long that waking up late is little of it: on a busy machine with the next one.
const UNITS_US: [&str; 3] = ["20000", "60000", "120000"];
/// Less than half of a unit: spans are whole numbers of them.
const NEAR: f64 = 0.45;

#[test]
fn spans_are_those_worked_out_by_hand() {
    for (compiler, folder) in programs("graphs") {
        for mode in MODES {
            let tries = UNITS_US.iter().map(|unit_us| {
                let ([work, span], scaling) = scaling(&folder, mode, 2, unit_us);
                let region = scaling["regions"][0].clone();
                let unit = number(&region["work_s"]) / work;
                (region, unit, span)
            });
            let is_near = |(region, unit, span): &(Value, f64, f64)| {
                (number(&region["span_s"]) / unit - span).abs() < NEAR
            };
            let mut last = None;
            let found = tries.inspect(|t| last = Some(t.0.clone())).find(is_near);
            let Some((region, unit, span)) = found else {
                panic!("{compiler} {mode}: {:#}", last.expect("there were tries"));
            };
            let what = format!("{compiler} {mode}: {region:#}");
            let path = region["path"].as_array().expect("a list");
            let all: f64 = path.iter().map(|p| number(&p["seconds"])).sum();
            assert!((all / unit - span).abs() < NEAR, "{all}: {what}");
            let because = match mode {
                "set" if compiler.starts_with("clang") => vec!["exclusions"],
                _ => vec![],
            };
            let bounds = &region["lower_bound_because"];
            assert_eq!(*bounds, Value::from(because), "{what}");
        }
    }
}

/// Pairs of numbers in two columns.
fn pairs<'t>(lines: impl Iterator<Item = (&'t str, &'t str)>) -> BTreeSet<(u32, u32)> {
    let number = |text: &str| text.parse().expect("a number");
    lines.map(|(a, b)| (number(a), number(b))).collect()
}

/// Dependences between tasks of a drawn graph, by their numbers.
fn drawn(run: &Path) -> BTreeSet<(u32, u32)> {
    let mut export = command::with_threads(2);
    export.args(["export", "--to", "dot"]).arg(run);
    let text = process::run(&mut export).ok("export --to dot").text();
    let mut numbers: BTreeMap<&str, &str> = BTreeMap::new();
    let mut edges = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if let Some((unit, rest)) = line.split_once(" [label=\"task ") {
            let (number, _) = rest.split_once("\\n").expect("a label of several lines");
            numbers.insert(unit, number);
        }
        if let Some((edge, _)) = line.split_once(" [style=solid]") {
            edges.insert(edge.split_once(" -> ").expect("two ends"));
        }
    }
    pairs(edges.iter().map(|(a, b)| (numbers[a], numbers[b])))
}

/// libomp's own word for what waits for what, and what its tasks are drawn with: tasks last so long that none has ended when the next one
/// is created.
#[test]
fn dependences_are_those_of_the_runtime() {
    let mut compared = 0;
    for (compiler, folder) in programs("graphs") {
        if !compiler.starts_with("clang") {
            continue;
        }
        let tool = folder.path().join("tool.so");
        let source = repository().join("tests/ompt/dependences.c");
        let command = format!("{compiler} -shared -fPIC -O1");
        assert!(compile::files(&[source], &tool, &command), "{compiler}");
        let program = folder.path().join("graphs");
        for mode in [
            "chain",
            "readers",
            "wavefront",
            "cholesky",
            "pipeline",
            "inoutset",
        ] {
            let file = folder.path().join("pairs");
            let mut original = Command::new(&program);
            process::clean(&mut original, 2)
                .args([mode, "5000"])
                .env("OMP_TOOL_LIBRARIES", &tool)
                .env("PAIRS_FILE", &file);
            process::run(&mut original).ok(mode);
            let text = std::fs::read_to_string(&file).expect("the tool writes text");
            let own = pairs(text.lines().filter_map(|l| l.split_once(' ')));
            let out = folder.path().join(format!("drawn-{mode}"));
            let options = ["--events", "none"];
            table::record(&program, &[mode, "5000"], 2, &out, &options).ok(mode);
            assert!(own.len() > 3, "{mode}: {own:?}");
            assert_eq!(drawn(&out), own, "{mode}");
            compared += 1;
        }
    }
    assert_eq!(compared, 6);
}
