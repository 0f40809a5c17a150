//! What the probes took of a run, estimated without reading it all: a part of each thread's records tells how many bytes an
//! interval has.

use super::RecordingArgs;
use crate::{input, run_dir};
use ompfuse_account::probes::{Price, WORTH_SAYING, has_probes};
use ompfuse_account::units::percent;
use ompfuse_format::record::{HEADER_LEN, Record, Records, ThreadHeader};
use ompfuse_format::run::{ProcessCosts, costs_file_process};
use ompfuse_report::words::{STILL_TIMED, shell_words};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are looked at of each file, at most.
const LOOKED_AT: u64 = 1 << 20;

/// Share of the processor time that the probes took.
struct Estimate {
    share: f64,
    price: Price,
}

/// What to do, where the probes took much of a run in this folder.
pub(crate) fn advice(run: &Path, args: &RecordingArgs) -> Option<String> {
    let Estimate { share, price } = estimate(run)?;
    let allowed = args.units.allowed_cost();
    let is_kept = allowed.is_none_or(|allowed| share <= allowed);
    if share <= WORTH_SAYING && is_kept {
        return None;
    }
    let fewer = match args.option(price) {
        Some(option) => {
            let words: Vec<_> = args.command.iter().map(|w| w.to_string_lossy()).collect();
            format!(
                "to record with fewer probes: ompfuse record {option} -- {}",
                shell_words(words.iter().map(AsRef::as_ref))
            )
        }
        None => format!(
            "to leave out regions that are too short: ompfuse report {} --suggest-filter 5 -o filter, then record with --filter filter",
            shell_words([run.to_string_lossy().as_ref()])
        ),
    };
    let because = match is_kept {
        true => String::new(),
        false => format!(", because {STILL_TIMED}"),
    };
    Some(format!(
        "the probes took about {} of the processor time (estimated){because}; {fewer}",
        percent(share)
    ))
}

impl RecordingArgs {
    /// The option that makes probes cost less, if there is one that isn't given already.
    fn option(&self, price: Price) -> Option<&'static str> {
        match self.units.allowed_cost() {
            _ if price.by_counters => Some("--events none"),
            None if price.saves() => Some("--units cost=5"),
            _ => None,
        }
    }
}

/// `None`: nothing is known of what an interval's probes take, or of the processor time.
fn estimate(run: &Path) -> Option<Estimate> {
    let processes = run_dir::read_processes(run).ok()?;
    let (begin, end) = (processes.headers.first()?.begin, processes.ends.last()?.end);
    let ns_per_tick = (end.ns as f64 - begin.ns as f64) / (end.tsc as f64 - begin.tsc as f64);
    let files = std::fs::read_dir(run).ok()?;
    let paths: Vec<_> = files.filter_map(|f| Some(f.ok()?.path())).collect();
    let mut best: Option<Price> = None;
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
        let ps = |ticks: u64, of: u64| (1e3 * ns_per_tick * ticks as f64 / of.max(1) as f64) as u64;
        let price = Price::new(
            ps(interval.ticks, interval.intervals),
            ps(boundary.ticks, boundary.boundaries),
            ps(interval.clock_ticks, interval.intervals),
        );
        if best.is_none_or(|least| price.recorded < least.recorded) {
            best = Some(price);
        }
    }
    let price = best?;
    let records = paths
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "rec"));
    let of_files = records.filter_map(|path| intervals(path));
    let [recorded, left_out] = of_files.fold([0, 0], |all, of| [all[0] + of[0], all[1] + of[1]]);
    let used = processes.ends.iter().map(|e| e.cpu_ns);
    let used_ns = used.sum::<Option<u64>>()? as f64;
    let share = price.ns(recorded, left_out) as f64 / used_ns;
    share.is_finite().then(|| Estimate {
        share: share.min(1.0),
        price,
    })
}

/// About how many intervals a thread has recorded, and left out.
fn intervals(path: &Path) -> Option<[u64; 2]> {
    let file = input::open(path).ok()?;
    let mut bytes = vec![0; HEADER_LEN];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let header = ThreadHeader::parse(&bytes).ok()?;
    let (mut looked_at, mut intervals) = (0, [0, 0]);
    for part in header.behind(0) {
        let len = (part.end - part.start).min(LOOKED_AT - looked_at);
        let mut records = vec![0; len as usize];
        file.read_exact_at(&mut records, part.start).ok()?;
        looked_at += len;
        // The last record may be cut off.
        for record in Records::of(&header, &records).map_while(Result::ok) {
            match record {
                Record::Interval(i) if has_probes(Some(i.construct)) => intervals[0] += 1,
                Record::LeftOut(l) if has_probes(Some(l.construct)) => intervals[1] += l.count,
                _ => {}
            }
        }
    }
    let all = header.committed as f64 / looked_at.max(1) as f64;
    Some(intervals.map(|n| (n as f64 * all) as u64))
}
