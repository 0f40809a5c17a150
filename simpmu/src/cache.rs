//! A set-associative cache that forgets what was used least recently.

use crate::cell::{Cell, cells};
use crate::options::Size;

/// Tag of an empty place; no line has this number.
const EMPTY: u64 = u64::MAX;

/// A cache of lines, or a TLB of pages: it knows their numbers only.
#[derive(Debug)]
pub struct Cache {
    /// Sets one behind the other, in each the line that was used last in front.
    tags: Box<[Cell]>,
    ways: usize,
    /// Number of sets - 1.
    mask: u64,
}

impl Cache {
    /// An empty cache. The number of sets must be a power of two.
    pub fn new(size: Size) -> Cache {
        Cache {
            tags: cells(size.lines as usize, EMPTY),
            ways: size.ways as usize,
            mask: size.lines / size.ways - 1,
        }
    }

    /// Uses a line; whether it was there.
    #[inline]
    pub fn access(&self, line: u64) -> bool {
        let at = (line & self.mask) as usize * self.ways;
        let set = &self.tags[at..at + self.ways];
        if set[0].get() == line {
            return true;
        }
        let mut moved = line;
        for place in set {
            moved = place.replace(moved);
            if moved == line {
                return true;
            }
        }
        false
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.tags.iter().for_each(|tag| tag.set(EMPTY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misses(cache: &Cache, lines: impl IntoIterator<Item = u64>) -> usize {
        lines.into_iter().filter(|&l| !cache.access(l)).count()
    }

    #[test]
    fn what_fits_stays() {
        let cache = Cache::new(Size { lines: 64, ways: 4 });
        assert_eq!(misses(&cache, 0..64), 64);
        assert_eq!(misses(&cache, 0..64), 0);
        cache.clear();
        assert_eq!(misses(&cache, 0..64), 64);
    }

    #[test]
    fn the_least_recently_used_line_goes() {
        let cache = Cache::new(Size { lines: 4, ways: 2 });
        // Lines 0, 2 and 4 share a set of two.
        assert_eq!(misses(&cache, [0, 2, 0, 4]), 3);
        assert!(cache.access(0), "used after 2");
        assert!(!cache.access(2), "had to go for 4");
        assert!(cache.access(0) && !cache.access(4));
    }

    #[test]
    fn a_cycle_longer_than_a_set_never_hits() {
        let cache = Cache::new(Size { lines: 8, ways: 8 });
        assert_eq!(misses(&cache, (0..90).map(|i| i % 9)), 90);
        assert_eq!(misses(&cache, (0..80).map(|i| i % 8)), 8);
    }
}
