//! What is chosen for a construct when it begins, and holds until its end: frames and open work keep it.

use super::FIRST_SET;
use ompfuse_format::control::{OFF, OWN_SET};
use zerocopy::FromZeros;

/// A construct's event set and whether it is recorded, as it began. 0: it has not begun yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromZeros)]
pub(crate) struct Choice(u8);

impl Choice {
    /// Nothing is chosen.
    pub(crate) const NONE: Choice = Choice(0);
    /// The first set, and on record: the only one where nothing has ever been chosen.
    pub(super) const FIRST: Choice = Choice(FIRST_SET);

    pub(super) fn new(set: usize, off: bool) -> Choice {
        Choice((set + 1) as u8 | if off { OFF } else { 0 })
    }

    /// Whether there is no record of it.
    #[inline(always)]
    pub(crate) fn is_off(self) -> bool {
        self.0 & (OFF | LEFT_OUT) != 0
    }

    /// The same, but it is one of those that are left out where one in so many is recorded.
    pub(super) fn left_out(self) -> Choice {
        Choice(self.0 | LEFT_OUT)
    }

    /// Whether it is one of these.
    pub(super) fn is_left_out(self) -> bool {
        self.0 & LEFT_OUT != 0
    }

    /// As [`Cost::set`].
    #[inline(always)]
    pub(super) fn set(self) -> u8 {
        self.0 & OWN_SET
    }
}

/// The bit of [`Choice::left_out`].
const LEFT_OUT: u8 = 0x40;
