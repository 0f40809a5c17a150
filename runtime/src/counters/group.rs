//! A perf group of the calling thread: its descriptors, and what one call of the kernel reads.

use super::choose::Chosen;
use crate::syscall::{self, Refusal};
use core::mem::MaybeUninit;
use ompfuse_format::record::MAX_COUNTERS;
use perf_event::Group;
use std::os::fd::IntoRawFd;

/// The two clocks of a group, in nanoseconds (perf_event_open(2)).
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// How long it was to be counted.
    pub(super) enabled: u64,
    /// How long it was counted: less where others had the processor's counters.
    pub(super) running: u64,
}

/// The open descriptors of a group.
#[derive(Debug)]
pub(super) struct OpenGroup {
    /// Leader first; all are kept open.
    fds: [i32; MAX_COUNTERS + 1],
    /// The kernel's numbers of the events, in the same order.
    ids: [u64; MAX_COUNTERS + 1],
    len: usize,
}

impl OpenGroup {
    /// Opens events for the calling thread, and has them counted; `None` if one of them can't be opened, or would take a number
    /// from the lower half, which is the program's.
    pub(super) fn open(chosen: &[Chosen]) -> Option<OpenGroup> {
        let mut group = Group::new().ok()?;
        let members = chosen.iter().map(|one| one.open(&mut group));
        let members: Vec<_> = members.collect::<std::io::Result<_>>().ok()?;
        group.enable().ok()?;
        let mut open = OpenGroup {
            fds: [-1; MAX_COUNTERS + 1],
            ids: [0; MAX_COUNTERS + 1],
            len: members.len(),
        };
        open.fds[0] = group.into_raw_fd();
        for (slot, counter) in open.fds[1..].iter_mut().zip(members) {
            *slot = counter.into_raw_fd();
        }
        for (id, &fd) in open.ids.iter_mut().zip(&open.fds) {
            *id = syscall::event_id(fd).unwrap_or(0);
        }
        for fd in &mut open.fds[..=open.len] {
            let Some(new) = syscall::moved_up(*fd) else {
                open.close();
                return None;
            };
            *fd = new;
        }
        Some(open)
    }

    /// Number of events.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The events' descriptors.
    pub(super) fn members(&self) -> &[i32] {
        &self.fds[1..=self.len]
    }

    /// Reads the counts.
    #[inline]
    pub(super) fn read(&self, out: &mut [u64]) -> Result<Times, Refusal> {
        // The program may have closed the descriptor and opened something else under its number, since nobody looked:
        // whatever is read of a pipe is lost to the program.
        if !self.is_own() {
            return Err(Refusal::Closed);
        }
        read(self.fds[0], self.len, out)
    }

    /// Whether the leader's descriptor is what it was.
    #[inline]
    fn is_own(&self) -> bool {
        syscall::event_id(self.fds[0]) == Some(self.ids[0])
    }

    /// Has the whole group start or stop.
    pub(super) fn tell(&self, request: u32) {
        const WHOLE_GROUP: usize = perf_event_open_sys::bindings::PERF_IOC_FLAG_GROUP as usize;
        if self.is_own() {
            syscall::control(self.fds[0], request as usize, WHOLE_GROUP);
        }
    }

    /// Closes what is still its own.
    pub(super) fn close(&self) {
        let own = self.fds[..=self.len].iter().zip(&self.ids);
        own.filter(|&(&fd, &id)| syscall::event_id(fd) == Some(id))
            .for_each(|(&fd, _)| syscall::close(fd));
    }
}

/// Reads the counts of the `len` members of a group whose leader has this descriptor, in the order in which they were opened.
#[inline]
pub(super) fn read(leader: i32, len: usize, out: &mut [u64]) -> Result<Times, Refusal> {
    // PERF_FORMAT_GROUP | ID | TOTAL_TIME_*: number, enabled, running, then (value, id) for the leader and each member.
    // Not zeroed: the C library's `memset` changes registers that inline probes don't save.
    let mut words = MaybeUninit::<[u64; 3 + 2 * (MAX_COUNTERS + 1)]>::uninit();
    let expected = 3 + 2 * (len + 1);
    let words = syscall::read_words(leader, &mut words, expected)?;
    for (words, value) in words.iter().skip(5).step_by(2).zip(out.iter_mut()) {
        *value = *words;
    }
    let &[_, enabled, running, ..] = words else {
        return Err(Refusal::Other);
    };
    Ok(Times { enabled, running })
}
