//! How long a stretch of time must be to be one of the longest of all lanes, which are read beside each other.

use super::MOST;
use super::lanes::Drawing;
use std::sync::{Mutex, PoisonError};

/// What is known of all lanes so far.
#[derive(Debug)]
pub(super) struct Longest<'a>(Mutex<State<'a>>);

#[derive(Debug)]
struct State<'a> {
    /// Stretches by length: 64 steps for each power of two.
    lengths: Vec<u64>,
    /// Lanes that were read, by number.
    read: Vec<(usize, Drawing<'a>)>,
}

/// Steps of a power of two, as a power of two.
const BITS: u32 = 6;
const STEPS: u64 = 1 << BITS;

/// Where a length is counted. Each place has those from [`least`] of it on.
pub(super) fn place(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let power = ns.ilog2();
    let step = (ns >> (power - BITS)) & (STEPS - 1);
    (u64::from(power - BITS + 1) * STEPS + step) as usize
}

fn least(place: usize) -> u64 {
    let (row, step) = (place as u64 / STEPS, place as u64 % STEPS);
    match row {
        0 => step,
        row => (STEPS + step) << (row - 1),
    }
}

impl State<'_> {
    /// The least length of which there are at most [`MOST`]. It never falls, so what was shorter once needn't be kept.
    fn least(&self) -> u64 {
        let (mut kept, mut at) = (0, self.lengths.len());
        while at > 0 && kept + self.lengths[at - 1] <= MOST {
            at -= 1;
            kept += self.lengths[at];
        }
        least(at)
    }

    fn cut(&mut self) -> u64 {
        let least = self.least();
        self.read.iter_mut().for_each(|(_, lane)| lane.cut(least));
        least
    }
}

impl<'a> Longest<'a> {
    pub(super) fn new() -> Longest<'a> {
        Longest(Mutex::new(State {
            lengths: Longest::nothing(),
            read: vec![],
        }))
    }

    /// No stretch of any length.
    pub(super) fn nothing() -> Vec<u64> {
        vec![0; place(u64::MAX) + 1]
    }

    /// Takes over further lengths. Gives the least that a stretch must have to be one of the longest so far.
    pub(super) fn with(&self, lengths: &mut [u64]) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (all, new) in state.lengths.iter_mut().zip(lengths) {
            *all += std::mem::take(new);
        }
        state.least()
    }

    /// Keeps a lane whose lengths are known.
    pub(super) fn keep(&self, number: usize, drawing: Drawing<'a>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.read.push((number, drawing));
        let kept = state.read.iter().map(|(_, lane)| lane.stretches.len());
        if kept.sum::<usize>() as u64 > 2 * MOST {
            state.cut();
        }
    }

    /// The least length of what is kept, and all lanes by their numbers.
    pub(super) fn finish(self) -> (u64, Vec<Drawing<'a>>) {
        let mut state = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let least = state.cut();
        state.read.sort_by_key(|(number, _)| *number);
        let lanes = state.read.into_iter().map(|(_, lane)| lane);
        (least, lanes.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_is_counted_where_it_belongs() {
        let lengths = (0..2000).chain([1 << 40, (1 << 40) + 1, u64::MAX / 3, u64::MAX]);
        for ns in lengths {
            let at = place(ns);
            assert!(least(at) <= ns, "{ns}");
            assert!(at == place(u64::MAX) || ns < least(at + 1), "{ns}");
        }
    }

    #[test]
    fn the_longest_are_found_whatever_comes_first() {
        let (longest, mut lengths) = (Longest::new(), Longest::nothing());
        lengths[place(1000)] = MOST;
        assert_eq!(longest.with(&mut lengths), 0);
        assert!(lengths.iter().all(|&n| n == 0));
        lengths[place(2000)] = 1;
        let least = longest.with(&mut lengths);
        assert!(least > 1000 && least <= 2000, "{least}");
    }
}
