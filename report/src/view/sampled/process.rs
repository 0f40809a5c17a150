//! A process that ran already, as text: what it spends its time in, and what each thread did last.

use super::super::paint::Paint;
use super::super::table::{self, Column, wrap};
use super::super::text::TextOptions;
use super::name;
use crate::words::last::doing;
use crate::words::uneven::mostly_asleep;
use ompfuse_account::sampled::{
    SampledLast, SampledProcess, SampledRegion, SampledReport, SampledThread,
};
use ompfuse_account::units::{count, percent, seconds, several};
use ompfuse_format::Construct;

/// Regions and threads that are listed.
const MOST: usize = 12;
/// With less of one processor nobody computes.
const IDLE: f64 = 0.02;
/// From this share of threads' time on, waiting is told first.
const MUCH: f64 = 0.5;
/// A region with less of all waits says nothing of them.
const KNOWN: f64 = 0.1;
/// Of a text so many characters stay.
const KEPT: usize = 30;

pub(super) fn sections(
    report: &SampledReport,
    process: &SampledProcess,
    options: TextOptions,
) -> Vec<String> {
    let paint = Paint { on: options.colour };
    let first = wrap(&first(report, process), options.width, "  ");
    let mut head = paint.bold(first.trim_end()) + "\n";
    head += &wrap(&title(report, process), options.width, "  ");
    for lack in lacks(report) {
        head += &wrap(&lack, options.width, "  ");
    }
    let mut sections = vec![head];
    sections.extend(regions(report, options));
    sections
}

/// What was looked at, and for how long.
pub(in crate::view) fn title(report: &SampledReport, process: &SampledProcess) -> String {
    let number = match &process.pids[..] {
        [] => String::new(),
        [pid] => format!(" (process {pid})"),
        pids => {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            format!(" (processes {})", pids.join(", "))
        }
    };
    format!(
        "{}{number}, sampled: {} in {} of {}",
        report.program,
        several(report.samples, "sample"),
        seconds(process.seconds),
        several(report.threads.len() as u64, "thread"),
    )
}

/// What is missing.
pub(in crate::view) fn lacks(report: &SampledReport) -> Vec<String> {
    let lost = (report.lost > 0).then(|| {
        let lost = several(report.lost, "record");
        format!("{lost} lost: the kernel had no room for more")
    });
    let closed = report.closed.as_ref().map(super::closed_at);
    lost.into_iter().chain(closed).collect()
}

/// What matters most.
pub(in crate::view) fn first(report: &SampledReport, process: &SampledProcess) -> String {
    let sum = |of: fn(&SampledThread) -> f64| report.threads.iter().map(of).sum::<f64>();
    let (work_s, runtime_s) = (sum(|t| t.work_s), sum(|t| t.runtime_s));
    if work_s + runtime_s < IDLE * process.seconds {
        return stuck(&report.threads);
    }
    let all = several(report.threads.len() as u64, "thread");
    let told_s = work_s + runtime_s + sum(|t| t.waits_s + t.asleep_s + t.idle_s);
    let waits_s = runtime_s + sum(|t| t.waits_s);
    let waits = |region: &SampledRegion| waited(report, region);
    let most = (report.regions.iter()).max_by(|a, b| waits(a).total_cmp(&waits(b)));
    let is_waiting = waits_s >= MUCH * told_s || work_s < runtime_s;
    // Most of the waits may be of constructs that aren't known.
    let is_known = |region: &&SampledRegion| waits(region) >= KNOWN * waits_s;
    if let Some(region) = most.filter(|r| is_waiting && is_known(r)) {
        let whose = match region.construct.is_some_and(Construct::is_call) {
            true => "calls of other libraries, the OpenMP runtime,",
            false => "the OpenMP runtime",
        };
        return format!(
            "{} of {all}' time is spent in {whose} or waiting: {} in {}",
            percent(waits_s / told_s),
            percent(waits(region) / told_s),
            name(region)
        );
    }
    let most = report
        .regions
        .iter()
        .max_by_key(|r| r.work)
        .filter(|r| r.work > 0);
    let Some(region) = most else {
        return "It was in no code of its own when it was looked at".to_owned();
    };
    let [p, error] = share(region.work, report.samples);
    let line = match region.lines.first() {
        Some(line) if 2 * line.samples > region.work => {
            format!(", most of that in {}", line.place())
        }
        // Where the construct isn't known its hottest line is what there is.
        Some(line) if region.is_unknown => {
            let [p, _] = share(line.samples, region.work);
            format!(", {} of that in {}", percent(p), line.place())
        }
        _ => String::new(),
    };
    let place = match region.construct {
        Some(_) => format!("in {}", name(region)),
        None => name(region),
    };
    let whose = if process.pids.len() > 1 {
        "their"
    } else {
        "its"
    };
    format!(
        "{} (± {}) of {whose} processor time is work {place}{line}",
        percent(p),
        percent(error)
    )
}

/// A share of samples, and its standard error.
pub(in crate::view) fn share(of: u64, samples: u64) -> [f64; 2] {
    let n = samples.max(1) as f64;
    let p = of as f64 / n;
    [p, (p * (1.0 - p) / n).sqrt().max(1.0 / n)]
}

/// Of a process in which nobody computes.
fn stuck(threads: &[SampledThread]) -> String {
    // Who has nothing to do waits for those that have.
    let has_work = |last: &SampledLast| !last.is_idle;
    let mut seen: Vec<(u32, String)> = vec![];
    for thread in threads {
        if let Some(last) = thread.last.as_ref().filter(|last| has_work(last)) {
            seen.push((thread.tid, doing(last)));
        }
    }
    seen.sort();
    let told = |(tid, doing): &(u32, String)| format!("thread {tid} {doing}");
    match &seen[..] {
        [] => "No thread computes; what they wait for isn't known".to_owned(),
        [one] => format!("No thread computes: {}", told(one)),
        [one, two] => format!("No thread computes: {}; {}", told(one), told(two)),
        [one, more @ ..] => format!(
            "No thread computes: {}; {} more wait, too",
            told(one),
            several(more.len() as u64, "thread")
        ),
    }
}

/// Seconds that threads were in the runtime for a region, or waited.
fn waited(report: &SampledReport, region: &SampledRegion) -> f64 {
    region.runtime as f64 * report.period_ns as f64 * 1e-9 + region.waits_s
}

fn regions(report: &SampledReport, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let columns = [
        Column::right("samples"),
        Column::right("of all"),
        Column::right("work"),
        Column::right("runtime").leaves(2),
        Column::right("waited").leaves(1),
        Column::right("asleep").leaves(3),
        Column::left("region").keeps_place(KEPT),
    ];
    let time = |s: f64| if s > 0.0 { seconds(s) } else { String::new() };
    let number = |n: u64| if n > 0 { count(n) } else { String::new() };
    let rows = report.regions.iter().take(MOST).map(|region| {
        vec![
            count(region.samples),
            percent(region.samples as f64 / report.samples.max(1) as f64),
            number(region.work),
            number(region.runtime),
            time(region.waits_s),
            time(region.asleep.as_ref().map_or(0.0, |a| a.seconds)),
            name(region),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    if report.idle > 0 {
        let [p, _] = share(report.idle, report.samples);
        let idle = count(report.idle);
        let (none, told) = (String::new, NOTHING_TO_DO.to_owned());
        rows.push(vec![
            idle.clone(),
            percent(p),
            none(),
            idle,
            none(),
            none(),
            told,
        ]);
    }
    let plain = |_: usize, cell: &str| cell.to_owned();
    let head = |line: &str| paint.dim(line);
    let mut text = table::fitted(&columns, rows, Some(options.width), &plain, &head).text;
    let asleep = report
        .regions
        .iter()
        .find_map(|r| mostly_asleep(r.asleep.as_ref()?));
    if let Some(asleep) = asleep {
        text += &wrap(&format!("asleep: {asleep}"), options.width, "  ");
    }
    Some(text)
}

/// What threads do that wait for work, outside of constructs.
pub(in crate::view) const NOTHING_TO_DO: &str = "in no region, with nothing to do";

/// What each thread did when it was looked at last.
pub(super) fn threads(report: &SampledReport, options: TextOptions) -> String {
    let paint = Paint { on: options.colour };
    let mut text = paint.bold("What each thread did last") + "\n";
    for thread in report.threads.iter().take(MOST) {
        let last = match &thread.last {
            Some(last) => doing(last),
            None => "isn't known".to_owned(),
        };
        let main = if thread.is_main { " (main)" } else { "" };
        let line = format!("  {}{main} {last}", thread.tid);
        text += &wrap(&line, options.width, "      ");
    }
    if report.threads.len() > MOST {
        let more = report.threads.len() - MOST;
        text += &format!("  and {}\n", several(more as u64, "more thread"));
    }
    text
}
