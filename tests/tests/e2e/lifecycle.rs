//! However a process ends, forks or goes on as another program: it behaves as before, and what it did is on record.

use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::table;
use std::path::Path;
use std::process::Command;

/// Ways to end (see the fixture), with the status and the number of XUs that must be on record at least.
const WAYS: [(&str, i32, usize); 10] = [
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
            .all(|x| !x.label.is_empty()),
        "{what}: labels"
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
