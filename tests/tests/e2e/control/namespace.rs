//! A recorded process in a namespace of its own.

use super::of;
use super::steady::{Steady, TASKS};
use ompfuse_tests::dialogue::Dialogue;
use ompfuse_tests::{command, skip};
use std::process::Command;

/// As in a container: the process has another number for itself than for who looks from outside.
#[test]
fn a_process_in_a_namespace_of_its_own_is_found() {
    let unshare = ["-p", "-f", "--mount-proc"];
    let tried = Command::new("unshare").args(unshare).arg("true").output();
    if !tried.is_ok_and(|o| o.status.success()) {
        skip("no namespace can be made here");
        return;
    }
    let Some(steady) = Steady::all().next() else {
        return;
    };
    let mut record = command::with_threads(2);
    record.args(["record", "--events", "none", "-o"]);
    record.arg(steady.out()).arg("--").arg(&steady.program);
    let mut inside = Command::new("unshare");
    inside.args(unshare).arg(record.get_program());
    inside.args(record.get_args());
    let variables = record.get_envs();
    inside.envs(variables.filter_map(|(k, v)| Some((k, v?))));
    let mut dialogue = Dialogue::start(&mut inside);
    assert_eq!(dialogue.hear(), "ready");
    dialogue.ask("3");
    let pid = steady.ctl(&["--disable", "task"])["pid"].clone();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    assert!(status.starts_with("Name:\tsteady\n"), "{status}");
    let number = pid.to_string();
    let by_number = command::json(["ctl", &number, "--format", "json"]);
    assert_eq!(by_number["processes"][0]["pid"], pid);
    command::ok(["watch", &number, "--once"]);
    dialogue.ask("4");
    let (_, xus) = steady.end(dialogue, 2, &["3", "4"]);
    assert_eq!(of(&xus, "task").count() as u64, 3 * TASKS);
}
