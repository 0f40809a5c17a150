//! What is done by default: labels decide, behaviour helps where runs share events, and a typical run comes first.

use super::{Combined, combine_joint, combine_lgl};
use crate::evaluate::{ENOUGH, Sample, typical};
use crate::table::XuTable;
use std::collections::BTreeSet;

/// How inputs are combined by default, as far as their events say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrangement {
    /// Some run brings new events beside some that an earlier run has, so behaviour says something. Else labels are all there is.
    pub by_behaviour: bool,
    /// Inputs with the events of the first one, that included, where they are enough to tell which of them is typical: that one
    /// is to be the first.
    pub alike: Vec<usize>,
    /// Some inputs that counted a part of these events, which help to tell it.
    pub beside: Vec<usize>,
}

/// So many of those that help are looked at, at most: each has to be read.
const BESIDE: usize = 4;

/// The arrangement of inputs with these events.
pub fn arrangement(inputs: &[Vec<String>]) -> Arrangement {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut by_behaviour = false;
    for events in inputs {
        let new = events
            .iter()
            .filter(|e| !known.contains(e.as_str()))
            .count();
        by_behaviour |= new > 0 && new < events.len();
        known.extend(events.iter().map(String::as_str));
    }
    let set = |events: &Vec<String>| events.iter().cloned().collect::<BTreeSet<String>>();
    let first = inputs.first().map(set).unwrap_or_default();
    let is_alike = |at: &usize| set(&inputs[*at]) == first;
    let mut alike: Vec<usize> = (0..inputs.len()).filter(is_alike).collect();
    if first.is_empty() || alike.len() < ENOUGH {
        alike.clear();
    }
    // One event alone makes a pair only where the first run has no other.
    let shared = |at: &usize| set(&inputs[*at]).intersection(&first).count();
    let is_beside = |at: &usize| !is_alike(at) && shared(at) >= first.len().min(2);
    let beside = (0..inputs.len()).filter(is_beside);
    let beside = match alike.is_empty() {
        true => vec![],
        false => beside.take(BESIDE).collect(),
    };
    Arrangement {
        by_behaviour,
        alike,
        beside,
    }
}

/// Brings the element at `first` to the front; the others keep their order.
pub fn brought_to_front<T>(inputs: &mut [T], first: usize) {
    inputs[..=first].rotate_right(1);
}

/// Combines runs as is done by default. Also says in which order they were taken, which is the order that the result's
/// runs are in.
pub fn combine_default(runs: &[&XuTable]) -> (Combined, Vec<usize>) {
    let names =
        |run: &&XuTable| -> Vec<String> { run.events.iter().map(|e| e.name.clone()).collect() };
    let found = arrangement(&runs.iter().map(names).collect::<Vec<_>>());
    let samples: Vec<Sample> = found.alike.iter().map(|&at| Sample::of(runs[at])).collect();
    let part_of = |&at: &usize| {
        let mut sample = Sample::of_events(&names(&runs[0]));
        sample.add(runs[at]);
        sample
    };
    let beside: Vec<Sample> = found.beside.iter().map(part_of).collect();
    let mut order: Vec<usize> = (0..runs.len()).collect();
    if let Some(&first) = found.alike.get(typical(&samples, &beside)) {
        brought_to_front(&mut order, first);
    }
    let runs: Vec<&XuTable> = order.iter().map(|&at| runs[at]).collect();
    let combined = if found.by_behaviour {
        combine_joint(&runs)
    } else {
        combine_lgl(&runs)
    };
    (combined, order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::programs::{Shape, execute};

    fn sets(lists: &[&str]) -> Vec<Vec<String>> {
        let names = |list: &&str| list.split_whitespace().map(str::to_owned).collect();
        lists.iter().map(names).collect()
    }

    #[test]
    fn behaviour_needs_something_shared_and_something_new() {
        let of = |lists: &[&str]| arrangement(&sets(lists)).by_behaviour;
        assert!(!of(&[]) && !of(&["A B"]) && !of(&["A B", "C"]) && !of(&["A", "", "B"]));
        assert!(!of(&["A B", "C", "A B", "C"]) && !of(&["A B", "A"]));
        assert!(of(&["A B", "B C"]) && of(&["A", "B", "A B C"]));
    }

    #[test]
    fn three_of_the_first_set_are_enough() {
        let of = |lists: &[&str]| arrangement(&sets(lists)).alike;
        assert_eq!(of(&["A B", "C", "B A", "A B"]), [0, 2, 3]);
        assert!(of(&["A B", "C", "A B", "C", "C"]).is_empty() && of(&["", "", ""]).is_empty());
        let beside = |lists: &[&str]| arrangement(&sets(lists)).beside;
        let lists = ["A B", "C", "A C", "A B C", "A B", "B A", "A B D"];
        assert_eq!(beside(&lists), [3, 6]);
        assert!(beside(&lists[..5]).is_empty());
        assert_eq!(beside(&["A", "A B", "A", "C", "A"]), [1]);
        let mut list = ["a", "b", "c", "d"];
        brought_to_front(&mut list, 2);
        assert_eq!(list, ["c", "a", "b", "d"]);
    }

    #[test]
    fn without_shared_events_it_is_lgl() {
        for shape in [Shape::Tree, Shape::Guided] {
            let lists = sets(&["CYC L1_DCM", "INS LD", "SR BR", "INS LD"]);
            let runs: Vec<XuTable> = (0..)
                .zip(&lists)
                .map(|(run, set)| execute(shape, 700, 5, run).only(set))
                .collect();
            let runs: Vec<&XuTable> = runs.iter().collect();
            let (combined, order) = combine_default(&runs);
            assert_eq!(order, [0, 1, 2, 3]);
            assert_eq!(combined, combine_lgl(&runs));
        }
    }

    #[test]
    fn the_typical_run_comes_first_whatever_the_number_of_threads() {
        let lists = sets(&["CYC L1_DCM", "CYC LD", "CYC L1_DCM", "CYC L1_DCM"]);
        let mut runs: Vec<XuTable> = (0..)
            .zip(&lists)
            .map(|(run, set)| execute(Shape::Tree, 700, 5, run).only(set))
            .collect();
        // A run on a machine that did something else besides, and another.
        for (run, share) in [(0, 2), (2, 3)] {
            let cycles = &mut runs[run].events[0].values;
            cycles.iter_mut().for_each(|c| *c += *c / share);
        }
        let runs: Vec<&XuTable> = runs.iter().collect();
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap().install(|| combine_default(&runs))
        };
        let (combined, order) = with(1);
        assert_eq!(order, [2, 0, 1, 3]);
        assert_eq!(combined.table.t0_ns, runs[2].t0_ns);
        assert_eq!(combined.table.events[0].values, runs[2].events[0].values);
        assert!(combined.table.confidence.is_some());
        assert_eq!(with(3), (combined, order));
    }
}
