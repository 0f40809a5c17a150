//! Against schedules and spans that are worked out by hand, or by trying everything.

use super::Analysis;
use super::replay::{Schedule, Unit, Units, candidates};
use super::result::{LowerBound, WaitedFor};
use crate::run::Run;
use crate::summary::Summary;
use crate::testing::{BEGIN, FakeRun, FakeThread};
use ompfuse_format::Construct;
use ompfuse_format::record::Step;
use ompfuse_format::record::depend::Access;
use proptest::prelude::*;

fn units(times: &[u64], len: u64) -> Units {
    let unit = |(at, &time): (usize, &u64)| Unit {
        first: at as i64 * len as i64,
        len,
        time,
    };
    Units::new(times.iter().enumerate().map(unit).collect())
}

#[test]
fn schedules_of_a_triangle_are_those_worked_out_by_hand() {
    // Iterations of 1, 2, ... 8 ticks on two threads.
    let triangle = units(&[1, 2, 3, 4, 5, 6, 7, 8], 1);
    let time = |schedule| triangle.replay(schedule, 2, 0).time;
    assert_eq!(time(Schedule::Static), 5 + 6 + 7 + 8);
    assert_eq!(time(Schedule::StaticChunk(1)), 2 + 4 + 6 + 8);
    assert_eq!(time(Schedule::StaticChunk(2)), 3 + 4 + 7 + 8);
    // 1,3,5,7 against 2,4,6,8: as static,1 here.
    assert_eq!(time(Schedule::Dynamic(1)), 20);
    // Chunks of 4 (of 8), 2 (of 4), 1, 1: 10 | 11, then 7 at 10, 8 at 11.
    assert_eq!(time(Schedule::Guided(1)), 19);
    assert_eq!(triangle.replay(Schedule::Dynamic(1), 1, 3).time, 36 + 8 * 3);
    assert!(!triangle.replay(Schedule::Static, 2, 0).assumes_equal);
}

#[test]
fn what_is_finer_than_the_record_is_said_to_be_assumed() {
    let halves = units(&[100, 300], 50);
    let finer = halves.replay(Schedule::Dynamic(25), 2, 0);
    // 50, 50, 150, 150 ticks: two threads take 50+150 each.
    assert_eq!((finer.time, finer.assumes_equal), (200, true));
    let as_it_is = halves.replay(Schedule::Dynamic(50), 2, 0);
    assert_eq!((as_it_is.time, as_it_is.assumes_equal), (300, false));
    assert!(candidates(&halves, 2).contains(&Schedule::Dynamic(3)));
    // Where chunks are on record, none is divided.
    let chunks = units(&[10; 64], 8);
    let dynamic = |s: &Schedule| match s {
        Schedule::Dynamic(n) | Schedule::StaticChunk(n) | Schedule::Guided(n) => *n >= 8,
        Schedule::Static => true,
    };
    assert!(candidates(&chunks, 4).iter().all(dynamic));
}

/// The shortest time of any assignment, by trying all.
fn best(times: &[u64], threads: usize) -> u64 {
    fn put(times: &[u64], loads: &mut Vec<u64>) -> u64 {
        let Some((&first, rest)) = times.split_first() else {
            return loads.iter().copied().max().unwrap_or(0);
        };
        let mut least = u64::MAX;
        for thread in 0..loads.len() {
            loads[thread] += first;
            least = least.min(put(rest, loads));
            loads[thread] -= first;
        }
        least
    }
    put(times, &mut vec![0; threads])
}

/// A schedule that gives each unit to the thread that is free first, without a heap.
fn greedy(times: &[u64], threads: usize) -> u64 {
    let mut loads = vec![0u64; threads];
    for &time in times {
        let free = (0..threads).min_by_key(|&t| loads[t]).unwrap_or(0);
        loads[free] += time;
    }
    loads.into_iter().max().unwrap_or(0)
}

proptest! {
    #[test]
    fn greedy_schedules_keep_grahams_bound(
        times in proptest::collection::vec(0u64..100, 1..8),
        threads in 1usize..4,
    ) {
        let replayed = units(&times, 1).replay(Schedule::Dynamic(1), threads as u32, 0).time;
        prop_assert_eq!(replayed, greedy(&times, threads));
        let best = best(&times, threads);
        prop_assert!(replayed >= best);
        // 2 - 1/m times the best (Graham 1966).
        prop_assert!(replayed * threads as u64 <= best * (2 * threads as u64 - 1));
        for schedule in candidates(&units(&times, 1), threads as u32) {
            prop_assert!(units(&times, 1).replay(schedule, threads as u32, 0).time >= best);
        }
    }

    #[test]
    fn nothing_is_lost_on_one_thread(
        times in proptest::collection::vec(0u64..1000, 1..40),
        len in 1u64..9,
        chunk in 1u64..20,
    ) {
        let units = units(&times, len);
        for schedule in [Schedule::Static, Schedule::StaticChunk(chunk), Schedule::Dynamic(chunk), Schedule::Guided(chunk)] {
            prop_assert_eq!(units.replay(schedule, 1, 0).time, times.iter().sum::<u64>());
        }
    }
}

mod anew;

/// Sites of the programs below.
const SITES: &[(Construct, u64)] = &[
    (Construct::Parallel, 0x10),
    (Construct::Loop, 0x20),
    (Construct::Task, 0x30),
    (Construct::Taskwait, 0x40),
    (Construct::ImplicitBarrier, 0x50),
    (Construct::Critical, 0x60),
    (Construct::Single, 0x70),
    (Construct::Taskloop, 0x80),
];
const LOOP: u32 = 1;
pub(super) const TASK: u32 = 2;
pub(super) const TASKWAIT: u32 = 3;
const BARRIER: u32 = 4;
const CRITICAL: u32 = 5;
pub(super) const SINGLE: u32 = 6;
const TASKLOOP: u32 = 7;

fn analysed(threads: Vec<FakeThread>) -> (Analysis, Summary) {
    let mut fake = FakeRun::new(SITES, &[]);
    fake.process(7, BEGIN, threads, true);
    fake.with_files(|files| {
        let summary = Summary::of_run("run", &Run::read(files));
        (Analysis::of_files(files, &summary), summary)
    })
}

/// A region on threads whose parts these are; each is given its thread, and the region's node.
pub(super) fn region(
    team: usize,
    part: impl Fn(usize, &mut FakeThread, u64),
) -> (Analysis, Summary) {
    let mut threads: Vec<FakeThread> = (0..team)
        .map(|t| FakeThread::new(t as u32, 0, BEGIN))
        .collect();
    let node = threads[0].node();
    let root = FakeThread::root();
    threads[0].begin(Construct::Parallel, 0, node, root, Step::Ranked, 1);
    threads[0].record_node(Construct::Parallel, 0, node, root, Step::Ranked, 1);
    for (tid, thread) in threads.iter_mut().enumerate() {
        thread.begin(Construct::ImplicitTask, 0, 0, node, Step::None, tid as i64);
        part(tid, thread, node);
        thread.end(tid as u64);
    }
    let end = threads.iter().map(|t| t.now).max().unwrap_or(0);
    for thread in &mut threads {
        thread.until(end);
    }
    threads[0].end(team as u64);
    analysed(threads)
}

fn range(thread: &mut FakeThread, parent: u64, first: i64, len: u64, ticks: u64) {
    let node = thread.node();
    thread.begin(Construct::Range, LOOP, node, parent, Step::Range, first);
    thread.work(ticks);
    thread.end(len);
}

fn a_loop(thread: &mut FakeThread, region: u64, rank: i64, ranges: &[(i64, u64, u64)]) {
    let node = thread.node();
    thread.begin(Construct::Loop, LOOP, node, region, Step::Ranked, rank);
    for &(first, len, ticks) in ranges {
        range(thread, node, first, len, ticks);
    }
    thread.end(0);
}

#[test]
fn a_loop_is_as_long_as_its_longest_unit() {
    let (analysis, _) = region(2, |tid, thread, node| {
        thread.work(10);
        let ranges: &[(i64, u64, u64)] = match tid {
            0 => &[(0, 1, 100), (2, 1, 50)],
            _ => &[(1, 1, 400)],
        };
        a_loop(thread, node, 1, ranges);
        thread.work(5);
    });
    let [region] = &analysis.regions[..] else {
        panic!("{analysis:?}");
    };
    assert_eq!(region.work_ns, 2 * 15 + 550);
    assert_eq!(region.span_ns, 15 + 400);
    assert!(region.lower_bound.is_empty());
    assert_eq!(region.loops[0].slowest_ns, 400);
    assert_eq!(region.loops[0].largest.first, 1);
    // The last thread had more of the loop.
    let site = region.loops[0].site;
    assert_eq!(region.waiting[0].waited_for, WaitedFor::Units(site));
    assert_eq!(region.waiting[0].ns, 250);
    // One thread: all units one after the other, and one thread's own code.
    assert_eq!(region.predicted_ns[0], 15 + 550);
    assert_eq!(region.modelled_ns, region.wall_ns);
}

/// A task, created and executed by the thread at once (in its creation, as libgomp does where it has many).
fn task(thread: &mut FakeThread, parent: u64, rank: i64, body: &dyn Fn(&mut FakeThread, u64)) {
    let node = thread.node();
    thread.begin(Construct::TaskCreate, TASK, 0, parent, Step::None, 0);
    thread.work(1);
    thread.end(0);
    thread.begin(Construct::Task, TASK, node, parent, Step::Ranked, rank);
    thread.record_node(Construct::Task, TASK, node, parent, Step::Ranked, rank);
    body(thread, node);
    thread.end(0);
}

/// Tasks that wait for each other's end: created first, executed in the `taskwait`.
pub(super) fn tasks_and_wait(
    thread: &mut FakeThread,
    parent: u64,
    count: i64,
    body: &dyn Fn(&mut FakeThread, u64),
) {
    let nodes: Vec<u64> = (0..count)
        .map(|_| {
            thread.begin(Construct::TaskCreate, TASK, 0, parent, Step::None, 0);
            thread.work(1);
            thread.end(0);
            thread.node()
        })
        .collect();
    thread.begin(Construct::Taskwait, TASKWAIT, 0, parent, Step::None, 0);
    for (node, rank) in nodes.into_iter().zip(1..) {
        thread.begin(Construct::Task, TASK, node, parent, Step::Ranked, rank);
        thread.record_node(Construct::Task, TASK, node, parent, Step::Ranked, rank);
        body(thread, node);
        thread.end(0);
    }
    thread.end(0);
}

fn in_single(body: impl Fn(&mut FakeThread, u64)) -> Analysis {
    let (analysis, _) = region(1, |_, thread, node| {
        let single = thread.node();
        thread.begin(Construct::Single, SINGLE, single, node, Step::Ranked, 1);
        thread.record_node(Construct::Single, SINGLE, single, node, Step::Ranked, 1);
        body(thread, single);
        thread.end(0);
    });
    analysis
}

#[test]
fn independent_tasks_are_as_long_as_one() {
    let analysis = in_single(|thread, single| {
        thread.work(7);
        tasks_and_wait(thread, single, 10, &|t, _| t.work(100));
        thread.work(3);
    });
    let region = &analysis.regions[0];
    assert_eq!((region.work_ns, region.span_ns), (1010, 110));
    assert_eq!(region.lower_bound, []);
    // The first tasks can begin at 8 and, for who creates them, at 17; each thread executes five.
    assert_eq!(region.predicted_ns[1], 17 + 500 + 3);
    assert_eq!(region.predicted_ns[0], 1020);
}

#[test]
fn dependences_that_are_not_on_record_make_the_span_a_bound() {
    let analysis = in_single(|thread, single| {
        let node = thread.node();
        thread.work(1);
        thread.begin(Construct::TaskCreate, TASK, 0, single, Step::None, 0);
        thread.work(1);
        thread.end(1);
        thread.begin(Construct::Task, TASK, node, single, Step::Ranked, 1);
        thread.record_node(Construct::Task, TASK, node, single, Step::Ranked, 1);
        thread.end(0);
    });
    let bounds = &analysis.regions[0].lower_bound;
    assert!(bounds.contains(&LowerBound::TaskDependences), "{bounds:?}");
}

/// Tasks of 100 ticks and more with these dependences, created in this order.
fn dependent(tasks: &[&[(u64, Access)]]) -> Analysis {
    in_single(|thread, single| {
        let nodes: Vec<u64> = tasks
            .iter()
            .map(|accesses| {
                let node = thread.node();
                thread.depend(node, accesses);
                thread.begin(Construct::TaskCreate, TASK, 0, single, Step::None, 0);
                thread.work(1);
                thread.end(1);
                node
            })
            .collect();
        thread.begin(Construct::Taskwait, TASKWAIT, 0, single, Step::None, 0);
        for (node, rank) in nodes.into_iter().zip(1..) {
            thread.begin(Construct::Task, TASK, node, single, Step::Ranked, rank);
            thread.record_node(Construct::Task, TASK, node, single, Step::Ranked, rank);
            thread.work(100 + rank as u64);
            thread.end(0);
        }
        thread.end(0);
    })
}

#[test]
fn dependences_order_tasks() {
    use Access::{In, MutexInOutSet, Out};
    let (write, read): (&[_], &[_]) = (&[(8, Out)], &[(8, In)]);
    let chain = dependent(&[write; 5]);
    let region = &chain.regions[0];
    assert_eq!((region.work_ns, region.span_ns), (515, 515));
    assert_eq!(region.lower_bound, []);
    assert_eq!((region.path[0].ns, region.path[0].units), (515, 5));
    // No number of threads helps.
    assert!(region.predicted_ns.iter().all(|&t| t >= 515));
    let readers = dependent(&[write, read, read, read, write]);
    assert_eq!(readers.regions[0].span_ns, 101 + 104 + 105);
    assert_eq!(readers.regions[0].path[0].units, 3);
    let either = {
        let of_set: &[_] = &[(8, MutexInOutSet)];
        dependent(&[of_set; 4])
    };
    assert_eq!(either.regions[0].span_ns, 104);
    assert_eq!(either.regions[0].lower_bound, [LowerBound::Exclusions]);
}

#[test]
fn a_chain_of_tasks_has_no_parallelism() {
    let analysis = in_single(|thread, single| {
        for _ in 0..10 {
            tasks_and_wait(thread, single, 1, &|t, _| t.work(100));
        }
    });
    let region = &analysis.regions[0];
    // All have the rank 1 here, which no program has; the order of creation is what counts.
    assert_eq!((region.work_ns, region.span_ns), (1000, 1000));
}

#[test]
fn a_tree_of_tasks_is_as_deep_as_its_levels() {
    fn below(thread: &mut FakeThread, node: u64, levels: u32) {
        thread.work(10);
        if levels > 0 {
            tasks_and_wait(thread, node, 2, &|t, n| below(t, n, levels - 1));
        }
        thread.work(1);
    }
    let analysis = in_single(|thread, single| {
        tasks_and_wait(thread, single, 1, &|t, n| below(t, n, 5));
    });
    let region = &analysis.regions[0];
    assert_eq!((region.work_ns, region.span_ns), (63 * 11, 6 * 11));
}

#[test]
fn a_task_nobody_waits_for_ends_before_the_barrier() {
    let analysis = in_single(|thread, single| {
        thread.work(10);
        task(thread, single, 1, &|t, n| {
            t.work(5);
            task(t, n, 1, &|t, _| t.work(300));
        });
        thread.work(20);
    });
    let region = &analysis.regions[0];
    // They were executed where they were created: 10, then 5 and 300, and 20.
    assert_eq!(region.work_ns, 335);
    assert_eq!(region.span_ns, 335);
}

#[test]
fn barriers_end_phases_and_who_is_waited_for_is_told() {
    let (analysis, summary) = region(2, |tid, thread, node| {
        thread.work(if tid == 0 { 10 } else { 60 });
        thread.begin(Construct::Barrier, BARRIER, 0, node, Step::None, 0);
        thread.until(BEGIN + 60);
        thread.end(0);
        thread.begin(Construct::Critical, CRITICAL, 0, node, Step::None, 0);
        let wait = 100 * tid as u64;
        thread.work(wait);
        thread.end(wait);
        thread.work(100);
    });
    let region = &analysis.regions[0];
    assert_eq!(region.span_ns, 60 + 100);
    let barrier = |w: &&super::Waiting| w.barrier.is_some();
    let code = region.waiting.iter().find(barrier).expect("a barrier");
    assert_eq!((code.waited_for, code.ns), (WaitedFor::Code, 50));
    let end = region.waiting.iter().find(|w| w.barrier.is_none());
    let end = end.expect("the region's end");
    let WaitedFor::Entering(site) = end.waited_for else {
        panic!("{end:?}");
    };
    assert_eq!(
        summary.sites[site as usize].construct,
        Some(Construct::Critical)
    );
}

#[test]
fn what_was_held_bounds_all_predictions() {
    let (analysis, _) = region(2, |tid, thread, node| {
        thread.begin(Construct::Critical, CRITICAL, 0, node, Step::None, 0);
        let wait = 500 * tid as u64;
        thread.work(wait);
        // Held: code of the region, in the midst of the interval.
        thread.hold(500);
        thread.end(wait);
    });
    let region = &analysis.regions[0];
    assert_eq!(region.held.map(|h| h.ns), Some(1000));
    let (predicted, between) = (&region.predicted_ns, &region.predicted_between_ns);
    // Threads beyond the two may hold it as long, or each for a part; one may hold it for both.
    assert_eq!((predicted[1], between[1]), (1000, [1000, 1000]));
    assert!(predicted[2..].iter().all(|&t| t >= 2000));
    assert!(between.iter().all(|b| b[0] <= 1000 && b[1] >= 1000));
}

/// A static loop of such iterations on so many threads.
fn static_loop(iterations: &[u64], threads: usize) -> super::RegionAnalysis {
    let blocks = blocks(iterations.len(), threads);
    let (mut analysis, _) = region(threads, |tid, thread, node| {
        let (first, end) = blocks[tid];
        let range = (
            first as i64,
            (end - first) as u64,
            iterations[first..end].iter().sum(),
        );
        a_loop(thread, node, 1, &[range]);
    });
    analysis.regions.remove(0)
}

/// From where to where each thread's iterations are.
fn blocks(iterations: usize, threads: usize) -> Vec<(usize, usize)> {
    let end = |t: usize| t * (iterations / threads) + t.min(iterations % threads);
    (0..threads).map(|t| (end(t), end(t + 1))).collect()
}

#[test]
fn a_range_that_is_divided_may_have_all_its_time_in_one_piece() {
    let of = |iterations: &[u64], threads, to: usize| {
        let region = static_loop(iterations, threads);
        (region.predicted_ns[to], region.predicted_between_ns[to])
    };
    assert_eq!(of(&[10; 100], 1, 1), (500, [500, 1000]));
    let uneven: Vec<u64> = [[12; 50], [8; 50]].concat();
    assert_eq!(of(&uneven, 2, 0), (1000, [1000, 1000]));
    assert_eq!(of(&uneven, 2, 2), (300, [250, 600]));
    // Four ranges that don't differ.
    assert_eq!(of(&[10; 100], 4, 3), (130, [130, 130]));
}

proptest! {
    #[test]
    fn static_loops_take_what_is_between_the_bounds(
        iterations in proptest::collection::vec(1u64..1000, 4..60),
        had in 1usize..4,
        to in 0usize..3,
    ) {
        let region = static_loop(&iterations, had);
        let threads = super::TEAMS[to] as usize;
        let block = |&(first, end): &(usize, usize)| iterations[first..end].iter().sum();
        let time: u64 = blocks(iterations.len(), threads).iter().map(block).max().unwrap_or(0);
        let [low, high] = region.predicted_between_ns[to];
        // Parts are rounded down.
        prop_assert!(low <= time + 8 && time <= high + 8, "{} {:?}", time, [low, high]);
    }
}
