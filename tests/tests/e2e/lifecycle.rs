//! However a process ends, forks or goes on as another program: it behaves as before, and what it did is on record.

mod folders;
mod lost;
mod refused;

use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::table;
use std::path::Path;
use std::process::Command;

/// Ways to end (see the fixture), with the status and the number of XUs that must be on record at least.
const WAYS: [(&str, i32, usize); 16] = [
    ("return", 0, 10),
    ("exit", 5, 10),
    ("quick", 6, 10),
    ("abort", 128 + 6, 10),
    ("kill", 128 + 9, 10),
    ("inside", 7, 10),
    ("fork", 0, 30),
    ("exec", 0, 20),
    ("threads", 0, 100),
    ("signals", 0, 2010),
    ("spawn", 0, 20),
    ("closes", 0, 2020),
    ("moves", 0, 20),
    ("limits", 0, 10),
    ("nothing", 0, 10),
    ("drops", 0, 5010),
];

fn run(program: &Path, how: &str) -> Output {
    process::run(process::clean(&mut Command::new(program), 2).args(["10", how]))
}

fn survives(build: &Build, patched: &Path, how: &str, status: i32, wanted: usize) {
    let what = format!("{build}, {how}");
    let original = run(&build.path, how);
    assert_eq!(original.status, status, "{what}: {original:?}");
    assert_eq!(
        run(patched, how).outcome(),
        original.outcome(),
        "{what}, patched"
    );

    let folder = tempfile::tempdir().expect("there is room for a recording");
    let recorded = table::record(patched, &["10", how], 2, folder.path(), &table::ONE_EVENT);
    let same = (recorded.status, recorded.text()) == (original.status, original.text());
    assert!(
        same,
        "{what}, recorded: {recorded:?} instead of {original:?}"
    );
    let recorded_errors = recorded.errors();
    // "nothing": no process can say at its end what it has lost.
    let is_limited = ["limits", "nothing"].contains(&how);
    let runs = table::runs(folder.path());
    assert_eq!(runs.len(), 1, "{what}: {recorded:?}");
    let xus = table::export(&runs[0]);
    let recorded = xus.len();
    assert!(
        recorded >= wanted,
        "{what}: {recorded} XUs on record, not {wanted}"
    );
    assert!(
        xus.iter()
            .filter(|x| x.construct == "task")
            // Where records are lost, it may be those that labels come from.
            .all(|x| !x.label.is_empty() || is_limited),
        "{what}: labels"
    );
    let says = |text: &str| recorded_errors.contains(text);
    assert!(
        !says("did not fit"),
        "{what}: said twice: {recorded_errors}"
    );
    if how == "closes" {
        // What isn't counted is not shown as 0.
        let counted = xus.iter().filter(|x| !x.columns["task-clock"].is_empty());
        let counted = counted.count();
        assert!((10..1000).contains(&counted), "{what}: {counted} counts");
        let mut report = ompfuse_tests::command::with_threads(1);
        let report = process::run(report.arg("report").arg(&runs[0])).text();
        assert!(
            report.contains("task-clock was not counted for"),
            "{what}: {report}"
        );
    }
    assert_eq!(
        is_limited,
        says("records could not be written"),
        "{what}: {recorded_errors}"
    );
}

fn all_ways(compiler: &str) {
    for build in Fixture::open("lifecycle").ordinary_builds(compiler) {
        let folder = tempfile::tempdir().expect("there is room for a patched program");
        let patched = table::patch(&build, folder.path(), &[]);
        for (how, status, wanted) in WAYS {
            survives(&build, &patched, how, status, wanted);
        }
    }
}

#[test]
fn gcc() {
    all_ways("gcc");
}

#[test]
fn clang() {
    all_ways("clang");
}

/// Recording into a file system of so many KiB, which fills up.
#[test]
fn a_full_disk_stops_the_recording_and_nothing_else() {
    let Some(build) = Fixture::open("lifecycle").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a program");
    let patched = table::patch(&build, folder.path(), &[]);
    for (size, is_enough) in [(16, false), (300, false), (8192, true)] {
        let small = folder.path().join(format!("disk-{size}"));
        std::fs::create_dir(&small).expect("a temporary folder");
        let script = format!(
            "mount -t tmpfs -o size={size}k none {small} && {ompfuse} record --events task-clock -o {small}/out -- {patched} 10 signals",
            small = small.display(),
            ompfuse = ompfuse_tests::command::path().display(),
            patched = patched.display(),
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--map-root-user", "sh", "-c", &script]);
        let recorded = process::run(process::clean(&mut command, 2));
        if recorded.errors().starts_with("unshare") || recorded.errors().contains("mount:") {
            ompfuse_tests::skip("a full disk: no mount namespace can be made here");
            return;
        }
        let what = format!("{size} KiB: {recorded:?}");
        assert_eq!(recorded.status, 0, "{what}");
        assert!(recorded.text().ends_with("right\n"), "{what}");
        let is_told =
            recorded.errors().contains("could not be") || recorded.errors().contains("No space");
        assert_eq!(is_told, !is_enough, "{what}");
        // What the process said at its end found room.
        assert!(
            size < 100 || !recorded.errors().contains("orderly"),
            "{what}"
        );
    }
}
