//! Counters of the simulated PMU (`ompfuse_format::simulated`): a thread's slot in the page that the simulator writes.
//!
//! The simulator writes a slot when its thread enters this library, and nothing of this library is counted: what is read
//! here stands still.

use crate::syscall;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};
use ompfuse_format::record::MAX_COUNTERS;
use ompfuse_format::simulated::{
    CLAIM, ENV_SIMULATED, MAGIC, OPTION, PAGE_WORDS, SLOTS, position, slot_at,
};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Bytes of a page.
const LEN: usize = 8 * PAGE_WORDS;

/// Numbers that threads have claimed slots with.
static OWNERS: AtomicU64 = AtomicU64::new(0);

/// The slot of the thread that claimed it.
#[derive(Debug)]
pub(super) struct Slot {
    page: *const u64,
    /// Its first word.
    at: usize,
    owner: u64,
    /// Event of each counter, by position.
    events: [u8; MAX_COUNTERS],
    is_open: Cell<bool>,
}

impl Slot {
    /// Claims a slot for the calling thread. `None`: this process does not run under the simulator, or has too many threads.
    pub(super) fn claim(folder: &Path, events: &[u8]) -> Option<Slot> {
        let owner = OWNERS.fetch_add(1, Ordering::Relaxed) + 1;
        // SAFETY: no kernel knows this option, so nothing happens but what the simulator does in its own file.
        unsafe {
            syscall::raw(
                libc::SYS_prctl,
                [OPTION as usize, CLAIM as usize, owner as usize, 0, 0, 0],
            )
        };
        let file = File::open(folder.join(std::process::id().to_string())).ok()?;
        if file.metadata().ok()?.len() != LEN as u64 {
            return None;
        }
        let page = syscall::map_file_read_only(file.as_raw_fd(), LEN)?;
        let mut slot = Slot {
            page: page.cast(),
            at: 0,
            owner,
            events: [0; MAX_COUNTERS],
            is_open: Cell::new(true),
        };
        slot.set_events(events);
        let found = (0..SLOTS).find(|&s| slot.word(slot_at(s)) == owner);
        match found {
            Some(number) if slot.word(0) == MAGIC => {
                slot.at = slot_at(number);
                Some(slot)
            }
            _ => {
                slot.close();
                None
            }
        }
    }

    /// The same slot, for other events. It must not be read when the first one is closed.
    pub(super) fn with(&self, events: &[u8]) -> Slot {
        let mut slot = Slot {
            page: self.page,
            at: self.at,
            owner: self.owner,
            events: [0; MAX_COUNTERS],
            is_open: Cell::new(false), // the mapping is the first one's
        };
        slot.set_events(events);
        slot
    }

    fn set_events(&mut self, events: &[u8]) {
        let places = self.events.iter_mut().zip(events);
        places.for_each(|(place, &event)| *place = event);
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        debug_assert!(at < PAGE_WORDS);
        // SAFETY: the page is mapped until `close`, in this length; the simulator may write it at any moment.
        unsafe { self.page.add(at).read_volatile() }
    }

    /// Reads the counters of the first `len` events. False if the slot is another thread's by now.
    #[inline]
    pub(super) fn read(&self, len: usize, out: &mut [u64; MAX_COUNTERS]) -> bool {
        if self.word(self.at) != self.owner {
            return false;
        }
        for (&event, value) in self.events.iter().zip(out).take(len) {
            *value = self.word(self.at + 1 + usize::from(event));
        }
        true
    }

    /// Removes the mapping. The slot must not be read again.
    pub(super) fn close(&self) {
        if self.is_open.replace(false) {
            // SAFETY: made by `claim`; the caller does not read it again.
            unsafe { syscall::unmap(self.page.cast_mut().cast(), LEN) };
        }
    }
}

/// The folder with the pages, if the environment names one.
pub(super) fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let read = || Some(PathBuf::from(std::env::var_os(ENV_SIMULATED)?)).filter(|f| f.is_absolute());
    FOLDER.get_or_init(read).as_deref()
}

/// Whether simulated events can be counted.
pub(super) struct Can {
    refusal: Option<String>,
}

impl Can {
    /// Finds out, by claiming a slot.
    pub(super) fn find_out(folder: &Path) -> Can {
        let slot = Slot::claim(folder, &[]);
        let refusal = slot.is_none().then(|| {
            format!(
                "no simulated events in process {}: only the program that the command starts runs under the simulator, not \
                 those that it starts",
                std::process::id()
            )
        });
        if let Some(slot) = slot {
            slot.close();
        }
        Can { refusal }
    }

    /// They can: it was found out before.
    pub(super) fn yes() -> Can {
        Can { refusal: None }
    }

    /// An event's number, or why it can't be counted.
    pub(super) fn count(&self, name: &str) -> Result<u8, String> {
        match (position(name), &self.refusal) {
            (None, _) => Err(format!("{name} can't be counted under the simulator")),
            (_, Some(refusal)) => Err(refusal.clone()),
            (Some(event), None) => Ok(event as u8),
        }
    }
}
