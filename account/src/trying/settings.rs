//! Other chunks, smaller teams, other grain sizes, cutoffs of tasks.

use super::Setting;
use crate::model::{ModuleInfo, Region, Report};
use ompfuse_format::Construct;
use ompfuse_format::detail::{Detail, Kind};
use ompfuse_format::site::Edge;
use ompfuse_fuse::summary::Summary;
use ompfuse_patterns::{Entry, Settable, lookup};
use std::collections::BTreeSet;

/// Regions with a smaller share of the time are left alone.
const LEAST_SHARE: f64 = 0.02;
/// A team whose part of a region is shorter may cost more than it brings, in seconds.
const SHORT: f64 = 200e-6;
/// A task that is shorter than this costs more than it does, in seconds.
const TINY: f64 = 10e-6;
/// So few tasks cost nothing worth telling.
const FEW: u64 = 1000;
/// Depths from which on tasks are executed at once.
const CUTOFFS: [u32; 4] = [4, 8, 6, 10];
/// Ranges for each thread that leave none without work at the end.
const RANGES: f64 = 8.0;

/// Settings of the regions with the most time first, each with its region's number.
pub(super) fn proposals(report: &Report, summary: &Summary) -> Vec<(u32, Setting)> {
    let mut regions: Vec<&Region> = report.regions.iter().collect();
    regions.sort_by(|a, b| time(b).total_cmp(&time(a)));
    let all: f64 = report.regions.iter().map(|r| r.time_s).sum();
    let large = regions.into_iter().filter(|r| time(r) >= LEAST_SHARE * all);
    // One of each region comes before the second of any.
    let of_region = |region: &Region| {
        let all = of_region(report, summary, region).into_iter();
        let id = region.id;
        all.map(move |setting| (id, setting))
    };
    let mut of_regions: Vec<_> = large.map(of_region).collect();
    let mut found: Vec<(u32, Setting)> = vec![];
    loop {
        let next: Vec<_> = of_regions.iter_mut().filter_map(Iterator::next).collect();
        if next.is_empty() {
            return found;
        }
        for (id, setting) in next {
            // Tasks of one file have it in common.
            if found.iter().all(|(_, known)| *known != setting) {
                found.push((id, setting));
            }
        }
    }
}

fn time(region: &Region) -> f64 {
    region.inclusive_s.unwrap_or(region.time_s)
}

/// How `--set` names a region in its file.
fn place(region: &Region) -> Option<String> {
    match (&region.source, region.address) {
        (Some(source), _) => {
            let file = source.file.rsplit('/').next().unwrap_or(&source.file);
            Some(format!("{file}:{}", source.line))
        }
        (None, address) => Some(address?.to_string()),
    }
}

/// What the calls of a region's file leave open.
struct Calls {
    path: Option<String>,
    entries: Vec<&'static Entry>,
}

impl Calls {
    fn of(report: &Report, summary: &Summary, region: &Region) -> Calls {
        let name = region.module.as_deref();
        let is_it = |m: &&ModuleInfo| m.build_id.as_deref() == name || Some(&*m.path) == name;
        let path = name.and_then(|_| report.modules.iter().find(is_it));
        let path = path.map(|m| m.path.clone());
        let its = summary
            .modules
            .iter()
            .find(|m| Some(&m.path) == path.as_ref());
        let entries = its.map_or(&[][..], |m| &m.entries).iter();
        Calls {
            entries: entries.filter_map(|entry| lookup(entry)).collect(),
            path,
        }
    }

    /// Whether all calls that begin such a construct leave something open.
    fn leave(&self, construct: Construct, open: impl Fn(Settable) -> bool) -> bool {
        let begin = |e: &&&Entry| matches!(e.edge, Edge::Begin | Edge::Encloses);
        let its = self.entries.iter().filter(begin);
        let mut its = its.filter(|e| e.construct == construct).peekable();
        its.peek().is_some() && its.all(|e| open(e.set))
    }
}

/// The work of a parallel region and of what is in it, in seconds, all threads together; `None`: it isn't known.
fn work_in(report: &Report, region: &Region) -> Option<f64> {
    let paths = &report.call_paths;
    let mut ids = BTreeSet::from([region.id]);
    for path in paths {
        let mut above = path.parent;
        while let Some(parent) = above.and_then(|at| paths.get(at as usize)) {
            if parent.region == Some(region.id) {
                ids.extend(path.region);
                break;
            }
            above = parent.parent;
        }
    }
    let within = report.regions.iter().filter(|r| ids.contains(&r.id));
    region.wall_s?;
    Some(within.map(|r| r.work_s).sum())
}

/// Whether a parallel region's work is less than what its team costs.
pub(super) fn needs_no_team(report: &Report, region: &Region) -> bool {
    let is_team = region.construct.is_some_and(Construct::is_fork) && region.spread.threads > 1;
    let work = work_in(report, region).filter(|_| is_team);
    work.is_some_and(|work| {
        let is_less = region.wall_s.is_some_and(|wall| work < wall);
        work / (region.executions.max(1) as f64) < SHORT || is_less
    })
}

fn of_region(report: &Report, summary: &Summary, region: &Region) -> Vec<Setting> {
    let Some(place) = place(region) else {
        return vec![];
    };
    let calls = Calls::of(report, summary, region);
    let is_tiny = region.xus >= FEW && region.xu_mean_s.is_some_and(|mean| mean < TINY);
    if region.construct == Some(Construct::Task) && is_tiny {
        let can_be = calls.leave(Construct::Task, |open| open.deferred.is_some());
        let cutoff = |depth| Setting {
            module: calls.path.clone(),
            place: "task".to_owned(),
            values: format!("cutoff={depth}"),
            is_doubtful: true, // not if a function copies its data
        };
        let all = CUTOFFS.map(cutoff).into_iter();
        return all.filter(|_| can_be).collect();
    }
    let executions = region.executions.max(1) as f64;
    let threads = f64::from(region.spread.threads.max(1));
    let mut values = vec![];
    let schedule = Detail(region.detail.as_deref().unwrap_or(""));
    let deals = matches!(schedule.kind(), Some(Kind::Dynamic | Kind::Guided));
    let is_plain = !schedule.is_ordered();
    if let (Some(iterations), true) = (region.iterations, deals && is_plain && region.xus > 0) {
        let chunk = iterations as f64 / region.xus as f64;
        let of_execution = iterations as f64 / executions;
        let most = (of_execution / threads / RANGES).floor();
        values.extend(chunks(chunk, most).map(|n| format!("chunk={n}")));
    }
    let sizes = |open: Settable| open.grain.is_some();
    if region.construct == Some(Construct::Taskloop) && calls.leave(Construct::Taskloop, sizes) {
        values.extend([4, 16, 64].map(|n| format!("grainsize={n}")));
    }
    let mut of_loops = calls.entries.iter().filter(|e| e.set.chunk.is_some());
    if schedule.kind() == Some(Kind::Guided) && of_loops.all(|e| e.set.schedule.is_some()) {
        values.push("schedule=dynamic, chunk=1".to_owned());
    }
    // One thread has the work of all, and starts no team.
    let fork = region.construct.filter(|c| c.is_fork());
    let fork = fork.filter(|&fork| calls.leave(fork, |open| open.threads.is_some()));
    if fork.is_some() && needs_no_team(report, region) {
        values.push("serial".to_owned());
    }
    let setting = |values| Setting {
        module: calls.path.clone(),
        place: place.clone(),
        values,
        is_doubtful: false,
    };
    values.into_iter().map(setting).collect()
}

/// Other chunks than this mean one, the farthest first: larger ones up to `most`, and smaller ones.
fn chunks(chunk: f64, most: f64) -> impl Iterator<Item = u64> {
    let larger = [64.0, 16.0, 4.0].map(|by| (chunk * by).round());
    let smaller = [16.0, 4.0].map(|by| (chunk / by).round());
    let larger = larger.into_iter().filter(move |&n| n <= most);
    let smaller = smaller
        .into_iter()
        .filter(move |&n| n >= 1.0 && n < chunk && chunk > most);
    larger.chain(smaller).map(|n| n as u64)
}

#[cfg(test)]
mod tests {
    use super::chunks;

    #[test]
    fn chunks_leave_each_thread_several_ranges() {
        let of = |chunk, most| chunks(chunk, most).collect::<Vec<u64>>();
        assert_eq!(of(1.0, 1000.0), [64, 16, 4]);
        assert_eq!(of(1.0, 20.0), [16, 4]);
        // Already too large: only smaller ones help.
        assert_eq!(of(500.0, 60.0), [31, 125]);
        assert_eq!(of(10.0, 20.0), [0; 0]);
    }
}
