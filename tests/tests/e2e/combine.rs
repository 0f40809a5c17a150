//! Several runs, each with events of its own, become one profile in which every XU has all counts.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::process;
use ompfuse_tests::{command, table};

/// Events that can be counted everywhere.
const EVENTS: [&str; 3] = ["task-clock", "page-faults", "minor-faults"];

#[test]
fn runs_with_one_event_each_are_fused_by_label() {
    for (name, variant) in [("knapsack", ""), ("cg", "dynamic"), ("listing11", "")] {
        let fixture = Fixture::open(name);
        let builds = ["gcc", "clang"]
            .iter()
            .flat_map(|c| fixture.ordinary_builds(c));
        for build in builds.filter(|b| b.variant == variant) {
            let folder = tempfile::tempdir().expect("there is room for a recording");
            let patched = table::patch(&build, folder.path(), &[]);
            let out = folder.path().join("runs");
            let events = EVENTS.join(",");
            table::record(
                &patched,
                &[],
                2,
                &out,
                &["--events", &events, "--slots", "1"],
            )
            .ok("record");
            let runs = table::runs(&out);
            assert_eq!(runs.len(), EVENTS.len(), "{build}: one run per event");

            let profile = folder.path().join("profile.parquet");
            let mut command = command::with_threads(2);
            command
                .arg("combine")
                .args(&runs)
                .args(["--strategy", "lgl", "-o"])
                .arg(&profile);
            process::run(&mut command).ok("combine");
            let fused = table::export(&profile);
            let single = table::export(&runs[0]);
            assert_eq!(
                table::labels(&fused),
                table::labels(&single),
                "{build}: nothing is left out"
            );
            for xu in &fused {
                for event in EVENTS {
                    assert!(
                        !xu.columns[event].is_empty(),
                        "{build}: no {event} for {}",
                        xu.label
                    );
                }
            }
            // Each count is one that was counted, for the XU of that label.
            for (run, event) in runs.iter().zip(EVENTS) {
                let counted = |xus: &[table::Xu]| {
                    let mut pairs: Vec<_> = xus
                        .iter()
                        .map(|x| (x.label.clone(), x.columns[event].clone()))
                        .collect();
                    pairs.sort();
                    pairs
                };
                let of_run = table::export(run);
                if of_run.iter().all(|x| x.columns.contains_key(event)) {
                    assert_eq!(counted(&fused), counted(&of_run), "{build}: {event}");
                }
            }
        }
    }
}

#[test]
fn repeated_runs_are_told_apart() {
    let Some(build) = Fixture::open("nqueens").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let patched = table::patch(&build, folder.path(), &[]);
    let out = folder.path().join("runs");
    let flags = ["--events", "task-clock", "--repeat", "3"];
    table::record(&patched, &[], 2, &out, &flags).ok("record");
    let names: Vec<_> = table::runs(&out)
        .iter()
        .filter_map(|r| r.file_name().map(ToOwned::to_owned))
        .collect();
    assert_eq!(names, ["run-0001", "run-0002", "run-0003"]);
}
