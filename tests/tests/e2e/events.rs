//! What can't be counted is said once, with the remedy, and the run goes on.

mod dead;
mod forbidden;
mod multiplexed;
mod refused;
mod stand_in;

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::process;
use ompfuse_tests::{command, skip, table};
use std::path::Path;
use std::process::Command;

/// Number of the user who owns nothing.
const NOBODY: &str = "65534";

/// The kernel's `perf_event_paranoid`: from 2 on, unprivileged users can't count what the kernel does.
fn paranoid() -> Option<i32> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn am_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// A command as an unprivileged user.
fn unprivileged(program: &Path) -> Command {
    if !am_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .arg(program);
    command
}

/// Lets everybody into a folder.
fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777))
        .expect("the folder is ours");
}

#[test]
fn without_privileges_the_run_goes_on() {
    match paranoid() {
        Some(2..) => {}
        other => {
            return skip(&format!(
                "perf_event_paranoid is {other:?}: everybody may count everything"
            ));
        }
    }
    let Some(build) = Fixture::open("knapsack").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a recording");
    open_to_all(folder.path());
    let ompfuse = folder.path().join("ompfuse");
    std::fs::copy(command::path(), &ompfuse).expect("there is room for a copy");
    let patched = table::patch(&build, folder.path(), &[]);

    let mut command = unprivileged(&ompfuse);
    process::clean(&mut command, 2)
        .env("HOME", folder.path())
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .current_dir(folder.path());
    command
        .args([
            "record",
            "--events",
            "task-clock,context-switches",
            "-o",
            "runs",
            "--",
        ])
        .arg(&patched);
    let output = process::run(&mut command);
    assert_eq!(output.status, 0, "{output:?}");
    assert!(output.text().ends_with("\nright\n"), "{output:?}");
    let about: Vec<String> = output
        .errors()
        .lines()
        .filter(|l| l.contains("context-switches"))
        .map(str::to_owned)
        .collect();
    assert_eq!(about.len(), 1, "said once: {output:?}");
    assert!(
        about[0].contains("perf_event_paranoid") || about[0].contains("CAP_PERFMON"),
        "with the remedy: {about:?}"
    );

    let runs = table::runs(&folder.path().join("runs"));
    assert_eq!(runs.len(), 1, "{output:?}");
    let xus = table::export(&runs[0]);
    let counted = |event: &str| {
        xus.iter()
            .any(|x| x.columns.get(event).is_some_and(|c| !c.is_empty()))
    };
    assert!(counted("task-clock"), "what can be counted is");
    assert!(
        !counted("context-switches"),
        "what can't be counted is not 0 but nothing"
    );
    assert!(
        xus.iter().any(|x| x.number("task-clock") > 0),
        "task-clock counts"
    );
}

#[test]
fn every_event_is_available_or_has_a_reason() {
    let events = command::json(["events", "--format", "json"]);
    let list = events
        .get("events")
        .unwrap_or(&events)
        .as_array()
        .expect("a list of events")
        .clone();
    assert!(list.len() >= 8, "{list:?}");
    for event in &list {
        let text = event.to_string();
        let available = event.get("available").and_then(serde_json::Value::as_bool);
        let reason = event.get("reason").and_then(serde_json::Value::as_str);
        assert_eq!(available, Some(reason.is_none()), "{text}");
    }
}

/// Where the processor counts: a task's instructions are its own, and what is added at its edges is little and the same for all.
#[test]
fn instructions_are_those_of_the_task() {
    const ROUNDS: u64 = 100_000;
    let events = command::json(["events", "--format", "json"]);
    let list = events["events"].as_array().expect("a list of events");
    let counts = |name| {
        list.iter()
            .any(|e| e["name"] == name && e["available"] == true)
    };
    if !(counts("instructions") && counts("branches")) {
        // No skip: a machine without counters can't be made to have them.
        println!("no hardware counters here: their accuracy is not tested");
        return;
    }
    for compiler in ["gcc", "clang"] {
        for build in Fixture::open("counted").ordinary_builds(compiler) {
            let folder = tempfile::tempdir().expect("there is room for a recording");
            let patched = table::patch(&build, folder.path(), &[]);
            let out = folder.path().join("runs");
            let flags = ["--events", "instructions,branches"];
            table::record(&patched, &[], 2, &out, &flags).ok("record");
            let run = table::runs(&out).remove(0);
            let xus = table::export(&run);
            let report = command::report(&run);
            // The rank among its siblings is the label's last number but one.
            let rank = |label: &str| -> u64 {
                let mut parts = label.rsplit('.').skip(1);
                parts.next().and_then(|r| r.parse().ok()).expect("a rank")
            };
            let tasks: Vec<_> = xus.iter().filter(|x| x.construct == "task").collect();
            assert_eq!(tasks.len(), 8, "{build}");
            for (event, per_round) in [("instructions", 2), ("branches", 1)] {
                let added: Vec<u64> = tasks
                    .iter()
                    .map(|task| {
                        let own = per_round * ROUNDS * rank(&task.label);
                        let counted = task.number(event);
                        counted.checked_sub(own).unwrap_or_else(|| {
                            panic!("{build}: {event} {counted}, at least {own} executed")
                        })
                    })
                    .collect();
                // The kernel's interrupts are counted where that is allowed: on a busy machine most tasks have more.
                let usual = *added.iter().min().expect("there are tasks");
                assert!(usual < 20_000, "{build}: {event} {added:?}");
                // And it is said how many they are, near enough for any construct.
                let states = report["events"].as_array().expect("a list of events");
                let state = states.iter().find(|e| e["name"] == event);
                let said = state.and_then(|e| e["probe_inside"].as_u64());
                let said = said.unwrap_or_else(|| panic!("{build}: {states:?}"));
                assert!(
                    said.abs_diff(usual) <= usual / 2,
                    "{build}: {event} {said} {added:?}"
                );
            }
        }
    }
}

/// The lower half of a process's descriptors is the program's. Threads that find no room above have no counts, nor has what they
/// had a part in.
#[test]
fn threads_without_room_for_counters_count_nothing() {
    let folder = tempfile::tempdir().expect("there is room");
    let out = folder.path().join("out");
    let mut record = command::with_threads(12);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 64; exec \"$@\"", "sh"]);
    limited.arg(record.get_program());
    for (name, value) in record.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    record = limited;
    record.args([
        "record",
        "--events",
        "task-clock,page-faults,minor-faults",
        "-o",
    ]);
    record
        .arg(&out)
        .arg("--")
        .arg(stand_in::program())
        .arg("20");
    let recorded = process::run(&mut record).ok("record");
    assert!(recorded.text().ends_with("right\n"), "{recorded:?}");
    let run = table::runs(&out).remove(0);
    let report = ["report".into(), run, "--format".into(), "json".into()];
    let report = command::json(report);
    let notes = report["notes"].to_string();
    assert!(notes.contains("no event was counted in "), "{notes}");
    let regions = report["regions"].as_array().expect("a list");
    let parallel = regions.iter().find(|r| r["construct"] == "parallel");
    let parallel = parallel.expect("the program has a region");
    assert_eq!(parallel["spread"]["threads"], 12);
    assert!(parallel["events"]["task-clock"].is_null(), "{parallel}");
}
