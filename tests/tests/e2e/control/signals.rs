//! SIGUSR1: it reloads, unless it is the program's.

use super::steady::{ITERATIONS, Steady, TASKS};
use super::{iterations, of};
use ompfuse_tests::{process, table};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

pub(super) fn send_usr1(pid: &Value) {
    process::run(Command::new("kill").args(["-USR1", &pid.to_string()])).ok("kill");
}

#[test]
fn a_signal_reloads_unless_it_is_the_programs() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    let file = steady.folder.path().join("control");
    let write = |text: &str| std::fs::write(&file, text).expect("a file can be written");
    let flags = [
        "--events",
        "task-clock",
        "--control",
        file.to_str().expect("text"),
    ];

    write("# nothing yet\n");
    let mut dialogue = steady.record(2, &flags, &[]);
    dialogue.ask("5");
    write("select task\n");
    let pid = steady.ctl(&[])["pid"].clone();
    send_usr1(&pid);
    let started = Instant::now();
    while steady.ctl(&[])["regions_off"] == 0 {
        assert!(started.elapsed() < process::LIMIT, "nobody reloads");
        std::thread::sleep(Duration::from_millis(20));
    }
    dialogue.ask("5");
    let (output, xus) = steady.end(dialogue, 2, &["5", "5"]);
    assert_eq!(of(&xus, "task").count() as u64, 10 * TASKS);
    assert_eq!(iterations(&xus), 5 * ITERATIONS);
    assert!(
        output.errors().contains("control is in effect now"),
        "{output:?}"
    );

    // The program handles the signal: it gets it, and nothing is reloaded.
    let mut dialogue = steady.record(2, &flags, &["own"]);
    send_usr1(&steady.ctl(&[])["pid"]);
    assert!(dialogue.ask("5").ends_with(" 1 signals"));
    assert_eq!(steady.ctl(&[])["regions_off"], 0);
    dialogue.ask("5");
    let output = dialogue.end();
    let xus = table::export(&table::runs(&steady.out())[0]);
    assert_eq!(
        of(&xus, "range").count() as u64,
        10 * ITERATIONS / 16,
        "{output:?}"
    );

    // Nobody has asked for it: the signal ends the program, as it does without us.
    let dialogue = steady.record(2, &table::ONE_EVENT, &[]);
    send_usr1(&steady.ctl(&[])["pid"]);
    assert_eq!(dialogue.end().status, 128 + 10);
}

/// Who has started the command knows no other process.
#[test]
fn a_signal_that_the_command_gets_is_the_programs() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    let mut dialogue = steady.record(2, &table::ONE_EVENT, &["own"]);
    send_usr1(&dialogue.pid().into());
    let started = Instant::now();
    while !dialogue.ask("1").ends_with(" 1 signals") {
        assert!(started.elapsed() < process::LIMIT, "it doesn't come");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(dialogue.end().status, 0);
    // A program without a handler is ended by it, as it is without us.
    let dialogue = steady.record(2, &table::ONE_EVENT, &[]);
    send_usr1(&dialogue.pid().into());
    let ended = dialogue.ended(); // the end of its input could overtake the signal
    assert_eq!(ended.status, 128 + 10, "{ended:?}");
    assert!(ended.errors().contains("failed: signal 10"), "{ended:?}");
}
