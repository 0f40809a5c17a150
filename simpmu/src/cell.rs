//! A word that one thread uses at a time.

use std::sync::atomic::{AtomicU64, Ordering};

/// As `std::cell::Cell`, but a thread may find what another one has left. Relaxed accesses are plain moves.
#[derive(Debug, Default)]
pub struct Cell(AtomicU64);

impl Cell {
    /// A cell with this value.
    pub const fn new(value: u64) -> Cell {
        Cell(AtomicU64::new(value))
    }

    /// The value.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Another value.
    #[inline(always)]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Another value; the former one.
    #[inline(always)]
    pub fn replace(&self, value: u64) -> u64 {
        let former = self.get();
        self.set(value);
        former
    }

    /// Adds to the value.
    #[inline(always)]
    pub fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }
}

/// So many cells of one value.
pub(crate) fn cells(count: usize, value: u64) -> Box<[Cell]> {
    (0..count).map(|_| Cell::new(value)).collect()
}
