//! Numbers of locks, by their addresses: an interval says by its number which lock it was about.

use crate::names;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use ompfuse_format::record::lock::Lock;

/// Places for locks; a power of two. Further ones have no number.
const PLACES: usize = 4096;
/// Places that are tried for a lock.
const TRIES: usize = 16;

struct Place {
    /// The address plus 1; 0: it is free.
    key: AtomicU64,
    /// The process that has its record, by [`names::age`].
    written: AtomicU32,
}

static LOCKS: [Place; PLACES] = [const {
    Place {
        key: AtomicU64::new(0),
        written: AtomicU32::new(0),
    }
}; PLACES];

/// The number of the lock at an address, from 1. The first time both are told. 0: there are too many.
#[inline(always)]
pub(crate) fn number(address: u64, tell: impl FnOnce(&Lock)) -> u32 {
    let start = start(address);
    let place = &LOCKS[start];
    let is_known = place.key.load(Ordering::Relaxed) == address + 1
        && place.written.load(Ordering::Relaxed) == names::age();
    match is_known {
        true => start as u32 + 1,
        false => find(address, start, tell),
    }
}

/// Multiplication spreads addresses; the top bits are the best ones.
fn start(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize % PLACES
}

#[cold]
#[inline(never)]
fn find(address: u64, start: usize, tell: impl FnOnce(&Lock)) -> u32 {
    let key = address.wrapping_add(1);
    for nth in 0..TRIES {
        let at = (start + nth) % PLACES;
        let place = &LOCKS[at];
        let known = match place.key.load(Ordering::Acquire) {
            0 => (place.key).compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire),
            known => Err(known),
        };
        if known.is_err_and(|other| other != key) {
            continue;
        }
        let number = at as u32 + 1;
        let age = names::age();
        if place.written.load(Ordering::Relaxed) != age
            && place.written.swap(age, Ordering::AcqRel) != age
        {
            tell(&Lock { number, address });
        }
        return number;
    }
    0
}
