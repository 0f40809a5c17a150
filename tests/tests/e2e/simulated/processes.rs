//! The simulator with several threads, processes, event sets, and without what it needs.

use super::{CODE, can_simulate, checked, record};
use ompfuse_tests::dialogue::Dialogue;
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, repository, table};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A slot is used again when its thread has ended, and a child process has slots of its own: the same task counts the same.
#[test]
fn threads_and_children_have_counts_of_their_own() {
    if !can_simulate() {
        return;
    }
    for build in Fixture::open("lifecycle").ordinary_builds("gcc") {
        for (way, at_least) in [("threads", 20), ("fork", 20)] {
            let folder = tempfile::tempdir().expect("there is room for a recording");
            let patched = table::patch(&build, folder.path(), &[]);
            record(&patched, &["50", way], 3, folder.path(), "1").ok(way);
            let xus = checked(&build, &table::runs(folder.path())[0]);
            assert!(xus.len() >= at_least, "{build} {way}: {} XUs", xus.len());
            let mut counts: BTreeMap<(&str, u64), BTreeMap<Vec<u64>, usize>> = BTreeMap::new();
            for xu in xus.iter().filter(|x| x.construct == "task") {
                let rank = xu.label.rsplit('.').nth(1).and_then(|r| r.parse().ok());
                let of_xu = CODE.iter().map(|e| xu.number(e)).collect();
                let key = (xu.columns["type"].as_str(), rank.expect("a rank"));
                *counts.entry(key).or_default().entry(of_xu).or_default() += 1;
            }
            let different: Vec<_> = counts.iter().filter(|(_, c)| c.len() > 1).collect();
            assert!(different.is_empty(), "{build} {way}: {different:?}");
        }
    }
}

/// A program that another one becomes runs without simulator: it has no counts, and that is said.
#[test]
fn what_is_not_simulated_has_no_counts() {
    if !can_simulate() {
        return;
    }
    for build in Fixture::open("lifecycle").ordinary_builds("gcc") {
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let patched = table::patch(&build, folder.path(), &[]);
        let output = record(&patched, &["50", "exec"], 2, folder.path(), "1").ok("exec");
        assert!(
            output
                .errors()
                .contains("only the program that the command starts runs under the simulator"),
            "{output:?}"
        );
        let xus = table::export(&table::runs(folder.path())[0]);
        let (with, without): (Vec<_>, Vec<_>) = xus
            .iter()
            .partition(|x| !x.columns["sim-instructions"].is_empty());
        assert!(!with.is_empty() && !without.is_empty(), "{build}: {xus:?}");
    }
}

/// The command in an environment whose PATH is this folder.
fn with_path(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(command::path());
    process::run(
        process::clean(&mut command, 2)
            .env("PATH", folder)
            .current_dir(folder)
            .args(args),
    )
}

#[test]
fn what_is_missing_is_said_with_the_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let Some(build) = Fixture::open("knapsack").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a file");
    let program = build.path.to_str().expect("a path of text");
    let refused = |flags: &[&str], word: &str| {
        let args = [&["record", "--simulate"], flags].concat();
        let output = with_path(folder.path(), &args);
        assert_eq!(output.status, 1, "{output:?}");
        assert_eq!(output.errors().lines().count(), 1, "{output:?}");
        assert!(output.errors().contains(word), "{word}: {output:?}");
        assert!(!folder.path().join("ompfuse-out").exists(), "{output:?}");
    };
    refused(&["--", program], "apt-get install qemu-user");
    refused(
        &["--events", "cycles", "--", program],
        "the simulator does not count `cycles`",
    );
    // One that knows no plugins.
    let qemu = folder.path().join("qemu-x86_64");
    std::fs::write(
        &qemu,
        "#!/bin/sh\necho 'unknown option -plugin' >&2\nexit 1\n",
    )
    .expect("a file");
    std::fs::set_permissions(&qemu, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    refused(&["--", program], "unknown option -plugin");
    refused(&["--", program], "apt-get install qemu-user");

    let output = with_path(
        folder.path(),
        &["record", "--events", "sim-loads", "--", program],
    );
    assert!(
        output.status == 1 && output.errors().contains("record with --simulate"),
        "{output:?}"
    );
    let wrong = with_path(
        folder.path(),
        &["record", "--simulate=l9=1/1", "--", program],
    );
    assert!(
        wrong.status == 2 && wrong.errors().contains("no model is called"),
        "{wrong:?}"
    );
}

/// Event sets take turns under the simulator too: each execution unit has the counts of one of them, all of them.
#[test]
fn event_sets_take_turns() {
    if !can_simulate() {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a program");
    let (program, out) = (folder.path().join("steady"), folder.path().join("out"));
    let mut compile = Command::new("gcc");
    compile
        .args(["-O2", "-g", "-fopenmp"])
        .arg(repository().join("fixtures/behaviour/steady.c"));
    process::run(compile.arg("-o").arg(&program)).ok("the compiler");
    let events = [
        "sim-instructions",
        "sim-loads",
        "sim-stores",
        "sim-branches",
    ];
    let mut record = command::with_threads(2);
    record
        .args(["record", "--simulate", "--slots", "2", "--rotate", "3"])
        .args(["--events", &events.join(","), "-o"])
        .arg(&out);
    let mut dialogue = Dialogue::start(record.arg("--").arg(&program));
    assert_eq!(dialogue.hear(), "ready");
    dialogue.ask("12");
    dialogue.end().ok("record");
    let xus = table::export(&table::runs(&out)[0]);
    let mut with: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    for xu in &xus {
        let has = |event: &&&str| xu.columns.get(**event).is_some_and(|c| !c.is_empty());
        *with
            .entry(events.iter().filter(has).copied().collect())
            .or_default() += 1;
        if xu.construct == "range" && !xu.columns["sim-instructions"].is_empty() {
            // 16 times the same work.
            assert!(xu.number("sim-instructions") > 1000, "{xu:?}");
        }
    }
    assert!(xus.len() >= 90, "{with:?}");
    assert_eq!(
        with.keys().map(Vec::as_slice).collect::<Vec<_>>(),
        [&events[..2], &events[2..]],
        "{with:?}"
    );
}

/// Scripts are not for qemu.
#[test]
fn scripts_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    if !can_simulate() {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a file");
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\n").expect("a file");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let output = table::record(&script, &[], 2, &folder.path().join("out"), &["--simulate"]);
    assert!(
        output.status == 1 && output.errors().contains("it is no x86-64 program"),
        "{output:?}"
    );
}
