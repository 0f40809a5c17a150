//! Cancellation, which `OMP_CANCELLATION` switches on: which work is left out depends on timing, so each run is judged by its
//! own output.

use ompfuse_tests::fixture::{self, Build, Fixture};
use ompfuse_tests::table::{self, Xu};
use ompfuse_tests::{command, process, some};
use std::path::Path;
use std::process::Command;

/// Runs per build and way: timing decides what is cancelled.
const RUNS: usize = 4;

fn cancelling(command: &mut Command) -> &mut Command {
    command.env("OMP_CANCELLATION", "true")
}

/// The lines that don't depend on timing.
fn verdicts(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|l| l.ends_with("right"));
    lines.map(str::to_owned).collect()
}

fn count(xus: &[Xu], construct: &str) -> u64 {
    xus.iter().filter(|x| x.construct == construct).count() as u64
}

/// The report of a run recorded while cancellation is on, and what the program said.
fn record(program: &Path, folder: &Path) -> (process::Output, Vec<Xu>, serde_json::Value) {
    let mut recording = command::with_threads(3);
    cancelling(&mut recording)
        .arg("record")
        .args(table::ONE_EVENT)
        .arg("-o")
        .arg(folder)
        .arg("--")
        .arg(program);
    let output = process::run(&mut recording);
    let run = table::runs(folder).pop().expect("a run was recorded");
    let report = command::report(&run);
    (output, table::export(&run), report)
}

fn check(build: &Build) {
    let original = process::run(cancelling(process::clean(
        &mut Command::new(&build.path),
        3,
    )))
    .ok(&build.to_string());
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let patched = table::patch(build, folder.path(), &[]);
    let alone = tempfile::tempdir().expect("there is room for a patched program");
    let dormant = table::patch(build, alone.path(), &["--dormant"]);
    for run in 0..RUNS {
        for program in [&patched, &dormant] {
            let now = process::run(cancelling(process::clean(&mut Command::new(program), 3)));
            assert_eq!(
                (now.status, verdicts(&now.text()), now.errors()),
                (0, verdicts(&original.text()), String::new()),
                "{build}, run {run}: {now:?}"
            );
        }
        let (output, xus, report) = record(&patched, &folder.path().join(format!("runs-{run}")));
        let output = output.ok(&build.to_string());
        assert_eq!(
            verdicts(&output.text()),
            verdicts(&original.text()),
            "{build}"
        );
        let own = fixture::counts(&output.text());
        let what = format!("{build}, run {run}");
        assert_eq!(
            Some(&count(&xus, "task")),
            own.get("tasks"),
            "tasks of {what}"
        );
        let labels = table::labels(&xus);
        let twice = labels.windows(2).find(|w| w[0] == w[1]);
        assert_eq!(twice, None, "{what}");
        let unlabelled = labels.iter().filter(|l| l.is_empty()).count();
        assert_eq!(unlabelled, 0, "{what}");
        let regions = report["regions"].as_array().expect("a list of regions");
        let cancels = regions.iter().filter(|r| r["construct"] == "cancel");
        let seen: u64 = cancels.filter_map(|r| r["cancelled"].as_u64()).sum();
        assert!(seen >= 3 * 4, "{what}: {seen} cancellations");
        for account in report["accounting"].as_array().expect("a list of threads") {
            assert_eq!(account["balanced"], true, "{what}: {account}");
        }
    }
}

fn cancelled_work_is_not_recorded(compiler: &str) {
    let builds = Fixture::open("cancel").builds(compiler).into_iter();
    for build in some(builds.filter(|b| b.link == "pie" && !b.stripped)) {
        check(&build);
    }
}

#[test]
fn gcc() {
    cancelled_work_is_not_recorded("gcc");
}

#[test]
fn clang() {
    cancelled_work_is_not_recorded("clang");
}

/// Where it is off, nothing is cancelled, and the calls are on record all the same.
#[test]
fn without_cancellation_there_is_none() {
    for build in ["gcc", "clang"]
        .iter()
        .flat_map(|c| Fixture::open("cancel").ordinary_builds(c))
    {
        let folder = tempfile::tempdir().expect("there is room for a patched program");
        let patched = table::patch(&build, folder.path(), &[]);
        let out = folder.path().join("runs");
        table::record(&patched, &[], 2, &out, &table::ONE_EVENT).ok(&build.to_string());
        let run = table::runs(&out).pop().expect("a run was recorded");
        let report = command::report(&run);
        let regions = report["regions"].as_array().expect("a list of regions");
        let cancels: Vec<_> = regions
            .iter()
            .filter(|r| r["construct"] == "cancel")
            .collect();
        assert!(!cancels.is_empty(), "{build}");
        for cancel in cancels {
            assert!(cancel["executions"].as_u64() > Some(0), "{build}: {cancel}");
            assert_eq!(cancel["cancelled"], 0, "{build}: {cancel}");
        }
    }
}
