//! What came before the node that it belongs to.

use ompfuse_format::record::{Interval, Node};
use std::collections::{HashMap, HashSet};

/// A node or an interval of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) enum Late<'a> {
    /// With its context.
    Node(usize, Node, u32),
    Interval(usize, Interval<'a>),
}

impl Late<'_> {
    fn parent(&self) -> u64 {
        match self {
            Late::Node(_, node, _) => node.parent,
            Late::Interval(_, interval) => interval.parent,
        }
    }
}

/// What waits for nodes, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Pending<'a> {
    /// Most often it is one interval, whose node comes next.
    one: Option<Late<'a>>,
    more: HashMap<u64, Vec<Late<'a>>>,
}

impl<'a> Pending<'a> {
    pub(super) fn push(&mut self, waiting: Late<'a>) {
        if let Some(before) = self.one.replace(waiting) {
            self.more.entry(before.parent()).or_default().push(before);
        }
    }

    /// Whether nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.one.is_none() && self.more.is_empty()
    }

    /// What waits for a node, in the order in which it came.
    #[inline]
    pub(super) fn take(&mut self, node: u64) -> (Vec<Late<'a>>, Option<Late<'a>>) {
        let more = match self.more.is_empty() {
            true => vec![],
            false => self.more.remove(&node).unwrap_or_default(),
        };
        let one = self.one.take_if(|one| one.parent() == node);
        (more, one)
    }

    /// A node that something waits for and that doesn't wait itself; where all do, any. `None`: nothing waits.
    pub(super) fn missing(&mut self) -> Option<Vec<u64>> {
        if let Some(one) = self.one.take() {
            self.more.entry(one.parent()).or_default().push(one);
        }
        let of = |w: &Late<'a>| match w {
            Late::Node(_, node, _) => node.node,
            Late::Interval(_, interval) => interval.node,
        };
        let waits: HashSet<u64> = self.more.values().flatten().map(of).collect();
        let mut missing: Vec<u64> = self.more.keys().copied().collect();
        if missing.is_empty() {
            return None;
        }
        if missing.iter().any(|node| !waits.contains(node)) {
            missing.retain(|node| !waits.contains(node));
        }
        missing.sort_unstable();
        Some(missing)
    }
}
