//! Shares of static loops that the program computes itself, and uses again in other loops.

use core::cell::Cell;
use zerocopy::FromZeros;

/// Places for shares, two at each; a power of two.
const PLACES: usize = 64;

/// This thread's share of a static loop, as it was computed in one execution of a function (told by its stack pointer).
#[derive(Debug, Clone, Copy, FromZeros)]
pub(crate) struct Share {
    pub(crate) site: u32,
    pub(crate) stack: u64,
    /// What was in the frame pointer's register.
    pub(crate) frame: u64,
    pub(crate) first: i64,
    pub(crate) count: u64,
}

impl Share {
    /// Where it is remembered.
    fn at(site: u32, stack: u64) -> usize {
        (u64::from(site) ^ stack >> 4 ^ stack >> 10) as usize % PLACES
    }
}

/// Shares of static loops that another loop may reuse: of each place the newest, and the one before.
#[derive(Debug, FromZeros)]
pub(crate) struct Shares([[Cell<Share>; 2]; PLACES]);

impl Shares {
    /// Remembers a share.
    #[inline(always)]
    pub(crate) fn keep(&self, share: Share) {
        let [newest, before] = &self.0[Share::at(share.site, share.stack)];
        let old = newest.get();
        if (old.site, old.stack) != (share.site, share.stack) {
            before.set(old);
        }
        newest.set(share);
    }

    /// The share computed at a site with this stack pointer; `None` if many others have been since.
    pub(crate) fn of(&self, site: u32, stack: u64) -> Option<Share> {
        self.0[Share::at(site, stack)]
            .iter()
            .map(Cell::get)
            .find(|s| s.site == site && s.stack == stack)
    }

    /// The same, by the frame pointer: a function that takes memory from its stack meanwhile has one. `None` if it is not
    /// certain.
    #[cold]
    #[inline(never)]
    pub(crate) fn of_frame(&self, site: u32, stack: u64, frame: u64) -> Option<Share> {
        let lies = |s: &Share| stack < s.stack && s.stack <= frame;
        let all = self.0.iter().flatten().map(Cell::get);
        let mut own = all.filter(|s| s.site == site && s.frame == frame && lies(s));
        own.next().filter(|_| own.next().is_none())
    }
}
