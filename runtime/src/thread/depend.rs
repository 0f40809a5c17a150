//! Records of what orders units: dependences of tasks, and points of doacross loops.

use super::Thread;
use ompfuse_format::record::depend::{self, Depend, MOST_ADDRESSES, Point};

impl Thread {
    /// Writes what a task of `site`, or a wait, depends on: words that [`depend::Access::word`] makes, as many as they say that they are.
    #[inline(never)]
    pub(crate) fn write_depend(
        &self,
        (flags, node, site): (u32, u64, u32),
        mut words: impl Iterator<Item = u64>,
    ) {
        if self.is_gone() || self.keeps_sums_only() || self.is_off(site) {
            return;
        }
        let mut left = words.size_hint().0;
        loop {
            let count = left.min(MOST_ADDRESSES);
            let len = Depend::len_of(count);
            let Some(out) = self.buffer.room(len) else {
                return;
            };
            let [first, second] = depend::depend_head(flags, node, count);
            // SAFETY: the buffer gives `len` bytes: two words, and `count` behind them.
            unsafe {
                out.write(first);
                out.add(1).write(second);
            }
            for at in 0..count {
                let word = words.next().unwrap_or(0);
                // SAFETY: as above.
                unsafe { out.add(2 + at).write(word) };
            }
            let _ = self.buffer.commit(out, len / 8); // a lost record is counted
            left -= count;
            if left == 0 {
                return;
            }
        }
    }

    /// Writes a point of a doacross loop; the interval of its post or wait comes next.
    pub(crate) fn write_point(&self, site: u32, point: &Point) {
        if self.is_gone() || self.keeps_sums_only() || self.is_off(site) {
            return;
        }
        let Some(out) = self.buffer.room(Point::LEN) else {
            return;
        };
        for (at, word) in depend::point_words(point).into_iter().enumerate() {
            // SAFETY: the buffer gives `Point::LEN` bytes, which are these words.
            unsafe { out.add(at).write(word) };
        }
        let _ = self.buffer.commit(out, Point::LEN / 8); // a lost record is counted
    }

    /// The doacross loop that the thread is in has so many dimensions.
    pub(crate) fn set_dimensions(&self, dimensions: u64) {
        self.dimensions.set(dimensions.min(255) as u8);
    }

    /// Of the last doacross loop; 0 without one.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions.get().into()
    }
}
