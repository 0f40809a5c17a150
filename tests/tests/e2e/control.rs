//! What is changed while a program runs: `ompfuse ctl`, event sets in turn, SIGUSR1.

mod namespace;
mod random;
mod refused;
mod signals;
mod simulated;
pub(crate) mod steady;
mod watching;
mod window;

use ompfuse_tests::command;
use ompfuse_tests::process;
use ompfuse_tests::table::{self, Xu};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;
use steady::{ITERATIONS, Steady, TASKS};

/// The round that an XU belongs to: the rank of its parallel region in the program.
fn round(xu: &Xu) -> u64 {
    let rank = xu.label.split('.').nth(1).and_then(|r| r.parse().ok());
    rank.unwrap_or_else(|| panic!("no rank in {}", xu.label))
}

/// Number of regions that are off.
fn off(state: &Value) -> u64 {
    state["regions_off"].as_u64().expect("a number")
}

fn iterations(xus: &[Xu]) -> u64 {
    of(xus, "range").map(|x| x.number("iterations")).sum()
}

fn of<'a>(xus: &'a [Xu], construct: &'a str) -> impl Iterator<Item = &'a Xu> {
    xus.iter().filter(move |x| x.construct == construct)
}

#[test]
fn regions_are_switched_off_and_on() {
    for steady in Steady::all() {
        let mut all = steady.record(2, &table::ONE_EVENT, &[]);
        all.ask("40");
        let (_, expected) = steady.end(all, 2, &["40"]);

        let mut changed = steady.record(2, &table::ONE_EVENT, &[]);
        changed.ask("10");
        assert!(off(&steady.ctl(&["--disable", "task"])) > 0);
        changed.ask("10");
        let state = steady.ctl(&["--disable", "lib:steady:loop", "--enable", "task"]);
        assert_eq!(off(&state), 1, "{state}");
        changed.ask("10");
        assert_eq!(off(&steady.ctl(&["--enable", "loop"])), 0);
        changed.ask("10");
        let (_, xus) = steady.end(changed, 2, &["10", "10", "10", "10"]);

        // What is recorded has the labels that it always has.
        let labels = |xus: &[Xu], construct: &str, off: u64| -> BTreeSet<String> {
            let kept = of(xus, construct).filter(|x| (round(x) - 1) / 10 != off);
            kept.map(|x| x.label.clone()).collect()
        };
        for (construct, off, count) in [("task", 1, 30 * TASKS), ("range", 2, 30 * ITERATIONS / 16)]
        {
            let recorded = labels(&xus, construct, 9);
            assert_eq!(recorded, labels(&expected, construct, off), "{construct}");
            assert_eq!(recorded.len() as u64, count, "{construct}");
        }
        // And nothing else takes the others' time.
        let run = &table::runs(&steady.out())[0];
        let report = accounts_balance(run);
        let accounts = report["accounting"].as_array().expect("a list of threads");
        let left_out = accounts
            .iter()
            .any(|a| a["unrecorded_ticks"].as_u64() > Some(0));
        assert!(left_out, "{accounts:?}");
        let notes = report["notes"].to_string();
        assert!(notes.contains("regions were switched off"), "{notes}");
    }
}

/// The parts of the only parallel region's overhead: how often each was met.
fn parts(run: &Path) -> (Value, BTreeMap<String, u64>) {
    let report = command::report(run);
    let overheads = report["overheads"].as_array().expect("a list of regions");
    assert_eq!(overheads.len(), 1, "{overheads:?}");
    let overhead = overheads[0].clone();
    let parts = overhead["parts"].as_array().expect("a list of parts");
    let part = |p: &Value| {
        let what = p["what"].as_str().expect("a name").to_owned();
        (what, p["count"].as_u64().expect("a number"))
    };
    let parts = parts.iter().map(part).collect();
    (overhead, parts)
}

#[test]
fn overheads_are_those_of_recorded_executions() {
    for steady in Steady::all() {
        let mut few = steady.record(2, &table::ONE_EVENT, &[]);
        few.ask("20");
        steady.end(few, 2, &["20"]);
        let (all, expected) = parts(&table::runs(&steady.out())[0]);
        assert!(
            all["work_s"].is_number() && all["incomplete"].is_null(),
            "{all}"
        );

        // What happens in regions that are off is on record, but isn't compared with the others' time.
        let mut changed = steady.record(2, &table::ONE_EVENT, &[]);
        changed.ask("20");
        steady.ctl(&["--disable", "parallel"]);
        changed.ask("400");
        let (_, xus) = steady.end(changed, 2, &["20", "400"]);
        assert_eq!(iterations(&xus), 420 * ITERATIONS);
        let (changed, found) = parts(&table::runs(&steady.out())[0]);
        assert_eq!(found, expected, "{changed}");
        assert_eq!(changed["executions"], 20, "{changed}");
        assert!(changed["work_s"].is_null(), "{changed}");
        let told = changed["incomplete"].as_str().unwrap_or_default();
        assert!(told.contains("switched off meanwhile"), "{changed}");

        // What is left out in recorded ones is known, and is not work.
        let mut sampled = steady.record(
            2,
            &[&table::ONE_EVENT[..], &["--units", "every=7"]].concat(),
            &[],
        );
        sampled.ask("20");
        steady.end(sampled, 2, &["20"]);
        let (sampled, mut found) = parts(&table::runs(&steady.out())[0]);
        assert!(sampled["work_s"].is_number(), "{sampled}");
        for (what, count) in &expected {
            // Of those that are left out it is not known which share of the time is the exit's.
            let found = found.remove(what).unwrap_or(0);
            assert!(
                found == *count || what.ends_with("-exit") && found < *count,
                "{what}: {sampled}"
            );
        }
        assert!(found.is_empty(), "{sampled}");
    }
}

/// Threads look at what holds for a region at any moment, also while it is being changed.
#[test]
fn a_reload_is_taken_over_as_a_whole() {
    for steady in Steady::all() {
        let file = steady.folder.path().join("without-tasks");
        std::fs::write(&file, "disable task\n").expect("a file can be written");
        let reload = ["--reload", file.to_str().expect("text")];
        let mut recorded = steady.record(2, &table::ONE_EVENT, &[]);
        // Modules that are loaded when the program starts are there by now.
        assert!(off(&steady.ctl(&reload)) > 0);
        recorded.tell("3000");
        for _ in 0..100 {
            steady.ctl(&reload);
        }
        recorded.hear();
        let (_, xus) = steady.end(recorded, 2, &["3000"]);
        assert_eq!(iterations(&xus), 3000 * ITERATIONS);
        assert_eq!(of(&xus, "task").count(), 0);
    }
}

/// The events that an XU has counts of.
fn counted(xu: &Xu) -> Vec<&str> {
    let events = ["task-clock", "page-faults", "minor-faults"];
    let has = |e: &&str| xu.columns.get(*e).is_some_and(|c| !c.is_empty());
    events.into_iter().filter(has).collect()
}

#[test]
fn event_sets_take_turns() {
    const N: u64 = 3;
    let sets = ["task-clock", "page-faults"];
    let flags = [
        "--events",
        "task-clock,page-faults",
        "--slots",
        "1",
        "--rotate",
        "3",
    ];
    for steady in Steady::all() {
        for threads in [1, 2] {
            let mut dialogue = steady.record(threads, &flags, &[]);
            dialogue.ask("12");
            let (_, xus) = steady.end(dialogue, threads, &["12"]);
            assert_eq!(iterations(&xus), 12 * ITERATIONS);
            assert_eq!(of(&xus, "task").count() as u64, 12 * TASKS);
            // Every thread is in every loop, so the loop's instances on it are the rounds.
            for range in of(&xus, "range") {
                let set = (round(range) - 1) / N % 2;
                assert_eq!(counted(range), [sets[set as usize]], "{}", range.label);
            }
            // Of one long run a profile that has all events.
            let run = &table::runs(&steady.out())[0];
            let profile = steady.folder.path().join("turns.parquet");
            let mut combine = command::with_threads(2);
            combine
                .args(["combine", "--strategy", "instances", "-o"])
                .arg(&profile)
                .arg(run);
            process::run(&mut combine).ok("combine");
            let whole = table::export(&profile);
            assert!(whole.iter().all(|x| counted(x) == sets), "{:?}", whole[0]);
            assert_eq!(iterations(&whole), 6 * ITERATIONS);
            let mut tasks: Vec<&Xu> = of(&xus, "task").collect();
            assert!(tasks.iter().all(|t| counted(t).len() == 1));
            if threads == 1 {
                // clang makes several places of the one in the source.
                tasks.sort_by_key(|t| t.number("start_ns"));
                let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
                for task in tasks {
                    let nth = seen.entry(&task.columns["type"]).or_default();
                    let set = sets[(*nth / N % 2) as usize];
                    assert_eq!(counted(task), [set], "{}", task.label);
                    *nth += 1;
                }
            }
        }
    }
}

#[test]
fn event_sets_are_changed_everywhere_or_in_some_regions() {
    for steady in Steady::all() {
        let mut dialogue = steady.record(2, &table::ONE_EVENT, &[]);
        dialogue.ask("4");
        steady.ctl(&["--events", "page-faults", "--select", "loop"]);
        dialogue.ask("4");
        let state = steady.ctl(&["--events", "minor-faults"]);
        let sets = ["task-clock", "page-faults", "minor-faults"];
        assert_eq!(state["sets"], serde_json::json!(sets));
        dialogue.ask("4");
        let state = steady.ctl(&["--events", "default", "--select", "loop"]);
        assert_eq!(state["set"], 2, "{state}");
        dialogue.ask("4");
        let state = steady.ctl(&["--events", "default"]);
        assert_eq!(state["set"], 0, "{state}");
        dialogue.ask("4");
        let (_, xus) = steady.end(dialogue, 2, &["4"; 5]);
        for (construct, expected) in [("range", [0, 1, 1, 2, 0]), ("task", [0, 0, 2, 2, 0])] {
            assert!(of(&xus, construct).count() > 40);
            for xu in of(&xus, construct) {
                let part = (round(xu) - 1) / 4;
                assert_eq!(counted(xu), [sets[expected[part as usize]]], "{}", xu.label);
            }
        }
    }
}

/// Anything, at any moment: the program doesn't notice, and what is recorded is right.
#[test]
fn changes_at_random_moments() {
    for steady in Steady::all() {
        let mut dialogue = steady.record(2, &table::ONE_EVENT, &[]);
        // As many rounds as a change takes.
        let started = Instant::now();
        dialogue.ask("40");
        let each = started.elapsed().as_secs_f64() / 40.0;
        let some = ((0.02 / each) as u64).clamp(20, 2000);
        let mut input = vec!["40".to_owned()];
        let options: [&[&str]; 10] = [
            &["--disable", "task"],
            &["--enable", "task"],
            &["--disable", "loop", "--disable", "parallel"],
            &["--enable", "parallel", "--enable", "loop"],
            &["--events", "page-faults"],
            &["--events", "default"],
            &[
                "--events",
                "task-clock",
                "--events",
                "minor-faults",
                "--rotate",
                "2",
            ],
            &["--events", "page-faults,minor-faults", "--select", "task"],
            &["--events", "default", "--select", "task"],
            &["--rotate", "0"],
        ];
        let (mut random, mut changes) = (12345u64, 0);
        for _ in 0..40 {
            input.push(some.to_string());
            dialogue.tell(&input[input.len() - 1]);
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let option = options[(random >> 33) as usize % options.len()];
            let mut ctl = command::with_threads(1);
            ctl.arg("ctl").arg(steady.out()).args(option);
            changes += u64::from(process::run(&mut ctl).status == 0);
            dialogue.hear();
        }
        assert!(changes > 10, "{changes} changes");
        let rounds = 40 + 40 * some;
        let input: Vec<&str> = input.iter().map(String::as_str).collect();
        let (_, xus) = steady.end(dialogue, 2, &input);
        let labels: BTreeSet<&str> = xus.iter().map(|x| x.label.as_str()).collect();
        assert_eq!(labels.len(), xus.len(), "every label is there once");
        assert!(!labels.contains(""), "every XU has one");
        for (construct, most) in [
            ("task", rounds * TASKS),
            ("range", rounds * ITERATIONS / 16),
        ] {
            let recorded = of(&xus, construct).count() as u64;
            assert!((1..=most).contains(&recorded), "{construct}: {recorded}");
        }
        // Each count belongs to one of the sets that there were.
        let sets: [&[&str]; 4] = [
            &["task-clock"],
            &["page-faults"],
            &["minor-faults"],
            &["page-faults", "minor-faults"],
        ];
        for xu in &xus {
            let counted = counted(xu);
            assert!(sets.contains(&&counted[..]), "{}: {counted:?}", xu.label);
        }
        let run = &table::runs(&steady.out())[0];
        let profile = steady.folder.path().join("all.parquet");
        command::ok([
            "combine".as_ref(),
            run.as_os_str(),
            "-o".as_ref(),
            profile.as_os_str(),
        ]);
        accounts_balance(run);
    }
}

/// The time of each thread of a run adds up. Returns the report.
fn accounts_balance(run: &Path) -> serde_json::Value {
    let report = command::report(run);
    let accounts = report["accounting"]
        .as_array()
        .expect("a list of threads")
        .clone();
    assert!(
        !accounts.is_empty() && accounts.iter().all(|a| a["balanced"] == true),
        "{accounts:?}"
    );
    report
}
