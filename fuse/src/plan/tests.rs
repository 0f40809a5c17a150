//! Tests of the planning.

use super::*;
use proptest::prelude::*;

fn names(list: &str) -> Vec<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn first_fit() {
    let sets = plan_lgl(&names("a b c d e a"), 2, |_| true);
    assert_eq!(sets, [names("a b"), names("c d"), names("e")]);
}

#[test]
fn what_excludes_each_other_is_separated() {
    let compatible =
        |set: &[&str]| !(set.contains(&"never") || set.contains(&"a") && set.contains(&"b"));
    let sets = plan_lgl(&names("a b never c"), 3, compatible);
    assert_eq!(sets, [names("a c"), names("b")]);
}

#[test]
fn thirty_three_events_on_five_counters_take_seven_sets() {
    // As in [Fuse] Table 1, where every event is compatible with every other.
    let events: Vec<String> = (0..33).map(|i| format!("e{i}")).collect();
    assert_eq!(plan_lgl(&events, 5, |_| true).len(), 7);
}

#[test]
fn overlap_is_what_predicts_the_new_events() {
    // a0 and b0 go with a and b.
    let correlation = |x: &str, y: &str| if x[..1] == y[..1] { -0.9 } else { 0.1 };
    let sets = plan_bc(&names("a b c a0 b0 c0"), 3, |_| true, correlation);
    assert_eq!(
        sets,
        [names("a b c"), names("a a0 b0"), names("c c0")].to_vec()
    );
}

#[test]
fn correlation_is_pearsons() {
    let column = |values: &[u64]| EventColumn {
        name: String::new(),
        values: values.to_vec(),
        present: None,
    };
    let a = column(&[1, 2, 3, 4]);
    assert!((correlation(&a, &column(&[1, 2, 4, 3])) - 0.8).abs() < 1e-12);
    assert!((correlation(&a, &column(&[9, 7, 5, 3])) + 1.0).abs() < 1e-12);
    assert_eq!(correlation(&a, &column(&[5, 5, 5, 5])), 0.0);
    assert_eq!(correlation(&column(&[]), &column(&[])), 0.0);
}

proptest! {
    #[test]
    fn joint_sets_share_events_with_the_first(n in 0usize..24, slots in 1usize..6, overlap in 1usize..4, seed in any::<u64>(), clashes in proptest::collection::vec((0usize..24, 0usize..24), 0..20)) {
        let events: Vec<String> = (0..n).map(|i| i.to_string()).collect();
        let compatible = |set: &[&str]| !clashes.iter().any(|(a, b)| {
            a != b && set.contains(&a.to_string().as_str()) && set.contains(&b.to_string().as_str())
        });
        let correlation = |a: &str, b: &str| {
            let (a, b): (u64, u64) = (a.parse().unwrap(), b.parse().unwrap());
            ((seed ^ (a * b)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / (1u64 << 24) as f64
        };
        let sets = plan_joint(&events, slots, overlap, compatible, correlation, |_| 1.0);
        let mut known: Vec<&String> = vec![];
        for (at, set) in sets.iter().enumerate() {
            let names: Vec<&str> = set.iter().map(String::as_str).collect();
            prop_assert!(set.len() <= slots && compatible(&names));
            prop_assert!(at == 0 || set.iter().any(|e| sets[0].contains(e)));
            prop_assert!(set.iter().any(|e| !known.contains(&e)));
            known.extend(set);
        }
        if clashes.is_empty() && slots > 1 {
            known.sort();
            known.dedup();
            prop_assert_eq!(known.len(), n);
        }
    }

    #[test]
    fn bc_sets_cover_everything_in_a_chain(n in 0usize..24, slots in 2usize..6, seed in any::<u64>(), clashes in proptest::collection::vec((0usize..24, 0usize..24), 0..20)) {
        let events: Vec<String> = (0..n).map(|i| i.to_string()).collect();
        let compatible = |set: &[&str]| !clashes.iter().any(|(a, b)| {
            a != b && set.contains(&a.to_string().as_str()) && set.contains(&b.to_string().as_str())
        });
        let correlation = |a: &str, b: &str| {
            let (a, b): (u64, u64) = (a.parse().unwrap(), b.parse().unwrap());
            ((seed ^ (a * b)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64
        };
        let sets = plan_bc(&events, slots, compatible, correlation);
        let mut known: Vec<&String> = vec![];
        for (at, set) in sets.iter().enumerate() {
            let names: Vec<&str> = set.iter().map(String::as_str).collect();
            prop_assert!(set.len() <= slots && compatible(&names));
            prop_assert!(at == 0 || set.iter().any(|e| known.contains(&e)));
            prop_assert!(set.iter().any(|e| !known.contains(&e)));
            known.extend(set);
        }
        if clashes.is_empty() {
            known.sort();
            known.dedup();
            prop_assert_eq!(known.len(), n);
        }
    }

    #[test]
    fn every_event_is_in_one_compatible_set(n in 0usize..30, slots in 1usize..6, clashes in proptest::collection::vec((0usize..30, 0usize..30), 0..40)) {
        let events: Vec<String> = (0..n).map(|i| i.to_string()).collect();
        let compatible = |set: &[&str]| !clashes.iter().any(|(a, b)| {
            a != b && set.contains(&a.to_string().as_str()) && set.contains(&b.to_string().as_str())
        });
        let sets = plan_lgl(&events, slots, compatible);
        let mut all: Vec<_> = sets.concat();
        all.sort();
        let mut expected = events.clone();
        expected.sort();
        prop_assert_eq!(all, expected);
        for set in &sets {
            let set: Vec<&str> = set.iter().map(String::as_str).collect();
            prop_assert!(set.len() <= slots && compatible(&set));
        }
    }
}

#[test]
fn labels_that_fix_an_event_are_seen_in_two_runs() {
    use crate::testing::programs::{Shape, execute};
    let runs = |shape| (execute(shape, 500, 3, 0), execute(shape, 500, 3, 1));
    let (a, b) = runs(Shape::Tree);
    let known = Correlations::between(&a, &b);
    assert!(known.open("LD") == 0.0 && known.open("L1_DCM") > 0.01);
    // What was colder in one of the runs was so in all caches; work alone would hide it.
    assert!(known.get("L1_DCM", "L1_DCM") > 0.999 && known.get("L1_DCM", "STL_BE") > 0.5);
    // Labels that mean nothing fix nothing; those that no two runs share say nothing either.
    let (a, b) = runs(Shape::Lottery);
    assert!(Correlations::between(&a, &b).open("LD") > 0.7);
    let (a, b) = runs(Shape::Guided);
    assert!(Correlations::between(&a, &b).open("LD") > 0.5);
    assert_eq!(Correlations::of(&a).open("LD"), 1.0);
}

#[test]
fn joint_sets_leave_alone_what_labels_fix() {
    let events = names("A B C F G H");
    let open = |e: &str| if e < "F" { 0.5 } else { 0.0 };
    let sets = plan_joint(&events, 2, 1, |_| true, |_, _| 0.5, open);
    assert_eq!(sets, [names("A B"), names("A C"), names("F G"), names("H")]);
}
