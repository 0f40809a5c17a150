//! Recordings of a part of the program's time: `--delay`, `--for`, `--start-paused`, `ctl --pause` and `--resume`.

use super::steady::Steady;
use super::{of, round};
use ompfuse_tests::command;
use ompfuse_tests::table::{self, Xu};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Waits until the recording is held, or not.
fn wait_until(steady: &Steady, held: bool) {
    let begin = Instant::now();
    while steady.ctl(&[])["held"] != held {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "still not held: {held}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The rounds that are on record, of which each has all of its units.
fn check(xus: &[Xu], rounds: RangeInclusive<u64>) {
    let found: BTreeSet<u64> = xus.iter().map(round).collect();
    assert_eq!(found, rounds.collect(), "rounds");
    let tasks = of(xus, "task").count() as u64;
    assert_eq!(tasks, found.len() as u64 * super::steady::TASKS);
}

fn report(steady: &Steady) -> Value {
    command::report(steady.out())
}

#[test]
fn a_recording_begins_when_it_is_resumed() {
    for steady in Steady::all() {
        let flags = [&table::ONE_EVENT[..], &["--delay", "resume"]].concat();
        let mut program = steady.record(2, &flags, &[]);
        program.ask("10");
        assert_eq!(steady.ctl(&[])["held"], true);
        assert_eq!(steady.ctl(&["resume"])["held"], false);
        program.ask("10");
        assert_eq!(steady.ctl(&["pause"])["held"], true);
        program.ask("10");
        let (_, xus) = steady.end(program, 2, &["10", "10", "10"]);
        // Rounds have their ranks whether they are on record or not.
        check(&xus, 11..=20);
        let notes = report(&steady)["notes"].to_string();
        assert!(notes.contains("recorded from "), "{notes}");
        assert!(!table::runs(&steady.out())[0].join("held").exists());
    }
}

#[test]
fn a_recording_begins_after_a_delay_and_ends_after_a_time() {
    for steady in Steady::all() {
        let window = ["--delay", "2s", "--for", "3s"];
        let flags = [&table::ONE_EVENT[..], &window].concat();
        let mut program = steady.record(2, &flags, &[]);
        program.ask("10");
        let early = steady.ctl(&[])["held"] == true;
        wait_until(&steady, false);
        program.ask("10");
        // On a busy machine it may be over.
        let inside = steady.ctl(&[])["held"] == false;
        wait_until(&steady, true);
        program.ask("10");
        let (_, xus) = steady.end(program, 2, &["10", "10", "10"]);
        if early && inside {
            check(&xus, 11..=20);
        } else {
            eprintln!("this machine is too slow for the window: {early} {inside}");
        }
        let rounds: BTreeSet<u64> = xus.iter().map(round).collect();
        assert!(rounds.iter().all(|&r| r <= 20), "{rounds:?}");
        let notes = report(&steady)["notes"].to_string();
        assert!(
            notes.contains("recorded from ") && notes.contains("were not recorded"),
            "{notes}"
        );
    }
}

/// A program that ends before the recording begins, and one of which nobody asked anything.
#[test]
fn nothing_is_on_record_of_a_program_that_ends_before() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    for window in [&["--delay", "1000s"][..], &["--delay", "resume"]] {
        let flags = [&table::ONE_EVENT[..], window].concat();
        let mut program = steady.record(2, &flags, &[]);
        program.ask("3");
        let (said, xus) = steady.end(program, 2, &["3"]);
        assert_eq!(xus, []);
        assert!(said.errors().contains("no region was recorded"), "{said:?}");
        let notes = report(&steady)["notes"].to_string();
        assert!(notes.contains("paused all the time"), "{notes}");
    }
}

/// Processes that start while the recording is held begin held; those that start later don't.
#[test]
fn processes_that_start_later_know() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    let script = "\"$1\" < \"$2\"; \"$3\" ctl \"$4\" resume; \"$1\" < \"$2\"";
    let input = steady.folder.path().join("input");
    std::fs::write(&input, "5\n").expect("there is room");
    let mut record = command::with_threads(2);
    record.args(["record", "--events", "none", "--delay", "resume", "-o"]);
    record
        .arg(steady.out())
        .args(["--", "sh", "-c", script, "sh"]);
    record
        .args([&steady.program, &input])
        .arg(command::path())
        .arg(steady.out());
    let said = ompfuse_tests::process::run(&mut record).ok("record");
    assert!(
        said.errors().contains("those that start will know"),
        "{said:?}"
    );
    let xus = table::export(&table::runs(&steady.out())[0]);
    check(&xus, 1..=5);
}

#[test]
fn placeholders_in_the_folders_name() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    let input = steady.folder.path().join("input");
    std::fs::write(&input, "1\n").expect("there is room");
    let record = |pattern: &str| {
        let mut record = command::with_threads(2);
        let input = std::fs::File::open(&input).expect("it is there");
        record
            .args(["record", "--events", "none", "-o"])
            .arg(steady.folder.path().join(pattern));
        record
            .arg("--")
            .arg(&steady.program)
            .env("NUMBER", "17")
            .stdin(input);
        ompfuse_tests::process::run(&mut record)
    };
    record("a-%q{NUMBER}-%%").ok("record");
    assert_eq!(table::runs(&steady.folder.path().join("a-17-%")).len(), 1);
    record("b-%p-%h").ok("record");
    let listing = std::fs::read_dir(steady.folder.path())
        .expect("it is there")
        .flatten();
    let names: Vec<String> = listing
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("there is one");
    let is_it = |name: &String| {
        let rest = name.strip_prefix("b-").and_then(|n| n.split_once('-'));
        rest.is_some_and(|(pid, h)| pid.parse::<u32>().is_ok() && h == host.trim())
    };
    assert!(names.iter().any(is_it), "{names:?}");
    for (pattern, why) in [
        ("c-%z", "%z is no placeholder"),
        ("c-%q{NONE_SUCH}", "no variable NONE_SUCH"),
    ] {
        let refused = record(pattern);
        assert_eq!(refused.status, 2, "{refused:?}");
        assert!(refused.errors().contains(why), "{refused:?}");
    }
}
