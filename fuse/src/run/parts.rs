//! Sums per outermost parallel region and thread: processor time, and counts of events that are counted per region only.

use super::clock::Clock;
use ompfuse_format::Construct;
use ompfuse_format::record::{MAX_COUNTERS, NOT_COUNTED, PartSum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one thread of an outermost parallel region's team executed of it, nested regions included. Processor time and counts are
/// those of the parts that were read (some, where parts are short): nothing is extrapolated. They are a region's on a
/// thread, never an execution unit's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionParts {
    /// Position in the sites.
    pub site: u32,
    /// Parallel or teams.
    pub construct: Construct,
    /// Position in the processes.
    pub process: u16,
    /// Number of the thread in the outermost team.
    pub member: u32,
    /// Number of the thread in its process, if it was always the same one.
    pub thread: Option<u32>,
    /// Parts that were executed: one for each execution, and those of threads that nested regions had.
    pub parts: u64,
    /// Parts that were read.
    pub read: u64,
    /// Begin to end of all parts in nanoseconds.
    pub wall_ns: u64,
    /// Begin to end of those that were read.
    pub read_wall_ns: u64,
    /// Processor time of those that were read; `None` where it is not known.
    pub processor_ns: Option<u64>,
    /// Time of those that were read in which the thread waited for others, and may have slept.
    pub wait_ns: u64,
    /// Counts of the parts that were read, in the order of the run's region events.
    pub counts: Vec<Option<u64>>,
    /// Parts that each count is of.
    pub covered: Vec<u64>,
}

/// The records of a thread, summed up by region and number in the team.
#[derive(Debug, Default)]
pub(crate) struct PartSums(BTreeMap<(u32, u32), Sum>);

#[derive(Debug)]
struct Sum {
    construct: Construct,
    parts: u64,
    read: u64,
    ticks: u64,
    read_ticks: u64,
    processor_ns: Option<u64>,
    wait_ticks: u64,
    /// Of the counters that the thread has.
    counts: Vec<Option<u64>>,
}

fn known(count: u64) -> Option<u64> {
    (count != NOT_COUNTED).then_some(count)
}

/// What is not known of a part is not known of the whole.
fn add(sum: &mut Option<u64>, more: Option<u64>) {
    *sum = sum.zip(more).map(|(a, b)| a.saturating_add(b));
}

impl PartSums {
    pub(super) fn add(&mut self, record: &PartSum<'_>) {
        let new = || Sum {
            construct: record.construct,
            parts: 0,
            read: 0,
            ticks: 0,
            read_ticks: 0,
            processor_ns: Some(0),
            wait_ticks: 0,
            counts: vec![Some(0); record.counts.iter().len()],
        };
        let sum = self.0.entry((record.site, record.member));
        let sum = sum.or_insert_with(new);
        for (total, more) in [
            (&mut sum.parts, record.parts),
            (&mut sum.read, record.read),
            (&mut sum.ticks, record.ticks),
            (&mut sum.read_ticks, record.read_ticks),
            (&mut sum.wait_ticks, record.wait_ticks),
        ] {
            *total = total.saturating_add(more);
        }
        add(&mut sum.processor_ns, known(record.processor_ns));
        sum.counts.truncate(record.counts.iter().len());
        for (total, more) in sum.counts.iter_mut().zip(record.counts.iter()) {
            add(total, known(more));
        }
    }

    /// The regions in them, as the records have them.
    pub(super) fn sites(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.keys().map(|(site, _)| *site)
    }
}

/// A process, and where in its records the counts of the run's region events are.
pub(super) struct OfProcess<'a> {
    pub(super) process: u16,
    pub(super) clock: Clock,
    pub(super) columns: &'a [Option<u32>],
}

/// Adds a thread's sums to those of the others. `place`: of a record's site.
pub(super) fn add_parts(
    all: &mut Vec<RegionParts>,
    context: &OfProcess<'_>,
    (thread, sums): (u32, &PartSums),
    place: impl Fn(u32) -> Option<u32>,
) {
    for (&(site, member), sum) in &sums.0 {
        let Some(site) = place(site) else { continue };
        let key = (site, context.process, member);
        let same = |r: &RegionParts| (r.site, r.process, r.member) == key;
        let at = all.iter().position(same).unwrap_or_else(|| {
            all.push(RegionParts {
                site,
                construct: sum.construct,
                process: context.process,
                member,
                thread: Some(thread),
                parts: 0,
                read: 0,
                wall_ns: 0,
                read_wall_ns: 0,
                processor_ns: Some(0),
                wait_ns: 0,
                counts: vec![Some(0); context.columns.len()],
                covered: vec![0; context.columns.len()],
            });
            all.len() - 1
        });
        let region = &mut all[at];
        region.thread = region.thread.filter(|&t| t == thread);
        region.parts += sum.parts;
        region.read += sum.read;
        region.wall_ns += context.clock.length(sum.ticks);
        region.read_wall_ns += context.clock.length(sum.read_ticks);
        region.wait_ns += context.clock.length(sum.wait_ticks);
        add(&mut region.processor_ns, sum.processor_ns);
        let count = |column: &Option<u32>| {
            let column = (*column)? as usize;
            sum.counts
                .get(column)
                .filter(|_| column < MAX_COUNTERS)
                .copied()?
        };
        for (at, column) in context.columns.iter().enumerate() {
            // Where nothing was read there is nothing that is not known.
            if sum.read > 0 {
                add(&mut region.counts[at], count(column));
                region.covered[at] += sum.read;
            }
        }
    }
}
