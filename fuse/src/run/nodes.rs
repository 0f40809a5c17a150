//! Nodes: the tree of construct instances and XUs, gathered from all threads of a process, and their labels.

use crate::label::{LabelId, Labels};
use ompfuse_format::Construct;
use ompfuse_format::record::{Node, Step};
use std::collections::{HashMap, HashSet};

/// "None" in columns of positions.
pub const NONE: u32 = u32::MAX;

/// The nodes of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeTable {
    /// Kind.
    pub construct: Vec<Construct>,
    /// Position in the run's sites, or [`NONE`].
    pub site: Vec<u32>,
    /// Position of the parent, or [`NONE`].
    pub parent: Vec<u32>,
    /// Label, or none where the chain of parents is broken.
    pub label: Vec<LabelId>,
    /// Position of the innermost parallel (or teams) region's node on the path to the root, itself included, or [`NONE`].
    pub parallel: Vec<u32>,
    /// Of parallel regions the calling context (see [`super::Contexts`]); 0: not known.
    pub context: Vec<u32>,
}

impl NodeTable {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.construct.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.construct.is_empty()
    }
}

/// Node numbers of one process to positions in a [`NodeTable`]. Numbers are `(thread + 1) << 40 | sequence` and mostly
/// dense, so they index vectors; what is out of proportion goes into a map.
#[derive(Debug, Default)]
pub(crate) struct NodeIndex {
    dense: Vec<Vec<u32>>,
    sparse: HashMap<u64, u32>,
    room: usize,
}

impl NodeIndex {
    /// For about `expected` nodes.
    pub(crate) fn new(expected: usize) -> NodeIndex {
        NodeIndex {
            dense: Vec::new(),
            sparse: HashMap::new(),
            room: 8 * expected + (1 << 16),
        }
    }

    /// The node's position.
    pub(crate) fn get(&self, node: u64) -> Option<u32> {
        let (thread, sequence) = split(node);
        let dense = self
            .dense
            .get(thread)
            .and_then(|v| v.get(sequence))
            .copied()
            .filter(|&slot| slot != NONE);
        dense.or_else(|| self.sparse.get(&node).copied())
    }

    /// Forgets a node.
    pub(crate) fn remove(&mut self, node: u64) {
        let (thread, sequence) = split(node);
        match self.dense.get_mut(thread).and_then(|v| v.get_mut(sequence)) {
            Some(slot) if *slot != NONE => *slot = NONE,
            _ => drop(self.sparse.remove(&node)),
        }
    }

    /// Enters a node; false if it is there already.
    pub(crate) fn insert(&mut self, node: u64, slot: u32) -> bool {
        if self.get(node).is_some() {
            return false;
        }
        let (thread, sequence) = split(node);
        let held = self.dense.get(thread).map_or(0, Vec::len);
        let wanted =
            (sequence + 1).saturating_sub(held) + (thread + 1).saturating_sub(self.dense.len());
        if wanted > self.room {
            self.sparse.insert(node, slot);
            return true;
        }
        self.room -= wanted;
        if self.dense.len() <= thread {
            self.dense.resize(thread + 1, Vec::new());
        }
        let of_thread = &mut self.dense[thread];
        if of_thread.len() <= sequence {
            of_thread.resize(sequence + 1, NONE);
        }
        of_thread[sequence] = slot;
        true
    }
}

/// Some of a process's nodes: a bit for each number, as in [`NodeIndex`].
#[derive(Debug, Default)]
pub(crate) struct NodeSet {
    dense: Vec<Vec<u64>>,
    sparse: HashSet<u64>,
    room: usize,
}

impl NodeSet {
    /// For about `expected` nodes in all, the ones in the set or not.
    pub(crate) fn new(expected: usize) -> NodeSet {
        NodeSet {
            room: expected / 8 + (1 << 12),
            ..NodeSet::default()
        }
    }

    /// For so many more.
    pub(crate) fn expect(&mut self, more: usize) {
        self.room += more / 8;
    }

    pub(crate) fn contains(&self, node: u64) -> bool {
        let (thread, sequence) = split(node);
        let word = self.dense.get(thread).and_then(|v| v.get(sequence / 64));
        word.is_some_and(|w| w >> (sequence % 64) & 1 != 0) || self.sparse.contains(&node)
    }

    /// Enters a node; false if it is there already.
    pub(crate) fn insert(&mut self, node: u64) -> bool {
        let (thread, sequence) = split(node);
        let word = sequence / 64;
        let held = self.dense.get(thread).map_or(0, Vec::len);
        let wanted =
            (word + 1).saturating_sub(held) + (thread + 1).saturating_sub(self.dense.len());
        if wanted > self.room {
            return self.sparse.insert(node);
        }
        if self.sparse.contains(&node) {
            return false;
        }
        self.room -= wanted;
        if self.dense.len() <= thread {
            self.dense.resize(thread + 1, Vec::new());
        }
        let of_thread = &mut self.dense[thread];
        if of_thread.len() <= word {
            of_thread.resize(word + 1, 0);
        }
        let bit = 1 << (sequence % 64);
        let is_new = of_thread[word] & bit == 0;
        of_thread[word] |= bit;
        is_new
    }

    /// How many nodes of a thread are in the set; `None`: some are out of proportion, so that their order is not kept.
    pub(crate) fn number_of(&self, thread: u32) -> Option<u64> {
        let words = self.words(thread);
        let number = words.iter().map(|word| u64::from(word.count_ones())).sum();
        self.sparse.is_empty().then_some(number)
    }

    /// The first node of a thread behind this one; `node` 0: its first one.
    pub(crate) fn after(&self, thread: u32, node: u64) -> Option<u64> {
        let words = self.words(thread);
        let from = if node == 0 { 0 } else { split(node).1 + 1 };
        let rest = words.get(from / 64)? & u64::MAX << (from % 64);
        let words = words.iter().copied().enumerate().skip(from / 64 + 1);
        let mut words = std::iter::once((from / 64, rest)).chain(words);
        let (at, word) = words.find(|&(_, word)| word != 0)?;
        let sequence = 64 * at as u64 + u64::from(word.trailing_zeros());
        Some((u64::from(thread) + 1) << 40 | sequence)
    }

    /// A thread's bits.
    fn words(&self, thread: u32) -> &[u64] {
        let words = self.dense.get(thread as usize + 1);
        words.map_or(&[], Vec::as_slice)
    }

    /// Calls `each` for what is in the other set too.
    pub(crate) fn common(&self, other: &NodeSet, mut each: impl FnMut(u64)) {
        for (thread, (ours, theirs)) in self.dense.iter().zip(&other.dense).enumerate() {
            for (at, (a, b)) in ours.iter().zip(theirs).enumerate() {
                let first = (thread as u64) << 40 | (64 * at) as u64;
                let both = (0..64).filter(|bit| a & b & 1 << bit != 0);
                both.for_each(|bit| each(first | bit));
            }
        }
        let sparse = self.sparse.iter().filter(|node| other.contains(**node));
        sparse.for_each(|&node| each(node));
        let sparse = other.sparse.iter().filter(|node| self.contains(**node));
        sparse.for_each(|&node| each(node));
    }

    /// Takes over another set's.
    pub(crate) fn absorb(&mut self, other: NodeSet) {
        for (thread, words) in other.dense.iter().enumerate() {
            for (at, &word) in words.iter().enumerate().filter(|(_, w)| **w != 0) {
                let first = (thread as u64) << 40 | (64 * at) as u64;
                let bits = (0..64).filter(|bit| word >> bit & 1 != 0);
                bits.for_each(|bit| {
                    self.insert(first | bit);
                });
            }
        }
        for node in other.sparse {
            self.insert(node);
        }
    }
}

fn split(node: u64) -> (usize, usize) {
    ((node >> 40) as usize, (node & ((1 << 40) - 1)) as usize)
}

/// Adds nodes of a process to the table, which may have some already, and their labels to `labels`.
///
/// `place` gives a record's site its position in the run's sites and its component in labels.
pub(crate) fn add_nodes(
    table: &mut NodeTable,
    labels: &mut Labels,
    index: &mut NodeIndex,
    entries: impl ExactSizeIterator<Item = Node>,
    mut place: impl FnMut(u32) -> Option<(u32, u64)>,
) {
    let base = table.len();
    let mut kept: Vec<(Node, Option<u64>)> = Vec::with_capacity(entries.len());
    for entry in entries {
        if index.insert(entry.node, (base + kept.len()) as u32) {
            let place = place(entry.site);
            table.construct.push(entry.construct);
            table.site.push(place.map_or(NONE, |p| p.0));
            kept.push((entry, place.map(|p| p.1)));
        }
    }
    table
        .parent
        .extend(kept.iter().map(|(entry, _)| match entry.parent {
            0 => NONE,
            parent => index.get(parent).unwrap_or(NONE),
        }));
    resolve(table, labels, base, &kept);
}

/// Derives labels and enclosing parallel regions from the parents, without recursion: chains can be long.
fn resolve(table: &mut NodeTable, labels: &mut Labels, base: usize, kept: &[(Node, Option<u64>)]) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Entered,
        Done,
    }
    table.label.resize(base + kept.len(), LabelId::NONE);
    table.parallel.resize(base + kept.len(), NONE);
    table.context.resize(base + kept.len(), 0);
    let mut state = vec![State::New; kept.len()];
    let mut path: Vec<usize> = Vec::new();
    for start in 0..kept.len() {
        // Climb to the first node that is known, then come back down.
        let mut at = start;
        while state[at] == State::New {
            state[at] = State::Entered;
            path.push(at);
            // What was there before is known.
            match (table.parent[base + at] as usize).checked_sub(base) {
                Some(parent) if parent < kept.len() => at = parent,
                _ => break,
            }
        }
        while let Some(at) = path.pop() {
            let slot = base + at;
            let (entry, address) = &kept[at];
            // A parent that is entered but not done lies on a cycle: no label.
            let parent = match table.parent[slot] {
                NONE => None,
                parent => {
                    Some(parent as usize).filter(|&p| p < base || state[p - base] == State::Done)
                }
            };
            let above = parent.map_or(LabelId::NONE, |p| table.label[p]);
            table.label[slot] = match (entry.step, *address) {
                (Step::Root, _) => labels.push(LabelId::NONE, &[0]),
                _ if !above.is_some() => LabelId::NONE,
                (Step::Ranked, Some(address)) => labels.push(above, &[entry.index as u64, address]),
                (Step::TidRanked, Some(address)) => {
                    labels.push(above, &[0, entry.index as u64, address])
                }
                (Step::Ranked | Step::TidRanked, None) => LabelId::NONE,
                (Step::Range, _) => labels.push(above, &[entry.index as u64]),
                (Step::None, _) => above,
            };
            table.parallel[slot] = if entry.construct.is_fork() {
                slot as u32
            } else {
                parent.map_or(NONE, |p| table.parallel[p])
            };
            state[at] = State::Done;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(node: u64, parent: u64, step: Step, index: i64, site: u32) -> Node {
        Node {
            construct: Construct::Task,
            step,
            site,
            node,
            parent,
            index,
        }
    }

    fn labels_of(entries: &[Node]) -> Vec<String> {
        let (mut table, mut labels) = (NodeTable::default(), Labels::default());
        let mut index = NodeIndex::new(entries.len());
        add_nodes(
            &mut table,
            &mut labels,
            &mut index,
            entries.iter().copied(),
            |site| (site != u32::MAX).then_some((0, u64::from(site))),
        );
        table
            .label
            .iter()
            .map(|&l| {
                if l.is_some() {
                    labels.get(l, 99).unwrap().to_string()
                } else {
                    "-".into()
                }
            })
            .collect()
    }

    #[test]
    fn steps_continue_the_parents_label() {
        let far = 5 << 40;
        let labels = labels_of(&[
            entry(far | 3, far | 2, Step::Range, 4, 0), // before its parents
            entry(far | 2, far | 1, Step::Ranked, 1, 5),
            entry(far | 1, 1 << 40, Step::Ranked, 1, 3),
            entry(1 << 40, 0, Step::Root, 0, u32::MAX),
            entry(9, far | 1, Step::TidRanked, 7, 16),
            entry(10, 9, Step::None, 0, u32::MAX),
        ]);
        assert_eq!(
            labels,
            [
                "0.1.3.1.5.4",
                "0.1.3.1.5",
                "0.1.3",
                "0",
                "0.1.3.0.7.16",
                "0.1.3.0.7.16"
            ]
        );
    }

    #[test]
    fn broken_chains_and_cycles_have_no_label() {
        let labels = labels_of(&[
            entry(1, 99, Step::Range, 4, 0),
            entry(2, 3, Step::Range, 4, 0),
            entry(3, 2, Step::Range, 4, 0),
            entry(4, 4, Step::Range, 4, 0),
            entry(5, 0, Step::Ranked, 1, 1),
            entry(6, 0, Step::Root, 1, 1),
            entry(7, 6, Step::Ranked, 1, u32::MAX),
            entry(7, 6, Step::Ranked, 1, 8), // said again: the first counts
        ]);
        assert_eq!(labels, ["-", "-", "-", "-", "-", "0", "-"]);
    }

    #[test]
    fn numbers_out_of_proportion_are_kept_apart() {
        let mut index = NodeIndex::new(3);
        for (slot, node) in [u64::MAX, 1 << 63, 5, (1 << 40) - 1]
            .into_iter()
            .enumerate()
        {
            assert!(index.insert(node, slot as u32));
            assert!(!index.insert(node, 77));
            assert_eq!(index.get(node), Some(slot as u32));
        }
        assert_eq!(index.get(6), None);
        assert!(index.dense.len() < 1000);
        index.remove(5);
        index.remove(u64::MAX);
        assert_eq!((index.get(5), index.get(u64::MAX)), (None, None));
    }

    #[test]
    fn sets_of_nodes() {
        let (mut set, mut other) = (NodeSet::new(10), NodeSet::new(1000));
        let far = 3 << 40 | 70;
        assert!(set.insert(u64::MAX) && !set.insert(u64::MAX) && set.insert(64));
        assert!(other.insert(64) && other.insert(far) && other.insert(1 << 63));
        set.absorb(other);
        assert!(
            [u64::MAX, 64, far, 1 << 63]
                .into_iter()
                .all(|n| set.contains(n))
        );
        assert!(!set.contains(65) && !set.contains(far + 1) && !set.insert(far));
    }
}
