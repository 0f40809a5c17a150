//! The order in which blocks are looked at when values are followed through a function.

use super::super::cfg::Body;
use super::super::graph::post_order;

/// A function's blocks, each after those that lead to it, but for what leads back. Compilers put code that is seldom executed last:
/// who went by addresses would follow the rest of a function once more for every piece of it.
#[derive(Debug)]
pub(super) struct Order {
    /// The blocks that something leads to.
    blocks: Vec<u32>,
    /// The blocks' places among them.
    places: Vec<u32>,
}

impl Order {
    pub(super) fn of(body: &Body) -> Order {
        let edge = |block: usize, n: usize| {
            let block = &body.blocks[block];
            let further = || block.pads.get(n - block.succs.len());
            block.succs.get(n).or_else(further).copied()
        };
        Order::new(
            post_order(body.blocks.len(), &body.roots, edge),
            body.blocks.len(),
        )
    }

    /// From a post order of some of so many blocks.
    fn new(mut order: Vec<usize>, blocks: usize) -> Order {
        order.reverse();
        let mut places = vec![0; blocks];
        for (place, &block) in order.iter().enumerate() {
            places[block] = place as u32;
        }
        Order {
            blocks: order.into_iter().map(|b| b as u32).collect(),
            places,
        }
    }
}

/// Blocks that are still to be looked at.
pub(super) struct Work<'x> {
    order: &'x Order,
    /// A bit for each place.
    bits: Vec<u64>,
    /// No bit is set in the words before.
    first: usize,
}

impl Work<'_> {
    pub(super) fn new(order: &Order) -> Work<'_> {
        Work {
            order,
            bits: vec![0; order.blocks.len().div_ceil(64)],
            first: 0,
        }
    }

    /// Adds a block that something leads to.
    pub(super) fn add(&mut self, block: usize) {
        let place = self.order.places[block] as usize;
        self.bits[place / 64] |= 1 << (place % 64);
        self.first = self.first.min(place / 64);
    }

    /// Takes the first block out.
    pub(super) fn take(&mut self) -> Option<usize> {
        let skip = self.bits[self.first..].iter().position(|w| *w != 0)?;
        self.first += skip;
        let word = &mut self.bits[self.first];
        let bit = word.trailing_zeros() as usize;
        *word &= *word - 1;
        Some(self.order.blocks[self.first * 64 + bit] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_taken_in_order() {
        // Block 7 comes first, then 199 to 8, then 6 to 0.
        let post = (0..7).chain(8..200).chain([7]).collect();
        let order = Order::new(post, 200);
        let mut work = Work::new(&order);
        for block in [130, 5, 64, 5] {
            work.add(block);
        }
        assert_eq!(work.take(), Some(130));
        work.add(7);
        let rest: Vec<usize> = std::iter::from_fn(|| work.take()).collect();
        assert_eq!(rest, [7, 64, 5]);
    }
}
