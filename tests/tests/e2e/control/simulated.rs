//! Under the simulated PMU event sets are changed as elsewhere.

use super::steady::{Steady, TASKS};
use super::{of, round};
use crate::simulated::can_simulate;
use ompfuse_tests::command;
use ompfuse_tests::table::Xu;

/// What is changed between, so many rounds each.
const ROUNDS: u64 = 4;

/// The simulated events that an XU has counts of.
fn counted(xu: &Xu) -> Vec<&str> {
    let columns = xu.columns.iter();
    let has = columns.filter(|(name, count)| name.starts_with("sim-") && !count.is_empty());
    has.map(|(name, _)| name.as_str()).collect()
}

#[test]
fn simulated_event_sets_are_changed_and_take_turns() {
    if !can_simulate() {
        return;
    }
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    // The same, with all of it counted throughout.
    let rounds = ROUNDS.to_string();
    let rounds = rounds.as_str();
    let mut whole = steady.record(2, &["--simulate"], &[]);
    (0..5).for_each(|_| drop(whole.ask(rounds)));
    let (_, whole) = steady.end(whole, 2, &[rounds; 5]);

    let first = ["--simulate", "--events", "sim-instructions"];
    let mut dialogue = steady.record(2, &first, &[]);
    dialogue.ask(rounds);
    steady.ctl(&["--events", "sim-loads,sim-stores", "--select", "loop"]);
    dialogue.ask(rounds);
    let state = steady.ctl(&["--events", "sim-branches"]);
    let sets = ["sim-instructions", "sim-loads,sim-stores", "sim-branches"];
    assert_eq!(state["sets"], serde_json::json!(sets));
    // What the simulator doesn't count is refused, and nothing is changed.
    let out = steady.out();
    for (list, why) in [
        ("task-clock", "is recorded with --simulate"),
        ("sim-loads,cycles", "the simulator does not count `cycles`"),
    ] {
        let refused = command::run(["ctl".into(), out.clone(), "--events".into(), list.into()]);
        assert_eq!(refused.status, 1, "{refused:?}");
        assert!(refused.errors().contains(why), "{refused:?}");
    }
    assert_eq!(steady.ctl(&[])["set"], state["set"]);
    dialogue.ask(rounds);
    steady.ctl(&["--events", "default", "--select", "loop"]);
    steady.ctl(&["--events", "default"]);
    dialogue.ask(rounds);
    steady.ctl(&[
        "--events",
        "sim-instructions",
        "--events",
        "sim-calls",
        "--rotate",
        "2",
    ]);
    dialogue.ask(rounds);
    let (_, xus) = steady.end(dialogue, 2, &[rounds; 5]);

    assert_eq!(of(&xus, "task").count() as u64, 5 * ROUNDS * TASKS);
    let (one, two, three) = (
        &["sim-instructions"][..],
        &["sim-loads", "sim-stores"],
        &["sim-branches"],
    );
    for (construct, expected) in [
        ("range", [one, two, two, one]),
        ("task", [one, one, three, one]),
    ] {
        for xu in of(&xus, construct) {
            let part = (round(xu) - 1) / ROUNDS;
            match expected.get(part as usize) {
                Some(set) => assert_eq!(counted(xu), *set, "{}", xu.label),
                // In turn: every thread is in every loop, so a loop's instances on it are the rounds.
                None if construct == "range" => {
                    let nth = (round(xu) - 1) % ROUNDS / 2;
                    let turn = ["sim-instructions", "sim-calls"][nth as usize];
                    assert_eq!(counted(xu), [turn], "{}", xu.label);
                }
                None => assert_eq!(counted(xu).len(), 1, "{}", xu.label),
            }
        }
    }
    // No count was given to the wrong set: a task counts what it counts where nothing was changed.
    let mut compared = 0;
    for xu in of(&xus, "task") {
        let same = of(&whole, "task").find(|w| w.label == xu.label);
        let same = same.unwrap_or_else(|| panic!("no {} without changes", xu.label));
        for event in counted(xu) {
            assert_eq!(xu.number(event), same.number(event), "{} {event}", xu.label);
            compared += 1;
        }
    }
    assert_eq!(compared, 5 * ROUNDS * TASKS);
}

#[test]
fn simulated_events_need_the_simulator() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    let mut dialogue = steady.record(2, &ompfuse_tests::table::ONE_EVENT, &[]);
    dialogue.ask("1");
    let events = ["--events".into(), "sim-loads".into()];
    let args = ["ctl".into(), steady.out()].into_iter().chain(events);
    let refused = command::run(args);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.errors().contains("record it with --simulate"));
    assert_eq!(refused.errors().lines().count(), 1, "{refused:?}");
    drop(dialogue.end());
}
