//! Joins of made-up runs and tables, and the naive join.

use super::*;
use crate::testing::{BEGIN, FakeRun, LISTING_SITES, listing, listing_threads};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A table with one event; each row is (label, count), type = length of the label.
fn table_of(event: &str, rows: &[(Vec<u64>, u64)]) -> XuTable {
    let mut csv = format!("type,label,thread,t0_ns,t1_ns,{event}\n");
    for (row, (label, count)) in rows.iter().enumerate() {
        let text = crate::Label(label.clone()).to_string();
        writeln!(csv, "{},{text},0,{row},{row},{count}", label.len()).unwrap();
    }
    XuTable::from_csv(csv.as_bytes()).unwrap()
}

#[test]
fn whatever_thread_executes_them_xus_match() {
    let a = listing(&["cycles", "branches"], false).read().xus;
    let b = listing(&["instructions", "branches"], true).read().xus;
    let combined = combine_lgl(&[&a, &b]);
    assert_eq!((combined.table.len(), combined.unmatched.len()), (16, 0));
    let names: Vec<&str> = combined
        .table
        .events
        .iter()
        .map(|e| e.name.as_str())
        .collect();
    assert_eq!(
        (names, combined.origins),
        (vec!["cycles", "branches", "instructions"], vec![0, 0, 1])
    );
    assert_ne!(combined.sources[0], combined.sources[1]);
}

#[test]
fn what_does_not_match_is_listed_with_the_reason() {
    let a = table_of(
        "A",
        &[
            (vec![0, 1], 1),
            (vec![0, 2], 2),
            (vec![0, 3], 3),
            (vec![0, 3], 4),
            (vec![0, 4], 5),
        ],
    );
    let b = table_of(
        "B",
        &[
            (vec![0, 9], 1),
            (vec![0, 2], 2),
            (vec![0, 2], 3),
            (vec![0, 3], 4),
            (vec![0, 1], 5),
            (vec![0, 4], 6),
        ],
    );
    let c = table_of("C", &[(vec![0, 4], 1)]);
    let combined = combine_lgl(&[&a, &b, &c]);
    assert_eq!(combined.sources, [[4], [5], [0]]);
    let list: Vec<(u16, u64, Reason)> = combined
        .unmatched
        .iter()
        .map(|u| (u.run, u.count, u.reason))
        .collect();
    let (absent, ambiguous) = (
        |run| Reason::Absent { run },
        |run| Reason::Ambiguous { run },
    );
    let expected = [
        (0, 2, ambiguous(0)),
        (0, 1, absent(2)),
        (0, 1, ambiguous(1)),
        (1, 2, ambiguous(1)),
        (1, 1, absent(0)),
        (1, 1, absent(2)),
        (1, 1, ambiguous(0)),
    ];
    assert_eq!(list, expected);
    assert_eq!(combined.unmatched[1].example.as_deref(), Some("0.1"));
}

#[test]
fn overlapping_processes_are_ambiguous() {
    let mut fake = FakeRun::new(LISTING_SITES, &[]);
    for pid in [1, 2] {
        fake.process(pid, BEGIN, listing_threads(0, false, BEGIN), true);
    }
    let xus = fake.read().xus;
    let combined = combine_lgl(&[&xus, &xus]);
    assert_eq!(combined.table.len(), 0);
    assert!(
        combined
            .unmatched
            .iter()
            .all(|u| u.reason == Reason::Ambiguous { run: 0 })
    );
    assert_eq!(combined.unmatched.iter().map(|u| u.count).sum::<u64>(), 64);
}

#[test]
fn no_runs_give_nothing() {
    assert!(combine_lgl(&[]).table.is_empty());
    assert!(combine_ctc(&[]).table.is_empty());
}

#[test]
fn ctc_stops_at_the_shortest_run_per_type() {
    let a = table_of("A", &[(vec![0], 1), (vec![1, 2], 2), (vec![1, 3], 3)]);
    let b = table_of("B", &[(vec![1, 9], 4), (vec![2, 2, 2], 5)]);
    let combined = combine_ctc(&[&a, &b]);
    assert_eq!(combined.sources, [[1], [0]]);
    assert_eq!(combined.table.event("B").unwrap().get(0), Some(4));
    let list: Vec<(u16, &str, u64)> = combined
        .unmatched
        .iter()
        .map(|u| (u.run, u.site.name.as_str(), u.count))
        .collect();
    assert_eq!(list, [(0, "1", 1), (0, "2", 1), (1, "3", 1)]);
}

proptest! {
    /// Against a join written with maps, straight from the definition.
    #[test]
    fn join_is_the_naive_one(runs in proptest::collection::vec(
        proptest::collection::vec((proptest::collection::vec(0u64..4, 1..4), 0u64..1000), 0..40), 1..5,
    )) {
        let tables: Vec<XuTable> =
            runs.iter().enumerate().map(|(run, rows)| table_of(&format!("E{}", run % 3), rows)).collect();
        let combined = combine_lgl(&tables.iter().collect::<Vec<_>>());

        let once: Vec<BTreeMap<&Vec<u64>, Option<usize>>> = runs
            .iter()
            .map(|rows| {
                let mut map = BTreeMap::new();
                for (row, (label, _)) in rows.iter().enumerate() {
                    map.entry(label).and_modify(|r| *r = None).or_insert(Some(row));
                }
                map
            })
            .collect();
        let in_all = |label: &&&Vec<u64>| once.iter().all(|m| matches!(m.get(**label), Some(Some(_))));
        let labels: Vec<&&Vec<u64>> = once[0].keys().filter(in_all).collect();
        for (run, source) in combined.sources.iter().enumerate() {
            let expected: Vec<u32> = labels.iter().map(|l| once[run][*l].unwrap() as u32).collect();
            prop_assert_eq!(source, &expected);
        }
        for (event, &run) in combined.table.events.iter().zip(&combined.origins) {
            prop_assert_eq!(&event.name, &format!("E{}", run % 3));
            prop_assert!(run < 3);
            let expected: Vec<u64> =
                labels.iter().map(|l| runs[run as usize][once[run as usize][*l].unwrap()].1).collect();
            prop_assert_eq!(&event.values, &expected);
        }
        // Every XU of every run is either matched or listed.
        for (run, rows) in runs.iter().enumerate() {
            let listed: u64 =
                combined.unmatched.iter().filter(|u| u.run as usize == run).map(|u| u.count).sum();
            prop_assert_eq!(listed as usize + labels.len(), rows.len());
        }
    }
}
