//! OpenMP locks.

use super::sync::timed;
use crate::entry::{self, Call};
use crate::thread::{Cost, Thread};

/// `omp_set_lock` and its like.
pub(crate) fn set(thread: &Thread, call: &Call) -> u64 {
    let lock = call.known(0).unwrap_or(0);
    let cost = Cost::new();
    let (result, t0) = timed(thread, &cost, || call.forward());
    let wait = cost.ticks.get();
    thread.lock(lock, entry::this(call.site()), t0, wait, &cost);
    result
}

/// `omp_test_lock` and its like, which never wait. Where the lock isn't free, nothing has happened but that the program asked.
pub(crate) fn test(thread: &Thread, call: &Call) -> u64 {
    let lock = call.known(0).unwrap_or(0);
    let cost = Cost::new();
    let (result, t0) = timed(thread, &cost, || call.forward());
    if result as u32 != 0 {
        thread.lock(lock, entry::this(call.site()), t0, 0, &cost);
    } else {
        thread.absorb(&cost);
    }
    result
}

/// `omp_unset_lock` and its like.
pub(crate) fn unset(thread: &Thread, call: &Call) -> u64 {
    let lock = call.known(0).unwrap_or(0);
    let own = thread.has_taken(lock);
    let cost = Cost::new();
    let (result, _) = timed(thread, &cost, || call.forward());
    thread.unlock(lock, own, &cost);
    result
}
