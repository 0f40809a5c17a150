//! OpenMP locks, and mutexes of threads.

use super::sync::{self, timed};
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

/// Whether a mutex's function says that the thread has it now: it returns 0, or that the last owner has died.
fn is_held(result: u64) -> bool {
    const OWNER_DEAD: u32 = 130;
    matches!(result as u32, 0 | OWNER_DEAD)
}

/// `pthread_mutex_lock` and its like.
pub(crate) fn take(thread: &Thread, call: &Call) -> u64 {
    let lock = call.known(0).unwrap_or(0);
    let cost = Cost::new();
    let (result, t0) = timed(thread, &cost, || call.forward());
    let (site, wait) = (entry::this(call.site()), cost.ticks.get());
    match is_held(result) {
        true => thread.lock(lock, site, t0, wait, &cost),
        false => thread.wait_for_lock(lock, site, t0, wait, &cost),
    }
    result
}

/// `pthread_mutex_trylock` and its like.
pub(crate) fn attempt(thread: &Thread, call: &Call) -> u64 {
    let lock = call.known(0).unwrap_or(0);
    let cost = Cost::new();
    let (result, t0) = timed(thread, &cost, || call.forward());
    match is_held(result) {
        true => thread.lock(lock, entry::this(call.site()), t0, 0, &cost),
        false => thread.absorb(&cost),
    }
    result
}

/// `pthread_cond_wait` and its like: others may have the mutex meanwhile. How long it is held behind that is not recorded: the
/// call that took it has its record by then.
pub(crate) fn condition(thread: &Thread, call: &Call) -> u64 {
    let lock = call.known(0).unwrap_or(0);
    thread.charge();
    let own = thread.has_taken(lock);
    thread.unlock(lock, own, &Cost::new());
    sync::enclosed(thread, call)
}
