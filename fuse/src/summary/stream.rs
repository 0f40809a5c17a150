//! A run's [`Summary`] from one reading of its records, in memory that doesn't grow with them.
//!
//! The records of a process's threads are taken in the order of time ([`crate::run::merge`]). What happens in a parallel region is
//! summed up with that execution until it has ended, since only then it is known whether it is on record
//! ([`regions`]); no unit is kept. Where a record comes in an order that can't be, or what it belongs to has long ended, nothing
//! is guessed: the run is summed up from tables.

mod coverage;
mod in_region;
mod kept;
mod pending;
mod process;
mod regions;

use super::Summary;
use super::collect::{origins, own_times};
use super::groups::{Groups, Key};
use super::growth::{
    AroundGrowth, AroundKind, Grower, Growth, GrowthBy, GrowthError, OwnGrowth, of_run,
};
use super::parallel::{Executions, in_order};
use super::tree::{Paths, Step, Tree};
use crate::run::rows::Places;
use crate::run::streaming::Streaming;
use crate::run::{InParts, NONE, Run, RunFiles};
use coverage::Coverage;
use in_region::Whole;
use ompfuse_format::Construct;
use ompfuse_progress::Progress;
use process::{Collected, Collector};
use std::collections::BTreeMap;

impl Summary {
    /// As [`Summary::of_run`], of a run's files, and the units that have several parts. `None`: its records are in no order of time.
    /// `name`: what the user calls it.
    pub fn streamed(
        name: &str,
        files: &RunFiles<'_>,
        progress: Progress<'_>,
    ) -> Option<(Summary, InParts)> {
        if files.has_sums_only() {
            return Some((Summary::of_sums(name, files)?, InParts(vec![])));
        }
        let (streaming, mut collected) = collect(files, None, progress)?;
        let in_parts = take_in_parts(&mut collected);
        Some((put_together(name, streaming, collected).0, in_parts))
    }

    /// As [`Summary::streamed`], with sums over time. Without [`InParts`] the records don't come in the order of time.
    ///
    /// # Errors
    /// [`GrowthError`] where there are none.
    pub fn growing(
        name: &str,
        files: &RunFiles<'_>,
        by: GrowthBy<'_>,
        progress: Progress<'_>,
    ) -> Result<(Summary, Option<InParts>, Growth), GrowthError> {
        if files.has_sums_only() {
            return Err(GrowthError::SumsOnly);
        }
        let Some((streaming, mut collected)) = collect(files, Some(by), progress) else {
            let run = Run::read(files);
            return Ok((Summary::of_run(name, &run), None, of_run(&run, by)?));
        };
        let mut growers: Vec<Option<Grower>> =
            collected.iter_mut().map(|c| c.grower.take()).collect();
        if let GrowthBy::Instances(_) = by {
            let with_records = growers.iter().flatten().filter(|g| g.span().is_some());
            if with_records.count() > 1 {
                return Err(GrowthError::Processes);
            }
            let met = growers.iter().flatten().filter_map(Grower::instances);
            if met.sum::<u64>() == 0 {
                return Err(GrowthError::NoInstance);
            }
        }
        // Twice: the first may become coarser by the last.
        for _ in 0..2 {
            let Some((first, others)) = growers.split_first_mut() else {
                break;
            };
            for other in others.iter_mut().flatten() {
                first.iter_mut().for_each(|first| first.align(other));
            }
        }
        let in_parts = take_in_parts(&mut collected);
        let (summary, placed) = put_together(name, streaming, collected);
        Ok((summary, Some(in_parts), growth(&growers, &placed)))
    }

    /// Of a run whose threads have kept sums. `None`: something in them has no name. `name`: what the user calls it.
    pub fn of_sums(name: &str, files: &RunFiles<'_>) -> Option<Summary> {
        let mut streaming = Streaming::new(files);
        let columns = streaming.columns();
        let mut collected: Vec<Collected> = vec![];
        for process in &mut streaming.processes {
            collected.push(kept::collect(process, columns)?);
        }
        let (mut summary, _) = put_together(name, streaming, collected);
        summary.runs[0].sums_only = true;
        Some(summary)
    }
}

/// The units that have several parts, by process.
fn take_in_parts(collected: &mut [Collected]) -> InParts {
    let taken = (collected.iter_mut()).map(|c| std::mem::take(&mut c.in_parts));
    InParts(taken.collect())
}

/// Reads all processes' records; `None`: they are in no order of time.
fn collect<'f, 'a>(
    files: &'f RunFiles<'a>,
    by: Option<GrowthBy<'_>>,
    progress: Progress<'_>,
) -> Option<(Streaming<'f, 'a>, Vec<Collected>)> {
    let mut streaming = Streaming::new(files);
    let all: usize = streaming.processes.iter().map(|p| p.bytes).sum();
    let columns = streaming.columns();
    let mut collected: Vec<Collected> = vec![];
    for process in &mut streaming.processes {
        collected.push(Collector::collect(process, columns, all, by, progress)?);
    }
    Some((streaming, collected))
}

/// By process: where its records' sites are in the run's, and the position of its first thread.
type Placed = Vec<(Places, u32)>;

/// All processes' sums over time, whose intervals are equally long.
fn growth(growers: &[Option<Grower>], placed: &Placed) -> Growth {
    let known = || growers.iter().flatten();
    let last = known().filter_map(|g| Some(g.span()?.1)).max().unwrap_or(0);
    let widest = known()
        .filter(|g| g.span().is_some())
        .max_by_key(|g| g.folded);
    let Some(widest) = widest else {
        return Growth::default();
    };
    let mut own: BTreeMap<(Option<u32>, Construct, Option<u32>), Vec<u64>> = BTreeMap::new();
    let mut around: BTreeMap<(Option<u32>, AroundKind), Vec<u64>> = BTreeMap::new();
    let add = |to: &mut Vec<u64>, row: &[u64]| {
        to.resize(to.len().max(row.len()), 0);
        to.iter_mut().zip(row).for_each(|(to, ns)| *to += ns);
    };
    for (grower, (places, first)) in growers.iter().zip(placed) {
        let place = |site: u32| places.get(&site).copied().flatten().map(|p| p.0);
        for ((site, construct, thread), row) in grower.iter().flat_map(Grower::own) {
            let account = thread.map(|t| first + t);
            add(
                own.entry((place(site), construct, account)).or_default(),
                row,
            );
        }
        for ((site, kind), row) in grower.iter().flat_map(Grower::arounds) {
            add(around.entry((place(site), kind)).or_default(), row);
        }
    }
    let own = own
        .into_iter()
        .map(|((site, construct, account), ns)| OwnGrowth {
            site,
            construct,
            account,
            ns,
        });
    let around = around
        .into_iter()
        .map(|((site, kind), ns)| AroundGrowth { site, kind, ns });
    Growth {
        edges: widest.edges(last),
        each: widest.each(),
        folded: widest.folded,
        own: own.collect(),
        around: around.collect(),
    }
}

fn put_together(
    name: &str,
    streaming: Streaming<'_, '_>,
    collected: Vec<Collected>,
) -> (Summary, Placed) {
    let unlabelled = collected.iter().map(|c| c.unlabelled).sum();
    let (columns, made_of) = streaming.names();
    let width = streaming.columns();
    let parted: Vec<Vec<Vec<Vec<Option<u64>>>>> = collected
        .iter()
        .map(|c| {
            let by_thread =
                |at: usize, sums: &Whole| streaming.parted(&sums.counts[at * width..][..width]);
            let of = |(_, sums): &(_, Whole)| {
                let threads = 0..sums.threads.len();
                threads.map(|at| by_thread(at, sums)).collect()
            };
            c.sums.iter().map(of).collect()
        })
        .collect();
    let (run, places, contexts) = streaming.finish(unlabelled);
    let events = origins(&run.events);
    let mut groups = Groups::default();
    let mut coverage = Coverage::default();
    let mut parallel: BTreeMap<u32, Executions> = BTreeMap::new();
    let mut tree = Tree::default();
    let mut first_thread = 0;
    let mut firsts = vec![];
    let mut xus = 0;
    let (mut threads, mut parallel_ns) = (vec![], vec![]);
    for (number, ((process, places), parted)) in
        (0u16..).zip(collected.into_iter().zip(&places).zip(parted))
    {
        let place = |site: u32| places.get(&site).copied().flatten().map_or(NONE, |p| p.0);
        let context = |number: u32| contexts.number(process.contexts.chain(number));
        let paths = in_all(&mut tree.paths, &process.paths, (place, context));
        tree.paths.folded += process.paths.folded;
        for (((what, region), sums), counts) in process.sums.into_iter().zip(parted) {
            let key = Key {
                site: place(what.site),
                construct: Some(what.construct),
                parallel: region.map_or(NONE, place),
                path: paths[what.path as usize],
            };
            let threads = (first_thread..).zip(sums.threads).zip(counts);
            let threads = threads.filter(|((_, s), _)| s.totals.count > 0);
            let threads = threads.map(|((thread, sums), counts)| (thread, sums, counts));
            groups.merge(key, sums.instances, threads, sums.distribution);
        }
        for (path, executions) in &process.parallel {
            let whole = parallel.entry(paths[*path as usize]).or_default();
            whole.merge(executions, first_thread);
        }
        threads.push(process.threads);
        parallel_ns.push(process.coverage.ns());
        coverage.absorb(process.coverage);
        xus += process.xus;
        firsts.push(first_thread);
        first_thread += run.threads.iter().filter(|t| t.process == number).count() as u32;
    }
    let mut summary = Summary::without_sums(name, &run);
    (summary.regions, tree.kinds) = groups.into_stats(&columns, &made_of, &events);
    let paths = &tree.paths;
    let site_of = |path: u32| paths.list()[path as usize].step.site;
    (summary.parallel, tree.executions) = in_order(parallel, site_of, &run);
    summary.paths_folded = paths.folded > 0;
    summary.paths = tree.into_stats();
    summary.parallel_ns = coverage.ns();
    summary.own = own_times(&run, &threads);
    for (own, parallel_ns) in summary.own.iter_mut().zip(parallel_ns) {
        own.parallel_ns = parallel_ns;
    }
    summary.runs[0].xus = xus;
    (summary, places.into_iter().zip(firsts).collect())
}

/// Of a process's paths those among all of the run's. `place`, `context`: the run's for those of the process.
fn in_all(
    all: &mut Paths,
    process: &Paths,
    (place, context): (impl Fn(u32) -> u32, impl Fn(u32) -> u32),
) -> Vec<u32> {
    let mut numbers: Vec<u32> = vec![];
    for path in process.list() {
        let number = match path.parent {
            NONE => Paths::ROOT,
            parent => {
                let step = Step {
                    site: place(path.step.site),
                    context: context(path.step.context),
                    ..path.step
                };
                all.step(numbers[parent as usize], step)
            }
        };
        numbers.push(number);
    }
    numbers
}
