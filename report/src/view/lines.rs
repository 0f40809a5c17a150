//! Rows by source line: compilers copy constructs (they inline functions, and make versions of loops), people wrote them once.

use super::merged_paths as paths;
use ompfuse_account::model::ranks;
use ompfuse_account::model::sum::{add, both};
use ompfuse_account::model::{
    Lock, Overhead, OverheadPart, ParallelOverhead, ProgramShares, Property, Region, RegionCount,
    RegionCounts, Report, Spread,
};
use ompfuse_format::Construct;
use ompfuse_fuse::names::readable;
use std::collections::{BTreeMap, BTreeSet};

/// What the sites of one row have in common. Instances of a template have one line as well, and are kept apart.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    module: Option<&'a str>,
    file: &'a str,
    line: u32,
    construct: Option<Construct>,
    combined_with: Option<Construct>,
    detail: Option<&'a str>,
    instance: Option<&'a str>,
}

/// `None`: the region has no source line, and stays for itself.
fn key(region: &Region) -> Option<Key<'_>> {
    let source = region.source.as_ref()?;
    let function = region.function.as_deref();
    Some(Key {
        module: region.module.as_deref(),
        file: &source.file,
        line: source.line,
        construct: region.construct,
        combined_with: region.combined_with,
        detail: region.detail.as_deref(),
        instance: function
            .filter(|f| readable(f).contains('<'))
            .map(|f| &f[..f.find('.').unwrap_or(f.len())]),
    })
}

/// A report by source line.
pub(super) struct Merged {
    /// With one region for all sites of a construct in a source line.
    pub(super) report: Report,
    /// The numbers of the regions that stand for several sites, and for how many.
    pub(super) several: Vec<(u32, usize)>,
    /// The number of each site's region, by the site's own.
    pub(super) number: BTreeMap<u32, u32>,
}

/// Merges the sites of each construct in a source line.
pub(super) fn merged(report: &Report) -> Merged {
    let mut groups: Vec<Vec<&Region>> = Vec::new();
    let mut known: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    for region in &report.regions {
        match key(region) {
            Some(key) => {
                let at = *known.entry(key).or_insert_with(|| {
                    groups.push(Vec::new());
                    groups.len() - 1
                });
                groups[at].push(region);
            }
            None => groups.push(vec![region]),
        }
    }
    let first = |group: &[&Region]| group.iter().map(|r| r.id).min().unwrap_or(0);
    let several = groups.iter().filter(|g| g.len() > 1);
    let several: Vec<(u32, usize)> = several.map(|g| (first(g), g.len())).collect();
    let number: BTreeMap<u32, u32> = (groups.iter())
        .flat_map(|g| g.iter().map(|r| (r.id, first(g))))
        .collect();
    let mut regions: Vec<Region> = groups.iter().map(|g| sum(g)).collect();
    let ranks = report.mpi.iter().flat_map(|m| &m.ranks);
    let ranks: BTreeSet<u32> = ranks.map(|r| r.rank).collect();
    // Of sites in a line only their threads tell how even their ranks are together; a job's report has none.
    let of_several = |r: &&mut Region| several.iter().any(|(id, _)| *id == r.id);
    for region in regions.iter_mut().filter(of_several) {
        region.ranks = ranks::of_region(region, &ranks);
    }
    regions.sort_by(|a, b| b.time_s.total_cmp(&a.time_s).then(a.id.cmp(&b.id)));
    let merged = Report {
        regions,
        overheads: overheads(&report.overheads, &number),
        call_paths: paths::merged(&report.call_paths, &number, &report.contexts),
        properties: properties(report, &number),
        region_counts: region_counts(&report.region_counts, &number),
        locks: locks(&report.locks, &number),
        ..report.clone()
    };
    Merged {
        report: merged,
        several,
        number,
    }
}

/// Locks with the rows that take them.
fn locks(all: &[Lock], number: &BTreeMap<u32, u32>) -> Vec<Lock> {
    let of_rows = |lock: &Lock| {
        let rows = lock.regions.iter().filter_map(|id| number.get(id));
        let rows: BTreeSet<u32> = rows.copied().collect();
        Lock {
            regions: rows.into_iter().collect(),
            ..lock.clone()
        }
    };
    all.iter().map(of_rows).collect()
}

/// Regions as one.
fn sum(regions: &[&Region]) -> Region {
    let (first, others) = regions.split_first().expect("a group has a region");
    let mut sum = Region::clone(first);
    for other in others {
        add(&mut sum, other);
    }
    if !others.is_empty() {
        sum.id = regions.iter().map(|r| r.id).min().unwrap_or(sum.id);
        sum.spread = spread(regions, &sum.work_by_place());
    }
    sum
}

/// The spread of work over the threads of all. Who got nothing of any is in their number alone.
fn spread(regions: &[&Region], works: &[f64]) -> Spread {
    let most = regions.iter().map(|r| r.spread.threads).max().unwrap_or(0);
    let threads = most.max(works.len() as u32);
    let max_s = works.iter().copied().fold(0.0, f64::max);
    let least = works.iter().copied().fold(f64::INFINITY, f64::min);
    let mean_s = works.iter().sum::<f64>() / f64::from(threads.max(1));
    // One without work is not in the list.
    let min_s = if works.len() as u32 == threads {
        least
    } else {
        0.0
    };
    Spread::new(threads, min_s, mean_s, max_s)
}

/// The properties of regions that have one number now.
fn properties(report: &Report, number: &BTreeMap<u32, u32>) -> Vec<Property> {
    let mut sums: Vec<Property> = Vec::new();
    for one in &report.properties {
        let region = one.region.map(|id| number.get(&id).copied().unwrap_or(id));
        let same = |s: &&mut Property| (s.kind, s.region) == (one.kind, region);
        match sums.iter_mut().find(same) {
            Some(sum) => {
                let Property {
                    kind: _,
                    region: _,
                    seconds,
                    count,
                    severity,
                } = *one;
                sum.seconds += seconds;
                sum.count += count;
                sum.severity = sum.severity.zip(severity).map(|(a, b)| a + b);
            }
            None => sums.push(Property { region, ..*one }),
        }
    }
    sums.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    sums
}

/// The overheads of parallel regions that have one number now.
fn overheads(all: &[ParallelOverhead], number: &BTreeMap<u32, u32>) -> Vec<ParallelOverhead> {
    let mut sums: Vec<ParallelOverhead> = Vec::new();
    for one in all {
        let region = number.get(&one.region).copied().unwrap_or(one.region);
        match sums.iter_mut().find(|s| s.region == region) {
            Some(sum) => add_overhead(sum, one),
            None => sums.push(ParallelOverhead {
                region,
                ..one.clone()
            }),
        }
    }
    sums.sort_by(|a, b| b.wall_s.total_cmp(&a.wall_s).then(a.region.cmp(&b.region)));
    sums
}

/// The counts of parallel regions that have one number now.
fn region_counts(all: &[RegionCounts], number: &BTreeMap<u32, u32>) -> Vec<RegionCounts> {
    let mut sums: Vec<RegionCounts> = Vec::new();
    for one in all {
        let region = number.get(&one.region).copied().unwrap_or(one.region);
        let place = |c: &RegionCounts| (c.process, c.team_thread);
        let same = |s: &&mut RegionCounts| s.region == region && place(s) == place(one);
        match sums.iter_mut().find(same) {
            Some(sum) => add_counts(sum, one),
            None => sums.push(RegionCounts {
                region,
                ..one.clone()
            }),
        }
    }
    sums
}

fn add_counts(to: &mut RegionCounts, from: &RegionCounts) {
    let RegionCounts {
        region: _,
        process: _,
        team_thread: _,
        thread,
        executed,
        covered,
        wall_s,
        covered_wall_s,
        processor_s,
        wait_s,
        events,
    } = from;
    to.thread = to.thread.filter(|_| to.thread == *thread);
    to.executed += executed;
    to.covered += covered;
    to.wall_s += wall_s;
    to.covered_wall_s += covered_wall_s;
    to.processor_s = to.processor_s.zip(*processor_s).map(|(a, b)| a + b);
    to.wait_s += wait_s;
    to.events.retain(|name, _| events.contains_key(name));
    for (name, sum) in &mut to.events {
        let RegionCount { count, covered } = events[name];
        sum.count += count;
        sum.covered += covered;
    }
}

fn add_overhead(to: &mut ParallelOverhead, from: &ParallelOverhead) {
    let ParallelOverhead {
        region: _,
        address: _,
        executions,
        nested,
        team,
        wall_s,
        of_run,
        total_s,
        work_s,
        unknown_s,
        overhead,
        of_program,
        parts,
        incomplete_because,
    } = from;
    to.executions += executions;
    to.nested += nested;
    to.team = to.team.max(*team);
    to.wall_s += wall_s;
    to.total_s += total_s;
    to.of_run = to.of_run.zip(*of_run).map(|(a, b)| a + b);
    to.of_run = to.of_run.filter(|&share| share <= 1.0); // else they overlap
    // Work that is known of one of them is a part of what is not known of both.
    to.unknown_s += unknown_s;
    match (to.work_s, *work_s) {
        (Some(a), Some(b)) => to.work_s = Some(a + b),
        (one, other) => {
            to.unknown_s += one.or(other).unwrap_or(0.0);
            to.work_s = None;
        }
    }
    if let (Some(a), Some(b)) = (&mut to.of_program, of_program) {
        add_shares(a, b);
    }
    add_classes(&mut to.overhead, overhead);
    for part in parts {
        let OverheadPart {
            what,
            class,
            seconds,
            count,
        } = part;
        let same = |p: &&mut OverheadPart| (&p.what, p.class) == (what, *class);
        match to.parts.iter_mut().find(same) {
            Some(known) => {
                known.seconds += seconds;
                known.count += count;
            }
            None => to.parts.push(part.clone()),
        }
    }
    to.parts.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    for reason in incomplete_because {
        let kind = std::mem::discriminant(reason);
        let known = to.incomplete_because.iter();
        if !known.map(std::mem::discriminant).any(|k| k == kind) {
            to.incomplete_because.push(*reason);
        }
    }
}

fn add_shares(to: &mut ProgramShares, from: &ProgramShares) {
    let ProgramShares {
        total,
        overheads,
        synchronization,
        imbalance,
        limited_parallelism,
        management,
    } = *from;
    to.total += total;
    to.overheads += overheads;
    let sum = |a, b| both(a, b, |a, b| a + b);
    to.synchronization = sum(to.synchronization, synchronization);
    to.imbalance = sum(to.imbalance, imbalance);
    to.limited_parallelism = sum(to.limited_parallelism, limited_parallelism);
    to.management = sum(to.management, management);
}

fn add_classes(to: &mut Overhead, from: &Overhead) {
    let Overhead {
        synchronization_s,
        imbalance_s,
        limited_parallelism_s,
        management_s,
    } = *from;
    let sum = |a, b| both(a, b, |a, b| a + b);
    to.synchronization_s = sum(to.synchronization_s, synchronization_s);
    to.imbalance_s = sum(to.imbalance_s, imbalance_s);
    to.limited_parallelism_s = sum(to.limited_parallelism_s, limited_parallelism_s);
    to.management_s = sum(to.management_s, management_s);
}
