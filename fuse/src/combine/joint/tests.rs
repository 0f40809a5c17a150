//! Tests of the joint strategy.

use super::*;
use crate::combine::combine_lgl;
use crate::testing::programs::{Shape, execute};

fn names(list: &str) -> Vec<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

/// Four runs of a program, of which only some events are shown.
fn shown(shape: Shape) -> Vec<XuTable> {
    let sets = [
        "CYC L1_DCM INS",
        "CYC LD SR",
        "L1_DCM CYC L2_TCM",
        "L1_DCM CYC STL_BE",
    ];
    let run = |(run, set)| execute(shape, 1500, 3, run).only(&names(set));
    (0..).zip(sets).map(run).collect()
}

#[test]
fn every_count_was_counted_and_is_given_once() {
    for shape in [Shape::Tree, Shape::Guided] {
        let runs = shown(shape);
        let combined = combine_joint(&runs.iter().collect::<Vec<_>>());
        let sources = combined.column_sources.as_ref().unwrap();
        for ((column, rows), &run) in combined
            .table
            .events
            .iter()
            .zip(sources)
            .zip(&combined.origins)
        {
            let from = &runs[run as usize];
            let mut seen = vec![false; from.len()];
            for (at, &row) in rows.iter().enumerate() {
                let first = combined.sources[0][at] as usize;
                assert_eq!(
                    column.get(at),
                    from.event(&column.name).unwrap().get(row as usize)
                );
                assert_eq!(from.site[row as usize], runs[0].site[first]);
                assert!(
                    !std::mem::replace(&mut seen[row as usize], true),
                    "{}",
                    column.name
                );
            }
        }
        let smallest = runs.iter().map(XuTable::len).min().unwrap();
        assert_eq!(combined.table.len(), smallest);
        let left_out: u64 = combined.unmatched.iter().map(|u| u.count).sum();
        let all: usize = runs.iter().map(XuTable::len).sum();
        assert_eq!(left_out, (all - runs.len() * smallest) as u64);
    }
}

#[test]
fn confidence_tells_good_from_bad() {
    let mean = |shape, sets: [&str; 2], runs: [u64; 2]| {
        let run = |at: usize| execute(shape, 1500, 3, runs[at]).only(&names(sets[at]));
        let percent = combine_joint(&[&run(0), &run(1)]).table.confidence.unwrap();
        percent.iter().map(|&p| f64::from(p)).sum::<f64>() / percent.len() as f64
    };
    // The same run again; another run of the same work; work that is drawn anew, and an event that tells nothing of it.
    assert_eq!(mean(Shape::Tree, ["CYC", "CYC LD"], [0, 0]), 100.0);
    let good = mean(Shape::Tree, ["CYC L1_DCM", "CYC L1_DCM LD"], [0, 1]);
    let bad = mean(Shape::Lottery, ["PF", "PF FP"], [0, 1]);
    assert!(good > 75.0 && bad < 25.0, "{good} {bad}");
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let runs = shown(Shape::Guided);
    let runs: Vec<&XuTable> = runs.iter().collect();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| combine_joint(&runs))
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn runs_without_common_events_are_joined_by_label() {
    let csv = |text: &str| XuTable::from_csv(text.as_bytes()).unwrap();
    let a = csv(
        "type,label,thread,t0_ns,t1_ns,A\n1,0.1,0,0,1,5\n1,0.2,0,0,1,6\n1,0.2,0,0,1,7\n1,,0,0,1,8\n2,0.3,0,0,1,9\n",
    );
    let b =
        csv("type,label,thread,t0_ns,t1_ns,B\n1,0.2,0,0,1,50\n1,0.1,0,0,1,60\n2,0.4,0,0,1,70\n");
    let combined = combine_joint(&[&a, &b]);
    assert_eq!(combined.table.len(), 1);
    assert_eq!(combined.table.event("B").unwrap().values, [60]);
    assert_eq!(combine_joint(&[]).table.len(), 0);
}

#[test]
fn a_run_with_nothing_new_leaves_all_as_it_is() {
    let runs = shown(Shape::Tiles);
    let one = combine_joint(&[&runs[0]]);
    let again = combine_joint(&[&runs[0], &runs[0]]);
    assert_eq!(one.table, again.table);
}

/// Where some XUs lack what both runs counted, labels decide for all of their type, as without an event in common.
#[test]
fn what_was_not_counted_everywhere_does_not_lose_xus() {
    let runs = shown(Shape::Tree);
    let (mut first, second) = (runs[0].clone(), &runs[1]);
    let counted = first.len();
    for row in (0..counted).step_by(2) {
        first.events[0].add(row, None);
    }
    let (joint, lgl) = (
        combine_joint(&[&first, second]),
        combine_lgl(&[&first, second]),
    );
    let order = joint.table.labels.depth_first(&joint.table.label);
    let ordered = joint.table.gather(&order);
    assert_eq!(ordered.len(), lgl.table.len());
    assert!(ordered.len() > counted / 2, "of {counted}");
    assert_eq!(ordered.events, lgl.table.events);
    assert_eq!(ordered.confidence, lgl.table.confidence);
}

/// Reasons per run, and how often each.
fn reasons(combined: &Combined) -> Vec<(u16, Reason, u64)> {
    let list = combined.unmatched.iter();
    let mut list: Vec<_> = list.map(|u| (u.run, u.reason, u.count)).collect();
    list.sort_unstable_by_key(|&(run, reason, _)| (run, reason));
    list
}

#[test]
fn what_labels_leave_over_has_the_labels_reason() {
    let read = |text: &str| XuTable::from_csv(text.as_bytes()).unwrap();
    let first = read(
        "type,label,thread,t0_ns,t1_ns,A\n0x1,0.1,0,0,1,5\n0x1,0.2,0,0,1,\n0x1,0.3,0,0,1,7\n0x1,0.4,0,0,1,7\n",
    );
    let further = "0x1,0.1,0,0,1,5,1\n0x1,0.3,0,0,1,7,2\n0x1,0.3,0,0,1,7,3\n0x1,0.5,0,0,1,7,4\n0x1,0.6,0,0,1,7,4\n";
    let further = read(&format!("type,label,thread,t0_ns,t1_ns,A,B\n{further}"));
    let unmatched = [
        (0, Reason::Absent { run: 1 }, 2),
        (0, Reason::Ambiguous { run: 1 }, 1),
        (1, Reason::Absent { run: 0 }, 2),
        (1, Reason::Ambiguous { run: 1 }, 2),
    ];
    // The first run has gaps in the common event, so that labels are all there is.
    let joint = combine_joint(&[&first, &further]);
    assert_eq!(joint.table.len(), 1);
    assert_eq!(reasons(&joint), unmatched);
    // As if there were no common event.
    let further = further.only(&names("B"));
    assert_eq!(reasons(&combine_joint(&[&first, &further])), unmatched);
    assert_eq!(reasons(&combine_lgl(&[&first, &further])), unmatched);
}
