//! The loops of KMPC: the runtime gives a thread's first range, or every range, where the program has had its bounds.

use super::{
    end_range, fetch, is_in_loop, is_range, iterations, logical, open, open_range, prepare,
};
use crate::entry::{self, Call, bound, bound_at};
use crate::probes::divide::divide;
use crate::thread::{Chunks, Thread};
use ompfuse_format::Construct;
use ompfuse_format::abi::{FLAG_CHUNKS, SiteDesc};

/// `__kmpc_dispatch_init_*`: bounds inclusive.
pub(crate) fn dispatch_init(thread: &Thread, call: &Call) -> u64 {
    let site = call.site();
    thread.end_all();
    let first = bound(site, call.known(0).unwrap_or(0));
    // The increment is signed, of unsigned loops too.
    let step = call.known(2).unwrap_or(1);
    let step = if site.width() == 4 {
        i64::from(step as i32)
    } else {
        step as i64
    };
    open(
        thread,
        Construct::Loop,
        entry::this(site),
        first,
        step,
        None,
    );
    prepare(thread, call)
}

/// `__kmpc_dispatch_next_*`: stores the next range, end inclusive; a false result ends the loop.
pub(crate) fn dispatch_next(thread: &Thread, call: &Call) -> u64 {
    let site = call.site();
    end_range(thread);
    let result = fetch(thread, call);
    if !is_in_loop(thread) {
        return result;
    }
    if result as u32 == 0 {
        thread.close_to(|work| work.construct.get() == Construct::Loop);
    } else if let (Some(lower), Some(upper), Some(work)) =
        (call.known(0), call.known(1), thread.work())
    {
        // SAFETY: the runtime has just stored the range behind these pointers of the program.
        let (lower, upper) = unsafe { (bound_at(site, lower), bound_at(site, upper)) };
        let (first, step) = (work.first.get(), work.step.get());
        let extent = iterations(lower, upper.wrapping_add(step.signum()), step);
        open_range(thread, logical(lower, first, step), extent);
    }
    result
}

/// `ident_t`'s flag of `sections` (`kmp.h`, KMP_IDENT_WORK_SECTIONS).
const IDENT_WORK_SECTIONS: u32 = 0x400;
/// `sched_type` static_chunked, and the same for distribute.
const CHUNKED: [u32; 2] = [33, 91];

/// `__kmpc_for_static_init_*`: bounds inclusive, replaced by those of this thread's part.
pub(crate) fn static_init(thread: &Thread, call: &Call) -> u64 {
    let site = call.site();
    let known = |nth| call.known(nth).unwrap_or(0);
    let (loc, lower, upper) = (known(0), known(2), known(3));
    let schedule = call.known(1).map(|schedule| schedule as u32 & 0x1fff_ffff);
    let is_chunked = schedule.is_none_or(|schedule| CHUNKED.contains(&schedule));
    if lower == 0 || upper == 0 {
        return call.forward();
    }
    let step = if site.width() == 4 {
        i64::from(known(5) as i32)
    } else {
        known(5) as i64
    };
    // SAFETY: the loop's bounds, which the program hands to the runtime to be replaced.
    let (first, last) = unsafe { (bound_at(site, lower), bound_at(site, upper)) };

    let mut construct = Construct::or_service(site.construct);
    // SAFETY: KMPC's first argument is an ident_t, whose flags are its second word.
    if loc != 0 && unsafe { ((loc + 4) as *const u32).read() } & IDENT_WORK_SECTIONS != 0 {
        construct = Construct::Sections;
    }
    thread.end_all();
    open(thread, construct, entry::this(site), first, step, None);
    let result = fetch(thread, call);

    // SAFETY: as above.
    let (own_first, own_last) = unsafe { (bound_at(site, lower), bound_at(site, upper)) };
    // The runtime gives a thread without work an empty range: an upper bound on the wrong side of the lower one.
    let empty = if step < 0 {
        less(site, own_first, own_last)
    } else {
        less(site, own_last, own_first)
    };
    let total = iterations(first, last.wrapping_add(step.signum()), step);
    let index = logical(own_first, first, step);
    let Some(work) = thread.work() else {
        return result;
    };
    if empty || index < 0 || index as u64 >= total {
        // Nothing for this thread, in any chunk.
        work.chunks.set(Chunks {
            next: 0,
            round: 1,
            size: 1,
            total: 0,
        });
        return result;
    }
    // A part of a team's part doesn't go beyond that.
    let total = match call.known(7) {
        Some(end) if end != 0 => {
            // SAFETY: the end of the team's part (inclusive), stored by the runtime.
            let end = unsafe { bound_at(site, end) };
            iterations(first, end.wrapping_add(step.signum()), step).min(total)
        }
        _ => total,
    };
    let left = total.saturating_sub(index as u64);
    let count = iterations(own_first, own_last.wrapping_add(step.signum()), step);
    // Each section is a chunk, which the thread comes to one after the other.
    if construct == Construct::Sections && site.flags & FLAG_CHUNKS != 0 {
        let total = index.saturating_add(count.min(left) as i64);
        work.chunks.set(Chunks {
            next: index,
            round: 1,
            size: 1,
            total,
        });
        return result;
    }
    let stride = known(4);
    if !is_chunked || stride == 0 {
        open_range(thread, index, count.min(left));
        return result;
    }
    // SAFETY: the distance to the thread's next chunk, stored by the runtime.
    let round = logical(unsafe { bound_at(site, stride) }, 0, step);
    if site.flags & FLAG_CHUNKS != 0 {
        work.chunks.set(Chunks {
            next: index,
            round,
            size: count as i64,
            total: total as i64,
        });
    } else {
        open_range(thread, index, share(left, count, round));
    }
    result
}

/// Iterations of a thread that executes `chunk` of every `round` of the `left` iterations from its first one on.
fn share(left: u64, chunk: u64, round: i64) -> u64 {
    let round = round.unsigned_abs().max(1);
    let rounds = divide(left, round);
    rounds * chunk + (left - rounds * round).min(chunk)
}

/// Order of two bounds in the loop's own type.
fn less(site: &SiteDesc, a: i64, b: i64) -> bool {
    if site.flags & ompfuse_format::abi::FLAG_UNSIGNED != 0 {
        (a as u64) < (b as u64)
    } else {
        a < b
    }
}

/// `__kmpc_for_static_fini`.
pub(crate) fn static_fini(thread: &Thread, call: &Call) -> u64 {
    thread.end_to(|work| !is_range(work));
    call.forward()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_chunked_loops() {
        assert_eq!(share(10, 4, 8), 6); // iterations 0-3 and 8-9 of 10
        assert_eq!(share(6, 4, 8), 4);
        assert_eq!(share(3, 4, 8), 3);
    }
}
