//! Listing 1.1 of [XU] as a run.

use super::{BEGIN, FakeRun, FakeThread};
use ompfuse_format::Construct;
use ompfuse_format::record::Step;

/// Sites of [`listing`], by their position.
pub const LISTING_SITES: &[(Construct, u64)] = &[
    (Construct::Parallel, 3),
    (Construct::Loop, 5),
    (Construct::Task, 7),
    (Construct::Loop, 11),
    (Construct::Task, 16),
    (Construct::ImplicitBarrier, 10),
];

/// Listing 1.1 of [XU] on two threads. `swap`: every task and dynamic range is executed by the
/// other thread.
pub fn listing(events: &[&str], swap: bool) -> FakeRun {
    let mut run = FakeRun::new(LISTING_SITES, events);
    let threads = listing_threads(events.len(), swap, BEGIN);
    run.process(77, BEGIN, threads, true);
    run
}

/// The threads of [`listing`], beginning at a tick.
pub fn listing_threads(counters: usize, swap: bool, begin: u64) -> Vec<FakeThread> {
    let mut threads = [
        FakeThread::new(0, counters, begin),
        FakeThread::new(1, counters, begin + 30),
    ];
    let root = FakeThread::root();
    threads[0].work(100);
    let parallel = threads[0].node();
    threads[0].begin(Construct::Parallel, 0, parallel, root, Step::Ranked, 1);
    threads[0].record_node(Construct::Parallel, 0, parallel, root, Step::Ranked, 1);
    threads[0].work(10);
    threads[1].until(begin + 125);
    let mut ranges = vec![];
    for (tid, thread) in threads.iter_mut().enumerate() {
        thread.begin(Construct::ImplicitTask, 0, 0, parallel, Step::None, 0);
        thread.work(5);
        let for5 = thread.node();
        thread.begin(Construct::Loop, 1, for5, parallel, Step::Ranked, 1);
        thread.record_node(Construct::Loop, 1, for5, parallel, Step::Ranked, 1);
        let range = thread.node();
        thread.begin(
            Construct::Range,
            1,
            range,
            for5,
            Step::Range,
            4 * tid as i64,
        );
        thread.record_node(
            Construct::Range,
            1,
            range,
            for5,
            Step::Range,
            4 * tid as i64,
        );
        ranges.push(range);
        for _ in 0..4 {
            thread.work(3);
            thread.wait(Construct::TaskCreate, 2, range, 2);
        }
        thread.end(4);
        thread.end(0);
    }
    // The barrier: tasks are executed, by their creator or by the other.
    for (tid, thread) in threads.iter_mut().enumerate() {
        thread.begin(Construct::ImplicitBarrier, 5, 0, parallel, Step::None, 0);
        let range = ranges[if swap { 1 - tid } else { tid }];
        for rank in 1..=4 {
            let node = thread.node();
            thread.begin(Construct::Task, 2, node, range, Step::Ranked, rank);
            thread.work(20 + rank as u64 + 4 * tid as u64);
            thread.end(0);
        }
    }
    let together = threads.iter().map(|t| t.now).max().unwrap_or(0);
    for (tid, thread) in threads.iter_mut().enumerate() {
        thread.until(together);
        thread.end(0);
        let for11 = thread.node();
        thread.begin(Construct::Loop, 3, for11, parallel, Step::Ranked, 2);
        thread.record_node(Construct::Loop, 3, for11, parallel, Step::Ranked, 2);
        let begins: [i64; 2] = if (tid == 0) != swap { [0, 6] } else { [2, 4] };
        for begin in begins {
            thread.wait(Construct::Dispatch, 3, parallel, 1);
            let node = thread.node();
            thread.begin(Construct::Range, 3, node, for11, Step::Range, begin);
            thread.work(30 + begin as u64);
            thread.end(2);
        }
        thread.end(0);
        // A task that is executed at once, in two parts.
        let task = thread.node();
        for ticks in [8, 9] {
            thread.begin(
                Construct::Task,
                4,
                task,
                parallel,
                Step::TidRanked,
                tid as i64,
            );
            thread.work(ticks);
            thread.end(0);
        }
        thread.work(tid as u64 * 10);
        thread.end(tid as u64);
    }
    let join = threads.iter().map(|t| t.now).max().unwrap_or(0) + 6;
    threads[0].until(join);
    threads[0].end(2);
    threads[0].work(40);
    threads[1].until(join + 20);
    threads.into()
}
