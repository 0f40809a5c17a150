//! What a person at a terminal sees of work that may take long, and nobody else.

use ompfuse_tests::{command, process, repository, table};
use std::path::Path;
use std::process::Command;

/// What a command writes to a terminal.
fn at_terminal(line: &str) -> String {
    let mut script = Command::new("script");
    script.args(["-qec", line, "/dev/null"]);
    let output = process::run(process::clean(&mut script, 2)).ok(line);
    output.text()
}

#[test]
fn everything_that_may_take_long_has_a_bar_with_the_time_that_is_left() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let at = |name: &str| folder.path().join(name);
    let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
    let program = repository().join("fixtures/prebuilt/knapsack-gcc");
    let [patched, runs, other, profile, complete, table] = [
        "patched",
        "runs",
        "other",
        "p.parquet",
        "q.parquet",
        "p.csv",
    ]
    .map(at);
    command::ok(["patch", &text(&program), "-o", &text(&patched)]);
    let events = ["--events", "task-clock,page-faults", "--slots", "1"];
    for out in [&runs, &other] {
        table::record(&patched, &[], 2, out, &events).ok("record");
    }
    let run = text(&table::runs(&runs)[0]);
    command::ok(["combine", &text(&runs), "-o", &text(&profile)]);
    command::ok(["combine", &text(&other), "-o", &text(&complete)]);

    let [program, patched, runs, profile, complete, table, again] = [
        &program,
        &patched,
        &runs,
        &profile,
        &complete,
        &table,
        &at("again"),
    ]
    .map(|p| text(p));
    for (what, args) in [
        ("scanning", format!("scan {program}")),
        (
            "writing and verifying",
            format!("patch {program} -o {again}"),
        ),
        (
            "writing and verifying",
            format!("patch {program} --dry-run"),
        ),
        ("verifying", format!("verify {program} {patched}")),
        ("combining", format!("combine {runs} -o {again}")),
        (
            "combining",
            format!("combine --strategy ctc --memory 1 {runs} -o {again}"),
        ),
        ("exporting", format!("export {profile} --to csv -o {table}")),
        ("reading", format!("report {run}")),
        ("reading", format!("report --memory 1 {run}")),
        ("reading", format!("plan --from {run} --events task-clock")),
        (
            "evaluating",
            format!("evaluate {profile} --reference {profile} {complete}"),
        ),
    ] {
        let plain = command::ok(args.split(' '));
        assert_eq!(plain.errors(), "", "ompfuse {args}");
        let line = format!("{} {args}", command::path().display());
        let seen = at_terminal(&line);
        let frames = seen.split(['\r', '\n']).filter(|f| f.contains(" %, "));
        let is_shown = frames
            .clone()
            .any(|f| f.contains(what) && f.ends_with(" left"));
        assert!(is_shown, "ompfuse {args}: {seen:?}");
        // Nothing of it stays.
        let erased = seen.rfind("\u{1b}[2K").unwrap_or(0);
        let last = seen.rfind(" %, ").expect("frames");
        assert!(last < erased, "ompfuse {args}: {seen:?}");
    }
}
