//! Units with what makes them the same in other runs: where they are, which execution of their loop, and which iterations.

use super::gather::{Gathered, Rec, gather};
use super::regions::places;
use crate::run::RunFiles;
use crate::run::nodes::NONE;
use crate::run::streaming::Streaming;
use crate::summary::Summary;
use ompfuse_format::Construct;
use ompfuse_format::record::Step;
use rustc_hash::FxHasher;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// Intervals of a run that are looked at, at most.
pub const MOST_LABELLED: usize = 200_000;

/// A unit whose label is the same with any number of threads. Loops' units are compared by iterations: their ranges depend on the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labelled {
    /// Position in the summary's sites.
    pub site: u32,
    /// Which execution of its loop, or which task.
    pub instance: u64,
    /// First iteration, or the section's number; 0 of a task.
    pub first: i64,
    /// Iterations; 1 of sections and tasks.
    pub count: u64,
    /// Its own time.
    pub ns: u64,
    /// [`ompfuse_format::record::Interval::disturbed`].
    pub disturbed: bool,
}

/// The units among a run's first records, by place, instance and iteration.
pub fn labelled(files: &RunFiles<'_>, summary: &Summary) -> Vec<Labelled> {
    let mut streaming = Streaming::new(files);
    let sites = (0..).zip(&summary.sites);
    let known: HashMap<(&str, &str), u32> = sites.map(|(at, s)| (s.key(), at)).collect();
    let mut units: Vec<Labelled> = vec![];
    let mut left = MOST_LABELLED;
    for (number, process) in (0u32..).zip(&mut streaming.processes) {
        let gathered = gather(process, [None; 2], left);
        left = left.saturating_sub(gathered.recs.len());
        let places = places(process, &gathered, &known);
        let paths = paths(&gathered, number);
        for rec in gathered.recs.iter().filter(|r| r.construct.is_xu()) {
            let site = places.get(&rec.site);
            let label = label(rec, &gathered, &paths);
            units.extend(
                site.zip(label)
                    .map(|(&site, (instance, first, count))| Labelled {
                        site,
                        instance,
                        first,
                        count,
                        ns: process.clock.length(rec.own),
                        disturbed: rec.disturbed,
                    }),
            );
        }
    }
    units.sort_unstable();
    // Parts of one unit.
    units.dedup_by(|part, unit| {
        let key = |u: &Labelled| (u.site, u.instance, u.first, u.count);
        let is_same = key(part) == key(unit);
        if is_same {
            unit.ns = unit.ns.saturating_add(part.ns);
            unit.disturbed |= part.disturbed;
        }
        is_same
    });
    units
}

/// By node, a hash of the way to it; `None`: the way depends on the number of threads.
fn paths(gathered: &Gathered, process: u32) -> Vec<Option<u64>> {
    let nodes = &gathered.nodes;
    let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
    order.sort_by_key(|&at| nodes[at as usize].depth);
    let mut paths: Vec<Option<u64>> = vec![None; nodes.len()];
    for at in order {
        let node = &nodes[at as usize];
        let above = match node.parent {
            NONE => Some(u64::from(process)),
            parent => paths.get(parent as usize).copied().flatten(),
        };
        let is_fixed = node.step != Step::TidRanked;
        paths[at as usize] = above.filter(|_| is_fixed).map(|above| {
            let mut hash = FxHasher::default();
            (above, node.step as u8, node.index).hash(&mut hash);
            hash.finish()
        });
    }
    paths
}

/// A unit's instance, first iteration and number of iterations.
fn label(rec: &Rec, gathered: &Gathered, paths: &[Option<u64>]) -> Option<(u64, i64, u64)> {
    let path = |node: u32| paths.get(node as usize).copied().flatten();
    match rec.construct {
        Construct::Range => Some((path(rec.parent)?, rec.index, rec.extent.max(1))),
        Construct::Section => Some((path(rec.parent)?, rec.index, 1)),
        _ => {
            let node = gathered.nodes.get(rec.node as usize)?;
            match node.step {
                Step::Range => Some((path(node.parent)?, node.index, rec.extent.max(1))),
                _ => Some((path(rec.node)?, 0, 1)),
            }
        }
    }
}
