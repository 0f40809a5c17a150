//! Probes in the middle of a function, for constructs that gcc computes itself.

use super::loops;
use crate::entry;
use crate::host;
use crate::thread::Thread;
use ompfuse_format::Construct;
use ompfuse_format::abi::{FLAG_UNSIGNED, Probe, SiteDesc};

/// Index of rax among the registers.
const RAX: usize = 0;

/// A probe of a trampoline; `registers` in x86's numbering, as they are before the displaced instruction.
pub(crate) fn inline(thread: &Thread, registers: &[u64; 16], site: &SiteDesc) {
    let register = registers.get(usize::from(site.args[0])).copied();
    match Probe::from_number(site.probe) {
        Some(Probe::InlineLoopBegin) => loop_begin(thread, registers[RAX], register, site),
        Some(Probe::InlineMaster) => master(thread, register, site),
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
fn thread_number(thread: &Thread) -> i64 {
    match thread.frame().construct {
        Construct::ImplicitTask => thread.frame().tid,
        _ => host::thread_num(),
    }
}

/// A static loop without chunk: the trip count is about to be divided by the number of threads. gcc gives each thread
/// `q = n / threads` iterations, the first `n % threads` of them one more (omp-expand.cc, expand_omp_for_static_nochunk).
fn loop_begin(thread: &Thread, dividend: u64, divisor: Option<u64>, site: &SiteDesc) {
    let width = |value: u64| match (site.width, site.flags & FLAG_UNSIGNED != 0) {
        (4, true) => i128::from(value as u32),
        (4, false) => i128::from(value as i32),
        (_, true) => i128::from(value),
        (_, false) => i128::from(value as i64),
    };
    let n = width(dividend).max(0);
    let threads = divisor
        .map(width)
        .filter(|&t| t > 0)
        .unwrap_or_else(|| i128::from(host::num_threads().max(1)));
    let tid = i128::from(thread_number(thread));
    let (quotient, remainder) = (n / threads, n % threads);
    let (count, first) = if tid < remainder {
        (quotient + 1, tid * (quotient + 1))
    } else {
        (quotient, tid * quotient + remainder)
    };

    thread.close_all();
    thread.charge();
    let range = (count > 0).then_some((first as i64, count as u64));
    loops::open(thread, Construct::Loop, entry::this(site), 0, 1, range);
}

/// `master`, or a user's test of the thread number: everybody counts it, who passes is in it.
fn master(thread: &Thread, register: Option<u64>, site: &SiteDesc) {
    let place = thread.place_ranked();
    let number = register.map_or_else(|| thread_number(thread), |value| i64::from(value as i32));
    if number == site.param {
        thread.charge();
        thread.open(Construct::Master, entry::this(site), place, 0);
    }
}
