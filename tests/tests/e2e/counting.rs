//! Constructs whose executions the runtime's functions don't tell one by one, against what the program counts itself.

use ompfuse_tests::fixture::counts;
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{command, compile, each, process, repository, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of `tests/sources`, compiled and patched in a folder of its own.
pub(crate) struct Recorded {
    folder: tempfile::TempDir,
    original: PathBuf,
    patched: PathBuf,
}

impl Recorded {
    /// `None`, and said so, without the compiler.
    pub(crate) fn compiled(name: &str, command: &str) -> Option<Recorded> {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let [original, patched] = [name, "patched"].map(|n| folder.path().join(n));
        let source = repository().join(format!("tests/sources/{name}.c"));
        if !compile::files(&[source], &original, &format!("{command} -g -fopenmp")) {
            return None;
        }
        command::ok([Path::new("patch"), &original, Path::new("-o"), &patched]);
        Some(Recorded {
            folder,
            original,
            patched,
        })
    }

    /// Runs it recorded: what it said, and its report.
    pub(crate) fn report(&self, threads: usize, env: &[(&str, &str)]) -> (process::Output, Value) {
        let out = self.folder.path().join(format!("out-{threads}"));
        let _ = std::fs::remove_dir_all(&out);
        let mut record = command::with_threads(threads);
        record.args(["record", "--events", "none", "-o"]).arg(&out);
        record
            .arg("--")
            .arg(&self.patched)
            .envs(env.iter().copied());
        let output = process::run(&mut record);
        let run = &table::runs(&out)[0];
        let report = ["report", "--format", "json"].map(Path::new);
        (output, command::json(report.into_iter().chain([&**run])))
    }

    /// The report of the last such run, as text.
    pub(crate) fn text(&self, threads: usize) -> String {
        command::ok([
            Path::new("report"),
            Path::new("--show=all"),
            &self.run_folder(threads),
        ])
        .text()
    }

    pub(crate) fn run_folder(&self, threads: usize) -> PathBuf {
        table::runs(&self.folder.path().join(format!("out-{threads}")))[0].clone()
    }
}

/// The regions of a construct.
pub(crate) fn regions<'r>(report: &'r Value, construct: &str) -> Vec<&'r Value> {
    let all = report["regions"].as_array().expect("a list of regions");
    all.iter().filter(|r| r["construct"] == construct).collect()
}

fn executions(report: &Value, construct: &str) -> Vec<u64> {
    let mut all: Vec<u64> = regions(report, construct)
        .iter()
        .filter_map(|r| r["executions"].as_u64())
        .collect();
    all.sort_unstable();
    all
}

/// What the program says that it has executed.
fn own(output: &process::Output) -> BTreeMap<String, u64> {
    counts(&output.text())
}

#[test]
fn an_implied_taskgroup_is_a_region_of_its_own() {
    let compilers = ["clang-14", "clang-16", "clang-19"].map(|c| format!("{c} -O2"));
    let made = |c: &String| Recorded::compiled("taskgroups", c);
    for (command, program) in each(compilers, made) {
        for threads in [1, 4] {
            let (output, report) = program.report(threads, &[]);
            let own = own(&output.ok(&command));
            let mut wanted = vec![own["own"], own["implied"]];
            wanted.sort_unstable();
            let what = format!("{command}, {threads} threads");
            assert_eq!(executions(&report, "taskgroup"), wanted, "{what}");
            let implied = regions(&report, "taskgroup")
                .into_iter()
                .find(|r| r["detail"] == "task reduction")
                .expect("the implied one says what it is");
            assert_eq!(implied["executions"], own["implied"], "{what}");
        }
    }
}

#[test]
fn preparing_a_scan_is_a_region() {
    let commands = ["gcc-11", "gcc-12"].map(|c| [format!("{c} -O0"), format!("{c} -O2")]);
    let made = |c: &String| Recorded::compiled("scans", c);
    for (command, program) in each(commands.concat(), made) {
        for threads in [1, 3] {
            let (output, report) = program.report(threads, &[]);
            let own = own(&output.ok(&command));
            let what = format!("{command}, {threads} threads");
            assert_eq!(executions(&report, "reduction"), [own["calls"]], "{what}");
            // The scan's own loops are as they were, or listed.
            let sites = Scan::of(&program.original).sites;
            let is_listed = sites
                .iter()
                .any(|s| s.construct == "loop" && s.outcome == "skipped");
            assert!(is_listed || !regions(&report, "loop").is_empty(), "{what}");
        }
    }
}

#[test]
fn every_cancel_is_counted() {
    let compilers = ["gcc", "clang-19"].map(|c| format!("{c} -O2"));
    let made = |c: &String| Recorded::compiled("cancels", c);
    for (command, program) in each(compilers, made) {
        for on in ["false", "true"] {
            let (output, report) = program.report(3, &[("OMP_CANCELLATION", on)]);
            let own = own(&output.ok(&command));
            let what = format!("{command}, cancellation {on}: {own:?}");
            let all = regions(&report, "cancel");
            assert_eq!(all.len(), 2, "{what}");
            for region in all {
                let [calls, beyond] = match region["detail"] == "point" {
                    true => [own["points"], own["beyond"]],
                    false => [own["cancels"], own["after"]],
                };
                assert_eq!(region["executions"], calls, "{what}: {region}");
                assert_eq!(region["cancelled"], calls - beyond, "{what}: {region}");
                assert_eq!(region["time_s"], 0.0, "{what}: {region}");
            }
            let is_cancelled = own["after"] < own["cancels"];
            assert_eq!(is_cancelled, on == "true", "{what}");
        }
    }
}

/// Which thread comes first differs from run to run.
const RUNS: usize = 12;

/// The first thread's fork is open then.
#[test]
fn a_thread_that_exits_in_its_region_has_all_its_time() {
    let compilers = ["gcc", "clang-19"].map(|c| format!("{c} -O2 -DONE"));
    let made = |c: &String| Recorded::compiled("exits", c);
    for (command, program) in each(compilers, made) {
        let (output, report) = program.report(3, &[]);
        assert_eq!(output.status, 3, "{command}");
        assert_eq!(report["notes"], serde_json::json!([]), "{command}");
        let accounts = report["accounting"].as_array().expect("a list of threads");
        let first = &accounts[0];
        assert_eq!(first["balanced"], true, "{command}: {first}");
    }
}

#[test]
fn threads_that_exit_at_once_leave_a_clean_folder() {
    let compilers = ["gcc", "clang-19"].map(|c| format!("{c} -O2"));
    let made = |c: &String| Recorded::compiled("exits", c);
    for (command, program) in each(compilers, made) {
        let mut alone = Command::new(&program.original);
        let alone = process::run(process::clean(&mut alone, 4));
        assert_eq!(alone.status, 3, "{command}");
        for run in 0..RUNS {
            let (output, report) = program.report(4, &[]);
            let what = format!("{command}, run {run}");
            assert_eq!(output.status, 3, "{what}");
            // What the command always says of a program that fails, and of where its run is.
            let said = output.errors();
            let wrong = said
                .lines()
                .find(|l| !l.ends_with("exit status 3") && !l.starts_with("ompfuse: 1 run in "));
            assert_eq!(wrong, None, "{what}");
            assert_eq!(report["notes"], serde_json::json!([]), "{what}");
            let folder = program.run_folder(4);
            let names = std::fs::read_dir(&folder).expect("a run's folder can be listed");
            let left: Vec<String> = names
                .map(|e| {
                    e.expect("it can be read")
                        .file_name()
                        .to_string_lossy()
                        .into_owned()
                })
                .filter(|name| name.ends_with(".ctl"))
                .collect();
            assert!(left.is_empty(), "{what}: {left:?}");
            for account in report["accounting"].as_array().expect("a list of threads") {
                assert_ne!(account["balanced"], false, "{what}: {account}");
            }
        }
    }
}
