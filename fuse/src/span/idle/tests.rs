//! Two threads: one creates tasks and executes them, the other has nothing to do.

use crate::span::result::NoTask;
use crate::span::tests::{SINGLE, TASK, TASKWAIT, region, tasks_and_wait};
use crate::span::{Idle, RegionAnalysis};
use crate::testing::FakeThread;
use ompfuse_format::Construct;
use ompfuse_format::record::Step;
use ompfuse_format::record::depend::Access;

/// A region whose first thread executes this in a `single`; the second one waits at the end.
fn in_single(body: impl Fn(&mut FakeThread, u64)) -> RegionAnalysis {
    let (mut analysis, _) = region(2, |tid, thread, node| {
        if tid == 0 {
            let single = thread.node();
            thread.begin(Construct::Single, SINGLE, single, node, Step::Ranked, 1);
            thread.record_node(Construct::Single, SINGLE, single, node, Step::Ranked, 1);
            body(thread, single);
            thread.end(0);
        }
    });
    analysis.regions.remove(0)
}

/// What the second thread had no task for.
fn ns(region: &RegionAnalysis, is: fn(NoTask) -> bool) -> u64 {
    let at_end = region.idle.iter().filter(|i| i.at.is_none() && is(i.why));
    at_end.map(|i| i.ns).sum()
}

fn of(region: &RegionAnalysis, is: fn(NoTask) -> bool) -> &Idle {
    let found = region.idle.iter().find(|i| is(i.why));
    found.unwrap_or_else(|| panic!("{:?}", region.idle))
}

const ONE: fn(NoTask) -> bool = |w| matches!(w, NoTask::OneByOne { .. });
const UNTAKEN: fn(NoTask) -> bool = |w| matches!(w, NoTask::Untaken(_));
const LAST: fn(NoTask) -> bool = |w| matches!(w, NoTask::Last(_));
const AT_ONCE: fn(NoTask) -> bool = |w| matches!(w, NoTask::AtOnce(_));
const BLOCK: fn(NoTask) -> bool = |w| matches!(w, NoTask::Block(_));
const DEPENDENT: fn(NoTask) -> bool = |w| matches!(w, NoTask::Dependent(_));
const EXCLUDED: fn(NoTask) -> bool = |w| matches!(w, NoTask::Excluded(_));

#[test]
fn a_wait_for_a_single_task_is_told_from_one_for_two() {
    let single = in_single(|thread, node| {
        for _ in 0..3 {
            tasks_and_wait(thread, node, 1, &|t, _| t.work(100));
        }
    });
    assert_eq!(ns(&single, ONE), 300, "{:?}", single.idle);
    assert_eq!(of(&single, ONE).times, 3);
    let pairs = in_single(|thread, node| {
        tasks_and_wait(thread, node, 2, &|t, _| t.work(100));
    });
    assert_eq!(ns(&pairs, ONE), 0, "{:?}", pairs.idle);
    // While one task is executed the other thread could take the second. Both are created for a tick before.
    assert_eq!(
        (ns(&pairs, UNTAKEN), ns(&pairs, LAST)),
        (102, 100),
        "{:?}",
        pairs.idle
    );
}

#[test]
fn code_before_a_wait_is_executed_beside_the_task() {
    let region = in_single(|thread, node| {
        for _ in 0..2 {
            let task = thread.node();
            thread.begin(Construct::TaskCreate, TASK, 0, node, Step::None, 0);
            thread.work(1);
            thread.end(0);
            thread.work(100);
            thread.begin(Construct::Taskwait, TASKWAIT, 0, node, Step::None, 0);
            thread.begin(Construct::Task, TASK, task, node, Step::Ranked, 1);
            thread.record_node(Construct::Task, TASK, task, node, Step::Ranked, 1);
            thread.work(100);
            thread.end(0);
            thread.end(0);
        }
    });
    assert_eq!(ns(&region, ONE), 0, "{:?}", region.idle);
}

/// Tasks that are executed in their own creation, with code before each.
fn at_once(tasks: usize) -> RegionAnalysis {
    in_single(|thread, node| {
        for rank in 1..=tasks {
            thread.work(10);
            thread.begin(Construct::TaskCreate, TASK, 0, node, Step::None, 0);
            let task = thread.node();
            thread.begin(Construct::Task, TASK, task, node, Step::Ranked, rank as i64);
            thread.record_node(Construct::Task, TASK, task, node, Step::Ranked, rank as i64);
            thread.work(100);
            thread.end(0);
            thread.end(0);
        }
    })
}

#[test]
fn tasks_that_are_executed_at_their_creation_keep_others_idle() {
    let region = at_once(3);
    let parts = (ns(&region, AT_ONCE), ns(&region, BLOCK));
    assert_eq!(parts, (300, 30), "{:?}", region.idle);
    // Deferred, they could run beside each other, the last one after all code of their creator.
    assert_eq!((region.span_ns, region.span_deferred_ns), (330, 130));
}

/// Three tasks with this access, executed one after the other in a `taskwait`.
fn accessing(access: Access) -> RegionAnalysis {
    in_single(|thread, node| {
        let nodes = [1, 2, 3].map(|_| {
            let task = thread.node();
            thread.depend(task, &[(8, access)]);
            thread.begin(Construct::TaskCreate, TASK, 0, node, Step::None, 0);
            thread.work(1);
            thread.end(1);
            task
        });
        thread.begin(Construct::Taskwait, TASKWAIT, 0, node, Step::None, 0);
        for (task, rank) in nodes.into_iter().zip(1..) {
            thread.begin(Construct::Task, TASK, task, node, Step::Ranked, rank);
            thread.record_node(Construct::Task, TASK, task, node, Step::Ranked, rank);
            thread.work(100);
            thread.end(0);
        }
        thread.end(0);
    })
}

#[test]
fn chains_and_exclusions_have_the_last_task_in_them() {
    let chain = accessing(Access::Out);
    assert!(ns(&chain, DEPENDENT) >= 300, "{:?}", chain.idle);
    assert_eq!(ns(&chain, LAST), 0, "{:?}", chain.idle);
    let alone = accessing(Access::MutexInOutSet);
    assert!(ns(&alone, EXCLUDED) >= 300, "{:?}", alone.idle);
    assert_eq!(ns(&alone, LAST), 0, "{:?}", alone.idle);
    // They may run at once.
    let readers = accessing(Access::In);
    assert_eq!(
        ns(&readers, DEPENDENT) + ns(&readers, EXCLUDED),
        0,
        "{:?}",
        readers.idle
    );
}
