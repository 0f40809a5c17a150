//! Where time is lost, on programs that lose it elsewhere than threads wait, or at a place that compilers made several of
//! (`tests/sources/places.c`).

use crate::shares::{number, programs, reported};
use ompfuse_tests::table;
use serde_json::Value;
use tempfile::TempDir;

/// A case's report with four threads.
fn report(folder: &TempDir, case: &str) -> Value {
    let out = folder.path().join(case);
    let program = folder.path().join("places");
    table::record(&program, &[case], 4, &out, &["--events", "none"]).ok(case);
    reported(&out)
}

/// The cause of the largest loss, which is of that kind.
fn cause<'r>(report: &'r Value, kind: &str, what: &str) -> &'r Value {
    let cause = &report["losses"][0]["cause"];
    assert_eq!(cause["kind"], kind, "{what}: {:#}", report["losses"]);
    cause
}

/// The region of a number.
fn region<'r>(report: &'r Value, id: &Value) -> &'r Value {
    let regions = report["regions"].as_array().expect("a list");
    let found = regions.iter().find(|r| r["id"] == *id);
    found.unwrap_or_else(|| panic!("no region {id}"))
}

#[test]
fn the_place_that_holds_a_lock_is_told() {
    for (compiler, folder) in programs("places") {
        let report = report(&folder, "holder");
        let cause = cause(&report, "held", compiler);
        let function = |id: &Value| region(&report, id)["function"].clone();
        assert_eq!(function(&cause["at"]), "writer", "{compiler}: {cause}");
        assert_eq!(
            function(&cause["waits_at"]),
            "reader",
            "{compiler}: {cause}"
        );
        assert_eq!(cause["entries"], 20, "{compiler}: {cause}");
        let share = number(&cause["of_wall"]);
        assert!(share > 0.5 && share <= 1.0, "{compiler}: {cause}");
    }
}

#[test]
fn copies_of_a_line_are_told_as_one_place() {
    for (compiler, folder) in programs("places") {
        let report = report(&folder, "copies");
        let cause = cause(&report, "held", compiler);
        assert_eq!(cause["entries"], 12, "{compiler}: {cause}");
        assert!(number(&cause["held_s"]) >= 0.024, "{compiler}: {cause}");
        assert_eq!(cause["is_holder"], true, "{compiler}: {cause}");
    }
}

#[test]
fn slow_iterations_before_their_turn_are_told() {
    for (compiler, folder) in programs("places") {
        let report = report(&folder, "turns");
        let cause = cause(&report, "in_order", compiler);
        assert!(number(&cause["in_block"]) < 0.5, "{compiler}: {cause}");
        let slow = &cause["slow"];
        assert_eq!(slow["kind"], "uneven_units", "{compiler}: {cause}");
        let first = slow["first"].as_i64().unwrap_or(0);
        assert_eq!(first % 8, 0, "{compiler}: {cause}");
    }
}

#[test]
fn joins_of_a_reduction_are_no_construct_of_the_program() {
    for (compiler, folder) in programs("places") {
        let report = report(&folder, "joins");
        let cause = cause(&report, "reduction", compiler);
        let construct = &region(&report, &cause["at"])["construct"];
        assert_eq!(construct, "loop", "{compiler}: {cause}");
        assert_eq!(cause["joins"], 16, "{compiler}: {cause}");
    }
}

#[test]
fn one_slow_execution_is_not_the_mean() {
    for (compiler, folder) in programs("places") {
        let report = report(&folder, "once");
        let cause = cause(&report, "uneven_units", compiler);
        assert_eq!(cause["first"], 2, "{compiler}: {cause}");
        // Seven times 5, and once 50.
        let times = number(&cause["times_mean"]);
        assert!((5.0..15.0).contains(&times), "{compiler}: {cause}");
    }
}

#[test]
fn what_nobody_waits_to_enter_is_not_held() {
    for (compiler, folder) in programs("places") {
        let report = report(&folder, "alone");
        let losses = report["losses"].as_array().expect("a list");
        let waits: Vec<&Value> = losses.iter().filter(|l| l["loss"] == "waiting").collect();
        assert_eq!(waits.len(), 1, "{compiler}: {losses:#?}");
        assert!(
            losses.iter().all(|l| l["cause"]["kind"] != "held"),
            "{compiler}: {losses:#?}"
        );
    }
}
