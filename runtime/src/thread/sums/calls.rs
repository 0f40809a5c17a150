//! Calling contexts in sums: each has a number that is the same on all threads, so that sums can be kept apart by it
//! (`sums/roads.rs`). The thread that meets it first tells what it is.

use super::table::Key;
use crate::thread::Thread;
use crate::unwind::Chain;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use ompfuse_format::Construct;
use ompfuse_format::record::NO_SITE;
use ompfuse_format::record::sums::{self, Kind, MOST_CONTEXTS};

/// Places for contexts, a power of two; a context's number is its place plus 1.
const PLACES: usize = 1 << 11;
const _: () = assert!(PLACES > MOST_CONTEXTS as usize);

/// The process's contexts by hash; 0: the place is free.
static HASHES: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
static USED: AtomicU32 = AtomicU32::new(0);

/// In the child of a fork: it tells its own.
pub(super) fn after_fork() {
    HASHES.iter().for_each(|h| h.store(0, Ordering::Relaxed));
    USED.store(0, Ordering::Relaxed);
}

/// A context's number, and whether nobody has met it before; `None`: there are too many. `generation`: of the modules that its addresses
/// are in.
pub(in crate::thread) fn number(hash: u64, generation: u32) -> Option<(u32, bool)> {
    let hash = (hash ^ u64::from(generation).wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1);
    let first = (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as usize;
    for at in (first..first + PLACES).map(|at| at & (PLACES - 1)) {
        let place = HASHES.get(at)?;
        let mut known = place.load(Ordering::Relaxed);
        if known == 0 {
            if USED.load(Ordering::Relaxed) >= MOST_CONTEXTS {
                return None;
            }
            let taken = place.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed);
            match taken {
                Ok(_) => {
                    USED.fetch_add(1, Ordering::Relaxed);
                    return Some((at as u32 + 1, true));
                }
                Err(other) => known = other,
            }
        }
        if known == hash {
            return Some((at as u32 + 1, false));
        }
    }
    None
}

impl Thread {
    /// Tells of a context that nobody has met before.
    pub(in crate::thread) fn tell_in_sums(&self, number: u32, chain: &Chain) {
        let addresses = chain.addresses();
        let key = Key {
            kind: Kind::Context,
            construct: Construct::Program,
            site: NO_SITE,
            team: 0,
            member: u64::from(number),
        };
        let words = || sums::CONTEXT_WORDS + addresses.len();
        // Without space for it the context is not known.
        if let Some(entry) = self.entry(key, words) {
            entry.set(sums::FIRST, chain.end as u64);
            for (at, &address) in (sums::CONTEXT_WORDS..).zip(addresses) {
                entry.set(at, address);
            }
        }
    }
}
