//! Iterations that take longer with more threads (`tests/sources/inflation.c`): what a series tells of them, beside the program's own clocks.

use crate::series::{list, reported};
use crate::shares::{number, programs};
use ompfuse_tests::table;
use serde_json::Value;
use std::path::Path;

const RUNS: usize = 2;

/// How many times as long iterations take with two threads by the program's clocks: the least and the most of all pairs of runs; and the
/// series of these runs.
fn measured(folder: &Path, mode: &str, attempt: usize) -> ([f64; 2], Value) {
    let mut own = [vec![], vec![]];
    let mut names = vec![];
    for run in 0..RUNS {
        for (threads, own) in (1..).zip(&mut own) {
            let name = format!("{mode}-{attempt}-{threads}-{run}");
            let program = folder.join("inflation");
            let options = ["--events", "none"];
            let output = table::record(&program, &[mode], threads, &folder.join(&name), &options);
            let text = output.ok(mode).text();
            own.push(text.trim().parse::<f64>().expect("a mean"));
            names.push(name);
        }
    }
    let pairs = own[1]
        .iter()
        .flat_map(|two| own[0].iter().map(move |one| two / one));
    let least = pairs.clone().fold(f64::INFINITY, f64::min);
    let most = pairs.fold(0.0, f64::max);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    ([least, most], reported(folder, &names))
}

/// What is told of the loop with two threads.
fn told(series: &Value) -> Option<Value> {
    let losses = list(&series["points"][1], "losses");
    let known = losses.iter().find(|l| !l["inflation"].is_null());
    known.map(|l| l["inflation"].clone())
}

fn is_accused(series: &Value) -> bool {
    let mut verdict = list(series, "verdict").iter().filter_map(Value::as_str);
    verdict.any(|s| s.contains("memory's bandwidth"))
}

/// Threads had no processor for a part of the time: most units were disturbed.
fn is_busy(series: &Value) -> bool {
    let notes = list(series, "notes");
    notes.iter().any(|n| n["kind"] == "starved")
}

#[test]
fn units_take_as_many_times_as_long_as_their_own_clocks_say() {
    for (compiler, folder) in programs("inflation") {
        for mode in ["bandwidth", "false-sharing", "atomic"] {
            let tries = (0..4).map(|attempt| measured(folder.path(), mode, attempt));
            let mut seen = vec![];
            // Nothing is told where too many units were disturbed, or where the work takes no longer.
            let is_right = tries.into_iter().any(|([least, most], series)| {
                let Some(inflation) = told(&series) else {
                    seen.push(format!("{least} to {most}: nothing"));
                    return most < 1.05 || is_busy(&series);
                };
                let times = number(&inflation["times"]);
                seen.push(format!("{least} to {most}: {inflation}"));
                assert!(number(&inflation["compared"]) >= 0.1, "{inflation}");
                let is_near = times > 0.85 * least && times < 1.15 * most;
                let is_named = is_accused(&series);
                is_near && (is_named || least < 1.25)
            });
            assert!(is_right, "{compiler} {mode}: {seen:#?}");
        }
    }
}

#[test]
fn a_program_that_computes_is_not_accused() {
    for (compiler, folder) in programs("inflation") {
        // A busy machine may make everything slower while one number of threads runs.
        let all: Vec<_> = (0..3)
            .map(|n| measured(folder.path(), "computing", n))
            .collect();
        let unmoved: Vec<_> = all.iter().filter(|([_, most], _)| *most < 1.05).collect();
        assert!(!unmoved.is_empty(), "{compiler}: {all:#?}");
        for (own, series) in unmoved {
            assert!(!is_accused(series), "{compiler}: {own:?} {series:#}");
        }
    }
}
