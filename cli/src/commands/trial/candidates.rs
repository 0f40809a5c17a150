//! What is worth trying, from a report: other chunks, smaller teams, other grain sizes, cutoffs of tasks.

use ompfuse_format::Construct;
use ompfuse_report::model::ModuleInfo;
use ompfuse_report::{Region, Report};
use std::collections::BTreeSet;
use std::path::Path;

/// Most variants that are tried.
const MOST: usize = 8;
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

/// Settings as `--set` takes them, those of the regions with the most time first. `program`: its own file. `with_libraries`: others, too.
pub(super) fn candidates(report: &Report, program: &Path, with_libraries: bool) -> Vec<String> {
    let is_meant = |r: &&Region| with_libraries || library(report, program, r).is_none();
    let mut regions: Vec<&Region> = report.regions.iter().filter(is_meant).collect();
    regions.sort_by(|a, b| time(b).total_cmp(&time(a)));
    let all = time_of_all(report);
    let large = regions.into_iter().filter(|r| time(r) >= LEAST_SHARE * all);
    // One of each region comes before the second of any.
    let mut of_regions: Vec<_> = large
        .map(|r| of_region(report, program, r).into_iter())
        .collect();
    let mut found = vec![];
    loop {
        let next: Vec<String> = of_regions.iter_mut().filter_map(Iterator::next).collect();
        let is_last = next.is_empty();
        for text in next {
            // Tasks of one file have it in common.
            if !found.contains(&text) {
                found.push(text);
            }
        }
        if is_last || found.len() >= MOST {
            found.truncate(MOST);
            return found;
        }
    }
}

fn time_of_all(report: &Report) -> f64 {
    report.regions.iter().map(|r| r.time_s).sum()
}

fn time(region: &Region) -> f64 {
    region.inclusive_s.unwrap_or(region.time_s)
}

/// The name of the library that a region is in; `None`: it is in the program's own file.
fn library<'r>(report: &'r Report, program: &Path, region: &Region) -> Option<&'r str> {
    let module = region.module.as_deref()?;
    let is_it = |m: &&ModuleInfo| m.build_id.as_deref() == Some(module) || m.path == module;
    let path = Path::new(&report.modules.iter().find(is_it)?.path);
    let is_own = path.canonicalize().ok() == program.canonicalize().ok();
    path.file_name()?.to_str().filter(|_| !is_own)
}

/// How `--set` and `--select` name a region's file, before its place there.
pub(super) fn prefix(report: &Report, program: &Path, region: &Region) -> String {
    let library = library(report, program, region);
    library.map_or(String::new(), |name| format!("lib:{name}:"))
}

/// How `--set` names a region.
fn selector(report: &Report, program: &Path, region: &Region) -> Option<String> {
    let place = match (&region.source, region.address) {
        (Some(source), _) => {
            let file = source.file.rsplit('/').next().unwrap_or(&source.file);
            format!("{file}:{}", source.line)
        }
        (None, address) => address?.to_string(),
    };
    Some(prefix(report, program, region) + &place)
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

fn of_region(report: &Report, program: &Path, region: &Region) -> Vec<String> {
    let Some(selector) = selector(report, program, region) else {
        return vec![];
    };
    let is_tiny = region.xus >= FEW && region.xu_mean_s.is_some_and(|mean| mean < TINY);
    if region.construct == Some(Construct::Task) && is_tiny {
        let tasks = prefix(report, program, region) + "task";
        return CUTOFFS
            .map(|depth| format!("{tasks}: cutoff={depth}"))
            .into();
    }
    let executions = region.executions.max(1) as f64;
    let threads = f64::from(region.spread.threads.max(1));
    let mut values = vec![];
    let schedule = region.detail.as_deref().unwrap_or("");
    let deals = schedule.starts_with("dynamic") || schedule.starts_with("guided");
    let is_plain = !schedule.contains("ordered") && !schedule.contains("doacross");
    if let (Some(iterations), true) = (region.iterations, deals && is_plain && region.xus > 0) {
        let chunk = iterations as f64 / region.xus as f64;
        let of_execution = iterations as f64 / executions;
        let most = (of_execution / threads / RANGES).floor();
        values.extend(chunks(chunk, most).map(|n| format!("chunk={n}")));
    }
    if region.construct == Some(Construct::Taskloop) {
        values.extend([4, 16, 64].map(|n| format!("grainsize={n}")));
    }
    if schedule.starts_with("guided") {
        values.push("schedule=dynamic, chunk=1".to_owned());
    }
    // One thread has the work of all, and starts no team.
    let is_fork = region.construct.is_some_and(Construct::is_fork);
    if let (Some(work), true) = (work_in(report, region), is_fork && threads > 1.0) {
        let is_less = region.wall_s.is_some_and(|wall| work < wall);
        if work / executions < SHORT || is_less {
            values.push("serial".to_owned());
        }
    }
    let all = values.into_iter();
    all.map(|value| format!("{selector}: {value}")).collect()
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
