//! Graphs as they are drawn: units, and what orders them.

use super::gather::{Gathered, gather};
use super::graph::{Builder, Graph, Kind, Play, critical, play};
use super::regions::places;
use crate::run::RunFiles;
use crate::run::clock::Clock;
use crate::run::nodes::NONE;
use crate::run::streaming::Streaming;
use crate::table::Site;
use ompfuse_format::Construct;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// Runs with more intervals are not drawn.
pub const MOST_DRAWN: usize = 200_000;

/// An execution of an outermost parallel region.
#[derive(Debug, Clone, Default)]
pub struct Drawn {
    /// Position of the region in the sites that were given.
    pub site: Option<u32>,
    /// Units: tasks, ranges, sections, and blocks of one thread.
    pub units: Vec<DrawnUnit>,
    /// What orders them: positions of units.
    pub edges: Vec<(u32, u32, Order)>,
    /// The critical path: units in their order. One that waits for others on it is there more than once.
    pub path: Vec<u32>,
}

/// A unit.
#[derive(Debug, Clone, Copy)]
pub struct DrawnUnit {
    /// Its first interval.
    pub stretch: Stretch,
    /// Position in the sites that were given.
    pub site: Option<u32>,
    /// What it is.
    pub construct: Construct,
    /// Its first iteration, or its number.
    pub index: i64,
    /// Its own time, in nanoseconds.
    pub own_ns: u64,
}

/// When and where a unit was executed, or its first part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stretch {
    /// Position of its process among the run's.
    pub process: u16,
    /// Position of its thread among those of the process ([`Lane::position`](crate::run::timeline::Lane::position)).
    pub thread: u16,
    /// Begin in nanoseconds since the run's begin.
    pub begin_ns: i64,
    /// End, likewise.
    pub end_ns: i64,
}

/// How a unit comes before another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// It creates it.
    Creates,
    /// It is named in a `depend` clause.
    Depends,
}

/// The executions of a run's parallel regions; `None` if a process has more than [`MOST_DRAWN`] intervals. `sites`: what positions of
/// places refer to.
pub fn drawn(files: &RunFiles<'_>, sites: &[Site]) -> Option<Vec<Drawn>> {
    let mut streaming = Streaming::new(files);
    let known: HashMap<(&str, &str), u32> = (0..).zip(sites).map(|(at, s)| (s.key(), at)).collect();
    let mut all = vec![];
    for (number, process) in (0..).zip(&mut streaming.processes) {
        let gathered = gather(process, [None; 2], MOST_DRAWN);
        if !gathered.is_whole {
            return None;
        }
        let places = places(process, &gathered, &known);
        let mut builder = Builder::new(&gathered);
        for rec in gathered.recs.iter().filter(|r| r.construct.is_fork()) {
            let is_outermost = gathered.region_of(rec) == rec.node;
            let place = places.get(&rec.site).copied();
            if !is_outermost {
                continue;
            }
            let graph = builder.region(rec.node, &|_| None);
            let of = (number, process.clock);
            let mut one = draw(&gathered, &graph, &places, of);
            one.site = place;
            all.push(one);
        }
    }
    Some(all)
}

/// `process`, `clock`: the process's position and its clock.
fn draw(
    gathered: &Gathered,
    graph: &Graph,
    places: &HashMap<u32, u32>,
    (process, clock): (u16, Clock),
) -> Drawn {
    let mut drawn = Drawn::default();
    let mut at_rec: FxHashMap<u32, u32> = FxHashMap::default();
    let strands = graph.strands.iter();
    let simple = graph.sharings.iter().flat_map(|s| &s.units);
    let simple = simple.filter(|u| u.strand == NONE).map(|u| u.rec);
    let inner = strands.filter(|s| !matches!(s.kind, Kind::Member(_)));
    for rec in inner.map(|s| s.rec).chain(simple) {
        let Some(of) = gathered.recs.get(rec as usize) else {
            continue;
        };
        at_rec.insert(rec, drawn.units.len() as u32);
        let node = gathered.nodes.get(of.node as usize);
        drawn.units.push(DrawnUnit {
            stretch: Stretch {
                process,
                thread: of.thread,
                begin_ns: clock.at(of.t0),
                end_ns: clock.at(of.t1),
            },
            site: places.get(&of.site).copied(),
            construct: of.construct,
            index: node.map_or(of.index, |n| n.index),
            own_ns: clock.length(of.own),
        });
    }
    let unit = |strand: u32| {
        let strand = graph.strands.get(strand as usize)?;
        at_rec.get(&strand.rec).copied()
    };
    for strand in graph.strands.iter().filter(|s| s.kind == Kind::Task) {
        let Some(&to) = at_rec.get(&strand.rec) else {
            continue;
        };
        let creator = unit(strand.creator).map(|from| (from, to, Order::Creates));
        let preds = &graph.preds[strand.preds.0 as usize..strand.preds.1 as usize];
        let preds = preds
            .iter()
            .filter_map(|&p| Some((unit(p)?, to, Order::Depends)));
        drawn.edges.extend(creator.into_iter().chain(preds));
    }
    let unlimited = Play {
        unlimited: true,
        equal: false,
    };
    let path = play(graph, unlimited).map(|played| critical(gathered, graph, &played));
    let path = path.into_iter().flatten();
    drawn.path = path
        .filter_map(|(rec, _)| at_rec.get(&rec).copied())
        .collect();
    drawn.path.dedup();
    drawn
}
