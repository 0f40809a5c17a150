//! A branch predictor: two-bit counters chosen by address and history (gshare), last targets, a stack of return addresses.

use crate::cell::{Cell, cells};

/// Last targets that are remembered; a power of two.
const TARGETS: usize = 512;
/// Return addresses that are remembered; a power of two.
const RETURNS: usize = 16;

/// Predicts conditional branches, indirect jumps and returns.
#[derive(Debug)]
pub struct Predictor {
    /// 0 and 1: not taken; 2 and 3: taken.
    counters: Box<[Cell]>,
    history: Cell,
    targets: Box<[Cell]>,
    returns: Box<[Cell]>,
    depth: Cell,
}

impl Predictor {
    /// A predictor that has seen nothing, with two to the power of `history` counters.
    pub fn new(history: u32) -> Predictor {
        Predictor {
            counters: cells(1 << history, 1),
            history: Cell::new(0),
            targets: cells(TARGETS, 0),
            returns: cells(RETURNS, 0),
            depth: Cell::new(0),
        }
    }

    /// A conditional branch has been taken or not; whether that was predicted.
    #[inline]
    pub fn conditional(&self, address: u64, taken: bool) -> bool {
        let mask = self.counters.len() - 1;
        let history = self.history.get();
        let counter = &self.counters[(address ^ address >> 13 ^ history) as usize & mask];
        let state = counter.get();
        counter.set(if taken {
            (state + 1).min(3)
        } else {
            state.saturating_sub(1)
        });
        self.history
            .set((history << 1 | u64::from(taken)) & mask as u64);
        (state >= 2) == taken
    }

    /// An indirect jump or call has led here; whether that was predicted.
    #[inline]
    pub fn indirect(&self, address: u64, target: u64) -> bool {
        self.targets[(address ^ address >> 9) as usize % TARGETS].replace(target) == target
    }

    /// A call will return here.
    #[inline]
    pub fn call(&self, back: u64) {
        let depth = self.depth.get();
        self.returns[depth as usize % RETURNS].set(back);
        self.depth.set(depth.wrapping_add(1));
    }

    /// The address that the next return is predicted to lead to.
    #[inline]
    pub fn predict_return(&self) -> u64 {
        let depth = self.depth.get().wrapping_sub(1);
        self.depth.set(depth);
        self.returns[depth as usize % RETURNS].get()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.counters.iter().for_each(|c| c.set(1));
        [&self.targets, &self.returns]
            .into_iter()
            .flatten()
            .chain([&self.history, &self.depth])
            .for_each(|c| c.set(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_learnt() {
        let predictor = Predictor::new(10);
        let wrong = |n: u64| {
            (0..n)
                .filter(|i| !predictor.conditional(0x40_1000, i % 4 != 3))
                .count()
        };
        assert!(wrong(200) > 3);
        assert_eq!(wrong(400), 0, "a loop of four rounds");
    }

    #[test]
    fn targets_and_returns_are_remembered() {
        let predictor = Predictor::new(10);
        assert!(!predictor.indirect(1, 100) && predictor.indirect(1, 100));
        assert!(!predictor.indirect(1, 200));
        (1..=3).for_each(|back| predictor.call(back));
        assert_eq!(
            [3, 2, 1],
            core::array::from_fn(|_| predictor.predict_return())
        );
        predictor.clear();
        assert!(!predictor.indirect(1, 200));
    }
}
