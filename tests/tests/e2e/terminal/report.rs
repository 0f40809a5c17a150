//! The report's options, its widths and its pager.

use super::widest;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::tmux::Tmux;
use ompfuse_tests::{command, repository};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::LazyLock;
use tempfile::TempDir;

/// A run that all tests look at.
static RUN: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("there is room for a run");
    let out = folder.path().join("out");
    let mut record = command::with_threads(2);
    record
        .args(["record", "--events", "page-faults", "-o"])
        .arg(&out)
        .arg("--");
    record.arg(repository().join("fixtures/prebuilt/knapsack-gcc"));
    process::run(&mut record).ok("record");
    (folder, out)
});

fn report(columns: usize, args: &[&str]) -> Output {
    let mut report = command::with_threads(2);
    report
        .arg("report")
        .arg(&RUN.1)
        .args(args)
        .env("COLUMNS", columns.to_string());
    process::run(&mut report)
}

fn model() -> Value {
    serde_json::from_slice(&report(80, &["--format", "json"]).stdout).expect("JSON")
}

/// The numbers of the regions, as the table lists them.
fn listed(text: &str) -> Vec<u64> {
    let table = text
        .lines()
        .skip_while(|l| !l.contains("construct  location"));
    let rows = table.skip(1).take_while(|l| !l.is_empty());
    rows.filter_map(|l| l.split_whitespace().next()?.parse().ok())
        .collect()
}

#[test]
fn no_line_is_longer_than_the_terminal() {
    let all = [
        "--show",
        "callers,legend,per-thread,call-paths",
        "--by",
        "site",
    ];
    for columns in [60, 80] {
        for args in [
            &[][..],
            &all,
            &["--region", "1"],
            &["--region", "task", "--by", "site", "--top", "1"],
        ] {
            let output = report(columns, args);
            if output.status == 0 {
                let text = output.text();
                // A command that is to be copied is one line.
                let lines = text.lines().filter(|l| !l.starts_with("  ompfuse record "));
                let text = lines.collect::<Vec<_>>().join("\n");
                assert!(widest(&text) <= columns, "{columns} {args:?}:\n{text}");
            }
        }
    }
    let text = report(80, &["--show", "legend"]).ok("report").text();
    let (_, legend) = text.split_once("\nLegend\n").expect("a legend");
    for column in ["share", "imbal.", "limpar", "avg/XU"] {
        assert!(legend.lines().any(|l| l.starts_with(column)), "{legend}");
    }
}

#[test]
fn regions_are_sorted_by_what_is_asked_for() {
    let model = model();
    let regions = model["regions"].as_array().expect("a list of regions");
    for (column, field) in [("wait", "wait_s"), ("execs", "executions"), ("xus", "xus")] {
        // With so many rows none is left out for the sake of the screen.
        let text = report(100, &["--by", "site", "--top", "20", "--sort", column])
            .ok("report")
            .text();
        let value = |id: u64| {
            let region = regions.iter().find(|r| r["id"] == id);
            region.and_then(|r| r[field].as_f64()).expect("a number")
        };
        let values: Vec<f64> = listed(&text).into_iter().map(value).collect();
        assert_eq!(values.len(), regions.len(), "{column}: {text}");
        assert!(
            values.is_sorted_by(|a, b| a >= b),
            "{column} {values:?}: {text}"
        );
    }
    let numbers = listed(&report(100, &["--top", "20", "--sort", "number"]).text());
    assert!(numbers.len() > 2 && numbers.is_sorted(), "{numbers:?}");
    let wrong = report(80, &["--sort", "colour"]);
    assert_eq!(wrong.status, 2, "{wrong:?}");
}

#[test]
fn a_region_is_shown_alone() {
    let model = model();
    let regions = model["regions"].as_array().expect("a list of regions");
    for region in regions {
        let id = region["id"].to_string();
        let text = report(100, &["--by", "site", "--region", &id])
            .ok("report")
            .text();
        assert!(text.starts_with(&format!("#{id} ")), "{text}");
        let executions = region["executions"].as_u64().expect("a number");
        assert!(text.contains(&format!("{executions} execution")), "{text}");
        if region["xus"].as_u64() > Some(1) {
            for section in [
                "Threads",
                "Units by own time",
                "Longest units",
                "Callers",
                "Events",
            ] {
                assert!(
                    text.lines().any(|l| l.starts_with(section)),
                    "{section}: {text}"
                );
            }
            // All units are in the histogram.
            let (_, rows) = text.split_once("Units by own time").expect("a histogram");
            let rows = rows.lines().skip(2).take_while(|l| !l.is_empty());
            let counts = rows.filter_map(|l| {
                let words: Vec<&str> = l.split_whitespace().collect();
                let at = words.iter().rposition(|w| w.parse::<u64>().is_ok())?;
                words[at].parse::<u64>().ok()
            });
            assert_eq!(Some(counts.sum()), region["xus"].as_u64(), "{text}");
        }
    }
    let by_line = report(80, &["--region", "knapsack.c:158"])
        .ok("report")
        .text();
    assert!(by_line.contains("parallel knapsack.c:158"), "{by_line}");
    assert!(by_line.contains("Overheads"), "{by_line}");
    let several = report(80, &["--region", "task"]);
    assert_eq!(several.status, 1, "{several:?}");
    let said = several.errors();
    assert!(
        said.contains("`task` means 2 regions, #") && said.contains("give the number of one"),
        "{said}"
    );
    let none = report(80, &["--region", "99"]);
    assert!(
        none.status == 1 && none.errors().contains("no region is #99"),
        "{none:?}"
    );
}

#[test]
fn callers_are_listed() {
    let text = report(100, &["--show", "callers"]).ok("report").text();
    let (_, callers) = text.split_once("\nCallers").expect("a section");
    let mut parallel = callers
        .lines()
        .skip_while(|l| !l.ends_with("parallel, knapsack.c:158"));
    let caller = parallel.nth(2).expect("it has a caller");
    assert!(
        caller.ends_with("main") || caller.contains("main"),
        "{text}"
    );
}

/// A report that is longer than the screen goes through the pager, and nothing else does.
#[test]
fn long_reports_go_through_a_pager() {
    let command = command::path().display().to_string();
    let report = format!("'{command}' report '{}'", RUN.1.display());
    let Some(short) = Tmux::start(80, 12, &[("LESS", "")], &report) else {
        return;
    };
    // It waits at the first screen, which has the verdict.
    let screen = short.wait_for("a prompt", |s| s.trim_end().ends_with(':'));
    assert!(!screen.contains("ended"), "{screen}");
    short.type_in("q");
    short.wait("ended: 0");

    let pager = RUN.0.path().join("paged");
    let own = format!("cat > '{}'", pager.display());
    let long = Tmux::start(80, 12, &[("PAGER", &own)], &report).expect("tmux is there");
    long.wait("ended: 0");
    let paged = std::fs::read_to_string(&pager).expect("the pager was started");
    assert!(paged.contains("knapsack.c:158"), "{paged}");
    std::fs::remove_file(&pager).expect("it is there");
    for (rows, pages) in [(12, "cat"), (200, &own)] {
        let direct = Tmux::start(80, rows, &[("PAGER", pages)], &report).expect("tmux is there");
        direct.wait("ended: 0");
        assert!(!pager.exists(), "{rows} rows {pages}");
    }
}
