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
use crate::run::streaming::Streaming;
use crate::run::{InParts, NONE, RunFiles};
use coverage::Coverage;
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
    let parted: Vec<Vec<Vec<Option<u64>>>> = collected
        .iter()
        .map(|c| {
            c.sums
                .iter()
                .map(|(_, s)| streaming.parted(&s.counts))
                .collect()
        })
        .collect();
    let (run, places) = streaming.finish(unlabelled);
    let events = origins(&run.events);
    let mut groups = Groups::default();
    let mut coverage = Coverage::default();
    let mut parallel: BTreeMap<u32, Executions> = BTreeMap::new();
    let mut first_thread = 0;
    let mut xus = 0;
    for (number, ((process, places), parted)) in
        (0u16..).zip(collected.into_iter().zip(&places).zip(parted))
    {
        let place = |site: u32| places.get(&site).copied().flatten().map_or(NONE, |p| p.0);
        for (((what, region), sums), counts) in process.sums.into_iter().zip(parted) {
            let key = Key {
                site: place(what.0),
                construct: Some(what.1),
                parallel: region.map_or(NONE, place),
            };
            let threads = (first_thread..).zip(sums.threads);
            let threads = threads.filter(|(_, s)| s.totals.count > 0);
            groups.merge(key, sums.instances, &counts, threads);
        }
        for (site, (stat, workers)) in process.parallel {
            let site = place(site);
            let (whole, waits) = parallel.entry(site).or_default();
            whole.merge(&stat);
            for (thread, ns) in workers {
                *waits.entry(first_thread + thread).or_default() += ns;
            }
        }
        coverage.absorb(process.coverage);
        xus += process.xus;
        first_thread += run.threads.iter().filter(|t| t.process == number).count() as u32;
    }
    let mut summary = Summary::without_sums(name, &run);
    summary.regions = groups.into_stats(&columns, &made_of, &events);
    summary.parallel = in_order(parallel, &run);
    summary.parallel_ns = coverage.ns();
    summary.runs[0].xus = xus;
    summary
}
