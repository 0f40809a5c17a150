//! Graphs whose work and span are known (`tests/sources/graphs.c`): spans and critical paths. Predictions are the benchmark's
//! `prediction`, since they want processors of their own.

use crate::shares::{number, programs, reported};
use ompfuse_tests::table;
use serde_json::Value;
use tempfile::TempDir;

/// A mode's work and span in units, as the program says, and the report's scaling.
fn scaling(folder: &TempDir, mode: &str, threads: usize) -> ([f64; 2], Value) {
    let out = folder.path().join(format!("{mode}-{threads}"));
    let program = folder.path().join("graphs");
    let run = table::record(
        &program,
        &[mode, UNIT_US],
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

const MODES: [&str; 11] = [
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
    "loops",
];

/// So long that waking up late is little of it.
const UNIT_US: &str = "20000";
/// Sleeping takes a little longer than it should, and code around it a little time. The longest chain is found wrong by a unit in ten at
/// least, if at all.
const NEAR: f64 = 0.08;

#[test]
fn spans_are_those_worked_out_by_hand() {
    for (compiler, folder) in programs("graphs") {
        for mode in MODES {
            let ([work, span], scaling) = scaling(&folder, mode, 2);
            let what = format!("{compiler} {mode}: {:#}", scaling["regions"][0]);
            let region = &scaling["regions"][0];
            let unit = number(&region["work_s"]) / work;
            let found = number(&region["span_s"]) / unit;
            assert!(
                (found / span - 1.0).abs() < NEAR,
                "{found}, not {span}: {what}"
            );
            let path = region["path"].as_array().expect("a list");
            let all: f64 = path.iter().map(|p| number(&p["seconds"])).sum();
            assert!((all / unit / span - 1.0).abs() < NEAR, "{all}: {what}");
            let excludes = mode == "set" && compiler.starts_with("clang");
            let bounds = &region["lower_bound_because"];
            match excludes {
                true => assert_eq!(bounds[0], "exclusions", "{what}"),
                false => assert_eq!(bounds.as_array().map(Vec::len), Some(0), "{what}"),
            }
        }
    }
}
