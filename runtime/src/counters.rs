//! Counters of a thread: one perf group. Sets of hardware events are read with `rdpmc` where the kernel allows it and both
//! ways agree, others with one system call per boundary (8 events in a group cost as much as one). Several groups where events
//! take turns on the processor's counters. Under a simulator its counts instead.
//! Behind these comes what patched code counts itself.

mod choose;
mod exact;
mod group;
mod rdpmc;
mod simulated;
mod turns;

pub(crate) use choose::{EventSet, choose};

use crate::syscall::Refusal;
use choose::Events;
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use exact::Sums;
use group::OpenGroup;
use ompfuse_format::record::{MAX_COUNTERS, NOT_COUNTED};
use rdpmc::CounterPage;
use simulated::Slot;
use turns::OpenTurns;

/// How often descriptors were found closed. The program has closed those of other threads too, it must be feared; their numbers
/// may come to be those of its own files, which must not be read.
static CLOSED: AtomicU32 = AtomicU32::new(0);

/// The kernel's two clocks of an event may differ by this much, whatever it counts.
const TOLERANCE_NS: u64 = 1000;

/// The counters of one thread.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Number of counters; 0: there are none.
    len: usize,
    source: Source,
    /// The last counters, if patched code counts them.
    sums: Option<Sums>,
    /// What [`CLOSED`] was when they were opened.
    closed: u32,
    /// Time that the events were enabled but not counted, in nanoseconds, at the last call of the kernel.
    gap: Cell<u64>,
    /// A page per counter, if all can be read without the kernel.
    pages: Option<[CounterPage; MAX_COUNTERS]>,
    /// Another thread than the counters' own reads them: a processor's counters are those of the thread that runs on it.
    is_foreign: Cell<bool>,
}

/// Who counts.
#[derive(Debug)]
enum Source {
    /// Nobody.
    None,
    /// The kernel.
    Group(OpenGroup),
    /// The kernel, with groups that take turns.
    Turns(OpenTurns),
    /// A simulator.
    Simulated(Slot),
}

impl Counters {
    /// Opens the chosen events for the calling thread; no counters at all if one of them can't be opened. `first`: the
    /// thread's counters of another set, if it has some.
    pub(crate) fn open(set: &EventSet, first: Option<&Counters>) -> Counters {
        let opened = match &set.events {
            Events::Perf(chosen) if chosen.is_empty() => Some((0, Source::None)),
            Events::Perf(chosen) => {
                OpenGroup::open(chosen).map(|group| (group.len(), Source::Group(group)))
            }
            Events::Turns(turns) => {
                OpenTurns::open(turns).map(|turns| (turns.counters(), Source::Turns(turns)))
            }
            Events::Simulated(folder, events) => {
                let slot = match first.and_then(Counters::slot) {
                    Some(slot) => Some(slot.with(events)),
                    None => Slot::claim(folder, events),
                };
                slot.map(|slot| (events.len(), Source::Simulated(slot)))
            }
        };
        let is_exact = !set.exact.is_empty() && opened.is_some();
        let (others, source) = opened.unwrap_or((0, Source::None));
        let sums = is_exact.then(|| Sums::of_this(&set.exact));
        let mut counters = Counters {
            len: others + sums.as_ref().map_or(0, |sums| sums.events().len()),
            source,
            sums,
            closed: CLOSED.load(Ordering::Relaxed),
            gap: Cell::new(0),
            pages: None,
            is_foreign: Cell::new(false),
        };
        counters.pages = counters.map_pages();
        counters
    }

    /// The counters that patched code counts, and the numbers of their events.
    #[inline(always)]
    pub(crate) fn exact(&self) -> impl Iterator<Item = (usize, u8)> {
        let events = self.sums.as_ref().map_or(&[][..], Sums::events);
        (self.others()..).zip(events.iter().copied())
    }

    /// Replaces the last values of a thread that ends, where nobody will ever know them.
    pub(crate) fn hide_torn(&self, values: &mut [u64; MAX_COUNTERS]) {
        let torn = self.sums.iter().flat_map(Sums::torn);
        let own = values.iter_mut().skip(self.others());
        for (value, _) in own.zip(torn).filter(|(_, torn)| *torn) {
            *value = NOT_COUNTED;
        }
    }

    /// How many of the counters are others' than patched code's.
    #[inline(always)]
    fn others(&self) -> usize {
        self.len - self.sums.as_ref().map_or(0, |sums| sums.events().len())
    }

    /// The thread's slot in the simulator's memory.
    fn slot(&self) -> Option<&Slot> {
        match &self.source {
            Source::Simulated(slot) => Some(slot),
            _ => None,
        }
    }

    /// The counters' pages, if what they give lies between what two calls of the kernel give.
    fn map_pages(&self) -> Option<[CounterPage; MAX_COUNTERS]> {
        let Source::Group(group) = &self.source else {
            return None;
        };
        let mut mapped = Vec::with_capacity(self.others());
        for &fd in group.members() {
            mapped.extend(CounterPage::map(fd));
        }
        let mut values = [[0; MAX_COUNTERS]; 3];
        let [before, own, after] = &mut values;
        let mut is_right = mapped.len() == self.others() && self.read_by_kernel(before);
        for (page, value) in mapped.iter().zip(own.iter_mut()) {
            match page.read() {
                Some(count) => *value = count,
                None => is_right = false,
            }
        }
        is_right = is_right && self.read_by_kernel(after);
        is_right &= (0..self.others()).all(|i| before[i] <= own[i] && own[i] <= after[i]);
        if !is_right {
            mapped.into_iter().for_each(CounterPage::unmap);
            return None;
        }
        let first = *mapped.first()?;
        Some(core::array::from_fn(|i| {
            mapped.get(i).copied().unwrap_or(first)
        }))
    }

    /// Number of counters.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether each reading takes a system call.
    pub(crate) fn needs_calls(&self) -> bool {
        match &self.source {
            Source::None | Source::Simulated(_) => false,
            Source::Group(_) | Source::Turns(_) => self.pages.is_none(),
        }
    }

    /// Reads all counters. False if not all that happened since the last call is in them: the kernel refuses (the program
    /// closed the descriptor, say), or other events had the processor's counters for a while.
    #[inline]
    pub(crate) fn read(&self, out: &mut [u64; MAX_COUNTERS]) -> bool {
        let Some(sums) = &self.sums else {
            return self.read_others(out);
        };
        let others = self.others();
        let Some(own) = out.get_mut(others..) else {
            return false;
        };
        let is_told = match self.is_foreign.get() {
            false => sums.read(own),
            true => sums.read_foreign(own),
        };
        let is_read = others == 0 || self.read_others(out);
        is_read && is_told
    }

    #[inline]
    fn read_others(&self, out: &mut [u64; MAX_COUNTERS]) -> bool {
        if let Source::Simulated(slot) = &self.source {
            return slot.read(self.others(), out);
        }
        let Some(pages) = &self.pages else {
            return self.read_by_kernel(out);
        };
        if self.is_foreign.get() || pages[0].gap() > self.gap.get() + TOLERANCE_NS {
            return self.read_by_kernel(out);
        }
        for (page, value) in pages.iter().take(self.others()).zip(out.iter_mut()) {
            match page.read() {
                Some(count) => *value = count,
                // Not on the processor at the moment: the kernel knows what it has counted.
                None => return self.read_by_kernel(out),
            }
        }
        true
    }

    /// Stops counting; what has been counted stays.
    pub(crate) fn stop(&self) {
        self.tell(perf_event_open_sys::bindings::DISABLE);
    }

    /// Goes on counting.
    pub(crate) fn start(&self) {
        self.tell(perf_event_open_sys::bindings::ENABLE);
    }

    fn tell(&self, request: u32) {
        match &self.source {
            Source::Group(group) if !self.are_closed() => group.tell(request),
            Source::Turns(turns) if !self.are_closed() => turns.tell(request),
            _ => {}
        }
    }

    /// From now on another thread reads.
    pub(crate) fn hand_over(&self) {
        self.is_foreign.set(true);
    }

    /// As [`Counters::read`], with a system call for each group.
    #[cold]
    #[inline(never)]
    fn read_by_kernel(&self, out: &mut [u64; MAX_COUNTERS]) -> bool {
        if self.are_closed() {
            return false;
        }
        // Whether somebody else had the processor's counters for a while: what happened then is not in the counts.
        let is_whole = match &self.source {
            Source::Group(group) => group.read(out).map(|times| {
                let gap = times.enabled.saturating_sub(times.running);
                gap <= self.gap.replace(gap) + TOLERANCE_NS
            }),
            // Here that is what is wanted, and the times are among the counters.
            Source::Turns(turns) => turns.read(out).map(|()| true),
            Source::None | Source::Simulated(_) => return false,
        };
        if let Err(Refusal::Closed) = is_whole {
            CLOSED.fetch_add(1, Ordering::Relaxed);
        }
        is_whole.unwrap_or(false)
    }

    /// Closes the descriptors. The counters must not be read again.
    pub(crate) fn close(&self) {
        if let Some(pages) = self.pages {
            pages[..self.others()].iter().for_each(|page| page.unmap());
        }
        match &self.source {
            Source::None => {}
            Source::Group(group) => group.close(),
            Source::Turns(turns) => turns.close(),
            Source::Simulated(slot) => slot.close(),
        }
    }

    /// Whether the program must be taken to have closed the descriptors.
    #[inline(always)]
    fn are_closed(&self) -> bool {
        CLOSED.load(Ordering::Relaxed) != self.closed
    }
}
