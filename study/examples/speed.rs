//! How fast a million XUs of fifteen runs become one profile; prints seconds per stage.
//!
//! `cargo run --release -p ompfuse-study --example speed [XUS] [RUNS]`
//!
//! The runs are made up in memory, so reading files is not in the times: four threads, each with tasks created in ranges
//! of a loop, four counters per run, half of the tasks executed by another thread in every second run.

use ompfuse_format::Construct;
use ompfuse_format::record::Step;
use ompfuse_fuse::testing::{BEGIN, FakeRun, FakeThread, LISTING_SITES};
use ompfuse_fuse::{Combiner, Profile, Strategy};
use std::time::{Duration, Instant};

const THREADS: u64 = 4;
/// Tasks per range.
const TASKS: u64 = 100;

fn run(xus: u64, number: u64) -> FakeRun {
    let names: Vec<String> = (0..4)
        .map(|e| format!("event-{}", 4 * number + e))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut threads: Vec<FakeThread> = (0..THREADS)
        .map(|t| FakeThread::new(t as u32, 4, BEGIN))
        .collect();
    let parallel = threads[0].node();
    threads[0].begin(
        Construct::Parallel,
        0,
        parallel,
        FakeThread::root(),
        Step::Ranked,
        1,
    );
    let mut ranges = vec![];
    for (tid, thread) in (0..).zip(&mut threads) {
        thread.begin(Construct::ImplicitTask, 0, 0, parallel, Step::None, 0);
        let of_loop = thread.node();
        thread.begin(Construct::Loop, 1, of_loop, parallel, Step::Ranked, 1);
        for range in 0..xus / THREADS / (TASKS + 1) {
            let node = thread.node();
            let first = (range * THREADS + tid) as i64;
            thread.begin(Construct::Range, 1, node, of_loop, Step::Range, first);
            thread.record_node(Construct::Range, 1, node, of_loop, Step::Range, first);
            thread.work(range % 17);
            thread.end(1);
            ranges.push(node);
        }
        thread.end(0);
    }
    for (at, range) in ranges.into_iter().enumerate() {
        let half = at as u64 % 2 * (number % 2);
        let thread = &mut threads[((at as u64 + half) % THREADS) as usize];
        for rank in 1..=TASKS {
            let node = thread.node();
            thread.begin(Construct::Task, 2, node, range, Step::Ranked, rank as i64);
            thread.work(5 + rank % 7);
            thread.end(0);
        }
    }
    for thread in &mut threads {
        thread.end(0);
    }
    let mut run = FakeRun::new(LISTING_SITES, &names);
    run.process(9, BEGIN, threads, true);
    run
}

fn main() {
    let mut args = std::env::args()
        .skip(1)
        .map(|a| a.parse().expect("a number"));
    let (xus, runs) = (args.next().unwrap_or(1_000_000), args.next().unwrap_or(15));
    let (mut reading, mut summing, mut joining) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut combiner = Combiner::new(Strategy::Lgl);
    for number in 0..runs {
        let fake = run(xus, number);
        let begin = Instant::now();
        let run = fake.read();
        reading += begin.elapsed();
        drop(fake);
        let begin = Instant::now();
        let profile = Profile::of_run("run", run);
        summing += begin.elapsed();
        let begin = Instant::now();
        combiner.add(profile);
        joining += begin.elapsed();
    }
    let begin = Instant::now();
    let profile = combiner.finish().expect("labels suffice").expect("runs");
    joining += begin.elapsed();
    let begin = Instant::now();
    let bytes = profile.to_parquet().expect("equal columns");
    let writing = begin.elapsed();
    let begin = Instant::now();
    let again = Profile::from_parquet(bytes.clone()).expect("what was written");
    let rereading = begin.elapsed();
    assert_eq!(again.xus.len(), profile.xus.len());
    println!(
        "{} XUs matched in {runs} runs, {} MB of Parquet",
        profile.xus.len(),
        bytes.len() >> 20
    );
    for (stage, time) in [
        ("read", reading),
        ("sum up", summing),
        ("join", joining),
        ("write", writing),
        ("re-read", rereading),
    ] {
        println!("{stage:8} {:7.3} s", time.as_secs_f64());
    }
    if let Some(path) = std::env::var_os("SPEED_PROFILE") {
        std::fs::write(path, bytes).expect("a writable path");
    }
}
