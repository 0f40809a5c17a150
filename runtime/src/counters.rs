//! Counters of a thread: one perf group. Sets of hardware events are read with `rdpmc` where the kernel allows it and both
//! ways agree, others with one system call per boundary (8 events in a group cost as much as one). Under a simulator its
//! counts instead.

use crate::rdpmc::CounterPage;
use crate::simulated::{self, Slot};
use crate::syscall;
use core::cell::Cell;
use core::mem::MaybeUninit;
use ompfuse_format::record::MAX_COUNTERS;
use ompfuse_format::run::EventStatus;
use perf_event::events::{Event, Hardware, Software};
use perf_event::{Builder, Counter, Group};
use std::os::fd::IntoRawFd;
use std::path::Path;

/// The kernel's two clocks of an event may differ by this much, whatever it counts.
const TOLERANCE_NS: u64 = 1000;

/// Software events whose subject is the kernel: with `exclude_kernel` they open and stay 0.
const KERNEL_ONLY: &[&str] = &["context-switches", "cpu-migrations"];

/// perf's event of this name.
fn event(name: &str) -> Option<Event> {
    Some(match name {
        "task-clock" => Software::TASK_CLOCK.into(),
        "page-faults" => Software::PAGE_FAULTS.into(),
        "minor-faults" => Software::PAGE_FAULTS_MIN.into(),
        "major-faults" => Software::PAGE_FAULTS_MAJ.into(),
        "context-switches" => Software::CONTEXT_SWITCHES.into(),
        "cpu-migrations" => Software::CPU_MIGRATIONS.into(),
        "alignment-faults" => Software::ALIGNMENT_FAULTS.into(),
        "emulation-faults" => Software::EMULATION_FAULTS.into(),
        "cycles" => Hardware::CPU_CYCLES.into(),
        "instructions" => Hardware::INSTRUCTIONS.into(),
        "cache-references" => Hardware::CACHE_REFERENCES.into(),
        "cache-misses" => Hardware::CACHE_MISSES.into(),
        "branches" => Hardware::BRANCH_INSTRUCTIONS.into(),
        "branch-misses" => Hardware::BRANCH_MISSES.into(),
        "stalled-cycles-frontend" => Hardware::STALLED_CYCLES_FRONTEND.into(),
        "stalled-cycles-backend" => Hardware::STALLED_CYCLES_BACKEND.into(),
        "ref-cycles" => Hardware::REF_CPU_CYCLES.into(),
        _ => return None,
    })
}

/// One event of the set, as this process counts it.
#[derive(Debug, Clone)]
struct Chosen {
    event: Event,
    with_kernel: bool,
}

/// The event set, as this process counts it.
#[derive(Debug, Clone)]
pub(crate) enum EventSet {
    /// By the kernel.
    Perf(Perf),
    /// By the simulator that the process runs under, in its folder.
    Simulated(&'static Path, Vec<u8>),
}

/// Perf events.
#[derive(Debug, Clone)]
pub(crate) struct Perf(Vec<Chosen>);

/// What `/proc/sys/kernel/perf_event_paranoid` says, for messages.
fn paranoid() -> String {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .map_or_else(|_| "unreadable".into(), |text| text.trim().to_owned())
}

fn open(group: &mut Group, chosen: &Chosen) -> std::io::Result<Counter> {
    let mut builder = Builder::new().group(group).kind(chosen.event.clone());
    builder.exclude_kernel(!chosen.with_kernel);
    builder.build()
}

/// Finds out, on the first thread, which of the wanted events can be counted; says why not for the others.
pub(crate) fn choose<'a>(wanted: impl Iterator<Item = &'a str>) -> (EventSet, Vec<EventStatus>) {
    if let Some(folder) = simulated::folder() {
        let (events, status) = simulated::choose(folder, wanted);
        return (EventSet::Simulated(folder, events), status);
    }
    let mut chosen = Vec::new();
    let mut status: Vec<EventStatus> = Vec::new();
    let mut group = Group::new();
    let mut opened = Vec::new();
    for name in wanted {
        if status.iter().any(|s| s.name == name) {
            continue;
        }
        let result = match (&mut group, event(name)) {
            (_, None) => Err("unknown event".to_owned()),
            _ if chosen.len() == MAX_COUNTERS => {
                Err(format!("more than {MAX_COUNTERS} events in one set"))
            }
            (Err(e), _) => Err(refusal(name, e)),
            (Ok(group), Some(event)) => {
                let full = Chosen {
                    event,
                    with_kernel: true,
                };
                let user = Chosen {
                    with_kernel: false,
                    ..full.clone()
                };
                match open(group, &full) {
                    Ok(counter) => Ok((full, counter)),
                    Err(e) if KERNEL_ONLY.contains(&name) => Err(refusal(name, &e)),
                    Err(e) => match open(group, &user) {
                        Ok(counter) => Ok((user, counter)),
                        Err(_) => Err(refusal(name, &e)),
                    },
                }
            }
        };
        let (column, reason) = match result {
            Ok((one, counter)) => {
                chosen.push(one);
                opened.push(counter);
                (Some(chosen.len() as u32 - 1), None)
            }
            Err(reason) => (None, Some(reason)),
        };
        status.push(EventStatus {
            name: name.to_owned(),
            column,
            reason,
        });
    }
    (EventSet::Perf(Perf(chosen)), status)
}

fn refusal(name: &str, e: &std::io::Error) -> String {
    match e.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "no permission to count {name} (perf_event_paranoid is {}); allow it with: sudo sysctl kernel.perf_event_paranoid=1",
            paranoid()
        ),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            format!(
                "this machine has no counter for {name} (no PMU, or none visible in a virtual machine)"
            )
        }
        _ => format!("cannot count {name}: {e}"),
    }
}

/// The group of one thread.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Leader first; all are kept open.
    fds: [i32; MAX_COUNTERS + 1],
    len: usize,
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
    /// Opens the chosen events for the calling thread; no counters at all if one of them can't be opened.
    pub(crate) fn open(set: &EventSet) -> Counters {
        let mut counters = Counters {
            fds: [-1; MAX_COUNTERS + 1],
            len: 0,
            gap: Cell::new(0),
            pages: None,
            is_foreign: Cell::new(false),
            simulated: None,
        };
        let chosen = match set {
            EventSet::Perf(Perf(chosen)) => chosen,
            EventSet::Simulated(folder, events) => {
                counters.simulated = Slot::claim(folder, events);
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
            match open(&mut group, one) {
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
        if self.len > 0 && self.simulated.is_none() {
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
        let Some(words) = syscall::read_words(self.fds[0], &mut words, expected) else {
            return false;
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
            self.fds[..=self.len]
                .iter()
                .for_each(|&fd| syscall::close(fd));
        }
    }
}
