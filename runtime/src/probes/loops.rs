//! Work-sharing loops. A loop is an entry of its own per thread and instance; each range of it that the thread executes
//! is an XU inside it, labelled by its first iteration, counted from 0.

mod kmpc;

pub(crate) use kmpc::{dispatch_init, dispatch_next, static_fini, static_init};

use super::divide::{divide_signed, divide_up};
use super::sync;
use crate::entry::{self, Call, bound, bound_at};
use crate::thread::{Chunks, Place, Thread, Work};
use ompfuse_format::Construct;
use ompfuse_format::abi::SiteDesc;
use ompfuse_format::record::{Step, short};

/// Opens a loop, and its first range `(first iteration, iterations)`. The caller has charged and closed.
#[inline(always)]
pub(crate) fn open(
    thread: &Thread,
    construct: Construct,
    site: u32,
    first: i64,
    step: i64,
    range: Option<(i64, u64)>,
) {
    let place = thread.place_of_next();
    let Some(work) = thread.open(construct, site, place, 0) else {
        return;
    };
    work.first.set(first);
    work.step.set(step);
    if let Some((index, extent)) = range {
        open_range_of(thread, work, (construct, site), index, extent);
    }
}

/// Opens a range of the innermost loop.
#[inline(always)]
fn open_range(thread: &Thread, index: i64, extent: u64) {
    if let Some(work) = thread.work() {
        let loop_ = (work.construct.get(), work.site.get());
        open_range_of(thread, work, loop_, index, extent);
    }
}

/// Opens a range of a loop, which is the innermost one, of this construct at this site.
#[inline(always)]
fn open_range_of(
    thread: &Thread,
    work: &Work,
    (construct, site): (Construct, u32),
    index: i64,
    extent: u64,
) {
    let place = Place {
        parent: work.node.get(),
        step: Step::Range,
        index,
        path: thread.path_of_next(&work.place(), site, index),
    };
    let construct = short::part_of(construct);
    thread.open_part(work, construct, site, place, extent);
}

/// Closes the range that ends, if one is open. The caller has charged.
#[inline(always)]
fn close_range(thread: &Thread) {
    thread.close_to(is_range);
}

fn is_range(work: &Work) -> bool {
    work.construct.get().is_share()
}

/// Logical number of the iteration with this value of the loop variable. Wraps as the loop's own arithmetic does.
#[inline(always)]
fn logical(value: i64, first: i64, step: i64) -> i64 {
    match step {
        1 => value.wrapping_sub(first),
        _ => logical_by(value, first, step),
    }
}

/// As [`logical`], with any step.
#[inline(never)]
fn logical_by(value: i64, first: i64, step: i64) -> i64 {
    if step == 0 {
        0
    } else {
        divide_signed(value.wrapping_sub(first), step)
    }
}

/// Number of iterations from `first` while before `end` (exclusive), by `step`.
#[inline(always)]
fn iterations(first: i64, end: i64, step: i64) -> u64 {
    match step {
        1 => end.wrapping_sub(first) as u64,
        _ => iterations_by(first, end, step),
    }
}

/// As [`iterations`], by any step.
#[inline(never)]
fn iterations_by(first: i64, end: i64, step: i64) -> u64 {
    let span = if step < 0 {
        first.wrapping_sub(end)
    } else {
        end.wrapping_sub(first)
    };
    divide_up(span as u64, step.unsigned_abs().max(1))
}

/// Calls the original, charging the innermost loop's dispatch account. The caller has charged what came before.
#[inline(always)]
fn fetch(thread: &Thread, call: &Call) -> u64 {
    let result = prepare(thread, call);
    if let Some(work) = thread.work() {
        thread.switch(&raw const work.cost);
    }
    result
}

/// As [`fetch`], but the dispatch account is charged on: the program asks for the first range right after it.
#[inline(always)]
fn prepare(thread: &Thread, call: &Call) -> u64 {
    if let Some(work) = thread.work() {
        if work.fetches.get() == 0 {
            work.dispatch.clear();
        }
        work.fetches.set(work.fetches.get() + 1);
        thread.turn(&raw const work.dispatch);
    }
    call.forward()
}

/// What a range's end, and the beginning of the search for the next one, have in common: a boundary, unless the loop has just
/// been prepared.
#[inline(always)]
fn end_range(thread: &Thread) {
    let is_prepared = |work: &Work| core::ptr::eq(thread.account(), &raw const work.dispatch);
    if !thread.work().is_some_and(is_prepared) {
        thread.charge();
        close_range(thread);
    }
}

/// Reads what GOMP has stored as the next range (end exclusive) and opens it.
#[inline(always)]
fn gomp_range(thread: &Thread, site: &SiteDesc, start: Option<u64>, end: Option<u64>) {
    let (Some(start), Some(end), Some(work)) = (start, end, thread.work()) else {
        return;
    };
    if start == 0 || end == 0 {
        return;
    }
    // SAFETY: the runtime has just stored the range behind these pointers of the program.
    let (start, end) = unsafe { (bound_at(site, start), bound_at(site, end)) };
    let (first, step) = (work.first.get(), work.step.get());
    open_range(
        thread,
        logical(start, first, step),
        iterations(start, end, step),
    );
}

/// `GOMP_loop_*_start`. With nowhere to store a range it only prepares reductions or scans: the program computes the ranges
/// itself.
pub(crate) fn start(thread: &Thread, call: &Call) -> u64 {
    let site = call.site();
    thread.end_all();
    if call.known(2) == Some(0) {
        return sync::wait_from_here(thread, call, Construct::Reduction);
    }
    if let Some(dimensions) = call.known(4) {
        thread.set_dimensions(dimensions);
    }
    let first = bound(site, call.known(0).unwrap_or(0));
    let step = bound(site, call.known(1).unwrap_or(1));
    open(
        thread,
        Construct::Loop,
        entry::this(site),
        first,
        step,
        None,
    );
    let result = fetch(thread, call);
    if result as u8 != 0 {
        gomp_range(thread, site, call.known(2), call.known(3));
    }
    result
}

/// `GOMP_loop_*_next`. A loop that was not seen to begin is left alone.
pub(crate) fn next(thread: &Thread, call: &Call) -> u64 {
    end_range(thread);
    let result = fetch(thread, call);
    if result as u8 != 0 && is_in_loop(thread) {
        gomp_range(thread, call.site(), call.known(0), call.known(1));
    }
    result
}

fn is_in_loop(thread: &Thread) -> bool {
    thread
        .work()
        .is_some_and(|w| w.construct.get() == Construct::Loop)
}

/// `GOMP_loop_end`: the barrier at the loop's end is inside.
pub(crate) fn end(thread: &Thread, call: &Call) -> u64 {
    thread.end_all();
    sync::wait_from_here(thread, call, Construct::ImplicitBarrier)
}

/// `GOMP_loop_end_nowait`: a part of the loop, of its own time.
pub(crate) fn end_nowait(thread: &Thread, call: &Call) -> u64 {
    if thread.work().is_some_and(is_range) {
        thread.charge();
        close_range(thread);
    }
    let result = call.forward();
    thread.end_to(|work| matches!(work.construct.get(), Construct::Loop | Construct::Sections));
    result
}

/// `GOMP_sections_start`, `__kmpc_sections_init`.
pub(crate) fn sections_start(thread: &Thread, call: &Call) -> u64 {
    thread.end_all();
    open(
        thread,
        Construct::Sections,
        entry::this(call.site()),
        0,
        1,
        None,
    );
    if call.known(0).is_some() {
        return fetch(thread, call);
    }
    fetch_section(thread, call)
}

/// `GOMP_sections_next`: the section's number is the result, from 1; 0 if none is left. `__kmpc_next_section`: from 0.
pub(crate) fn sections_next(thread: &Thread, call: &Call) -> u64 {
    thread.charge();
    close_range(thread);
    fetch_section(thread, call)
}

fn fetch_section(thread: &Thread, call: &Call) -> u64 {
    let result = fetch(thread, call);
    let in_sections = thread
        .work()
        .is_some_and(|w| w.construct.get() == Construct::Sections);
    let number = match call.known(0) {
        Some(count) => {
            Some(i64::from(result as i32)).filter(|&n| (0..i64::from(count as i32)).contains(&n))
        }
        None => i64::from(result as u32).checked_sub(1).filter(|&n| n >= 0),
    };
    if let (Some(number), true) = (number, in_sections) {
        open_range(thread, number, 1);
    }
    result
}

/// The next chunk of the innermost loop begins, which the program deals itself; the one before has ended. False if there
/// is none.
pub(crate) fn next_chunk(thread: &Thread) -> bool {
    thread.charge();
    close_range(thread);
    let Some(work) = thread.work() else {
        return false;
    };
    let chunks = work.chunks.get();
    if chunks.next < 0 || chunks.next >= chunks.total {
        return false;
    }
    // Where the next chunk would begin behind every number, there is none.
    let next = chunks
        .next
        .checked_add(chunks.round)
        .unwrap_or(chunks.total);
    work.chunks.set(Chunks { next, ..chunks });
    open_range(
        thread,
        chunks.next,
        chunks.size.min(chunks.total - chunks.next) as u64,
    );
    true
}

/// A chunk begins that the program deals itself; where it ends is known when the next one would begin. The caller has
/// charged.
pub(crate) fn begin_chunk(thread: &Thread, start: i64) {
    open_range(thread, start, 0);
}

/// The open chunk has ended: this thread's next one would begin at `next`, of a loop that ends at `end` (exclusive) and is dealt
/// to so many threads. The caller has charged.
pub(crate) fn end_chunk(thread: &Thread, next: i64, end: i64, threads: i64) {
    if let Some(work) = thread.work()
        && work.construct.get() == Construct::Range
    {
        let start = work.index();
        let size = divide_signed(next.wrapping_sub(start), threads.max(1));
        work.extent
            .set(size.min(end.wrapping_sub(start)).max(0) as u64);
    }
    close_range(thread);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_logical() {
        assert_eq!(logical(10, 10, 3), 0);
        assert_eq!(logical(16, 10, 3), 2);
        assert_eq!(logical(4, 10, -3), 2);
        assert_eq!(iterations(10, 20, 3), 4);
        assert_eq!(iterations(10, 0, -3), 4);
        assert_eq!(iterations(10, 10, 3), 0);
    }

    #[test]
    fn unsigned_ranges_above_the_signed_half() {
        let first = (u64::MAX - 10) as i64;
        assert_eq!(logical((u64::MAX - 4) as i64, first, 2), 3);
        assert_eq!(iterations(first, (u64::MAX - 1) as i64, 2), 5);
    }
}
