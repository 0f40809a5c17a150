//! The order of labels: depth-first, component by component.

use super::{HashIsKey, LabelId, Labels};
use rayon::prelude::*;
use std::collections::HashMap;

/// Labels of at most so many components are compared as they are.
const SHORT: usize = 48;

/// Labels that are written down together.
const CHUNK: usize = 1 << 14;

/// Bytes of a label that are sorted by at a time.
const STEP: usize = 8;
/// So many labels of an equal beginning, or fewer, are compared as they are.
const FEW: usize = 12;

/// Components below this are one byte.
const ONE_BYTE: u64 = 246;
/// The byte of rows without a label, behind every label.
const NO_LABEL: u8 = u8::MAX;

/// Appends a label as bytes that are ordered as labels are.
fn encode(components: &[u64], bytes: &mut Vec<u8>) {
    for &component in components {
        // No component begins with 0: nothing is less than any number.
        if component < ONE_BYTE {
            bytes.push(component as u8 + 1);
            continue;
        }
        // Longer numbers are larger.
        let len = 8 - component.leading_zeros() as usize / 8;
        bytes.push(ONE_BYTE as u8 + len as u8);
        bytes.extend_from_slice(&component.to_be_bytes()[8 - len..]);
    }
}

/// A step of a label's bytes, from `begin` on, as a number that is ordered as they are. Labels that end sooner come first.
#[inline]
fn step(bytes: &[u8], begin: usize) -> u64 {
    let rest = bytes.get(begin..).unwrap_or(&[]);
    let mut step = [0; STEP];
    match rest.first_chunk() {
        Some(whole) => step = *whole,
        None => step[..rest.len()].copy_from_slice(rest),
    }
    u64::from_be_bytes(step)
}

/// Sorts by the bytes from `begin` on, then by rows; of those, keys have a step already. What is equal so far is sorted by the next
/// step: so a label's bytes are fetched once per step and not for each comparison, which takes long where they don't fit into
/// the caches.
fn sort_steps<'b>(
    keys: &mut [(u64, u32)],
    begin: usize,
    bytes: &(impl Fn(u32) -> &'b [u8] + Sync),
) {
    let next = begin + STEP;
    let equal = |group: &mut [(u64, u32)]| {
        if group.len() < 2 {
            // its place is known
        } else if group.len() <= FEW {
            let rest = |row: u32| bytes(row).get(next..).unwrap_or(&[]);
            group.sort_unstable_by(|a, b| rest(a.1).cmp(rest(b.1)).then(a.1.cmp(&b.1)));
        } else if group.iter().all(|key| bytes(key.1).len() <= next) {
            group.sort_unstable_by_key(|key| key.1); // equal labels
        } else {
            for key in &mut *group {
                key.0 = step(bytes(key.1), next);
            }
            sort_steps(group, next, bytes);
        }
    };
    let is_equal = |a: &(u64, u32), b: &(u64, u32)| a.0 == b.0;
    if keys.len() > CHUNK {
        keys.par_sort_unstable_by_key(|key| key.0);
        keys.par_chunk_by_mut(is_equal).for_each(equal);
    } else {
        keys.sort_unstable_by_key(|key| key.0);
        keys.chunk_by_mut(is_equal).for_each(equal);
    }
}

/// Labels as bytes.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Encoded {
    fn get(&self, at: usize) -> &[u8] {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[begin as usize..self.ends[at] as usize]
    }
}

impl Labels {
    /// The positions of `ids` in depth-first order of their labels; equal labels keep their order, those without a
    /// label come last. Time does not depend on the labels' lengths.
    pub fn depth_first(&self, ids: &[LabelId]) -> Vec<u32> {
        if let Some(order) = self.short_first(ids) {
            return order;
        }
        let rank = self.ranks(ids);
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        let key = |&row: &u32| {
            let id = ids[row as usize];
            (
                if id.is_some() {
                    rank[id.at()]
                } else {
                    u32::MAX
                },
                row,
            )
        };
        order.par_sort_unstable_by_key(key);
        order
    }

    /// As [`Labels::depth_first`], if all labels are short and known.
    fn short_first(&self, ids: &[LabelId]) -> Option<Vec<u32>> {
        let encode_all = |ids: &[LabelId]| {
            let (mut all, mut components) = (Encoded::default(), vec![]);
            for &id in ids {
                if id.is_some() {
                    if !self.read(id, SHORT, &mut components) || components.is_empty() {
                        return None;
                    }
                    encode(&components, &mut all.bytes);
                } else {
                    all.bytes.push(NO_LABEL);
                }
                all.ends.push(all.bytes.len() as u32);
            }
            Some(all)
        };
        let chunks = ids.par_chunks(CHUNK).map(encode_all);
        let encoded = chunks.collect::<Option<Vec<Encoded>>>()?;
        let bytes = |row: u32| encoded[row as usize / CHUNK].get(row as usize % CHUNK);
        let mut keys: Vec<(u64, u32)> = (0..ids.len() as u32)
            .into_par_iter()
            .with_min_len(4096)
            .map(|row| (step(bytes(row), 0), row))
            .collect();
        sort_steps(&mut keys, 0, &bytes);
        Some(keys.into_iter().map(|(_, row)| row).collect())
    }

    /// Depth-first rank of each label that is in `ids` (or leads to one); equal labels have equal ranks.
    pub(crate) fn ranks(&self, ids: &[LabelId]) -> Vec<u32> {
        const UNUSED: u32 = u32::MAX;
        // Equal labels are one vertex: the first with that hash. Parents precede their children in the arena or not,
        // so ancestors are collected by climbing until one is known.
        let mut vertex = vec![UNUSED; self.len()];
        let mut by_hash: HashMap<u128, u32, HashIsKey> = HashMap::default();
        let mut used = Vec::new();
        for id in ids.iter().filter(|id| id.is_some()) {
            let mut at = id.0;
            while at != LabelId::NONE.0 && vertex[at as usize] == UNUSED {
                let canonical = *by_hash.entry(self.hash[at as usize].0).or_insert(at);
                vertex[at as usize] = canonical;
                if canonical == at {
                    used.push(at);
                }
                at = self.parent[at as usize];
            }
        }
        // The first of equal labels may have been met below an unvisited parent of another; climbing above visits all.
        let parent_of = |at: u32| match self.parent[at as usize] {
            p if p == LabelId::NONE.0 => UNUSED,
            p => vertex[p as usize],
        };
        used.par_sort_unstable_by(|&a, &b| {
            (parent_of(a), self.suffix_of(a))
                .cmp(&(parent_of(b), self.suffix_of(b)))
                .then(a.cmp(&b))
        });
        // Children of a vertex are now a run of `used`.
        let mut children: HashMap<u32, (u32, u32)> = HashMap::new();
        for (position, &at) in used.iter().enumerate() {
            let range = children
                .entry(parent_of(at))
                .or_insert((position as u32, position as u32));
            range.1 = position as u32 + 1;
        }
        let mut rank = vec![UNUSED; self.len()];
        let mut next_rank = 0;
        let mut stack: Vec<(u32, u32)> = children.get(&UNUSED).copied().into_iter().collect();
        while let Some((begin, end)) = stack.pop() {
            if begin == end {
                continue;
            }
            stack.push((begin + 1, end));
            let at = used[begin as usize];
            rank[at as usize] = next_rank;
            next_rank += 1;
            stack.extend(children.get(&at));
        }
        for id in ids.iter().filter(|id| id.is_some()) {
            rank[id.at()] = rank[vertex[id.at()] as usize];
        }
        rank
    }
}

/// Orders beginnings of a table's labels, without looking at the labels again.
#[derive(Debug)]
pub(crate) struct PrefixOrder {
    /// Rows with a label, in depth-first order.
    order: Vec<u32>,
    /// How many components each has in common with the one before it, and how many it has.
    common: Vec<u32>,
    len: Vec<u32>,
    rows: usize,
}

impl PrefixOrder {
    /// Of the labels of a table's rows.
    pub(crate) fn new(labels: &Labels, ids: &[LabelId]) -> PrefixOrder {
        let mut order = labels.depth_first(ids);
        order.retain(|&row| ids[row as usize].is_some());
        let (common, len) = order
            .par_iter()
            .enumerate()
            .with_min_len(4096)
            .map_init(
                || (vec![], vec![]),
                |(before, own), (at, &row)| {
                    labels.read(ids[row as usize], usize::MAX, own);
                    before.clear();
                    if let Some(&row) = at.checked_sub(1).and_then(|at| order.get(at)) {
                        labels.read(ids[row as usize], usize::MAX, before);
                    }
                    let common = own.iter().zip(&*before).take_while(|(a, b)| a == b);
                    (common.count() as u32, own.len() as u32)
                },
            )
            .unzip();
        PrefixOrder {
            order,
            common,
            len,
            rows: ids.len(),
        }
    }

    /// Keys that are ordered as the first `length(row)` components of the rows' labels are; the largest without any. Rows that
    /// `length` gives nothing for have no key that means anything.
    pub(crate) fn keys(&self, length: impl Fn(usize) -> Option<u32>) -> Vec<u64> {
        let mut keys = vec![u64::MAX; self.rows];
        // For each length the first position with the same beginning.
        let mut first = vec![0u32];
        for (at, &row) in self.order.iter().enumerate() {
            let (common, len) = (self.common[at], self.len[at]);
            first.truncate(common as usize + 1);
            first.resize(len as usize + 1, at as u32);
            if let Some(length) = length(row as usize)
                && length > 0
            {
                let length = length.min(len);
                let begin = if length == 0 {
                    at as u32 // only the hash is known
                } else {
                    first[length as usize]
                };
                keys[row as usize] = u64::from(begin) << 32 | u64::from(length);
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_ordered_as_labels(
            a in proptest::collection::vec(prop_oneof![0u64..4, any::<u64>()], 0..9),
            b in proptest::collection::vec(prop_oneof![0u64..4, any::<u64>()], 0..9),
            shared in 0usize..9,
        ) {
            let b: Vec<u64> = a.iter().take(shared).chain(&b).copied().collect();
            let encoded = |label: &[u64]| {
                let mut bytes = vec![];
                encode(label, &mut bytes);
                bytes
            };
            let (ea, eb) = (encoded(&a), encoded(&b));
            prop_assert_eq!(ea.cmp(&eb), a.cmp(&b));
            let begin = step(&ea, 0).cmp(&step(&eb, 0));
            prop_assert!(begin.is_eq() || begin == a.cmp(&b));
        }

        #[test]
        fn short_labels_are_ordered_as_all_are(paths in proptest::collection::vec(proptest::collection::vec(
            prop_oneof![0u64..3, Just(4_198_822), Just(u64::MAX)], 1..9), 0..60,
        )) {
            let mut labels = Labels::default();
            let mut ids: Vec<LabelId> = paths.iter().map(|p| labels.push(LabelId::NONE, p)).collect();
            ids.insert(ids.len() / 2, LabelId::NONE);
            let rank = labels.ranks(&ids);
            let mut expected: Vec<u32> = (0..ids.len() as u32).collect();
            expected.sort_by_key(|&row| match ids[row as usize] {
                LabelId::NONE => u32::MAX,
                id => rank[id.at()],
            });
            prop_assert_eq!(labels.short_first(&ids), Some(expected));
        }

        #[test]
        fn beginnings_are_ordered_as_labels(
            paths in proptest::collection::vec((proptest::collection::vec(0u64..3, 1..6), 0u32..7), 1..60),
        ) {
            let mut labels = Labels::default();
            let ids: Vec<LabelId> = paths.iter().map(|(p, _)| labels.push(LabelId::NONE, p)).collect();
            let keys = PrefixOrder::new(&labels, &ids).keys(|row| Some(paths[row].1));
            let beginning = |row: usize| {
                let (path, length) = &paths[row];
                (*length > 0).then(|| &path[..path.len().min(*length as usize)])
            };
            for a in 0..paths.len() {
                for b in 0..paths.len() {
                    let expected = match (beginning(a), beginning(b)) {
                        (Some(a), Some(b)) => a.cmp(b),
                        (a, b) => b.is_some().cmp(&a.is_some()),
                    };
                    prop_assert_eq!(keys[a].cmp(&keys[b]), expected);
                }
            }
        }
    }

    #[test]
    fn what_is_only_known_by_hash_is_ordered_by_rank() {
        let mut labels = Labels::default();
        let ids = [
            labels.push_opaque(super::super::LabelHash(9)),
            labels.push(LabelId::NONE, &[1]),
            labels.push_opaque(super::super::LabelHash(3)),
        ];
        assert_eq!(labels.short_first(&ids), None);
        assert_eq!(labels.depth_first(&ids), [0, 2, 1]);
        let keys = PrefixOrder::new(&labels, &ids).keys(|_| Some(u32::MAX));
        assert!(keys[0] < keys[2] && keys[2] < keys[1], "{keys:?}");
    }
}
