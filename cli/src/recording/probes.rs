//! What the probes took of a run, estimated without reading it all: a part of each thread's records tells how many bytes an
//! interval has.

use super::RecordingArgs;
use crate::{input, run_dir};
use ompfuse_format::record::{HEADER_LEN, Record, Records, ThreadHeader};
use ompfuse_format::run::{ProcessCosts, costs_file_process};
use ompfuse_report::probes::{WORTH_SAYING, has_probes};
use ompfuse_report::words::shell_words;
use ompfuse_report::words::units::percent;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are looked at of each file, at most.
const LOOKED_AT: u64 = 1 << 18;

/// Share of the processor time that the probes took.
struct Estimate {
    share: f64,
    /// Most of it was reading counters.
    by_counters: bool,
}

/// What to do, where the probes took much of a run in this folder.
pub(crate) fn advice(run: &Path, args: &RecordingArgs) -> Option<String> {
    let estimate = estimate(run)?;
    if estimate.share <= WORTH_SAYING {
        return None;
    }
    let share = percent(estimate.share);
    let fewer = match args.option(estimate.by_counters) {
        Some(option) => {
            let words: Vec<_> = args.command.iter().map(|w| w.to_string_lossy()).collect();
            format!(
                "to record with fewer probes: ompfuse record {option} -- {}",
                shell_words(words.iter().map(AsRef::as_ref))
            )
        }
        None => format!(
            "to leave out regions that are too short: ompfuse report --suggest-filter {} > filter, then record with --filter filter",
            shell_words([run.to_string_lossy().as_ref()])
        ),
    };
    Some(format!(
        "the probes took about {share} of the processor time (estimated); {fewer}"
    ))
}

impl RecordingArgs {
    /// The option that makes probes cost less, if it isn't given already.
    fn option(&self, by_counters: bool) -> Option<&'static str> {
        match (by_counters, self.throttle) {
            (true, _) => Some("--events none"),
            (false, None) => Some("--throttle 5"),
            (false, Some(_)) => None,
        }
    }
}

/// `None`: nothing is known of what an interval's probes take, or of the processor time.
fn estimate(run: &Path) -> Option<Estimate> {
    let files = std::fs::read_dir(run).ok()?;
    let paths: Vec<_> = files.filter_map(|f| Some(f.ok()?.path())).collect();
    let (mut best, mut by_counters) = (None, false);
    for path in &paths {
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default();
        if costs_file_process(name).is_none() {
            continue;
        }
        let text = std::fs::read(path).ok()?;
        let costs: ProcessCosts = serde_json::from_slice(&text).ok()?;
        let (Some(interval), Some(boundary)) = (costs.interval, costs.boundary) else {
            continue;
        };
        let each = |ticks: u64, of: u64| ticks as f64 / of.max(1) as f64;
        let all = each(interval.ticks, interval.intervals);
        if best.is_none_or(|least| all < least) {
            best = Some(all);
            let read = each(boundary.ticks, boundary.boundaries)
                - each(interval.clock_ticks, interval.intervals);
            by_counters = 2.0 * read > all / 2.0;
        }
    }
    let price = best?;
    let records = paths
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "rec"));
    let intervals: f64 = records.filter_map(|path| intervals(path)).sum();
    let processes = run_dir::read_processes(run).ok()?;
    let (begin, end) = (processes.headers.first()?.begin, processes.ends.last()?.end);
    let ns_per_tick = (end.ns as f64 - begin.ns as f64) / (end.tsc as f64 - begin.tsc as f64);
    let used = processes.ends.iter().map(|e| e.cpu_ns);
    let used_ns = used.sum::<Option<u64>>()? as f64;
    let share = intervals * price * ns_per_tick / used_ns;
    share.is_finite().then(|| Estimate {
        share: share.min(1.0),
        by_counters,
    })
}

/// About how many intervals a thread has recorded.
fn intervals(path: &Path) -> Option<f64> {
    let file = input::open(path).ok()?;
    let mut bytes = vec![0; HEADER_LEN];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let header = ThreadHeader::parse(&bytes).ok()?;
    let (mut looked_at, mut intervals) = (0, 0);
    for part in header.behind(0) {
        let len = (part.end - part.start).min(LOOKED_AT - looked_at);
        let mut records = vec![0; len as usize];
        file.read_exact_at(&mut records, part.start).ok()?;
        looked_at += len;
        // The last record may be cut off.
        let of_probes =
            |r: &Record<'_>| matches!(r, Record::Interval(i) if has_probes(Some(i.construct)));
        let records = Records::of(&header, &records).map_while(Result::ok);
        intervals += records.filter(of_probes).count();
    }
    let all = header.committed as f64 / looked_at.max(1) as f64;
    Some(intervals as f64 * all)
}
