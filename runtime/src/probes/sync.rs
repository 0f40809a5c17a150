//! Waits, mutexes, and blocks that one thread of the team executes.

use super::{depend, inline};
use crate::entry::{self, Call};
use crate::thread::{Cost, Thread};
use ompfuse_format::Construct;
use ompfuse_format::record::lock::UNNAMED_CRITICAL;

/// Calls the original with an account of its own; returns its result and when it began.
#[inline(always)]
pub(crate) fn timed(thread: &Thread, cost: &Cost, call: impl FnOnce() -> u64) -> (u64, u64) {
    thread.charge();
    timed_from_here(thread, cost, call)
}

/// As [`timed`]; the caller has charged.
#[inline(always)]
pub(crate) fn timed_from_here(
    thread: &Thread,
    cost: &Cost,
    call: impl FnOnce() -> u64,
) -> (u64, u64) {
    let before = thread.turn(cost);
    let floor = thread.set_floor(core::ptr::from_ref(cost) as usize);
    let t0 = thread.last();
    let result = call();
    thread.set_floor(floor);
    thread.switch(before);
    (result, t0)
}

/// KMPC's implicit barriers have this flag in `ident_t` (`kmp.h`, KMP_IDENT_BARRIER_IMPL).
const IDENT_BARRIER_IMPLICIT: u32 = 0x40;

#[inline(always)]
fn construct(call: &Call) -> Construct {
    Construct::or_service(call.site().construct)
}

/// A barrier: work-sharing constructs that are still open have ended before it (they may not contain one).
pub(crate) fn barrier(thread: &Thread, call: &Call) -> u64 {
    let mut construct = construct(call);
    if let Some(loc) = call.known(0)
        && loc != 0
    {
        // SAFETY: KMPC's first argument is an ident_t, whose flags are its second word.
        let flags = unsafe { ((loc + 4) as *const u32).read() };
        if flags & IDENT_BARRIER_IMPLICIT != 0 {
            construct = Construct::ImplicitBarrier;
        }
    }
    thread.end_all();
    let result = wait_from_here(thread, call, construct);
    let site = call.site();
    if entry::constants(site).second != 0 {
        // The return address is popped by then.
        inline::loop_behind(thread, call.stack_pointer() as u64 + 8, site);
    }
    result
}

/// A wait that executes tasks meanwhile: they pause its account.
#[inline]
pub(crate) fn wait(thread: &Thread, call: &Call, construct: Construct) -> u64 {
    thread.charge();
    wait_from_here(thread, call, construct)
}

/// As [`wait`]; the caller has charged.
#[inline(always)]
pub(crate) fn wait_from_here(thread: &Thread, call: &Call, construct: Construct) -> u64 {
    let cost = Cost::new();
    let (result, t0) = timed_from_here(thread, &cost, || call.forward());
    let is_barrier = construct.is_barrier();
    let is_idle = is_barrier && thread.was_idle(cost.ticks.get());
    let extent = u64::from(is_idle && construct == Construct::Barrier);
    thread.write_wait(construct, entry::this(call.site()), t0, extent, &cost);
    result
}

/// Waits for tasks, inside whatever is open. A taskgroup waits where it ends and is known by where it began.
pub(crate) fn taskwait(thread: &Thread, call: &Call) -> u64 {
    depend::wait(thread, call);
    let cost = Cost::new();
    let (result, t0) = timed(thread, &cost, || call.forward());
    let region = entry::region(call.site());
    thread.write_wait(construct(call), region, t0, 0, &cost);
    result
}

/// A part of a construct that is one call, inside whatever is open.
pub(crate) fn service(thread: &Thread, call: &Call) -> u64 {
    wait(thread, call, construct(call))
}

/// `cancel` or a cancellation point. It says whether the construct is cancelled; where that ends is told by what the program
/// does then, as without cancellation. It takes no time worth a clock: one that cancels nothing has the time of the boundary
/// before it.
pub(crate) fn cancel(thread: &Thread, call: &Call) -> u64 {
    let result = call.forward();
    let is_cancelled = result as u8 != 0;
    if is_cancelled {
        thread.charge();
    }
    let site = entry::this(call.site());
    let extent = u64::from(!is_cancelled);
    thread.write_wait(construct(call), site, thread.last(), extent, &Cost::new());
    result
}

/// Every thread of the team counts the construct; the result tells who opens it.
pub(crate) fn single_start(thread: &Thread, call: &Call) -> u64 {
    if thread.work().is_some() {
        thread.end_all();
    }
    block_start(thread, call, |result| result as u8 != 0)
}

/// As [`single_start`], but it may stand in a loop's range (code that is only equivalent to `master`).
pub(crate) fn master_start(thread: &Thread, call: &Call) -> u64 {
    block_start(thread, call, |result| result as u32 != 0)
}

/// gcc's `master`, where the thread number is asked for right before the test.
pub(crate) fn master_query(thread: &Thread, call: &Call) -> u64 {
    let filter = entry::constants(call.site()).param;
    block_start(thread, call, |result| i64::from(result as i32) == filter)
}

/// As [`single_start`]; `executes` tells from the result who opens it.
#[inline(always)]
fn block_start(thread: &Thread, call: &Call, executes: impl Fn(u64) -> bool) -> u64 {
    let place = thread.place_of_next();
    let result = call.forward();
    if executes(result) {
        thread.charge();
        thread.open(construct(call), entry::this(call.site()), place, 0);
    }
    result
}

/// `GOMP_single_copy_start`: who doesn't execute the `single` waits inside for its data.
pub(crate) fn single_copy_start(thread: &Thread, call: &Call) -> u64 {
    thread.end_all();
    let place = thread.place_of_next();
    let site = entry::this(call.site());
    let cost = Cost::new();
    let (result, t0) = timed_from_here(thread, &cost, || call.forward());
    if result == 0 {
        thread.absorb(&cost);
        thread.open(construct(call), site, place, 0);
    } else {
        thread.write_wait(Construct::ImplicitBarrier, site, t0, 0, &cost);
    }
    result
}

/// The end of a `single` or `master`, on the thread that executed it.
pub(crate) fn block_end(thread: &Thread, call: &Call) -> u64 {
    let construct = match construct(call) {
        Construct::Barrier => Construct::Master, // of a barrier that the master leaves first
        construct => construct,
    };
    thread.end_to(|work| work.construct.get() == construct);
    if call.known(0).is_some() {
        return wait_from_here(thread, call, Construct::ImplicitBarrier);
    }
    call.forward()
}

/// A barrier that the master leaves first, to execute a block.
pub(crate) fn barrier_master(thread: &Thread, call: &Call) -> u64 {
    thread.end_all();
    let place = thread.place_of_next();
    let result = wait_from_here(thread, call, construct(call));
    if result as u32 != 0 {
        thread.open(Construct::Master, entry::this(call.site()), place, 0);
    }
    result
}

/// A call that is all of its construct. A wait executes tasks meanwhile: they pause its account.
pub(crate) fn enclosed(thread: &Thread, call: &Call) -> u64 {
    let construct = construct(call);
    let cost = Cost::new();
    let (result, t0) = timed(thread, &cost, || call.forward_any());
    let extent = if construct.is_exclusive() {
        cost.ticks.get()
    } else {
        0
    };
    thread.write_wait(construct, entry::this(call.site()), t0, extent, &cost);
    result
}

/// A post or wait of a doacross loop.
pub(crate) fn doacross(thread: &Thread, call: &Call, waits: bool) -> u64 {
    depend::point(thread, call, waits);
    enclosed(thread, call)
}

/// `__kmpc_doacross_init`, whose argument says how many dimensions the loop has.
pub(crate) fn doacross_init(thread: &Thread, call: &Call) -> u64 {
    thread.set_dimensions(call.known(0).unwrap_or(0));
    call.forward()
}

/// `__kmpc_reduce*`: waits, and tells who combines; with the result 1 that thread is the only one until the end.
pub(crate) fn reduce_begin(thread: &Thread, call: &Call) -> u64 {
    let (construct, site) = (construct(call), entry::this(call.site()));
    let cost = Cost::new();
    let (result, t0) = timed(thread, &cost, || call.forward());
    if result as u32 == 1 {
        thread.hold(construct, site, 0, t0, &cost);
    } else {
        thread.write_wait(construct, site, t0, cost.ticks.get(), &cost);
    }
    result
}

/// `__kmpc_end_reduce*`. That of a construct without `nowait` is its last barrier.
pub(crate) fn reduce_end(thread: &Thread, call: &Call) -> u64 {
    let construct = construct(call);
    let cost = Cost::new();
    if construct.is_wait() {
        // What was held ends when the barrier begins: its release can't be told from the waiting behind it.
        thread.unhold(Construct::Reduction, &cost);
        return wait(thread, call, construct);
    }
    let (result, _) = timed(thread, &cost, || call.forward());
    thread.unhold(construct, &cost);
    result
}

/// Waits for a mutex; from then on it is held.
pub(crate) fn mutex_enter(thread: &Thread, call: &Call) -> u64 {
    let cost = Cost::new();
    let (result, t0) = timed(thread, &cost, || call.forward());
    let construct = construct(call);
    let lock = match call.known(0) {
        Some(address) => thread.lock_number(address),
        None if construct == Construct::Critical => thread.lock_number(UNNAMED_CRITICAL),
        None => 0,
    };
    thread.hold(construct, entry::this(call.site()), lock, t0, &cost);
    result
}

/// Releases a mutex: its interval ends. The time inside belongs to the code around it.
pub(crate) fn mutex_exit(thread: &Thread, call: &Call) -> u64 {
    let cost = Cost::new();
    let (result, _) = timed(thread, &cost, || call.forward());
    thread.unhold(construct(call), &cost);
    result
}
