//! What orders a run's units: the dependences of tasks, and the critical path.

use ompfuse_format::Construct;
use ompfuse_fuse::run::timeline::{Lane, Span};
use ompfuse_fuse::span::{Drawn, DrawnUnit, Order};
use std::collections::HashMap;

/// A thread, and when something begins there.
type Key = (u16, u16, i64, Construct);

/// What comes before which unit. Of a unit in several parts, that is said of the first one.
#[derive(Debug, Clone, Default)]
pub struct Orders {
    units: HashMap<Key, Ordered>,
}

/// What is known of a unit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ordered {
    /// Dependences of others on it, by number.
    pub(crate) precedes: Vec<u32>,
    /// Its own dependences. Each number is in one other unit's [`Ordered::precedes`].
    pub(crate) depends: Vec<u32>,
    /// It is on the critical path.
    pub(crate) is_critical: bool,
}

impl Orders {
    /// Those of a run's graphs.
    pub fn new(graphs: &[Drawn]) -> Orders {
        let mut units: HashMap<Key, Ordered> = HashMap::default();
        let mut number = 0;
        let of = |graph: &Drawn, unit: u32| key(&graph.units[unit as usize]);
        for graph in graphs {
            for &unit in &graph.path {
                units.entry(of(graph, unit)).or_default().is_critical = true;
            }
            let dependences = graph.edges.iter().filter(|e| e.2 == Order::Depends);
            for &(from, to, _) in dependences {
                units
                    .entry(of(graph, from))
                    .or_default()
                    .precedes
                    .push(number);
                units.entry(of(graph, to)).or_default().depends.push(number);
                number += 1;
            }
        }
        Orders { units }
    }

    /// What is known of the unit that begins with a span.
    pub(crate) fn of(&self, lane: &Lane, span: &Span<'_>) -> Option<&Ordered> {
        if self.units.is_empty() || !span.is_unit() {
            return None;
        }
        let thread = u16::try_from(lane.position).ok()?;
        let key = (lane.process, thread, span.begin_ns, span.construct);
        self.units.get(&key)
    }
}

fn key(unit: &DrawnUnit) -> Key {
    let at = &unit.stretch;
    (at.process, at.thread, at.begin_ns, unit.construct)
}
