//! In which parallel region a node is, for nodes of any number.
//!
//! A thread numbers its nodes as they begin, so that those of one region have neighbouring numbers: stretches of numbers are kept,
//! and a bit for each node. What is known of regions that have ended is given up.

use super::nodes::NodeSet;
use std::collections::HashMap;

/// A parallel (or teams) region that goes on: its place in a list, and which of the regions that had this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RegionId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl RegionId {
    /// What is in no region.
    pub(crate) const OUTSIDE: RegionId = RegionId {
        slot: 0,
        generation: 0,
    };
}

/// Where a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    /// The innermost region around it, itself included.
    pub(crate) region: RegionId,
    /// Whether all that it is in is known, so that it has a label.
    pub(crate) labelled: bool,
    /// It is the region itself, or a function that was called in it: what is created there is the region's own.
    pub(crate) is_region: bool,
}

impl Whereabouts {
    /// Of what has no parent.
    pub(crate) const NOWHERE: Whereabouts = Whereabouts {
        region: RegionId::OUTSIDE,
        labelled: false,
        is_region: false,
    };
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Here(Whereabouts),
    /// Its region has ended.
    Gone,
    /// It wasn't met yet.
    Not,
}

/// The nodes of a process.
#[derive(Debug)]
pub(crate) struct NodeMap {
    met: NodeSet,
    /// By thread, as node numbers have it.
    threads: Vec<Stretches>,
    /// Those of other numbers, as damaged files have them.
    strange: HashMap<u64, (Whereabouts, u32)>,
}

/// Numbers of one thread's nodes, in order.
#[derive(Debug, Default)]
struct Stretches {
    list: Vec<Stretch>,
    /// The one that was asked for last.
    last: usize,
    /// At so many those of regions that have ended are given up.
    most: usize,
    paths: Blocks,
}

/// Paths of a thread's nodes, by blocks of their numbers.
#[derive(Debug, Default)]
struct Blocks {
    blocks: HashMap<u64, Block>,
    /// What was asked for last.
    last: Option<(u64, u32)>,
}

/// Paths of nodes with neighbouring numbers.
#[derive(Debug)]
enum Block {
    All(u32),
    Each(Box<[u32; BLOCK as usize]>),
}

/// Numbers in a block.
const BLOCK: u64 = 1024;

impl Blocks {
    fn enter(&mut self, number: u64, path: u32) {
        self.last = None;
        match self
            .blocks
            .entry(number / BLOCK)
            .or_insert(Block::All(path))
        {
            Block::All(all) if *all == path => {}
            Block::Each(each) => each[(number % BLOCK) as usize] = path,
            block => {
                let Block::All(all) = *block else { return };
                let mut each = Box::new([all; BLOCK as usize]);
                each[(number % BLOCK) as usize] = path;
                *block = Block::Each(each);
            }
        }
    }

    #[inline]
    fn get(&mut self, number: u64) -> u32 {
        match self.last {
            Some((asked, path)) if asked == number => path,
            _ => {
                let path = match self.blocks.get(&(number / BLOCK)) {
                    Some(Block::All(path)) => *path,
                    Some(Block::Each(each)) => each[(number % BLOCK) as usize],
                    None => 0,
                };
                self.last = Some((number, path));
                path
            }
        }
    }

    /// Gives up what is in none of these stretches, which are in order.
    fn retain(&mut self, stretches: &[Stretch]) {
        self.blocks.retain(|&block, _| {
            let at = stretches.partition_point(|s| s.last < block * BLOCK);
            (stretches.get(at)).is_some_and(|s| s.first / BLOCK <= block)
        });
    }
}

#[derive(Debug, Clone, Copy)]
struct Stretch {
    first: u64,
    last: u64,
    is: Whereabouts,
}

/// Stretches of a thread that are kept in any case.
const FEW: usize = 64;

impl NodeMap {
    /// For files of so many bytes, and threads with indices below `threads`.
    pub(crate) fn new(bytes: usize, threads: usize) -> NodeMap {
        NodeMap {
            // A record has 24 bytes at least.
            met: NodeSet::new(bytes / 24),
            threads: (0..=threads).map(|_| Stretches::default()).collect(),
            strange: HashMap::new(),
        }
    }

    /// Whether the node was entered.
    #[inline]
    pub(crate) fn is_met(&self, node: u64) -> bool {
        self.met.contains(node)
    }

    /// Where a node is. `is_alive`: whether a region still goes on.
    #[inline]
    pub(crate) fn find(&mut self, node: u64, is_alive: impl Fn(RegionId) -> bool) -> Known {
        if !self.met.contains(node) {
            return Known::Not;
        }
        let (thread, number) = split(node);
        let found = match self.threads.get_mut(thread) {
            Some(stretches) => stretches.find(number),
            None => self.strange.get(&node).map(|known| known.0),
        };
        match found {
            Some(is) if is_alive(is.region) => Known::Here(is),
            _ => Known::Gone,
        }
    }

    /// The path of a node whose region goes on.
    #[inline]
    pub(crate) fn path(&mut self, node: u64) -> u32 {
        let (thread, number) = split(node);
        match self.threads.get_mut(thread) {
            Some(stretches) => stretches.paths.get(number),
            None => self.strange.get(&node).map_or(0, |known| known.1),
        }
    }

    /// Enters a node that was not met yet, and its path.
    pub(crate) fn enter(
        &mut self,
        node: u64,
        (is, path): (Whereabouts, u32),
        is_alive: impl Fn(RegionId) -> bool,
    ) {
        self.met.insert(node);
        let (thread, number) = split(node);
        match self.threads.get_mut(thread) {
            Some(stretches) => {
                stretches.enter(number, is, is_alive);
                stretches.paths.enter(number, path);
            }
            None => drop(self.strange.insert(node, (is, path))),
        }
    }
}

impl Stretches {
    #[inline]
    fn find(&mut self, number: u64) -> Option<Whereabouts> {
        if let Some(stretch) = self.list.get(self.last).filter(|s| s.has(number)) {
            return Some(stretch.is);
        }
        let at = self.list.partition_point(|s| s.last < number);
        let stretch = self.list.get(at).filter(|s| s.has(number))?;
        self.last = at;
        Some(stretch.is)
    }

    fn enter(&mut self, number: u64, is: Whereabouts, is_alive: impl Fn(RegionId) -> bool) {
        if self.list.len() >= self.most.max(FEW) {
            self.list.retain(|s| is_alive(s.is.region));
            self.paths.retain(&self.list);
            self.most = 2 * self.list.len();
        }
        let at = self.list.partition_point(|s| s.last < number);
        if let Some(stretch) = self.list.get(at).copied().filter(|s| s.has(number)) {
            if stretch.is == is {
                return;
            }
            // All others in the stretch keep what they are.
            let before = (stretch.first < number).then(|| Stretch {
                last: number - 1,
                ..stretch
            });
            let after = (number < stretch.last).then(|| Stretch {
                first: number + 1,
                ..stretch
            });
            let new = Some(Stretch::one(number, is));
            let parts = [before, new, after].into_iter().flatten();
            self.list.splice(at..=at, parts);
            return;
        }
        // Between two stretches nothing else is known: the one that is the same reaches so far.
        let before = at.checked_sub(1).filter(|&b| self.list[b].is == is);
        let after = Some(at).filter(|&a| self.list.get(a).is_some_and(|s| s.is == is));
        match (before, after) {
            (Some(before), Some(after)) => {
                self.list[before].last = self.list[after].last;
                self.list.remove(after);
            }
            (Some(before), None) => self.list[before].last = number,
            (None, Some(after)) => self.list[after].first = number,
            (None, None) => self.list.insert(at, Stretch::one(number, is)),
        }
    }
}

impl Stretch {
    fn one(number: u64, is: Whereabouts) -> Stretch {
        Stretch {
            first: number,
            last: number,
            is,
        }
    }

    #[inline]
    fn has(&self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

fn split(node: u64) -> (usize, u64) {
    ((node >> 40) as usize, node & ((1 << 40) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(slot: u32) -> Whereabouts {
        Whereabouts {
            region: RegionId {
                slot,
                generation: 0,
            },
            labelled: true,
            is_region: false,
        }
    }

    proptest! {
        #[test]
        fn nodes_are_found_as_they_were_entered(
            nodes in proptest::collection::vec((0u64..3, 0u64..300, 0u32..3), 0..200),
        ) {
            let mut map = NodeMap::new(0, 1);
            let mut plain = HashMap::new();
            for (thread, number, slot) in nodes {
                let (node, path) = (thread << 40 | number, slot + 7);
                let is_new = !map.is_met(node);
                prop_assert_eq!(is_new, !plain.contains_key(&node));
                if is_new {
                    map.enter(node, (of(slot), path), |_| true);
                    plain.insert(node, slot);
                }
            }
            for node in (0..4u64).flat_map(|t| (0..300).map(move |n| t << 40 | n)) {
                let expected = plain.get(&node).map_or(Known::Not, |&slot| Known::Here(of(slot)));
                prop_assert_eq!(map.find(node, |_| true), expected);
                if let Some(slot) = plain.get(&node) {
                    prop_assert_eq!(map.path(node), slot + 7);
                }
            }
        }
    }

    #[test]
    fn what_has_ended_takes_no_memory() {
        let mut map = NodeMap::new(1 << 20, 1);
        for slot in 0..10_000 {
            let is_alive = |r: RegionId| r.slot + 3 > slot;
            for node in 3 * u64::from(slot)..3 * u64::from(slot) + 3 {
                map.enter(1 << 40 | node, (of(slot), node as u32), is_alive);
            }
            assert!(map.threads[1].list.len() <= FEW + 1);
            assert!(map.threads[1].paths.blocks.len() <= 3);
        }
        let last = 1 << 40 | 29_999;
        assert_eq!(map.find(last, |_| true), Known::Here(of(9999)));
        assert_eq!(map.find(1 << 40 | 7, |_| true), Known::Gone);
    }
}
