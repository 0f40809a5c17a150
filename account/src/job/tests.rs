//! In which order ranks come makes no difference, and nothing that one of them tells is lost.

use super::Job;
use crate::Report;
use crate::model::{
    EventState, Grain, ModuleInfo, Mpi, Note, ProbeTime, Rank, UncountedCode, Unmatched,
    UnmatchedXus,
};
use ompfuse_format::run::Exit;
use ompfuse_fuse::Summary;
use ompfuse_fuse::testing::listing;
use proptest::prelude::*;
use serde_json::Value;

/// Numbers that a seed gives.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = (self.0.wrapping_mul(6_364_136_223_846_793_005))
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn some<T>(&mut self, value: impl FnOnce(&mut Drawn) -> T) -> Option<T> {
        (self.below(3) > 0).then(|| value(self))
    }

    fn seconds(&mut self) -> f64 {
        self.below(1 << 20) as f64 / 1024.0
    }
}

const RANKS: u32 = 5;

fn mpi(rank: u32) -> Mpi {
    let rank = Rank {
        rank,
        threads: 2,
        processes: 1,
        ended: true,
        work_s: f64::from(rank + 1),
        ..Rank::default()
    };
    Mpi {
        size: Some(RANKS),
        missing: vec![],
        is_apart: true,
        serial_s: 0.5,
        parallel_s: 0.25,
        imbalance_among_ranks: 0.0,
        imbalance_among_threads: 0.0,
        clocks: None,
        ranks: vec![rank],
    }
}

/// A rank's report, of a run that was recorded as any other.
fn plain(rank: u32) -> Report {
    let mut report = Report::new(&Summary::of_run(
        "run-0001",
        &listing(&["cycles"], false).read(),
    ));
    report.mpi = Some(mpi(rank));
    report
}

fn event(name: &str, run: Option<u16>) -> EventState {
    EventState {
        name: name.to_owned(),
        grain: Grain::Unit,
        run,
        reason: run
            .is_none()
            .then(|| "there is no counter for it".to_owned()),
        scaled: false,
        probe_inside: None,
        probe_around: None,
    }
}

fn uncounted(function: &str, regions: Vec<u32>) -> UncountedCode {
    UncountedCode {
        function: function.to_owned(),
        file: "/bin/program".to_owned(),
        reason: "its window overlaps another".to_owned(),
        instructions: 7,
        regions,
        share: None,
    }
}

/// A rank's report in which everything is as a seed says that ranks can differ in.
fn drawn(rank: u32, seed: u64) -> Report {
    let d = &mut Drawn(seed ^ u64::from(rank) << 40);
    let mut report = plain(rank);
    report.duration_s = d.some(Drawn::seconds);
    report.threads = d.below(9) as u32;
    report.lost_s = d.some(Drawn::seconds);
    report.lost_is_least = d.below(2) == 0;
    let run = &mut report.runs[0];
    run.exit = d.some(|d| match d.below(4) {
        0 => Exit::Code(0),
        1 => Exit::Signal(15),
        n => Exit::Signal(n as i32 + 4),
    });
    run.recording_ended_bytes = d.some(|d| d.below(1000));
    run.lost_records = d.below(4);
    run.switches = d.some(|d| d.below(1000));
    run.switch_cost_s = d.some(Drawn::seconds);
    run.events = d.some(|_| "cycles".to_owned()).into_iter().collect();
    for name in ["a", "b"] {
        if d.below(2) == 0 {
            run.events.push(name.to_owned());
            let counted = d.some(|_| 1);
            report.events.push(event(name, counted));
        }
    }
    report.probes = d.some(|d| ProbeTime {
        estimated_s: d.seconds(),
        of_s: 2048.0,
        share: 0.5,
        interval_s: 0.25,
        most_at: None,
        remedy: None,
    });
    for at in 0..d.below(3) {
        report.uncounted.push(uncounted(
            ["f", "g", "h"][d.below(3) as usize],
            vec![at as u32 + 1],
        ));
        report.modules.push(ModuleInfo {
            path: format!("/lib/{}", d.below(4)),
            build_id: None,
            patched: 1,
            skipped: [].into(),
            constructs: Default::default(),
        });
    }
    report.unmatched = d
        .some(|d| UnmatchedXus {
            run: 1,
            name: "x".to_owned(),
            kind: None,
            region_construct: None,
            function: None,
            source: None,
            detail: None,
            count: d.below(10),
            because: Unmatched::Unlabelled,
            example: None,
        })
        .into_iter()
        .collect();
    let lost = d.some(|d| Note::LostRecords {
        run: 1,
        records: d.below(100),
    });
    report.shortcomings.extend(lost);
    report
        .shortcomings
        .extend(d.some(|_| Note::SumsOnly { run: 1 }));
    report.regions.retain(|_| d.below(4) > 0);
    for region in &mut report.regions {
        region.time_s = d.seconds();
        region.work_s = d.seconds();
        region.iterations = d.some(|d| d.below(50));
        region.file = d.some(|_| "libx.so".to_owned());
        if d.below(3) == 0 {
            region.events.clear();
        }
    }
    let left = |id: &u32| report.regions.iter().any(|r| r.id == *id);
    report.call_paths.clear();
    for function in &mut report.uncounted {
        function.regions.retain(left);
    }
    for loss in &mut report.losses {
        loss.seconds = d.below(4) as f64;
    }
    report
}

fn job(ranks: impl IntoIterator<Item = Report>) -> Report {
    let mut job = Job::in_detail();
    for report in ranks {
        let rank = report.mpi.as_ref().map_or(0, |m| m.ranks[0].rank);
        job.add(&format!("rank-{rank}"), report)
            .expect("ranks of one job");
    }
    job.finish("job").expect("there are ranks")
}

/// Where two values differ by more than a sum's rounding.
fn difference(at: &str, a: &Value, b: &Value) -> Option<String> {
    let inside = |key: String, a: Option<&Value>, b: Option<&Value>| match (a, b) {
        (Some(a), Some(b)) => difference(&format!("{at}.{key}"), a, b),
        _ => Some(format!("{at}.{key}: {a:?} and {b:?}")),
    };
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys = x.keys().chain(y.keys());
            keys.into_iter()
                .find_map(|k| inside(k.clone(), x.get(k), y.get(k)))
        }
        (Value::Array(x), Value::Array(y)) => {
            let all = 0..x.len().max(y.len());
            all.into_iter()
                .find_map(|i| inside(i.to_string(), x.get(i), y.get(i)))
        }
        (Value::Number(x), Value::Number(y)) => {
            let (x, y) = (x.as_f64()?, y.as_f64()?);
            ((x - y).abs() > 1e-9 * x.abs().max(1.0)).then(|| format!("{at}: {x} and {y}"))
        }
        _ => (a != b).then(|| format!("{at}: {a} and {b}")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn the_order_of_ranks_makes_no_difference(
        seed: u64,
        order in Just((0..RANKS).collect::<Vec<u32>>()).prop_shuffle(),
    ) {
        let json = |report: &Report| serde_json::to_value(report).expect("a report is JSON");
        let sorted = job((0..RANKS).map(|rank| drawn(rank, seed)));
        let shuffled = job(order.iter().map(|&rank| drawn(rank, seed)));
        let found = difference("job", &json(&sorted), &json(&shuffled));
        prop_assert_eq!(found, None);
    }
}

#[test]
fn what_one_rank_tells_is_told_of_the_job() {
    let (mut first, mut second) = (plain(0), plain(1));
    second.runs[0].recording_ended_bytes = Some(4096);
    second.runs[0].events.push("misses".to_owned());
    second.events.push(event("misses", Some(1)));
    // The first rank never comes to the region whose code can't count.
    let only = second.regions[0].id;
    first.regions.retain(|r| r.id != only);
    first.uncounted.push(uncounted("f", vec![]));
    second.uncounted.push(uncounted("f", vec![only]));
    for region in first.regions.iter_mut().chain(&mut second.regions) {
        region.work_s = if region.id == only { 90.0 } else { 1.0 };
    }
    let others = (first.regions.len() + second.regions.len() - 1) as f64;
    let job = job([first, second]);
    assert_eq!(job.runs[0].recording_ended_bytes, Some(4096));
    assert!(job.runs[0].events.iter().any(|e| e == "misses"));
    let event = job
        .events
        .iter()
        .find(|e| e.name == "misses")
        .expect("it is listed");
    assert_eq!(event.run, None);
    assert_eq!(event.reason.as_deref(), Some("1 of 2 ranks counted it"));
    let [function] = &job.uncounted[..] else {
        panic!("{:?}", job.uncounted);
    };
    assert_eq!(function.share, Some(90.0 / (90.0 + others)));
}

#[test]
fn a_rank_without_probes_has_time_too() {
    let (mut first, mut second) = (plain(0), plain(1));
    let probes = |estimated_s: f64| ProbeTime {
        estimated_s,
        of_s: 10.0,
        share: estimated_s / 10.0,
        interval_s: 1e-7,
        most_at: None,
        remedy: None,
    };
    (first.probes, second.probes) = (Some(probes(0.0)), Some(probes(2.0)));
    let share = job([first, second]).probes.expect("both have them").share;
    assert_eq!(share, 0.1);
}

#[test]
fn a_signal_of_the_launcher_says_less_than_that_of_the_rank_that_failed() {
    let ended = |rank: u32, exit: Exit| {
        let mut report = plain(rank);
        report.runs[0].exit = Some(exit);
        report
    };
    let all = [Exit::Signal(15), Exit::Signal(9), Exit::Code(0)];
    let ranks = (0..).zip(all).map(|(rank, exit)| ended(rank, exit));
    assert_eq!(job(ranks).runs[0].exit, Some(Exit::Signal(9)));
}
