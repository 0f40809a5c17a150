//! Units whose number depends on the threads, and tasks in parts.

use super::*;
use crate::span::RegionAnalysis;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// The ranges of `guided`, as libgomp or libomp makes them: formulas of the test's own.
fn guided(iterations: u64, threads: u64, is_libgomp: bool) -> Vec<u64> {
    let mut left = iterations;
    let mut ranges = vec![];
    while left > 0 {
        let next = match is_libgomp {
            true => left.div_ceil(threads),
            false if left < 4 * threads => 1,
            false => left / (2 * threads),
        };
        ranges.push(next);
        left -= next;
    }
    ranges
}

/// A range: its first iteration, how many it has, and ticks.
type Dealt = (i64, u64, u64);

/// By thread its ranges, where the next one goes to whoever is free first; and when the last one ends.
fn dealt(ranges: &[u64], times: &[u64], threads: usize) -> (Vec<Vec<Dealt>>, u64) {
    let mut of = vec![vec![]; threads];
    let mut free = vec![0u64; threads];
    let mut first = 0;
    for &range in ranges {
        let time: u64 = times[first..first + range as usize].iter().sum();
        let next = (0..threads).min_by_key(|&t| free[t]).unwrap_or(0);
        of[next].push((first as i64, range, time));
        free[next] += time;
        first += range as usize;
    }
    (of, free.into_iter().max().unwrap_or(0))
}

/// A loop that asks for its ranges, whose source doesn't say how.
fn asking(ranges: &[Vec<(i64, u64, u64)>]) -> RegionAnalysis {
    let (mut analysis, _) = region(ranges.len(), |tid, thread, region| {
        let node = thread.node();
        thread.begin(Construct::Loop, LOOP, node, region, Step::Ranked, 1);
        for &(first, len, ticks) in &ranges[tid] {
            range(thread, node, first, len, ticks);
        }
        thread.begin(Construct::Dispatch, LOOP, 0, node, Step::None, 0);
        thread.end(ranges[tid].len() as u64 + 1);
        thread.end(0);
    });
    analysis.regions.remove(0)
}

#[test]
fn even_guided_loops_have_smaller_ranges_with_more_threads() {
    for is_libgomp in [true, false] {
        let ranges = guided(160, 4, is_libgomp);
        let (of, _) = dealt(&ranges, &[100; 160], 4);
        let region = asking(&of);
        let (_, with_eight) = dealt(&guided(160, 8, is_libgomp), &[100; 160], 8);
        assert_eq!(region.predicted_ns[3], with_eight);
        assert_eq!(region.predicted_between_ns[3], [with_eight; 2]);
        assert!(!region.by_number);
    }
}

#[test]
fn ranges_of_no_known_rule_predict_nothing() {
    let region = asking(&[vec![(0, 12, 1200)], vec![(12, 4, 400), (16, 4, 400)]]);
    assert!(region.by_number);
    let [low, high] = region.predicted_between_ns[3];
    assert_eq!((low, high), (250, 2000));
}

/// Of ranges that are divided it isn't known where in them their time was spent. Iterations of ranges that differ by less than 5 % are taken
/// to be even: a few random times differ all the same. The cases are the same each time.
#[test]
fn guided_loops_take_what_is_between_the_bounds() {
    const CASES: usize = 1000;
    let times = proptest::collection::vec(1u64..1000, 8..100);
    let case = (times, 2usize..5, 0usize..5, proptest::bool::ANY);
    let mut runner = TestRunner::deterministic();
    let (mut tried, mut outside) = (0, vec![]);
    while tried < CASES {
        let tree = case.new_tree(&mut runner).expect("all cases are accepted");
        let (times, had, to, is_libgomp) = tree.current();
        let threads = crate::span::TEAMS[to] as usize;
        if threads == had {
            continue;
        }
        tried += 1;
        let all = times.len() as u64;
        let (of, _) = dealt(&guided(all, had as u64, is_libgomp), &times, had);
        let region = asking(&of);
        let (_, time) = dealt(&guided(all, threads as u64, is_libgomp), &times, threads);
        let [low, high] = region.predicted_between_ns[to];
        // Parts are rounded down.
        let near = 16 + time / 4;
        if low > time + near || time > high + near {
            outside.push((time, [low, high]));
        }
    }
    assert!(outside.len() * 200 <= CASES, "{outside:?}");
}

/// An even taskloop with so many tasks in a team of two.
fn taskloop(tasks: i64, iterations: u64) -> RegionAnalysis {
    let (mut analysis, _) = region(2, |tid, thread, region| {
        if tid > 0 {
            return;
        }
        let node = thread.node();
        thread.work(1);
        thread.begin(Construct::Taskloop, TASKLOOP, node, region, Step::Ranked, 1);
        thread.record_node(Construct::Taskloop, TASKLOOP, node, region, Step::Ranked, 1);
        thread.work(1);
        thread.end(0);
        thread.begin(Construct::Taskwait, TASKWAIT, 0, region, Step::None, 0);
        for at in 0..tasks {
            let task = thread.node();
            let first = at * iterations as i64;
            thread.begin(Construct::Task, TASK, task, node, Step::Range, first);
            thread.record_node(Construct::Task, TASK, task, node, Step::Range, first);
            thread.work(10 * iterations);
            thread.end(iterations);
        }
        thread.end(0);
    });
    analysis.regions.remove(0)
}

/// A task a thread is what libgomp makes without a clause, and what a clause may ask for.
#[test]
fn a_taskloop_may_have_more_tasks_with_more_threads() {
    let by_default = taskloop(2, 60);
    assert!(by_default.by_number);
    let [low, high] = by_default.predicted_between_ns[2];
    assert!(low <= 303 && high >= 600, "{low} {high}");
    let of_two = taskloop(3, 40);
    assert!(!of_two.by_number);
    let one_each = taskloop(2, 1);
    assert!(!one_each.by_number);
}

/// libomp's `untied` tasks: the first part does nothing but hand the second one over.
#[test]
fn a_task_in_parts_is_one_task() {
    let tasks = |is_untied: bool| {
        in_single(|thread, single| {
            let nodes: Vec<u64> = (0..4)
                .map(|_| {
                    thread.begin(Construct::TaskCreate, TASK, 0, single, Step::None, 0);
                    thread.work(1);
                    thread.end(0);
                    thread.node()
                })
                .collect();
            thread.begin(Construct::Taskwait, TASKWAIT, 0, single, Step::None, 0);
            for (&node, rank) in nodes.iter().zip(1..) {
                thread.begin(Construct::Task, TASK, node, single, Step::Ranked, rank);
                thread.record_node(Construct::Task, TASK, node, single, Step::Ranked, rank);
                if is_untied {
                    thread.begin(Construct::TaskCreate, TASK, 0, node, Step::None, 0);
                    thread.work(1);
                    thread.end(0);
                    thread.end(0);
                    thread.work(1);
                    thread.begin(Construct::Task, TASK, node, single, Step::Ranked, rank);
                }
                thread.work(100);
                thread.end(0);
            }
            thread.end(0);
        })
    };
    let (untied, tied) = (tasks(true), tasks(false));
    let (untied, tied) = (&untied.regions[0], &tied.regions[0]);
    assert_eq!(untied.lower_bound, []);
    assert_eq!(
        (untied.work_ns, untied.span_ns),
        (tied.work_ns, tied.span_ns)
    );
    assert_eq!(untied.predicted_ns, tied.predicted_ns);
}
