//! What summing up and reporting very many regions or threads takes: `cargo bench -p ompfuse-report --bench paths`. Runs are made up:
//! 10,000 regions with a loop each on 8 threads, 1,000 threads in 20 regions, and 200,000 tasks on 20,000 paths.
//!
//! Times are by the clock; memory is the largest resident set so far, so that only an increase tells something.

use ompfuse_account::Report;
use ompfuse_format::Construct;
use ompfuse_format::record::Step;
use ompfuse_fuse::Summary;
use ompfuse_fuse::testing::{BEGIN, FakeRun, FakeThread};
use ompfuse_report::view::{json, text};
use std::time::Instant;

/// So many regions with a loop each, one after the other, on so many threads.
fn regions(regions: u32, threads: u32) -> FakeRun {
    let sites: Vec<(Construct, u64)> = (0..regions)
        .flat_map(|r| [(Construct::Parallel, 2 * r), (Construct::Loop, 2 * r + 1)])
        .map(|(construct, address)| (construct, u64::from(address)))
        .collect();
    let mut team: Vec<FakeThread> = (0..threads).map(|i| FakeThread::new(i, 0, BEGIN)).collect();
    for region in 0..regions {
        let site = 2 * region;
        let fork = team[0].now;
        let node = team[0].node();
        let index = i64::from(region) + 1;
        team[0].begin(
            Construct::Parallel,
            site,
            node,
            FakeThread::root(),
            Step::Ranked,
            index,
        );
        for thread in &mut team {
            thread.until(fork + 100);
            thread.begin(Construct::ImplicitTask, site, 0, node, Step::None, 0);
            let of_loop = thread.node();
            thread.begin(Construct::Loop, site + 1, of_loop, node, Step::Ranked, 1);
            thread.work(1000);
            thread.end(0);
            thread.end(0);
        }
        team[0].work(100);
        team[0].end(u64::from(threads));
    }
    let end = team[0].now;
    team.iter_mut().for_each(|t| t.until(end));
    let mut fake = FakeRun::new(&sites, &[]);
    fake.process(9, BEGIN, team, true);
    fake
}

/// Tasks in tasks: `places` of them in each other, in `orders` orders, so that there are more paths than are kept apart.
fn tasks(places: u32, orders: u32) -> FakeRun {
    let sites: Vec<(Construct, u64)> = (0..places).map(|p| (Construct::Task, p.into())).collect();
    let mut thread = FakeThread::new(0, 0, BEGIN);
    for order in 0..orders {
        let mut around = FakeThread::root();
        for step in 0..places {
            let site = (order * 7 + step * (1 + order % 9)) % places;
            let node = thread.node();
            let index = i64::from(order) + 1;
            thread.begin(Construct::Task, site, node, around, Step::Ranked, index);
            thread.work(10);
            around = node;
        }
        for _ in 0..places {
            thread.end(0);
        }
    }
    let mut fake = FakeRun::new(&sites, &[]);
    fake.process(9, BEGIN, vec![thread], true);
    fake
}

/// Largest resident set so far, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find(|l| l.starts_with("VmHWM"));
    let kb = line.and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok());
    kb.unwrap_or(0) / 1000
}

fn measure(name: &str, fake: &FakeRun) {
    let bytes: usize = fake.files.iter().map(|(_, bytes)| bytes.len()).sum();
    let before = peak();
    let begin = Instant::now();
    let streamed = fake.with_files(|files| Summary::streamed("run", files, Default::default()));
    let summed = begin.elapsed();
    let (summary, _) = streamed.expect("in order of time");
    let begin = Instant::now();
    let report = Report::new(&summary);
    let reported = begin.elapsed();
    let begin = Instant::now();
    let printed = text::render(&report, text::TextOptions::default());
    let rendered = begin.elapsed();
    println!(
        "{name:<28} {:>5} MB records  {:>6} paths  sums {:>5} ms  report {:>5} ms  text {:>5} ms ({} lines)  JSON {} MB  memory {} to {} MB",
        bytes / 1_000_000,
        report.call_paths.len(),
        summed.as_millis(),
        reported.as_millis(),
        rendered.as_millis(),
        printed.lines().count(),
        json::to_string(&report).len() / 1_000_000,
        before,
        peak()
    );
}

fn main() {
    measure("10,000 regions, 8 threads", &regions(10_000, 8));
    measure("20 regions, 1,000 threads", &regions(20, 1000));
    measure("200,000 tasks, 50 places", &tasks(50, 4000));
}
