//! What spans happened in: constructs and units, and what had called them.

use super::{Lane, Span, Timeline};
use crate::run::contexts::Contexts;
use crate::run::nodes::{NONE, NodeTable};

impl Timeline<'_> {
    /// The site of the innermost parallel region around a span, as far as it is known.
    pub fn region_of(&self, lane: &Lane, span: &Span<'_>) -> Option<u32> {
        let nodes = &self.reader.nodes;
        let process = &self.reader.processes[lane.process as usize];
        let parent = process.index.get(span.parent)? as usize;
        let region = Some(nodes.parallel[parent]).filter(|&at| at != NONE)?;
        Some(nodes.site[region as usize]).filter(|&site| site != NONE)
    }

    /// The calling contexts of parallel regions.
    pub fn contexts(&self) -> &Contexts {
        &self.reader.contexts.contexts
    }

    /// The constructs and units that something happened in.
    pub(crate) fn nodes(&self) -> &NodeTable {
        &self.reader.nodes
    }

    /// The position of a node of a thread's process among them.
    pub(crate) fn node(&self, lane: &Lane, node: u64) -> Option<u32> {
        self.reader.processes[lane.process as usize].index.get(node)
    }
}
