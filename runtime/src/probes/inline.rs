//! Probes in the middle of a function, for constructs that gcc computes itself.

use super::divide::divide;
use super::loops;
use crate::entry;
use crate::host::Question;
use crate::thread::{Share, Thread};
use ompfuse_format::Construct;
use ompfuse_format::abi::{self, FLAG_UNSIGNED, Probe, SiteDesc};
use ompfuse_format::record::{site_ref, split_site};

/// Index of rax among the registers.
const RAX: usize = 0;
/// Index of rsp.
const RSP: usize = 4;
const RBP: usize = 5;

/// A probe of a trampoline, the site's `probe`; `registers` in x86's numbering, as they are before the displaced instruction.
#[inline(always)]
pub(crate) fn inline(
    probe: Option<Probe>,
    thread: &Thread,
    registers: &[u64; 16],
    site: &SiteDesc,
) {
    let register = registers.get(usize::from(site.args[0])).copied();
    match probe {
        Some(Probe::InlineLoopBegin) => {
            let share = share(thread, registers, register, site);
            begin(thread, site, entry::region(site), share);
        }
        Some(Probe::InlineLoopShare) => _ = share(thread, registers, register, site),
        Some(Probe::InlineMaster) => master(thread, registers, site),
        Some(Probe::InlineLoopAgain) => loop_again(thread, registers, site),
        Some(Probe::InlineChunk) => chunk(thread, registers, site),
        Some(Probe::InlineNextChunk) => {
            let region = entry::region(site);
            if innermost_loop(thread) == Some(region) {
                loops::next_chunk(thread);
            }
        }
        _ => {}
    }
}

/// A function is entered ([`Probe::FunctionEnter`]); `sp` leads to its return address.
#[inline(always)]
pub(crate) fn enter(thread: &Thread, site: &SiteDesc, sp: usize) {
    thread.enter_function(entry::this(site), sp);
}

/// A function is about to be left ([`Probe::FunctionLeave`]).
#[inline(always)]
pub(crate) fn leave(thread: &Thread, site: &SiteDesc, sp: usize) {
    thread.leave_function(entry::region(site), sp);
}

/// An iteration of a loop begins ([`Probe::LoopIterate`]).
#[inline(always)]
pub(crate) fn iterate(thread: &Thread, site: &SiteDesc, sp: usize) {
    thread.iterate(entry::this(site), sp, site);
}

/// Control is behind a loop ([`Probe::LoopLeave`]).
#[inline(always)]
pub(crate) fn leave_loop(thread: &Thread, site: &SiteDesc, sp: usize) {
    thread.leave_loop(entry::region(site), sp);
}

/// The end of a construct, told by where it began ([`Probe::InlineEnd`]).
#[inline(always)]
pub(crate) fn end(thread: &Thread, site: &SiteDesc) {
    let region = entry::region(site);
    thread.end_to(|work| work.site.get() == region && work.construct.get() != Construct::Range);
}

/// Thread number as the frame knows it, or the runtime where the frame is not one of a team (an orphaned construct in
/// a region that is not patched).
fn thread_number(thread: &Thread, site: &SiteDesc) -> i64 {
    match thread.task_frame().construct {
        Construct::ImplicitTask => thread.task_frame().tid.get(),
        _ => Question::THREAD_NUM.ask(entry::this(site)),
    }
}

/// This thread's share of a static loop without chunk. The trip count is about to be divided by the number of threads.
/// Each thread gets `q = n / threads` iterations, the first `n % threads` of them one more (gcc's omp-expand.cc,
/// expand_omp_for_static_nochunk). `distribute` does so with teams.
#[inline(always)]
fn share(thread: &Thread, registers: &[u64; 16], divisor: Option<u64>, site: &SiteDesc) -> Share {
    let unsigned = site.flags & FLAG_UNSIGNED != 0;
    // Of a number with sign what is below 0 is 0.
    let number = |value: u64, width: u8| {
        let unused = 64 - 8 * u32::from(width.min(8));
        match unsigned {
            true => value << unused >> unused,
            false => ((value << unused) as i64 >> unused).max(0) as u64,
        }
    };
    // A division by a byte divides the two bytes of ax.
    let n = number(registers[RAX], site.width().max(2));
    let of_teams = site.construct == Construct::Distribute as u8;
    let asked = || match of_teams {
        true => Question::NUM_TEAMS.ask(entry::this(site)),
        false => Question::NUM_THREADS.ask(entry::this(site)),
    };
    let threads = divisor
        .map(|value| number(value, site.width()))
        .filter(|&t| t > 0)
        .unwrap_or_else(|| asked().max(1) as u64);
    let tid = match of_teams {
        true => Question::TEAM_NUM.ask(entry::this(site)),
        false => thread_number(thread, site),
    } as u64;
    let quotient = divide(n, threads);
    let remainder = n - quotient * threads;
    let (count, first) = if tid < remainder {
        (quotient + 1, tid.wrapping_mul(quotient + 1))
    } else {
        (quotient, tid.wrapping_mul(quotient).wrapping_add(remainder))
    };
    let share = Share {
        site: entry::this(site),
        stack: registers[RSP],
        frame: registers[RBP],
        first: first as i64,
        count,
    };
    thread.shares.keep(share);
    share
}

/// Begins a static loop whose share is known. Behind the test that a thread without iterations fails, the compiler may have
/// put further loops of the same bounds: they are counted here.
fn begin(thread: &Thread, site: &SiteDesc, this: u32, share: Share) {
    thread.end_all();
    let construct = loop_construct(site);
    let range = (share.count > 0).then_some((share.first, share.count));
    loops::open(thread, construct, this, 0, 1, range);
    let second = entry::constants(site).second;
    if share.count == 0 && second != 0 {
        let (module, _) = split_site(this);
        for follower in abi::followers(site.site, second) {
            thread.close_all();
            let follower = site_ref(module, follower);
            loops::open(thread, construct, follower, 0, 1, None);
        }
    }
}

fn loop_construct(site: &SiteDesc) -> Construct {
    Construct::or_service(site.construct)
}

/// A static loop with the bounds of another, which the same execution of the function has computed.
fn loop_again(thread: &Thread, registers: &[u64; 16], site: &SiteDesc) {
    let this = entry::region(site);
    let (computed, stack) = (sibling(site, entry::constants(site).param), registers[RSP]);
    let by_frame = || thread.shares.of_frame(computed, stack, registers[RBP]);
    match thread.shares.of(computed, stack).or_else(by_frame) {
        Some(share) => begin(thread, site, this, share),
        None => begin_unknown(thread, loop_construct(site), this),
    }
}

/// As [`loop_again`], behind the barrier of a site. Only threads with iterations get there.
#[cold]
pub(crate) fn loop_behind(thread: &Thread, stack: u64, barrier: &SiteDesc) {
    let constants = entry::constants(barrier);
    let this = sibling(barrier, constants.param);
    match thread
        .shares
        .of(sibling(barrier, constants.second - 1), stack)
    {
        Some(share) => {
            thread.end_all();
            let range = (share.count > 0).then_some((share.first, share.count));
            loops::open(thread, Construct::Loop, this, 0, 1, range);
        }
        None => begin_unknown(thread, Construct::Loop, this),
    }
}

/// Another site of the same module.
fn sibling(site: &SiteDesc, number: i64) -> u32 {
    let (module, _) = split_site(entry::this(site));
    site_ref(module, number as u32)
}

/// A loop whose bounds are forgotten: its iterations are unknown, and said to be lost.
fn begin_unknown(thread: &Thread, construct: Construct, this: u32) {
    thread.buffer.lose();
    thread.end_all();
    loops::open(thread, construct, this, 0, 1, None);
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

/// A static loop whose chunks gcc deals round itself (omp-expand.cc, expand_omp_for_static_chunk; `distribute` does so with
/// teams): before the comparison that decides whether this thread has another chunk. A chunk's length follows from where the next one would begin.
fn chunk(thread: &Thread, registers: &[u64; 16], site: &SiteDesc) {
    let region = entry::region(site);
    let constants = entry::constants(site);
    let construct = loop_construct(site);
    let register = |nth: usize| registers.get(usize::from(site.args[nth])).copied();
    // SAFETY: the comparison behind the probe reads its operand there.
    let in_memory = register(2)
        .map(|base| unsafe { entry::bound_at(site, base.wrapping_add(constants.param as u64)) });
    let value = |nth: usize| register(nth).map(|value| entry::bound(site, value));
    let Some(start) = value(0).or(in_memory) else {
        return;
    };
    let end = match value(0) {
        Some(_) => value(1).or(in_memory),
        None => value(1),
    };
    let end = end.unwrap_or(0).saturating_add(constants.second);
    if innermost_loop(thread) == Some(region) {
        thread.charge();
        loops::end_chunk(thread, start, end, dealt_to(thread, construct, site));
    } else {
        thread.end_all();
        loops::open(thread, construct, region, 0, 1, None);
    }
    let more = if site.flags & FLAG_UNSIGNED != 0 {
        (start as u64) < end as u64
    } else {
        start < end
    };
    if more {
        loops::begin_chunk(thread, start);
    } else {
        thread.close_to(|work| work.site.get() == region && work.construct.get() == construct);
    }
}

/// How many threads, or teams, a loop's chunks are dealt to.
fn dealt_to(thread: &Thread, construct: Construct, site: &SiteDesc) -> i64 {
    let frame = thread.task_frame();
    match (construct, frame.construct) {
        (Construct::Distribute, Construct::Team) => frame.team.get(),
        (Construct::Distribute, _) => Question::NUM_TEAMS.ask(entry::this(site)),
        (_, Construct::ImplicitTask) => frame.team.get(),
        _ => Question::NUM_THREADS.ask(entry::this(site)),
    }
}

/// `master`, or a user's test of the thread number: everybody counts it, who passes is in it.
#[inline(always)]
fn master(thread: &Thread, registers: &[u64; 16], site: &SiteDesc) {
    let place = thread.place_of_next();
    let register = |nth: usize| registers.get(usize::from(site.args[nth])).copied();
    let value = |nth: usize| register(nth).map(|value| i64::from(value as i32));
    let number = value(0).unwrap_or_else(|| thread_number(thread, site));
    let param = entry::constants(site).param;
    let filter = value(1).unwrap_or_else(|| match register(2) {
        // SAFETY: the comparison behind the probe reads its operand there.
        Some(base) => unsafe { entry::bound_at(site, base.wrapping_add(param as u64)) },
        None => param,
    });
    if number == filter {
        thread.charge();
        thread.open(Construct::Master, entry::this(site), place, 0);
    }
}
