//! Which blocks are to be looked at, in an order.

/// Places of blocks that are to be looked at.
pub(crate) struct Worklist {
    bits: Vec<u64>,
    /// None is before this word.
    first: usize,
}

impl Worklist {
    /// None of so many blocks.
    pub(crate) fn of(blocks: usize) -> Worklist {
        Worklist {
            bits: vec![0; blocks.div_ceil(64)],
            first: 0,
        }
    }

    /// Adds one.
    pub(crate) fn insert(&mut self, place: usize) {
        self.bits[place / 64] |= 1 << (place % 64);
        self.first = self.first.min(place / 64);
    }

    /// Takes the first one.
    pub(crate) fn pop(&mut self) -> Option<usize> {
        while let Some(word) = self.bits.get_mut(self.first) {
            if *word != 0 {
                let place = 64 * self.first + word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(place);
            }
            self.first += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_comes_first_whenever_it_was_added() {
        let mut work = Worklist::of(200);
        for place in [130, 7, 199, 7] {
            work.insert(place);
        }
        assert_eq!((work.pop(), work.pop()), (Some(7), Some(130)));
        work.insert(3);
        assert_eq!(
            (work.pop(), work.pop(), work.pop()),
            (Some(3), Some(199), None)
        );
        work.insert(64);
        assert_eq!(work.pop(), Some(64));
    }
}
