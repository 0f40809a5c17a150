//! Probes in the middle of a function, for constructs that gcc computes itself.

use super::loops;
use crate::entry;
use crate::host;
use crate::thread::{SHARES, Share, Thread};
use ompfuse_format::Construct;
use ompfuse_format::abi::{FLAG_UNSIGNED, Probe, SiteDesc};
use ompfuse_format::record::{site_ref, split_site};

/// Index of rax among the registers.
const RAX: usize = 0;
/// Index of rsp.
const RSP: usize = 4;

/// A probe of a trampoline; `registers` in x86's numbering, as they are before the displaced instruction.
pub(crate) fn inline(thread: &Thread, registers: &[u64; 16], site: &SiteDesc) {
    let register = registers.get(usize::from(site.args[0])).copied();
    match Probe::from_number(site.probe) {
        Some(Probe::InlineLoopBegin) => loop_begin(thread, registers, register, site),
        Some(Probe::InlineMaster) => master(thread, register, site),
        Some(Probe::InlineLoopAgain) => loop_again(thread, registers[RSP], site),
        Some(Probe::InlineChunk) => chunk(thread, registers, site),
        Some(Probe::InlineNextChunk) => {
            let region = entry::region(site);
            if innermost_loop(thread) == Some(region) {
                loops::next_chunk(thread);
            }
        }
        Some(Probe::InlineEnd) => {
            let region = entry::region(site);
            thread.close_to(|work| {
                work.site.get() == region && work.construct.get() != Construct::Range
            });
        }
        _ => {}
    }
}

/// Thread number as the frame knows it, or the runtime where the frame is not one of a team (an orphaned construct in
/// a region that is not patched).
fn thread_number(thread: &Thread, site: &SiteDesc) -> i64 {
    match thread.frame().construct {
        Construct::ImplicitTask => thread.frame().tid,
        _ => host::thread_num(entry::this(site)),
    }
}

/// A static loop without chunk: the trip count is about to be divided by the number of threads. gcc gives each thread
/// `q = n / threads` iterations, the first `n % threads` of them one more (omp-expand.cc, expand_omp_for_static_nochunk).
fn loop_begin(thread: &Thread, registers: &[u64; 16], divisor: Option<u64>, site: &SiteDesc) {
    let width = |value: u64| match (site.width, site.flags & FLAG_UNSIGNED != 0) {
        (2, true) => i128::from(value as u16),
        (2, false) => i128::from(value as i16),
        (4, true) => i128::from(value as u32),
        (4, false) => i128::from(value as i32),
        (_, true) => i128::from(value),
        (_, false) => i128::from(value as i64),
    };
    let n = width(registers[RAX]).max(0);
    let threads = divisor
        .map(width)
        .filter(|&t| t > 0)
        .unwrap_or_else(|| i128::from(host::num_threads(entry::this(site)).max(1)));
    let tid = i128::from(thread_number(thread, site));
    let (quotient, remainder) = (n / threads, n % threads);
    let (count, first) = if tid < remainder {
        (quotient + 1, tid * (quotient + 1))
    } else {
        (quotient, tid * quotient + remainder)
    };

    thread.close_all();
    thread.charge();
    let (first, count) = (first as i64, count as u64);
    let share = Share {
        site: entry::region(site),
        stack: registers[RSP],
        first,
        count,
    };
    thread.shares[share.site as usize % SHARES].set(share);
    loops::open(
        thread,
        Construct::Loop,
        share.site,
        0,
        1,
        (count > 0).then_some((first, count)),
    );
}

/// A static loop with the bounds of another, which the same execution of the function has computed.
fn loop_again(thread: &Thread, stack: u64, site: &SiteDesc) {
    let this = entry::this(site);
    let (module, _) = split_site(this);
    let other = site_ref(module, site.param as u32);
    let share = thread.shares[other as usize % SHARES].get();
    thread.close_all();
    thread.charge();
    let known = share.site == other && share.stack == stack;
    loops::open(
        thread,
        Construct::Loop,
        this,
        0,
        1,
        (known && share.count > 0).then_some((share.first, share.count)),
    );
}

/// The loop that the thread is in (in a range of it, or between two), by its site.
fn innermost_loop(thread: &Thread) -> Option<u32> {
    let work = thread.work()?;
    let dealt = [
        Construct::Loop,
        Construct::Distribute,
        Construct::Range,
        Construct::Sections,
        Construct::Section,
    ];
    dealt
        .contains(&work.construct.get())
        .then(|| work.site.get())
}

/// A static loop whose chunks gcc deals round itself (omp-expand.cc, expand_omp_for_static_chunk): before the comparison
/// that decides whether this thread has another chunk. A chunk's length follows from where the next one would begin.
fn chunk(thread: &Thread, registers: &[u64; 16], site: &SiteDesc) {
    let region = entry::region(site);
    let value = |nth: usize| {
        let value = registers.get(usize::from(site.args[nth])).copied();
        value.map(|value| entry::bound(site, value))
    };
    let Some(start) = value(0) else { return };
    let end = value(1).unwrap_or(0).saturating_add(site.second);
    if innermost_loop(thread) == Some(region) {
        loops::end_chunk(thread, start, end);
    } else {
        thread.close_all();
        thread.charge();
        loops::open(thread, Construct::Loop, region, 0, 1, None);
    }
    let more = if site.flags & FLAG_UNSIGNED != 0 {
        (start as u64) < end as u64
    } else {
        start < end
    };
    if more {
        loops::begin_chunk(thread, start);
    } else {
        thread
            .close_to(|work| work.site.get() == region && work.construct.get() == Construct::Loop);
    }
}

/// `master`, or a user's test of the thread number: everybody counts it, who passes is in it.
fn master(thread: &Thread, register: Option<u64>, site: &SiteDesc) {
    let place = thread.place_ranked();
    let number = register.map_or_else(
        || thread_number(thread, site),
        |value| i64::from(value as i32),
    );
    if number == site.param {
        thread.charge();
        thread.open(Construct::Master, entry::this(site), place, 0);
    }
}
