//! Which parallel regions are around a place, from records in whatever order they are read.
//!
//! Sums aren't kept by that, and a place is seldom in more than one. So one of many executions is enough to tell, and most of what is
//! known of nodes can be forgotten.

use ompfuse_format::Construct;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Nodes that are kept, twice.
const NODES: usize = 1 << 14;
/// Intervals that are kept until their parents come.
const WAITING: usize = 1 << 12;
/// Parents that are gone through to find a fork.
const STEPS: usize = 1 << 10;

/// The parallel regions around the places of a process.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// Nodes that were met lately.
    young: HashMap<u64, Link>,
    /// Those before.
    old: HashMap<u64, Link>,
    /// Parent and site of intervals whose parents have not been met.
    waiting: BTreeSet<(u64, u32)>,
    last: (u64, u32),
    /// By site.
    forks: BTreeMap<u32, BTreeSet<u32>>,
}

/// Where a node is.
#[derive(Debug, Clone, Copy)]
enum Link {
    /// Another one's child.
    In(u64),
    /// In a parallel region with this site, or is one; `None`: in none.
    Around(Option<u32>),
}

impl Around {
    /// A node. That of a fork is known when its join is on record ([`Around::enter_fork`]).
    pub(super) fn enter(&mut self, construct: Construct, node: u64, parent: u64) {
        if node != 0 && !construct.is_fork() && self.get(node).is_none() {
            self.insert(node, Link::In(parent));
        }
    }

    /// That of a parallel region with this site.
    pub(super) fn enter_fork(&mut self, node: u64, site: u32) {
        if node != 0 {
            self.insert(node, Link::Around(Some(site)));
        }
    }

    /// Something at a site has happened in a node.
    pub(super) fn note(&mut self, parent: u64, site: u32) {
        if self.last == (parent, site) {
            return;
        }
        self.last = (parent, site);
        match self.resolve(parent) {
            Some(fork) => self.add(site, fork),
            None if self.waiting.len() < WAITING && !self.forks.contains_key(&site) => {
                self.waiting.insert((parent, site));
            }
            None => {}
        }
    }

    /// Sees to what waited for nodes, after some records.
    pub(super) fn settle(&mut self) {
        for (parent, site) in std::mem::take(&mut self.waiting) {
            match self.resolve(parent) {
                Some(fork) => self.add(site, fork),
                None if self.forks.contains_key(&site) => {}
                None => {
                    self.waiting.insert((parent, site));
                }
            }
        }
    }

    /// The sites of the parallel regions around a site.
    pub(super) fn of(&self, site: u32) -> impl Iterator<Item = u32> {
        self.forks.get(&site).into_iter().flatten().copied()
    }

    /// A parallel region is around a site.
    pub(super) fn add(&mut self, site: u32, fork: Option<u32>) {
        if let Some(fork) = fork {
            self.forks.entry(site).or_default().insert(fork);
        }
    }

    fn get(&self, node: u64) -> Option<Link> {
        self.young
            .get(&node)
            .or_else(|| self.old.get(&node))
            .copied()
    }

    fn insert(&mut self, node: u64, link: Link) {
        if self.young.len() >= NODES {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(node, link);
    }

    /// The site of the innermost parallel region around what is in a node; `None` if that isn't known.
    fn resolve(&mut self, node: u64) -> Option<Option<u32>> {
        let mut at = node;
        for _ in 0..STEPS {
            if at == 0 {
                return Some(None);
            }
            match self.get(at)? {
                Link::In(parent) => at = parent,
                Link::Around(fork) => {
                    if at != node {
                        self.insert(node, Link::Around(fork));
                    }
                    return Some(fork);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_are_found_in_any_order() {
        let mut around = Around::default();
        around.note(3, 70); // a child of what comes later
        around.enter(Construct::Task, 3, 2);
        around.enter(Construct::Single, 2, 1);
        around.settle();
        assert_eq!(around.of(70).count(), 0);
        around.enter_fork(1, 50);
        around.settle();
        assert_eq!(around.of(70).collect::<Vec<_>>(), [50]);
        around.enter_fork(9, 60);
        around.note(9, 70);
        around.note(0, 71);
        assert_eq!(around.of(70).collect::<Vec<_>>(), [50, 60]);
        assert_eq!(around.of(71).count(), 0);
    }

    #[test]
    fn memory_does_not_grow() {
        let mut around = Around::default();
        for node in 1..10 * NODES as u64 {
            around.enter(Construct::Task, node, node + (1 << 40));
            around.note(node, 7);
        }
        around.settle();
        assert!(around.young.len() + around.old.len() <= 2 * NODES);
        assert!(around.waiting.len() <= WAITING);
        // A circle is no parent.
        around.enter(Construct::Task, 1 << 50, 1 << 50);
        assert_eq!(around.resolve(1 << 50), None);
    }
}
