//! From baselines to curves.

use super::{Basis, History, HistoryError, Named, Wanted, history};
use crate::testing::{baseline, changes};
use crate::{Machine, Quantity};

fn instructions() -> Quantity {
    Quantity::Event("sim-instructions".to_owned())
}

fn of(baselines: &[Named]) -> History {
    history(baselines, &Wanted::default()).expect("a history")
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
