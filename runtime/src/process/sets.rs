//! Event sets besides the first: what can be counted of one is found out by the first thread that comes to it.

use super::PROCESS;
use crate::counters::{self, Counters, EventSet};
use crate::undisturbed::undisturbed;
use crate::{control, modules, syscall, tls};
use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use ompfuse_format::control::MAX_SETS;
use ompfuse_format::run::{self, EventStatus};
use std::collections::BTreeMap;
use std::ffi::CString;

/// Event sets besides the first, once a thread has found out what can be counted of them.
static SETS: [AtomicPtr<FurtherSet>; MAX_SETS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_SETS];
/// Somebody finds that out.
static SETS_CLAIMED: [AtomicBool; MAX_SETS] = [const { AtomicBool::new(false) }; MAX_SETS];

struct FurtherSet {
    chosen: EventSet,
    status: run::EventSet,
    /// Names of what is counted, in the order of the counters.
    names: CString,
}

/// Names of what is counted, in the order of the counters, separated by commas. Of events that take turns on the processor's
/// counters the times belong to it (see [`SharedCounter`](run::SharedCounter)).
pub(super) fn counted_names(status: &[EventStatus]) -> CString {
    let columns = status.iter().flat_map(|s| {
        let event = s.column.map(|column| (column, s.name.as_str()));
        let times = s
            .shared
            .map(|s| [(s.enabled, "enabled"), (s.running, "running")]);
        event.into_iter().chain(times.into_iter().flatten())
    });
    let names: BTreeMap<u32, &str> = columns.collect();
    let names: Vec<&str> = names.into_values().collect();
    CString::new(names.join(",")).unwrap_or_default()
}

/// The names of an event set of which a thread counts so many events, and how many these are: all, or none.
pub(crate) fn event_names(set: usize, counted: usize) -> Option<(*const c_char, usize)> {
    // SAFETY: PROCESS and the sets are never freed.
    let names = unsafe {
        match set {
            0 => &PROCESS.load(Ordering::Acquire).as_ref()?.names,
            _ => &SETS.get(set)?.load(Ordering::Acquire).as_ref()?.names,
        }
    };
    Some(match counted {
        0 => (c"".as_ptr(), 0),
        _ => (names.as_ptr(), counted),
    })
}

/// What is known of further sets.
pub(super) fn statuses() -> Vec<run::EventSet> {
    // SAFETY: never freed.
    let known = |s: &AtomicPtr<FurtherSet>| unsafe { s.load(Ordering::Acquire).as_ref() };
    SETS.iter()
        .filter_map(known)
        .map(|s| s.status.clone())
        .collect()
}

/// In the child of a fork: whoever was finding something out isn't here.
pub(super) fn after_fork() {
    for (known, claimed) in SETS.iter().zip(&SETS_CLAIMED) {
        claimed.store(!known.load(Ordering::Relaxed).is_null(), Ordering::Relaxed);
    }
}

/// Opens an event set for the calling thread, which records. `first`: its counters of the first set. `None`: nothing is known of it, or
/// not yet.
#[cold]
pub(crate) fn open_set(set: usize, first: &Counters) -> Option<Counters> {
    // What follows allocates, and so may run probes of a patched allocator.
    let word = tls::get();
    tls::set(tls::OFF);
    // SAFETY: errno is this thread's own variable.
    let errno = unsafe { *libc::__errno_location() };
    let first = Some(first);
    let open = || further_set(set, first).map(|set| Counters::open(&set.chosen, first));
    let counters = undisturbed(open);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    tls::set(word);
    counters
}

/// Another thread finds out what can be counted of a set, which takes it some microseconds.
fn await_set(known: &AtomicPtr<FurtherSet>) -> Option<&'static FurtherSet> {
    for _ in 0..MAX_YIELDS {
        // SAFETY: never freed.
        if let Some(known) = unsafe { known.load(Ordering::Acquire).as_ref() } {
            return Some(known);
        }
        syscall::yield_now();
    }
    None // it has been stopped, or couldn't: nothing is counted with it
}

/// How often a thread gives way to another before it goes on with what it counts.
const MAX_YIELDS: u32 = 20_000;

fn further_set(set: usize, first: Option<&Counters>) -> Option<&'static FurtherSet> {
    let (known, claimed) = (SETS.get(set)?, SETS_CLAIMED.get(set)?);
    // SAFETY: never freed.
    if let Some(known) = unsafe { known.load(Ordering::Acquire).as_ref() } {
        return Some(known);
    }
    let wanted = control::set_names(set)?;
    if claimed.swap(true, Ordering::AcqRel) {
        return await_set(known);
    }
    let (chosen, events) = counters::choose(&wanted, modules::counted(), first);
    let status = run::EventSet {
        set: set as u32,
        events,
    };
    // SAFETY: PROCESS is set before ACTIVE and never freed.
    let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref()? };
    if !process.announce_set(&status) {
        return None; // records with it could not be read
    }
    let new = Box::into_raw(Box::new(FurtherSet {
        names: counted_names(&status.events),
        chosen,
        status,
    }));
    known.store(new, Ordering::Release);
    // SAFETY: as above.
    unsafe { new.as_ref() }
}
