//! From baselines to curves.

use super::{Basis, History, HistoryError, Named, Wanted, history};
use crate::compare::statistics::tests::side;
use crate::compare::{Commit, Machine, Pace, Quantity};
use crate::words;

fn instructions() -> Quantity {
    Quantity::Event("sim-instructions".to_owned())
}

/// A baseline of a commit, which is called by its number.
fn baseline(n: usize, total: &[(Quantity, &[f64])]) -> Named {
    let mut side = side(1, total, vec![]);
    side.origin.commit = Some(Commit {
        hash: format!("c{n}"),
        branch: None,
        date: Some(format!(
            "2026-{:02}-{:02}T00:00:00Z",
            9 + n / 28,
            n % 28 + 1
        )),
        is_changed: false,
    });
    Named {
        name: format!("c{n}"),
        side,
    }
}

fn of(baselines: &[Named]) -> History {
    history(baselines, &Wanted::default()).expect("a history")
}

/// The commits with changes of the first curve.
fn changes(history: &History) -> Vec<u32> {
    let curve = &history.series[0].curves[0];
    curve.changes.iter().map(|c| c.at).collect()
}

#[test]
fn each_difference_of_exact_counts_is_a_change_but_for_a_few_instructions() {
    let counts = [1e7, 1e7, 1e7 + 40.0, 1e7, 1.01e7, 1.01e7, 1e7];
    let all: Vec<Named> = (0..7)
        .map(|n| baseline(n, &[(instructions(), &[counts[n]])]))
        .collect();
    let found = of(&all);
    assert_eq!(changes(&found), [4, 6]);
    let curve = &found.series[0].curves[0];
    assert_eq!(curve.basis, Basis::Exact);
    let worse: Vec<_> = curve.changes.iter().map(|c| c.is_worse).collect();
    assert_eq!(worse, [Some(true), Some(false)]);
    assert!(found.got_worse_within(3) && !found.got_worse_within(2));
    // The order of the files doesn't matter.
    let reversed: Vec<Named> = all.iter().rev().cloned().collect();
    assert_eq!(of(&reversed), found);
}

#[test]
fn a_count_that_always_differs_depends_on_timing() {
    let units: Vec<f64> = (0..30).map(|n| f64::from(1000 + n * 7919 % 23)).collect();
    let all: Vec<Named> = (0..30)
        .map(|n| baseline(n, &[(Quantity::Units, &units[n..=n])]))
        .collect();
    let found = of(&all);
    assert!(changes(&found).is_empty());
    assert!(matches!(found.series[0].curves[0].basis, Basis::Tested(_)));
}

#[test]
fn a_commit_without_a_value_may_have_the_change() {
    let count = |n, count: f64| baseline(n, &[(instructions(), &[count])]);
    let other = |n| baseline(n, &[(Quantity::Units, &[5.0])]);
    let all = [count(0, 100.0), other(1), other(2), count(3, 200.0)];
    let found = of(&all);
    let curves = &found.series[0].curves;
    let curve = curves.iter().find(|c| c.quantity == instructions());
    let change = &curve.expect("a curve").changes[0];
    assert_eq!((change.earliest, change.at, change.latest), (1, 3, 3));
}

#[test]
fn machines_are_apart_and_baselines_of_a_commit_together() {
    let on = |n: usize, machine: &str, wall: f64| {
        let mut named = baseline(n, &[(Quantity::Wall, &[wall])]);
        named.side.origin.machine = Machine {
            processor: Some(machine.to_owned()),
            ..Machine::default()
        };
        named
    };
    let all = [
        on(0, "A", 1.0),
        on(0, "A", 4.0),
        on(1, "A", 2.0),
        on(1, "B", 9.0),
    ];
    let found = of(&all);
    assert_eq!(
        (found.commits, found.machines.len(), found.series.len()),
        (2, 2, 2)
    );
    let rounded = |v: &Option<f64>| v.map(|v| v.round());
    let values: Vec<Vec<_>> = (found.series.iter())
        .map(|s| s.curves[0].values.iter().map(rounded).collect())
        .collect();
    assert!(values.contains(&vec![Some(2.0), Some(2.0)]), "{values:?}");
    assert!(values.contains(&vec![Some(9.0)]), "{values:?}");
    assert!(
        found
            .series
            .iter()
            .all(|s| s.curves[0].basis == Basis::TooFew)
    );
}

#[test]
fn what_is_not_there_is_named() {
    assert_eq!(history(&[], &Wanted::default()), Err(HistoryError::Empty));
    let all = [baseline(0, &[(Quantity::Wall, &[1.0])])];
    let region = Wanted {
        region: Some("x".parse().unwrap()),
        ..Wanted::default()
    };
    assert_eq!(
        history(&all, &region),
        Err(HistoryError::Region("`x`".to_owned()))
    );
    let quantity = Wanted {
        quantity: Some(Quantity::LoadBalance),
        ..Wanted::default()
    };
    let missing = history(&all, &quantity).unwrap_err().to_string();
    assert_eq!(
        missing,
        "the baselines have no 'load-balance'; they have wall"
    );
}

/// Thirty commits whose time grows by a quarter with the twentieth. `pace`: of each, before and behind.
fn slower(pace: impl Fn(usize) -> Option<[f64; 2]>) -> History {
    let commit = |n: usize| {
        let noise = ((n * 7919 % 23) as f64 - 11.0) / 1000.0;
        let wall = if n < 20 { 1.0 } else { 1.25 } * (1.0 + noise);
        let mut named = baseline(n, &[(Quantity::Wall, &[wall])]);
        named.side.origin.pace = pace(n).and_then(Pace::of);
        named
    };
    of(&(0..30).map(commit).collect::<Vec<_>>())
}

#[test]
fn a_change_that_the_machine_has_made_too_is_undecided() {
    let verdict = |found: &History| words::history_verdict(found).join(" ");
    for steady in [None, Some([1e-3, 1.01e-3])] {
        let found = slower(|_| steady);
        assert_eq!(changes(&found), [20], "{steady:?}");
        assert!(found.got_worse_within(10));
    }
    // The machine got as much slower, half as much, a little, or faster.
    for (factor, is_undecided) in [(1.25, true), (1.15, true), (1.03, false), (0.8, false)] {
        let found = slower(|n| Some([if n < 20 { 1e-3 } else { 1e-3 * factor }; 2]));
        let text = verdict(&found);
        assert_eq!(changes(&found).is_empty(), is_undecided, "{factor}");
        assert_eq!(found.got_worse_within(10), !is_undecided, "{factor}");
        assert_eq!(
            text.contains("undecided: +2") && text.contains("computed slower from then on"),
            is_undecided,
            "{text}"
        );
    }
}

#[test]
fn times_are_left_out_if_the_machine_changed_while_they_were_measured() {
    let found = slower(|n| Some([1e-3, if n % 10 == 3 { 1.3e-3 } else { 1e-3 }]));
    let curve = &found.series[0].curves[0];
    let without: Vec<usize> = (0..30).filter(|&n| curve.values[n].is_none()).collect();
    assert_eq!(without, [3, 13, 23]);
    assert_eq!(changes(&found), [20]);
    let notes = words::history_notes(&found).join(" ");
    assert!(
        notes.contains("the times of 3 commits are left out"),
        "{notes}"
    );
    // Nothing is known of all of a commit's baselines.
    assert_eq!(changes(&slower(|n| (n != 3).then_some([1e-3; 2]))), [20]);
}
