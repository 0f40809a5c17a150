//! Labels: the identity of an XU, equal across runs whatever the schedule ([XU] section 4).
//!
//! A label is a sequence of numbers, joined by dots as text. Its order is depth-first preorder: component-wise as
//! integers, a prefix before its extensions (so `0.2` < `0.10`). A table of XUs keeps its labels as a tree
//! ([`Labels`]): a million labels share their prefixes, and comparing two XUs of different runs needs only their
//! 128-bit hashes.
//!
//! The hash is a chain over the components, so that a child's hash follows from its parent's:
//!
//! ```text
//! hash of the empty label = 0
//! hash(label ++ [c])      = XXH3_128(hash(label) as 16 bytes little-endian ‖ c as 8 bytes little-endian)
//! ```

mod order;

pub(crate) use order::PrefixOrder;

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

/// A label on its own; tables hold [`Labels`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub Vec<u64>);

impl Label {
    /// Its 128-bit hash (see the module's description).
    pub fn hash128(&self) -> LabelHash {
        self.0
            .iter()
            .fold(LabelHash(0), |hash, &component| hash.extend(component))
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, component) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_char('.')?;
            }
            write!(f, "{component}")?;
        }
        Ok(())
    }
}

/// Text that is no label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a label: numbers joined by dots are expected, as in 0.1.4096.3")]
pub struct LabelError(pub String);

impl FromStr for Label {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Label, LabelError> {
        let mut components = Vec::new();
        parse_into(text, &mut components)?;
        Ok(Label(components))
    }
}

/// Parses a label's text, replacing the contents of `components`.
pub(crate) fn parse_into(text: &str, components: &mut Vec<u64>) -> Result<(), LabelError> {
    components.clear();
    for part in text.split('.') {
        // `u64::from_str` alone would take a sign.
        let number = part
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| part.parse().ok())
            .flatten();
        components.push(number.ok_or_else(|| LabelError(text.to_owned()))?);
    }
    Ok(())
}

/// 128-bit hash of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelHash(pub u128);

impl LabelHash {
    /// The hash of the label that has one component more.
    #[must_use]
    pub fn extend(self, component: u64) -> LabelHash {
        let mut bytes = [0; 24];
        bytes[..16].copy_from_slice(&self.0.to_le_bytes());
        bytes[16..].copy_from_slice(&component.to_le_bytes());
        LabelHash(xxhash_rust::xxh3::xxh3_128(&bytes))
    }
}

/// Position of a label in its [`Labels`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelId(pub u32);

impl LabelId {
    /// No label: the XU's chain of parents is broken (a killed run).
    pub const NONE: LabelId = LabelId(u32::MAX);

    /// Whether there is a label.
    pub fn is_some(self) -> bool {
        self != LabelId::NONE
    }

    fn at(self) -> usize {
        self.0 as usize
    }
}

/// The labels of a table, as a tree of suffixes. Equal labels may occur several times (each thread of a team meets the
/// same loop); their hashes tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    parent: Vec<u32>,
    end: Vec<u32>,
    suffix: Vec<u64>,
    hash: Vec<LabelHash>,
}

impl Labels {
    /// Adds the label `parent ++ suffix`; without a parent, `suffix` is all of it.
    ///
    /// # Panics
    /// With more than 2^32 - 2 labels or suffix components, which is beyond what a table can hold.
    pub fn push(&mut self, parent: LabelId, suffix: &[u64]) -> LabelId {
        let hash = if parent.is_some() {
            self.hash[parent.at()]
        } else {
            LabelHash(0)
        };
        let hash = suffix
            .iter()
            .fold(hash, |hash, &component| hash.extend(component));
        self.push_hashed(parent, suffix, hash)
    }

    /// Adds a label of which only the hash is known; its text is empty.
    pub fn push_opaque(&mut self, hash: LabelHash) -> LabelId {
        self.push_hashed(LabelId::NONE, &[], hash)
    }

    fn push_hashed(&mut self, parent: LabelId, suffix: &[u64], hash: LabelHash) -> LabelId {
        let id = u32::try_from(self.parent.len())
            .ok()
            .filter(|&id| id != u32::MAX)
            .expect("too many labels");
        self.suffix.extend_from_slice(suffix);
        self.parent.push(parent.0);
        self.end
            .push(u32::try_from(self.suffix.len()).expect("too many label components"));
        self.hash.push(hash);
        LabelId(id)
    }

    /// Adds the labels `ids` of another tree, with what they hang from; gives what they are here.
    pub(crate) fn take(&mut self, other: &Labels, ids: &[LabelId]) -> Vec<LabelId> {
        let mut known = vec![LabelId::NONE; other.len()];
        let mut path = vec![];
        let mut take = |id: LabelId| {
            let mut at = id;
            while at.is_some() && !known[at.at()].is_some() {
                path.push(at);
                at = LabelId(other.parent[at.at()]);
            }
            let mut here = at;
            if at.is_some() {
                here = known[at.at()];
            }
            while let Some(at) = path.pop() {
                here = self.push_hashed(here, other.suffix_of(at.0), other.hash(at));
                known[at.at()] = here;
            }
            here
        };
        ids.iter().map(|&id| take(id)).collect()
    }

    /// Forgets all but the first ones.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.parent.truncate(len);
        self.end.truncate(len);
        self.hash.truncate(len);
        let end = self.end.last().map_or(0, |&end| end as usize);
        self.suffix.truncate(end);
    }

    /// Number of labels.
    pub fn len(&self) -> usize {
        self.parent.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parent.is_empty()
    }

    /// The label's hash.
    pub fn hash(&self, id: LabelId) -> LabelHash {
        self.hash[id.at()]
    }

    /// The label's components. At most `limit` of them: `None` for a longer label (a chain of a hundred thousand
    /// tasks, each created by the one before, has labels that nobody wants to see).
    pub fn get(&self, id: LabelId, limit: usize) -> Option<Label> {
        let mut components = Vec::new();
        self.read(id, limit, &mut components)
            .then_some(Label(components))
    }

    /// As [`Labels::get`], into a buffer that is cleared first. False for a longer label.
    pub fn read(&self, id: LabelId, limit: usize, components: &mut Vec<u64>) -> bool {
        components.clear();
        let mut at = id.0;
        if id.is_some() && self.parent[id.at()] == LabelId::NONE.0 {
            let suffix = self.suffix_of(at);
            if suffix.len() <= limit {
                components.extend_from_slice(suffix);
            }
            return suffix.len() <= limit;
        }
        while at != LabelId::NONE.0 {
            let suffix = self.suffix_of(at);
            if components.len() + suffix.len() > limit {
                return false;
            }
            components.extend(suffix.iter().rev());
            at = self.parent[at as usize];
        }
        components.reverse();
        true
    }

    fn suffix_of(&self, at: u32) -> &[u64] {
        let at = at as usize;
        let begin = if at == 0 { 0 } else { self.end[at - 1] };
        &self.suffix[begin as usize..self.end[at] as usize]
    }
}

/// Writes a label's text from its components, replacing the contents of `text`.
pub fn write_text(components: &[u64], text: &mut String) {
    text.clear();
    for (i, component) in components.iter().enumerate() {
        if i > 0 {
            text.push('.');
        }
        write!(text, "{component}").expect("writing into a string");
    }
}

/// For maps whose keys are hashes already.
#[derive(Debug, Clone, Copy, Default)]
pub struct HashIsKey;

impl std::hash::BuildHasher for HashIsKey {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(0)
    }
}

/// See [`HashIsKey`].
#[derive(Debug)]
pub struct KeyHasher(u64);

impl std::hash::Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn text_round_trips_and_order_is_by_number() {
        let label: Label = "0.1.4198822.3".parse().unwrap();
        assert_eq!(label.to_string(), "0.1.4198822.3");
        assert!("0.2".parse::<Label>().unwrap() < "0.10".parse().unwrap());
        assert!("0.2".parse::<Label>().unwrap() < "0.2.0".parse().unwrap());
        for bad in ["", ".", "0.", "0.+1", "0.-1", "a", "0.99999999999999999999"] {
            assert_eq!(bad.parse::<Label>(), Err(LabelError(bad.to_owned())));
        }
    }

    #[test]
    fn the_hash_is_what_the_description_says() {
        // python: xxhash.xxh3_128(bytes(16) + (0).to_bytes(8, "little")).intdigest()
        let one = xxhash_rust::xxh3::xxh3_128(&[0; 24]);
        assert_eq!(Label(vec![0]).hash128(), LabelHash(one));
        assert_eq!(Label(vec![]).hash128(), LabelHash(0));
    }

    #[test]
    fn long_labels_are_refused_and_still_ordered() {
        let mut labels = Labels::default();
        let mut at = labels.push(LabelId::NONE, &[0]);
        let mut ids = vec![at];
        for _ in 0..200_000 {
            at = labels.push(at, &[1, 77]);
            ids.push(at);
        }
        assert_eq!(labels.get(at, 1000), None);
        ids.reverse();
        let order = labels.depth_first(&ids);
        assert!(order.iter().rev().copied().eq(0..=200_000));
    }

    proptest! {
        #[test]
        fn tree_agrees_with_separate_labels(steps in proptest::collection::vec((any::<u16>(), 0u64..4, proptest::option::of(0u64..3)), 1..80)) {
            let mut labels = Labels::default();
            let mut plain: Vec<Label> = vec![];
            let mut ids = vec![];
            for (parent, a, b) in steps {
                let at = parent as usize % (ids.len() + 1);
                let suffix: Vec<u64> = std::iter::once(a).chain(b).collect();
                // Children of one parent have suffixes of one length, as in the runtime's labels.
                let suffix = if at.is_multiple_of(2) { vec![a] } else { suffix };
                let (id, mut label) = match at.checked_sub(1) {
                    Some(p) => (ids[p], plain[p].clone()),
                    None => (LabelId::NONE, Label(vec![])),
                };
                label.0.extend(&suffix);
                ids.push(labels.push(id, &suffix));
                plain.push(label);
            }
            for (id, label) in ids.iter().zip(&plain) {
                prop_assert_eq!(labels.get(*id, 1000), Some(label.clone()));
                prop_assert_eq!(labels.hash(*id), label.hash128());
            }
        }

        #[test]
        fn order_is_depth_first(paths in proptest::collection::vec(proptest::collection::vec(0u64..4, 1..6), 0..60)) {
            // Both as a tree with shared prefixes and as separate labels.
            let mut tree = Labels::default();
            let mut flat = Labels::default();
            let mut known: HashMap<Vec<u64>, LabelId> = HashMap::new();
            let (mut tree_ids, mut flat_ids) = (vec![], vec![]);
            for path in &paths {
                let mut at = LabelId::NONE;
                for end in 1..=path.len() {
                    at = *known.entry(path[..end].to_vec()).or_insert_with(|| tree.push(at, &path[end - 1..end]));
                }
                tree_ids.push(at);
                flat_ids.push(flat.push(LabelId::NONE, path));
            }
            let mut expected: Vec<u32> = (0..paths.len() as u32).collect();
            expected.sort_by_key(|&i| &paths[i as usize]);
            prop_assert_eq!(&tree.depth_first(&tree_ids), &expected);
            prop_assert_eq!(&flat.depth_first(&flat_ids), &expected);
        }
    }
}
