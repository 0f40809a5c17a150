//! Sets of a function's blocks.

/// Some of a function's blocks: a bit for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockSet(Vec<u64>);

impl BlockSet {
    /// None of so many.
    pub(crate) fn none(blocks: usize) -> BlockSet {
        BlockSet(vec![0; blocks.div_ceil(64)])
    }

    pub(crate) fn contains(&self, block: &usize) -> bool {
        self.0[block / 64] >> (block % 64) & 1 != 0
    }

    /// Adds a block; tells whether it is new.
    pub(crate) fn insert(&mut self, block: usize) -> bool {
        let bit = 1 << (block % 64);
        let word = &mut self.0[block / 64];
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// The blocks, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate().filter(|(_, w)| **w != 0);
        words.flat_map(|(i, &word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 != 0);
            bits.map(move |bit| i * 64 + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_it_is_given() {
        let mut set = BlockSet::none(130);
        for block in [129, 0, 64, 63] {
            assert!(!set.contains(&block) && set.insert(block) && set.contains(&block));
        }
        assert!(!set.insert(64) && !set.contains(&1));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 129]);
    }
}
