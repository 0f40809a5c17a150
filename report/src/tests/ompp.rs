//! ompP's columns, paths and properties of made-up records: every number exact. One tick is a nanosecond.

use super::{close, report_of};
use ompfuse_account::Report;
use ompfuse_account::model::{CallPath, Class, Property, PropertyKind, Region, Times};
use ompfuse_format::Construct;
use ompfuse_format::record::Step;
use ompfuse_fuse::testing::{BEGIN, FakeRun, FakeThread};

const PARALLEL: u32 = 0;
const LOOP: u32 = 1;
const CRITICAL: u32 = 2;
const SINGLE: u32 = 3;
const TASK: u32 = 4;
const INNER: u32 = 5;
const BARRIER: u32 = 6;
const MASTER: u32 = 7;
const SITES: &[(Construct, u64)] = &[
    (Construct::Parallel, 10),
    (Construct::Loop, 20),
    (Construct::Critical, 30),
    (Construct::Single, 40),
    (Construct::Task, 50),
    (Construct::Parallel, 60),
    (Construct::Barrier, 70),
    (Construct::Master, 80),
];

/// A construct of the team with a node of its own, `index` among its siblings.
fn open(thread: &mut FakeThread, construct: Construct, site: u32, parent: u64, index: i64) -> u64 {
    let node = thread.node();
    thread.begin(construct, site, node, parent, Step::Ranked, index);
    node
}

/// Two threads in one region: a loop, a critical section, a single whose tasks both execute, and in one of the tasks another region, which
/// is executed outside as well.
fn run() -> FakeRun {
    let mut threads = [FakeThread::new(0, 1, BEGIN), FakeThread::new(1, 1, BEGIN)];
    let root = FakeThread::root();
    let [a, b] = &mut threads;
    a.work(100);
    b.until(BEGIN + 130);
    let region = open(a, Construct::Parallel, PARALLEL, root, 1);
    a.work(10); // the first begins 10 later, the other one 30
    for (tid, thread) in [&mut *a, &mut *b].into_iter().enumerate() {
        let parent = region;
        thread.begin(Construct::ImplicitTask, PARALLEL, 0, parent, Step::None, 0);
        // 200 and 240 in the loop, of which 50 in its code around the ranges.
        let node = open(thread, Construct::Loop, LOOP, region, 1);
        thread.work(50);
        let range = thread.node();
        thread.begin(Construct::Range, LOOP, range, node, Step::Range, tid as i64);
        thread.work(150 + 40 * tid as u64);
        thread.end(1);
        thread.end(0);
    }
    let until = BEGIN + 400;
    for thread in [&mut *a, &mut *b] {
        let left = until - thread.now;
        thread.wait(Construct::ImplicitBarrier, LOOP, region, left);
        // Both want to enter: one waits 2, the other 45; both have it for 40, and leave it in 3.
        let enter = if thread.now == until { 2 } else { 45 };
        thread.begin(Construct::Critical, CRITICAL, 0, region, Step::None, 0);
        thread.work(enter);
        thread.end(enter);
    }
    let single = open(a, Construct::Single, SINGLE, region, 2);
    a.work(20);
    let mut tasks = vec![];
    for index in 1..=2 {
        a.wait(Construct::TaskCreate, TASK, single, 5);
        tasks.push((a.node(), index));
    }
    a.end(0);
    let end = BEGIN + 700;
    for (thread, (node, index)) in [&mut *a, &mut *b].into_iter().zip(tasks) {
        thread.begin(Construct::ImplicitBarrier, SINGLE, 0, region, Step::None, 0);
        thread.work(10);
        thread.begin(Construct::Task, TASK, node, single, Step::Ranked, index);
        thread.work(60);
        if index == 1 {
            inner(thread, node);
        }
        thread.end(0);
        thread.until(end);
        thread.end(0);
    }
    a.work(1);
    a.end(0); // the parts end at 701 and 731
    b.work(31);
    b.end(1);
    a.until(BEGIN + 740);
    a.end(2); // the join
    inner(a, root);
    a.work(50);
    b.until(a.now);
    let mut fake = FakeRun::new(SITES, &["cycles"]);
    fake.process(9, BEGIN, threads.into(), true);
    fake
}

/// A region of one thread: 4 before its part, 30 in it, 6 behind.
fn inner(thread: &mut FakeThread, parent: u64) {
    let index = if parent == FakeThread::root() { 2 } else { 1 };
    let node = open(thread, Construct::Parallel, INNER, parent, index);
    thread.work(4);
    thread.begin(Construct::ImplicitTask, INNER, 0, node, Step::None, 0);
    thread.work(30);
    thread.end(0);
    thread.work(6);
    thread.end(1);
}

fn region(report: &Report, address: u64) -> &Region {
    let mut regions = report.regions.iter();
    let found = regions.find(|r| r.address.unwrap().0 == address);
    found.unwrap()
}

/// A column in nanoseconds: by thread, then of all.
fn column(region: &Region, of: fn(&Times) -> Option<f64>) -> Vec<Option<f64>> {
    let threads = region.per_thread.iter().map(|t| t.times.as_ref());
    let rows = threads.chain([region.times.as_ref()]);
    let ns = |times: Option<&Times>| Some((of(times?)? * 1e9).round());
    rows.map(ns).collect()
}

fn known(ns: &[u32]) -> Vec<Option<f64>> {
    ns.iter().map(|&ns| Some(f64::from(ns))).collect()
}

#[test]
fn every_column_is_exact() {
    let report = report_of(&run());
    let parallel = region(&report, 10);
    assert_eq!(column(parallel, |t| t.exec_s), known(&[640, 640, 1280]));
    assert_eq!(column(parallel, |t| t.startup_s), known(&[10, 30, 40]));
    assert_eq!(column(parallel, |t| t.body_s), known(&[591, 601, 1192]));
    assert_eq!(column(parallel, |t| t.exit_barrier_s), known(&[30, 0, 30]));
    assert_eq!(column(parallel, |t| t.task_s), known(&[0, 0, 0]));
    assert_eq!(column(parallel, |t| t.shutdown_s), known(&[9, 9, 18]));
    let of_loop = region(&report, 20);
    assert_eq!(column(of_loop, |t| t.body_s), known(&[200, 240, 440]));
    assert_eq!(column(of_loop, |t| t.exit_barrier_s), known(&[90, 30, 120]));
    assert_eq!(column(of_loop, |t| t.task_s), known(&[0, 0, 0]));
    assert_eq!(column(of_loop, |t| t.exec_s), known(&[290, 270, 560]));
    assert_eq!(column(of_loop, |t| t.startup_s), [None, None, None]);
    let single = region(&report, 40);
    assert_eq!(column(single, |t| t.single_s), known(&[30, 0, 30]));
    // 60 in the task, and 40 in the region that the first one contains.
    assert_eq!(column(single, |t| t.task_s), known(&[100, 60, 160]));
    let waited = column(single, |t| t.exit_barrier_s);
    let whole = column(single, |t| t.exec_s);
    let parts = |row: usize| [30.0, 0.0, 30.0][row] + [100.0, 60.0, 160.0][row];
    for row in 0..3 {
        assert_eq!(waited[row].unwrap() + parts(row), whole[row].unwrap());
    }
    let tasks = region(&report, 50);
    assert_eq!(column(tasks, |t| t.exec_s), known(&[100, 60, 160]));
    assert_eq!(tasks.per_thread[0].times.unwrap().create_count, Some(2));
    assert_eq!(column(tasks, |t| t.create_s), known(&[10, 0, 10]));
    // It was never released on record.
    let critical = region(&report, 30);
    assert_eq!(column(critical, |t| t.body_s), [None, None, None]);
    assert_eq!(
        column(critical, |t| t.exec_s),
        column(critical, |t| t.enter_s)
    );
}

#[test]
fn a_region_is_apart_on_each_path() {
    let report = report_of(&run());
    let paths = &report.call_paths;
    let name = |path: &CallPath| {
        let region = report.regions.iter().find(|r| Some(r.id) == path.region);
        region.map_or(0, |r| r.address.unwrap().0)
    };
    let around = |path: &CallPath| path.parent.map(|p| name(&paths[p as usize]));
    let ns = |s: f64| (s * 1e9).round() as i64;
    let rows = paths.iter();
    let mut rows: Vec<_> = rows.map(|p| (around(p), name(p), p.executions)).collect();
    rows.sort();
    assert_eq!(
        rows,
        [
            (None, 0, 1),
            (Some(0), 10, 1),
            (Some(0), 60, 1),
            (Some(10), 20, 1),
            (Some(10), 30, 2),
            (Some(10), 40, 1),
            (Some(40), 50, 2),
            (Some(50), 60, 1),
        ]
    );
    let inner: Vec<_> = paths.iter().filter(|p| name(p) == 60).collect();
    for path in inner {
        assert_eq!((ns(path.exclusive_s), ns(path.inclusive_s)), (40, 40));
        assert_eq!(path.wall_s.map(ns), Some(40));
    }
    let task = paths.iter().find(|p| name(p) == 50).unwrap();
    // Two tasks of 60, creating them, and what one of them contains.
    assert_eq!((ns(task.exclusive_s), ns(task.inclusive_s)), (130, 170));
    let cycles = task.events["cycles"];
    assert_eq!((cycles.exclusive, cycles.inclusive), (Some(260), Some(340)));
    let first = &region(&report, 50).per_thread[0];
    assert_eq!(first.inclusive_s.map(ns), Some(110));
    assert_eq!(first.events["cycles"].inclusive, Some(220));
    let all: f64 = paths.iter().map(|p| p.exclusive_s).sum();
    assert!(close(all, report.thread_time_s));
    assert!(close(paths[0].inclusive_s, report.thread_time_s));
}

fn find(report: &Report, kind: PropertyKind) -> Vec<(u64, i64)> {
    let address = |p: &Property| {
        let region = report.regions.iter().find(|r| Some(r.id) == p.region);
        region.map_or(0, |r| r.address.unwrap().0)
    };
    let found = report.properties.iter().filter(|p| p.kind == kind);
    found
        .map(|p| (address(p), (p.seconds * 1e9).round() as i64))
        .collect()
}

#[test]
fn losses_are_properties_with_their_place() {
    let report = report_of(&run());
    assert_eq!(find(&report, PropertyKind::ImbalanceInLoop), [(20, 120)]);
    assert_eq!(find(&report, PropertyKind::TaskCreation), [(50, 10)]);
    assert_eq!(find(&report, PropertyKind::WaitAtBarrier), []);
    let managed = find(&report, PropertyKind::ThreadManagement);
    assert_eq!(managed, [(10, 58), (60, 20)]);
    let order: Vec<f64> = report.properties.iter().map(|p| p.seconds).collect();
    assert!(order.is_sorted_by(|a, b| a >= b));
    let available = report.available_s.unwrap();
    for property in &report.properties {
        assert!(close(
            property.severity.unwrap(),
            property.seconds / available
        ));
    }
    let classes: f64 = report.overheads.iter().map(|o| o.overhead.sum()).sum();
    let losses: f64 = report.properties.iter().map(|p| p.seconds).sum();
    assert!(close(classes, losses), "{classes} {losses}");
}

/// Four threads execute `sections`, as many sections each as is said, in a combined construct.
fn sections(executed: [u64; 4]) -> Report {
    let mut threads: Vec<FakeThread> = (0..4).map(|i| FakeThread::new(i, 0, BEGIN)).collect();
    let node = open(
        &mut threads[0],
        Construct::Parallel,
        PARALLEL,
        FakeThread::root(),
        1,
    );
    let mut index = 0;
    for (tid, thread) in threads.iter_mut().enumerate() {
        thread.begin(Construct::ImplicitTask, PARALLEL, 0, node, Step::None, 0);
        for _ in 0..executed[tid] {
            let section = thread.node();
            thread.begin(
                Construct::Section,
                PARALLEL,
                section,
                node,
                Step::Range,
                index,
            );
            thread.work(100);
            thread.end(0);
            index += 1;
        }
        thread.work(5);
        thread.end(tid as u64);
    }
    threads[0].until(BEGIN + 1000);
    threads[0].end(4);
    let mut fake = FakeRun::new(SITES, &[]);
    fake.process(9, BEGIN, threads, true);
    report_of(&fake)
}

#[test]
fn sections_of_a_combined_construct_follow_the_same_rule() {
    let few = sections([1, 1, 0, 0]);
    assert_eq!(find(&few, PropertyKind::NotEnoughSections), [(10, 200)]);
    let overhead = few.overheads[0].overhead;
    assert!(close(overhead.limited_parallelism_s.unwrap(), 200e-9));
    let times = region(&few, 10).times.unwrap();
    assert_eq!(times.section_count, Some(2));
    assert!(close(times.section_s.unwrap(), 200e-9) && close(times.management_s.unwrap(), 20e-9));
    let uneven = sections([2, 1, 1, 1]);
    assert_eq!(
        find(&uneven, PropertyKind::UnevenSectionDistribution),
        [(10, 300)]
    );
    assert_eq!(uneven.overheads[0].overhead.limited_parallelism_s, None);
}

/// A thread that did nothing before it came to a barrier on one path, and something on another one, is the same on both: classes over the
/// call paths are those of the region.
#[test]
fn classes_of_paths_are_those_of_regions() {
    let mut threads = [FakeThread::new(0, 1, BEGIN), FakeThread::new(1, 1, BEGIN)];
    let [a, _] = &mut threads;
    let region = open(a, Construct::Parallel, PARALLEL, FakeThread::root(), 1);
    for (tid, thread) in threads.iter_mut().enumerate() {
        thread.begin(Construct::ImplicitTask, PARALLEL, 0, region, Step::None, 0);
        let barrier = |thread: &mut FakeThread, parent: u64, idle: u64| {
            thread.begin(Construct::Barrier, BARRIER, 0, parent, Step::None, 0);
            thread.work(if tid == 0 { 1000 } else { 300 });
            thread.end(idle);
        };
        if tid == 0 {
            thread.begin(Construct::Master, MASTER, 0, region, Step::None, 0);
            thread.work(5);
            thread.end(0);
        }
        barrier(thread, region, 1);
        let node = open(thread, Construct::Loop, LOOP, region, 1);
        barrier(thread, node, 1 - tid as u64);
        thread.until(BEGIN + 4000);
        thread.end(0);
        thread.end(0);
    }
    threads[0].until(BEGIN + 4010);
    threads[0].end(2);
    let mut fake = FakeRun::new(SITES, &["cycles"]);
    fake.process(9, BEGIN, threads.into(), true);
    let report = report_of(&fake);
    let of_paths = |class: Class| -> f64 {
        let threads = report.call_paths.iter().flat_map(|p| &p.per_thread);
        threads.filter_map(|t| t.classes.get(&class)).sum()
    };
    let of_region = &report.overheads[0].overhead;
    for (class, ns) in [
        (Class::Synchronization, 600.0),
        (Class::LimitedParallelism, 2000.0),
    ] {
        let of_region = of_region.get(class).unwrap();
        assert!(close(of_region, ns * 1e-9), "{class:?}: {of_region}");
        assert!(
            close(of_paths(class), of_region),
            "{class:?}: {:?}",
            report.call_paths
        );
    }
}
