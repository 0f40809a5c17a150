//! Causes of made-up programs that are known by construction.

use crate::words;
use ompfuse_account::model::{Cause, LossKind, Report, Scaling, Silent};
use ompfuse_format::Construct;
use ompfuse_format::record::Step;
use ompfuse_fuse::span::Analysis;
use ompfuse_fuse::span::replay::Schedule;
use ompfuse_fuse::testing::{BEGIN, FakeRun, FakeThread};
use ompfuse_fuse::{Run, Summary};

const SITES: &[(Construct, u64)] = &[
    (Construct::Parallel, 0x10),
    (Construct::Loop, 0x20),
    (Construct::Parallel, 0x30),
    (Construct::Function, 0x40),
];
const LOOP: u32 = 1;
const INNER: u32 = 2;
const FUNCTION: u32 = 3;

/// A program that is one parallel loop; by thread its ranges: first iteration, iterations, ticks. `serial`: before it.
fn report(serial: u64, threads: &[&[(i64, u64, u64)]]) -> Report {
    changed(serial, threads, |_| {})
}

/// As [`report`], where more is known of the program.
fn changed(serial: u64, threads: &[&[(i64, u64, u64)]], change: impl Fn(&mut Summary)) -> Report {
    let mut list: Vec<FakeThread> = (0..threads.len())
        .map(|t| FakeThread::new(t as u32, 0, BEGIN))
        .collect();
    let region = list[0].node();
    let root = FakeThread::root();
    list.iter_mut().for_each(|t| t.work(serial));
    list[0].begin(Construct::Parallel, 0, region, root, Step::Ranked, 1);
    list[0].record_node(Construct::Parallel, 0, region, root, Step::Ranked, 1);
    for (tid, (thread, ranges)) in list.iter_mut().zip(threads).enumerate() {
        thread.begin(
            Construct::ImplicitTask,
            0,
            0,
            region,
            Step::None,
            tid as i64,
        );
        let node = thread.node();
        thread.begin(Construct::Loop, LOOP, node, region, Step::Ranked, 1);
        for &(first, len, ticks) in *ranges {
            let range = thread.node();
            thread.begin(Construct::Range, LOOP, range, node, Step::Range, first);
            thread.work(ticks);
            thread.end(len);
        }
        thread.end(0);
        thread.end(tid as u64);
    }
    let end = list.iter().map(|t| t.now).max().unwrap_or(0);
    list.iter_mut().for_each(|t| t.until(end));
    list[0].end(threads.len() as u64);
    with(list, change)
}

fn of_threads(list: Vec<FakeThread>) -> Report {
    with(list, |_| {})
}

fn with(list: Vec<FakeThread>, change: impl Fn(&mut Summary)) -> Report {
    let mut fake = FakeRun::new(SITES, &[]);
    fake.process(7, BEGIN, list, true);
    fake.with_files(|files| {
        let mut summary = Summary::of_run("run", &Run::read(files));
        change(&mut summary);
        summary.analysis = Some(Analysis::of_files(files, &summary));
        Report::new(&summary)
    })
}

#[test]
fn an_even_program_loses_nothing() {
    let report = report(
        0,
        &[
            &[(0, 25, 1_000_000)],
            &[(25, 25, 1_000_000)],
            &[(50, 25, 1_000_000)],
            &[(75, 25, 1_000_000)],
        ],
    );
    assert_eq!(report.losses, []);
    let scaling = report.scaling.expect("it was looked at");
    assert_eq!((scaling.work_s, scaling.span_s), (4e-3, 1e-3));
    assert_eq!(scaling.model_error, Some(1.0));
    let four = scaling.predicted.iter().find(|p| p.threads == 4);
    assert!(four.is_some_and(|p| (p.speedup - 4.0).abs() < 1e-6));
}

#[test]
fn ranges_that_would_be_divided_predict_no_more_threads() {
    let halves = report(0, &[&[(0, 50, 1_000_000)], &[(50, 50, 1_000_000)]]);
    let scaling = halves.scaling.as_ref().expect("it was looked at");
    let threads = |s: &Scaling| -> Vec<u32> { s.predicted.iter().map(|p| p.threads).collect() };
    assert_eq!(threads(scaling), [1, 2]);
    assert_eq!(
        (scaling.silent, scaling.silent_above),
        (None, Some(Silent::Uneven))
    );
    assert_eq!(scaling.regions[0].predicted.len(), 2);
    let said = words::prediction(&halves, scaling).expect("a sentence");
    assert!(
        said.contains("No prediction for more than 2 threads"),
        "{said}"
    );
    let whole = report(0, &[&[(0, 100, 2_000_000)]]).scaling;
    let whole = whole.expect("it was looked at");
    assert_eq!(
        (threads(&whole), whole.silent),
        (vec![], Some(Silent::Uneven))
    );
}

#[test]
fn one_long_iteration_is_named() {
    let report = report(
        0,
        &[
            &[(0, 1, 1000), (1, 1, 1000), (2, 1, 1000)],
            &[(3, 1, 50_000)],
        ],
    );
    let loss = &report.losses[0];
    assert_eq!(loss.loss, LossKind::Waiting);
    let Cause::UnevenUnits {
        first, times_mean, ..
    } = loss.cause
    else {
        panic!("{loss:?}");
    };
    assert_eq!((first, times_mean), (Some(3), 50.0));
    assert!((loss.seconds - 47e-6).abs() < 1e-12, "{loss:?}");
    assert!((loss.share - 0.47).abs() < 1e-6, "{loss:?}");
}

#[test]
fn a_schedule_that_is_replayed_better_is_told() {
    // Chunks of 2 of a triangle, dealt out as blocks: 1+2+3+4 against 5+6+7+8.
    let chunk = |at: i64| (2 * at, 2, 1000 * (at as u64 + 1));
    let [first, second] = [[0, 1, 2, 3], [4, 5, 6, 7]].map(|of| of.map(chunk));
    let report = report(0, &[&first, &second]);
    let Cause::UnevenDistribution {
        better: Some(better),
        slowest_times_mean,
        ..
    } = &report.losses[0].cause
    else {
        panic!("{:?}", report.losses);
    };
    assert!(slowest_times_mean.is_some_and(|t| (t - 26.0 / 18.0).abs() < 1e-9));
    // By dynamic,2 it is 2+4+6+8; by guided,2 it is (5+6)+8, since the first chunk is 1+2+3+4.
    assert_eq!(better.schedule, Schedule::Guided(2));
    assert!((better.of_now - 19.0 / 26.0).abs() < 1e-9);
    assert!(!better.assumes_equal);
}

#[test]
fn a_serial_part_is_amdahls() {
    let half: &[(i64, u64, u64)] = &[(0, 1, 1_000_000)];
    let other: &[(i64, u64, u64)] = &[(1, 1, 1_000_000)];
    let report = report(1_000_000, &[half, other]);
    let loss = &report.losses[0];
    let Cause::SerialPart {
        wall_s, of_work, ..
    } = loss.cause
    else {
        panic!("{:?}", report.losses);
    };
    let wall_s = wall_s.expect("there is one root");
    assert!((wall_s - 1e-3).abs() < 1e-9 && (loss.seconds - 1e-3).abs() < 1e-9);
    // A third of what one thread would do.
    assert!(of_work.is_some_and(|s| (s - 1.0 / 3.0).abs() < 1e-6));
    let scaling = report.scaling.expect("it was looked at");
    let many = scaling.predicted.last().expect("64 threads");
    assert_eq!(many.limited_by, None);
    assert!(many.speedup < 3.0);
}

const OF_TASKS: &[(Construct, u64)] = &[
    (Construct::Parallel, 0x10),
    (Construct::Single, 0x20),
    (Construct::Task, 0x30),
];

/// Two threads, of which one executes ten tasks of a millisecond, each in its own creation.
#[test]
fn tasks_that_their_creator_executes_at_once_are_told() {
    let mut threads: Vec<FakeThread> = (0..2).map(|t| FakeThread::new(t, 0, BEGIN)).collect();
    let region = threads[0].node();
    let root = FakeThread::root();
    threads[0].begin(Construct::Parallel, 0, region, root, Step::Ranked, 1);
    threads[0].record_node(Construct::Parallel, 0, region, root, Step::Ranked, 1);
    for (tid, thread) in (0..).zip(&mut threads) {
        thread.begin(Construct::ImplicitTask, 0, 0, region, Step::None, tid);
        if tid == 0 {
            let single = thread.node();
            thread.begin(Construct::Single, 1, single, region, Step::Ranked, 1);
            thread.record_node(Construct::Single, 1, single, region, Step::Ranked, 1);
            for rank in 1..=10 {
                thread.begin(Construct::TaskCreate, 2, 0, single, Step::None, 0);
                let task = thread.node();
                thread.begin(Construct::Task, 2, task, single, Step::Ranked, rank);
                thread.record_node(Construct::Task, 2, task, single, Step::Ranked, rank);
                thread.work(1_000_000);
                thread.end(0);
                thread.end(0);
            }
            thread.end(0);
        }
        thread.end(tid as u64);
    }
    let end = threads[0].now;
    threads[1].until(end);
    threads[0].end(2);
    let mut fake = FakeRun::new(OF_TASKS, &[]);
    fake.process(7, BEGIN, threads, true);
    let report = fake.with_files(|files| {
        let mut summary = Summary::of_run("run", &Run::read(files));
        summary.analysis = Some(Analysis::of_files(files, &summary));
        Report::new(&summary)
    });
    let loss = &report.losses[0];
    let Cause::AtOnce {
        parallelism,
        in_yield,
        ..
    } = loss.cause
    else {
        panic!("{:?}", report.losses);
    };
    assert_eq!((parallelism, in_yield), (Some(1.0), false));
    assert!((loss.seconds - 10e-3).abs() < 1e-6, "{loss:?}");
    let told = words::cause(&report, loss);
    assert!(told.contains("executes them at once"), "{told}");
    assert!(told.ends_with("so 1.00 threads are busy at most"), "{told}");
    let advice = words::remedy(&report, loss).expect("an advice");
    assert!(advice.contains("if and final"), "{advice}");
}

/// Says what the source says of the loop's schedule.
fn scheduled(summary: &mut Summary, schedule: &str) {
    let sites = summary.sites.iter_mut();
    for site in sites.filter(|s| s.construct == Some(Construct::Loop)) {
        site.detail = Some(schedule.into());
    }
}

/// A triangle of 16 iterations in blocks: the last thread has most.
const BLOCKS: [&[(i64, u64, u64)]; 4] = [
    &[(0, 4, 1_000_000)],
    &[(4, 4, 2_600_000)],
    &[(8, 4, 4_200_000)],
    &[(12, 4, 5_800_000)],
];

#[test]
fn the_variable_is_named_where_it_decides() {
    let advice = |schedule: &str, variable: Option<&str>, calls: &[&str]| {
        let report = changed(0, &BLOCKS, |summary| {
            scheduled(summary, schedule);
            let set = variable.map(|v| ("OMP_SCHEDULE".to_owned(), v.to_owned()));
            summary.environment = set.into_iter().collect();
            for module in &mut summary.modules {
                module.runtimes = vec!["libomp.so.5".to_owned()];
                module.entries = calls.iter().map(|&c| c.to_owned()).collect();
            }
        });
        let loss = &report.losses[0];
        assert!(
            matches!(loss.cause, Cause::UnevenDistribution { .. }),
            "{loss:?}"
        );
        words::remedy(&report, loss)
    };
    let told = advice("runtime", Some("static"), &[]).expect("it is better");
    assert!(told.starts_with("OMP_SCHEDULE=dynamic,1 would"), "{told}");
    assert_eq!(advice("runtime", None, &[]), Some(told));
    // Something else has set it.
    assert_eq!(advice("runtime", None, &["omp_set_schedule"]), None);
    assert_eq!(advice("runtime", Some("dynamic,2"), &[]), None);
    // Programs may rely on a static schedule.
    assert_eq!(advice("static", None, &[]), None);
}

#[test]
fn what_begins_first_is_not_advised_to_begin_first() {
    let advice = |schedule: &str, long: i64| {
        let unit = |at: i64| (at, 1, if at == long { 1_000_000 } else { 100_000 });
        // Who has the first one, and that is long, comes back when all others are done.
        let of: [Vec<_>; 2] = match long {
            0 => [vec![unit(0)], (1..12).map(unit).collect()],
            _ => [
                (0..12).step_by(2).map(unit).collect(),
                (1..12).step_by(2).map(unit).collect(),
            ],
        };
        let report = changed(0, &[&of[0], &of[1]], |s| scheduled(s, schedule));
        let Cause::UnevenUnits { if_first, .. } = report.losses[0].cause else {
            panic!("{:?}", report.losses);
        };
        let told = words::remedy(&report, &report.losses[0]).expect("it is known");
        assert_eq!(told.contains("begin first"), if_first.is_some(), "{told}");
        if_first
    };
    // 10 and 1 of 11 ends after 1.1 ms; as it was, after 1.5 ms.
    let of_now = advice("dynamic", 11).expect("it helps");
    assert!((of_now - 11.0 / 15.0).abs() < 1e-9, "{of_now}");
    assert_eq!(advice("static", 11), None);
    assert_eq!(advice("dynamic", 0), None);
}

/// Two threads with a team of two each. By team the ticks of its threads, and what its first one does by itself before.
fn nested(teams: [[u64; 2]; 2]) -> Report {
    let mut list: Vec<FakeThread> = (0..4).map(|t| FakeThread::new(t, 0, BEGIN)).collect();
    let (outer, root) = (list[0].node(), FakeThread::root());
    list[0].begin(Construct::Parallel, 0, outer, root, Step::Ranked, 1);
    list[0].record_node(Construct::Parallel, 0, outer, root, Step::Ranked, 1);
    for (team, [ticks, alone]) in teams.into_iter().enumerate() {
        let first = &mut list[team];
        first.begin(
            Construct::ImplicitTask,
            0,
            0,
            outer,
            Step::None,
            team as i64,
        );
        first.work(alone);
        let (node, begun) = (first.node(), first.now);
        first.begin(Construct::Parallel, INNER, node, outer, Step::Ranked, 1);
        first.record_node(Construct::Parallel, INNER, node, outer, Step::Ranked, 1);
        list[team + 2].until(begun);
        for (at, thread) in [team, team + 2].into_iter().enumerate() {
            let thread = &mut list[thread];
            thread.begin(
                Construct::ImplicitTask,
                INNER,
                0,
                node,
                Step::None,
                at as i64,
            );
            thread.work(ticks);
            thread.end(at as u64);
        }
        list[team].end(2);
        list[team].end(team as u64);
    }
    let end = list.iter().map(|t| t.now).max().unwrap_or(0);
    list.iter_mut().for_each(|t| t.until(end));
    list[0].end(2);
    of_threads(list)
}

#[test]
fn threads_of_a_nested_team_wait_with_the_one_that_started_it() {
    let report = nested([[1_000_000, 0], [3_000_000, 0]]);
    let [loss] = &report.losses[..] else {
        panic!("{:?}", report.losses);
    };
    assert!(matches!(loss.cause, Cause::Nested { .. }), "{loss:?}");
    // The first one waits at the outer region's end, and the other has nothing to do.
    assert!((loss.seconds - 4e-3).abs() < 1e-8, "{loss:?}");
    assert_eq!(nested([[1_000_000, 0], [1_000_000, 0]]).losses, []);
}

#[test]
fn a_region_with_nested_teams_is_not_told_to_have_more_threads() {
    let report = nested([[1_000_000, 1_000_000], [1_000_000, 1_000_000]]);
    let [loss] = &report.losses[..] else {
        panic!("{:?}", report.losses);
    };
    assert!((loss.seconds - 2e-3).abs() < 1e-8, "{loss:?}");
    let said = words::cause(&report, loss);
    assert!(
        said.contains("its own code runs on 2 of 4 threads"),
        "{said}"
    );
    assert_eq!(words::remedy(&report, loss), None);
}

/// Several work at once, and then one of them alone: how long that is, is known of two.
#[test]
fn times_of_the_programs_own_threads_are_not_added_up() {
    for (threads, alone_s) in [(2, Some(2e-3)), (3, None)] {
        let mut list: Vec<FakeThread> =
            (0..threads).map(|t| FakeThread::new(t, 0, BEGIN)).collect();
        for thread in &mut list {
            let (node, root) = (thread.node(), FakeThread::root());
            thread.begin(Construct::Function, FUNCTION, node, root, Step::None, 0);
            thread.work(3_000_000);
            thread.end(0);
        }
        list[0].work(2_000_000);
        let report = of_threads(list);
        let [loss] = &report.losses[..] else {
            panic!("{:?}", report.losses);
        };
        let Cause::SerialPart {
            wall_s, function, ..
        } = loss.cause
        else {
            panic!("{loss:?}");
        };
        let wall_ns = wall_s.map(|s| (s * 1e9).round());
        assert_eq!(
            (wall_ns, function),
            (alone_s.map(|s: f64| (s * 1e9).round()), None)
        );
        let idle_s = 2e-3 * f64::from(threads - 1);
        assert!((loss.seconds - idle_s).abs() < 1e-8, "{loss:?}");
    }
}

/// By ticks in the function, of a serial part of a million.
#[test]
fn a_function_with_little_of_the_serial_part_is_not_named() {
    for (ticks, is_named) in [(90_000, false), (200_000, true)] {
        let mut list: Vec<FakeThread> = (0..2).map(|t| FakeThread::new(t, 0, BEGIN)).collect();
        let (region, node, root) = (list[0].node(), list[0].node(), FakeThread::root());
        list[0].begin(Construct::Function, FUNCTION, node, root, Step::None, 0);
        list[0].work(ticks);
        list[0].end(0);
        list[0].work(1_000_000 - ticks);
        list[1].until(BEGIN + 1_000_000);
        list[0].begin(Construct::Parallel, 0, region, root, Step::Ranked, 1);
        list[0].record_node(Construct::Parallel, 0, region, root, Step::Ranked, 1);
        for (at, thread) in list.iter_mut().enumerate() {
            thread.begin(Construct::ImplicitTask, 0, 0, region, Step::None, at as i64);
            thread.work(1_000_000);
            thread.end(at as u64);
        }
        list[0].end(2);
        let report = of_threads(list);
        let Cause::SerialPart { function, .. } = report.losses[0].cause else {
            panic!("{:?}", report.losses);
        };
        assert_eq!(function.is_some(), is_named, "{ticks}");
        let advice = words::remedy(&report, &report.losses[0]);
        assert_eq!(advice.as_deref(), Some("parallelise that code"));
    }
}
