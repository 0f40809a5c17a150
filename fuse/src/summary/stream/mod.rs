//! A run's [`Summary`] from one reading of its records, in memory that doesn't grow with them.
//!
//! The records of a process's threads are taken in the order of time ([`crate::run::merge`]). What happens in a parallel region is
//! summed up with that execution until it has ended, since only then it is known whether it is on record
//! ([`regions`]); no unit is kept. Where a record comes in an order that can't be, or what it belongs to has long ended, nothing
//! is guessed: the run is summed up from tables.

mod coverage;
mod in_region;
mod pending;
mod process;
mod regions;

use super::Summary;
use super::collect::origins;
use super::groups::{Groups, Key};
use super::parallel::{Executions, in_order};
use super::tree::{Paths, Step, Tree};
use crate::run::streaming::Streaming;
use crate::run::{InParts, NONE, RunFiles};
use coverage::Coverage;
use in_region::Whole;
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
        let mut streaming = Streaming::new(files);
        let all: usize = streaming.processes.iter().map(|p| p.bytes).sum();
        let columns = streaming.columns();
        let mut collected: Vec<Collected> = vec![];
        for process in &mut streaming.processes {
            collected.push(Collector::collect(process, columns, all, progress)?);
        }
        let in_parts = collected
            .iter_mut()
            .map(|c| std::mem::take(&mut c.in_parts));
        let in_parts = InParts(in_parts.collect());
        Some((put_together(name, streaming, collected), in_parts))
    }
}

fn put_together(name: &str, streaming: Streaming<'_, '_>, collected: Vec<Collected>) -> Summary {
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
    let (run, places) = streaming.finish(unlabelled);
    let events = origins(&run.events);
    let mut groups = Groups::default();
    let mut coverage = Coverage::default();
    let mut parallel: BTreeMap<u32, Executions> = BTreeMap::new();
    let mut tree = Tree::default();
    let mut first_thread = 0;
    let mut xus = 0;
    for (number, ((process, places), parted)) in
        (0u16..).zip(collected.into_iter().zip(&places).zip(parted))
    {
        let place = |site: u32| places.get(&site).copied().flatten().map_or(NONE, |p| p.0);
        let paths = in_all(&mut tree.paths, &process.paths, place);
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
            groups.merge(key, sums.instances, threads);
        }
        for (path, executions) in &process.parallel {
            let whole = parallel.entry(paths[*path as usize]).or_default();
            whole.merge(executions, first_thread);
        }
        coverage.absorb(process.coverage);
        xus += process.xus;
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
    summary.runs[0].xus = xus;
    summary
}

/// Of a process's paths those among all of the run's. `place`: of a record's site, its position in the run's.
fn in_all(all: &mut Paths, process: &Paths, place: impl Fn(u32) -> u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = vec![];
    for path in process.list() {
        let number = match path.parent {
            NONE => Paths::ROOT,
            parent => {
                let site = place(path.step.site);
                all.step(numbers[parent as usize], Step { site, ..path.step })
            }
        };
        numbers.push(number);
    }
    numbers
}
