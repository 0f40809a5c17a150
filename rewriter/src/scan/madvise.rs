//! Giving memory back while a file is read: the pages of a mapped file count as memory for as long as they are there.

use ompfuse_progress::Progress;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many bytes are read before memory is given back.
pub(super) const STEP: u64 = 4 << 20;

/// Counts what is read.
#[derive(Debug)]
pub(super) struct Madvise<'r> {
    read: AtomicU64,
    progress: Progress<'r>,
}

impl<'r> Madvise<'r> {
    pub(super) fn new(progress: Progress<'r>) -> Madvise<'r> {
        Madvise {
            read: AtomicU64::new(0),
            progress,
        }
    }

    /// So many bytes were read, and may not be needed any more.
    pub(super) fn read(&self, bytes: u64) {
        let before = self.read.fetch_add(bytes, Ordering::Relaxed);
        if before / STEP != before.saturating_add(bytes) / STEP {
            self.progress.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_step_by_step() {
        let given = AtomicU64::new(0);
        let give_back = || {
            given.fetch_add(1, Ordering::Relaxed);
        };
        let madvise = Madvise::new(Progress::default().releasing(&give_back));
        let so_far = || given.load(Ordering::Relaxed);
        madvise.read(STEP - 1);
        assert_eq!(so_far(), 0);
        madvise.read(1);
        assert_eq!(so_far(), 1);
        (0..20).for_each(|_| madvise.read(STEP / 10));
        assert_eq!(so_far(), 2);
        madvise.read(5 * STEP);
        assert_eq!(so_far(), 3);
    }
}
