//! Counters of a thread: one perf group. Sets of hardware events are read with `rdpmc` where the kernel allows it and both
//! ways agree, others with one system call per boundary (8 events in a group cost as much as one). Under a simulator its
//! counts instead.

mod choose;
mod rdpmc;
mod simulated;

pub(crate) use choose::{EventSet, choose};

use crate::syscall::{self, Refusal};
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};
use ompfuse_format::record::MAX_COUNTERS;
use perf_event::Group;
use rdpmc::CounterPage;
use simulated::Slot;
use std::os::fd::IntoRawFd;

/// How often descriptors were found closed. The program has closed those of other threads too, it must be feared; their numbers
/// may come to be those of its own files, which must not be read.
static CLOSED: AtomicU32 = AtomicU32::new(0);

/// The kernel's two clocks of an event may differ by this much, whatever it counts.
const TOLERANCE_NS: u64 = 1000;

/// The group of one thread.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Leader first; all are kept open.
    fds: [i32; MAX_COUNTERS + 1],
    len: usize,
    /// The kernel's numbers of the events, in the same order.
    ids: [u64; MAX_COUNTERS + 1],
    /// What [`CLOSED`] was when they were opened.
    closed: u32,
    /// Time that the events were enabled but not counted, in nanoseconds, at the last call of the kernel.
    gap: Cell<u64>,
    /// A page per counter, if all can be read without the kernel.
    pages: Option<[CounterPage; MAX_COUNTERS]>,
    /// Another thread than the counters' own reads them: a processor's counters are those of the thread that runs on it.
    is_foreign: Cell<bool>,
    /// Instead of all this: where a simulator counts.
    simulated: Option<Slot>,
}

impl Counters {
    /// Opens the chosen events for the calling thread; no counters at all if one of them can't be opened. `first`: the
    /// thread's counters of another set, if it has some.
    pub(crate) fn open(set: &EventSet, first: Option<&Counters>) -> Counters {
        let mut counters = Counters {
            fds: [-1; MAX_COUNTERS + 1],
            len: 0,
            ids: [0; MAX_COUNTERS + 1],
            closed: CLOSED.load(Ordering::Relaxed),
            gap: Cell::new(0),
            pages: None,
            is_foreign: Cell::new(false),
            simulated: None,
        };
        let chosen = match set {
            EventSet::Perf(chosen) => chosen,
            EventSet::Simulated(folder, events) => {
                let known = first.and_then(|first| first.simulated.as_ref());
                counters.simulated = match known {
                    Some(slot) => Some(slot.with(events)),
                    None => Slot::claim(folder, events),
                };
                counters.len = counters.simulated.as_ref().map_or(0, |_| events.len());
                return counters;
            }
        };
        if chosen.is_empty() {
            return counters;
        }
        let Ok(mut group) = Group::new() else {
            return counters;
        };
        let mut members = Vec::with_capacity(chosen.len());
        for one in chosen {
            match one.open(&mut group) {
                Ok(counter) => members.push(counter),
                Err(_) => return counters,
            }
        }
        if group.enable().is_err() {
            return counters;
        }
        counters.fds[0] = syscall::move_up(group.into_raw_fd());
        for (slot, counter) in counters.fds[1..].iter_mut().zip(members) {
            *slot = syscall::move_up(counter.into_raw_fd());
        }
        for (id, &fd) in counters.ids.iter_mut().zip(&counters.fds) {
            *id = syscall::event_id(fd).unwrap_or(0);
        }
        counters.len = chosen.len();
        counters.pages = counters.map_pages();
        counters
    }

    /// The counters' pages, if what they give lies between what two calls of the kernel give.
    fn map_pages(&self) -> Option<[CounterPage; MAX_COUNTERS]> {
        let mut mapped = Vec::with_capacity(self.len);
        for &fd in &self.fds[1..=self.len] {
            mapped.extend(CounterPage::map(fd));
        }
        let mut values = [[0; MAX_COUNTERS]; 3];
        let [before, own, after] = &mut values;
        let mut is_right = mapped.len() == self.len && self.read_by_kernel(before);
        for (page, value) in mapped.iter().zip(own.iter_mut()) {
            match page.read() {
                Some(count) => *value = count,
                None => is_right = false,
            }
        }
        is_right = is_right && self.read_by_kernel(after);
        is_right &= (0..self.len).all(|i| before[i] <= own[i] && own[i] <= after[i]);
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

    /// Reads all counters. False if not all that happened since the last call is in them: the kernel refuses (the program
    /// closed the descriptor, say), or other events had the processor's counters for a while.
    #[inline]
    pub(crate) fn read(&self, out: &mut [u64; MAX_COUNTERS]) -> bool {
        if let Some(slot) = &self.simulated {
            return slot.read(self.len, out);
        }
        let Some(pages) = &self.pages else {
            return self.read_by_kernel(out);
        };
        if self.is_foreign.get() || pages[0].gap() > self.gap.get() + TOLERANCE_NS {
            return self.read_by_kernel(out);
        }
        for (page, value) in pages.iter().take(self.len).zip(out.iter_mut()) {
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
        const WHOLE_GROUP: usize = perf_event_open_sys::bindings::PERF_IOC_FLAG_GROUP as usize;
        if self.len > 0 && self.simulated.is_none() && !self.are_closed() {
            syscall::control(self.fds[0], request as usize, WHOLE_GROUP);
        }
    }

    /// From now on another thread reads.
    pub(crate) fn hand_over(&self) {
        self.is_foreign.set(true);
    }

    /// As [`Counters::read`], with one system call.
    #[cold]
    #[inline(never)]
    fn read_by_kernel(&self, out: &mut [u64; MAX_COUNTERS]) -> bool {
        // PERF_FORMAT_GROUP | ID | TOTAL_TIME_*: number, enabled, running, then (value, id) for the leader and each member.
        // Not zeroed: the C library's `memset` changes registers that inline probes don't save.
        let mut words = MaybeUninit::<[u64; 3 + 2 * (MAX_COUNTERS + 1)]>::uninit();
        let expected = 3 + 2 * (self.len + 1);
        if self.len == 0 || self.are_closed() {
            return false;
        }
        let words = match syscall::read_words(self.fds[0], &mut words, expected) {
            Ok(words) => words,
            Err(refusal) => {
                if matches!(refusal, Refusal::Closed) {
                    CLOSED.fetch_add(1, Ordering::Relaxed);
                }
                return false;
            }
        };
        for (words, value) in words.iter().skip(5).step_by(2).zip(out.iter_mut()) {
            *value = *words;
        }
        // Somebody else had the processor's counters for a while: what happened then is not in the counts.
        let &[_, enabled, running, ..] = words else {
            return false;
        };
        let gap = enabled.saturating_sub(running);
        gap <= self.gap.replace(gap) + TOLERANCE_NS
    }

    /// Closes the descriptors. The counters must not be read again.
    pub(crate) fn close(&self) {
        if let Some(slot) = &self.simulated {
            return slot.close();
        }
        if let Some(pages) = self.pages {
            pages[..self.len].iter().for_each(|page| page.unmap());
        }
        if self.len > 0 {
            let own = self.fds[..=self.len].iter().zip(&self.ids);
            own.filter(|&(&fd, &id)| syscall::event_id(fd) == Some(id))
                .for_each(|(&fd, _)| syscall::close(fd));
        }
    }

    /// Whether the program must be taken to have closed the descriptors.
    #[inline(always)]
    fn are_closed(&self) -> bool {
        CLOSED.load(Ordering::Relaxed) != self.closed
    }
}
