//! Made-up runs as timelines. All other tests of made-up runs compare theirs with the tables too ([`crate::testing`]).

use super::*;
use crate::testing::{BEGIN, FakeRun, FakeThread, listing};
use ompfuse_format::construct::OverheadClass as Class;
use ompfuse_format::record::Step as LabelStep;
use ompfuse_progress::Progress;

/// A thread's steps as text: what is entered, with its begin and end, in the order of time, indented by depth.
fn drawn(run: &FakeRun, lane: usize) -> Vec<String> {
    run.with_files(|files| {
        let timeline = Timeline::new(files, Progress::default()).unwrap();
        let (mut depth, mut lines) = (0, vec![]);
        for step in timeline.steps(lane) {
            match step {
                Step::Enter(s) => {
                    let name = match s.kind {
                        Kind::Interval => s.construct.name().to_owned(),
                        kind => format!("{kind:?} {}", s.construct.name()),
                    };
                    let cut = if s.is_cut { " cut" } else { "" };
                    let indent = "  ".repeat(depth);
                    lines.push(format!("{indent}{name} {}-{}{cut}", s.begin_ns, s.end_ns));
                    depth += 1;
                }
                Step::Leave(..) => depth -= 1,
            }
        }
        assert_eq!(depth, 0);
        let times = |step: Step<'_>| match step {
            Step::Enter(span) => (span.begin_ns, span.end_ns),
            Step::Leave(span, at) => (span.begin_ns, at),
        };
        let mut folded = vec![];
        timeline
            .steps(lane)
            .for_each(|step| folded.push(times(step)));
        let one_by_one: Vec<_> = timeline.steps(lane).by_ref().map(times).collect();
        assert_eq!(folded.len(), 2 * lines.len());
        assert!(folded == one_by_one);
        lines
    })
}

const SITES: [(Construct, u64); 4] = [
    (Construct::Parallel, 3),
    (Construct::Critical, 4),
    (Construct::Task, 5),
    (Construct::Lock, 6),
];

/// Two threads: the second one's part ends early, and it executes a task behind it.
fn region(orderly: bool) -> FakeRun {
    let mut run = FakeRun::new(&SITES, &["cycles"]);
    let mut threads = [(0, BEGIN), (1, BEGIN + 12)].map(|(n, at)| FakeThread::new(n, 1, at));
    let root = FakeThread::root();
    let parallel = threads[0].node();
    threads[0].work(10);
    threads[0].begin(Construct::Parallel, 0, parallel, root, LabelStep::Ranked, 1);
    threads[0].record_node(Construct::Parallel, 0, parallel, root, LabelStep::Ranked, 1);
    threads[0].work(2);
    threads[1].until(BEGIN + 15);
    for thread in &mut threads {
        thread.begin(Construct::ImplicitTask, 0, 0, parallel, LabelStep::None, 0);
    }
    threads[0].work(5);
    threads[0].begin(Construct::Critical, 1, 0, parallel, LabelStep::None, 0);
    threads[0].work(4);
    threads[0].hold(20);
    threads[0].work(1);
    threads[0].end(4);
    threads[0].work(8);
    threads[0].end(0);
    threads[1].work(10);
    threads[1].end(1);
    threads[1].work(5);
    let task = threads[1].node();
    threads[1].begin(Construct::Task, 2, task, parallel, LabelStep::TidRanked, 0);
    threads[1].work(25);
    threads[1].end(0);
    threads[0].work(9);
    threads[0].end(2);
    threads[0].work(3);
    threads[1].work(40);
    run.process(77, BEGIN, threads.into(), orderly);
    run
}

#[test]
fn what_is_around_a_threads_part_follows_from_its_region() {
    let run = region(true);
    let first = [
        "program 0-62",
        "  parallel 10-59",
        "    Startup parallel 10-12",
        "    implicit-task 12-50",
        "      Enter critical 17-21",
        "      Exit critical 41-42",
        "    End parallel 50-55",
        "    Shutdown parallel 55-59",
    ];
    assert_eq!(drawn(&run, 0), first);
    let second = [
        "program 12-95",
        "  Startup parallel 12-15",
        "  implicit-task 15-25",
        "  End parallel 25-55",
        "    task 30-55",
        "  Shutdown parallel 55-59",
    ];
    assert_eq!(drawn(&run, 1), second);
}

#[test]
fn a_span_says_what_its_thread_does() {
    let run = region(true);
    run.with_files(|files| {
        let timeline = Timeline::new(files, Progress::default()).unwrap();
        let doing = |lane: usize| -> Vec<Doing> {
            let root = timeline.lanes()[lane].is_root;
            let entered = timeline.steps(lane).filter_map(|step| match step {
                Step::Enter(span) => Some(span.doing(root)),
                Step::Leave(..) => None,
            });
            entered.collect()
        };
        let (sync, manage) = (Class::Synchronization, Class::Management);
        let lost = Doing::Lost;
        let first = [
            Doing::Serial,
            lost(manage),
            lost(manage),
            Doing::Work,
            lost(sync),
            lost(manage),
            lost(Class::Imbalance),
            lost(manage),
        ];
        assert_eq!(doing(0), first);
        let end = lost(Class::Imbalance);
        let second = [
            Doing::Idle,
            lost(manage),
            Doing::Work,
            end,
            Doing::Work,
            lost(manage),
        ];
        assert_eq!(doing(1), second);
    });
}

#[test]
fn counts_and_labels_are_those_of_the_tables() {
    for swap in [false, true] {
        // Reading compares the timeline with the tables.
        let run = listing(&["cycles", "instructions"], swap).read();
        assert_eq!(run.xus.len(), 16);
    }
}

#[test]
fn locks_that_overlap_are_held_in_no_span() {
    let mut thread = FakeThread::new(0, 0, BEGIN);
    let root = FakeThread::root();
    // Hand over hand: the first is released while the second is held.
    thread.begin(Construct::Lock, 3, 0, root, LabelStep::None, 0);
    thread.work(2);
    thread.hold(10);
    thread.end(2);
    let mut run = FakeRun::new(&SITES, &[]);
    run.process(77, BEGIN, vec![thread], true);
    assert_eq!(drawn(&run, 0), ["program 0-12", "  Enter lock 0-2"]);
}

#[test]
fn a_killed_thread_shows_what_it_has_recorded() {
    let mut thread = FakeThread::new(0, 0, BEGIN);
    let root = FakeThread::root();
    for _ in 0..20 {
        thread.work(3);
        thread.wait(Construct::Barrier, 1, root, 2);
    }
    let mut run = FakeRun::new(&SITES, &[]);
    run.header.exit = ompfuse_format::run::Exit::Signal(9);
    run.process(77, BEGIN, vec![thread], false);
    let lines = drawn(&run, 0);
    assert_eq!(lines.len(), 20);
    assert!(lines.iter().all(|l| l.starts_with("barrier ")));
    run.with_files(|files| {
        let timeline = Timeline::new(files, Progress::default()).unwrap();
        assert!(!timeline.lanes()[0].has_ended);
        assert!(!timeline.health().problems.is_empty());
    });
}

#[test]
fn a_killed_thread_waits_no_longer_than_its_process_lived() {
    region(false).with_files(|files| {
        let timeline = Timeline::new(files, Progress::default()).unwrap();
        let mut ends = vec![];
        for (number, lane) in timeline.lanes().iter().enumerate() {
            for step in timeline.steps(number) {
                if let Step::Leave(span, at) = step {
                    assert!(lane.begin_ns <= span.begin_ns && at <= lane.end_ns);
                    ends.push((number, span.kind, at));
                }
            }
        }
        // Its own last record is the task's; the join is the other's.
        let last = timeline.lanes()[1].end_ns;
        assert!(ends.contains(&(1, Kind::Shutdown, last)), "{ends:?}");
    });
}

#[test]
fn an_empty_run_has_no_lanes() {
    let mut run = FakeRun::new(&SITES, &[]);
    run.process(77, BEGIN, vec![], true);
    run.with_files(|files| {
        let timeline = Timeline::new(files, Progress::default()).unwrap();
        assert!(timeline.lanes().is_empty());
    });
}

/// Three tasks that one thread creates, of which the other one executes so many, the last one first. An event that one waits for is
/// created like a task.
fn creations(executed: usize) -> (Vec<u64>, Vec<u64>) {
    let mut run = FakeRun::new(&SITES, &[]);
    let mut threads = [0, 1].map(|n| FakeThread::new(n, 0, BEGIN));
    let root = FakeThread::root();
    let mut nodes = vec![];
    for _ in 0..3 {
        nodes.push(threads[0].node());
        threads[0].wait(Construct::TaskCreate, 2, root, 2);
        threads[0].wait(Construct::TaskCreate, 3, root, 1);
    }
    threads[1].until(BEGIN + 20);
    for &node in nodes[..executed].iter().rev() {
        for part in 0..2 {
            threads[1].begin(Construct::Task, 2, node, root, LabelStep::Ranked, 1);
            threads[1].work(5 + part);
            threads[1].end(0);
        }
    }
    run.process(77, BEGIN, threads.into(), true);
    run.with_files(|files| {
        let timeline = Timeline::new(files, Progress::default()).unwrap();
        timeline.read_tasks(Progress::default());
        let created = timeline.steps(0).filter_map(|step| match step {
            Step::Enter(span) => Some(span.created).filter(|&node| node != 0),
            Step::Leave(..) => None,
        });
        let (created, lane) = (created.collect(), &timeline.lanes()[1]);
        let mut parts = timeline.steps(1).filter_map(|step| match step {
            Step::Leave(span, _) if span.is_task() => Some((timeline.ends(lane, &span), span)),
            _ => None,
        });
        while let Some((ends, span)) = parts.next() {
            let name = timeline.task_name(lane, &span).unwrap();
            assert_eq!((name.creator, ends), (0, false));
            assert!(parts.next().is_some_and(|(ends, _)| ends));
        }
        (created, nodes)
    })
}

#[test]
fn creations_are_connected_with_their_tasks() {
    let (created, nodes) = creations(3);
    assert_eq!(created, nodes);
    // Which one is missing is not known.
    assert!(creations(2).0.is_empty());
}
