//! What a thread has executed and no interval around it has ended yet: what isn't own time of that.

/// Stretches of which at most so many are kept; with more, those that lie in one interval become one.
const MOST: usize = 4096;

/// A time in which something was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) begin: i64,
    pub(super) end: i64,
    /// How much of it.
    covered: u64,
}

impl Stretch {
    /// How much of it lies before a time.
    pub(super) fn before(&self, time: i64) -> f64 {
        let length = self.end.saturating_sub(self.begin).max(1) as f64;
        let part = time.clamp(self.begin, self.end).saturating_sub(self.begin) as f64;
        self.covered as f64 * part / length
    }
}

/// Of one thread, in the order of their ends.
#[derive(Debug, Default)]
pub(super) struct Stretches(Vec<Stretch>);

impl Stretches {
    /// Takes those that began in an interval that ends now: what was executed directly in it.
    pub(super) fn claim(&mut self, begin: i64) -> Vec<Stretch> {
        let from = self.0.iter().rposition(|s| s.begin < begin);
        self.0.split_off(from.map_or(0, |at| at + 1))
    }

    /// The same, where nobody wants to know.
    pub(super) fn forget(&mut self, begin: i64) {
        while self.0.last().is_some_and(|s| s.begin >= begin) {
            self.0.pop();
        }
    }

    /// What was claimed is no part of what claimed it.
    pub(super) fn put_back(&mut self, stretch: Stretch) {
        self.0.push(stretch);
    }

    /// An interval has ended. `same`: whether two times lie in one interval of the growth.
    pub(super) fn push(&mut self, begin: i64, end: i64, same: impl Fn(i64, i64) -> bool) {
        self.0.push(Stretch {
            begin,
            end,
            covered: end.saturating_sub(begin).max(0) as u64,
        });
        if self.0.len() < MOST {
            return;
        }
        let mut merged: Vec<Stretch> = vec![];
        for next in self.0.drain(..) {
            match merged.last_mut() {
                Some(last) if last.begin <= next.begin && same(last.begin, next.end - 1) => {
                    last.end = last.end.max(next.end);
                    last.covered += next.covered;
                }
                _ => merged.push(next),
            }
        }
        self.0 = merged;
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
