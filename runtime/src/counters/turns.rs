//! Hardware multiplexing: groups of events that the kernel has take turns on the processor's counters. Each group is counted part
//! of the time, and the kernel says how long; what is recorded are the counts as they are, and the times beside them. Whoever
//! reads them can scale them.
//!
//! The counters are, in this order: the software events, which are always counted; the time that all was to be counted; and for
//! each group its events, then the time that they were counted.

use super::choose::Chosen;
use super::group::OpenGroup;
use crate::syscall::Refusal;
use ompfuse_format::record::MAX_COUNTERS;

/// What takes turns, as this process counts it.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    /// Software events: they need no counter of the processor.
    pub(super) always: Vec<Chosen>,
    /// The groups.
    pub(super) groups: Vec<Vec<Chosen>>,
}

impl Turns {
    /// Number of counters, those of times among them.
    pub(super) fn counters(&self) -> usize {
        let of_groups = self.groups.iter().map(|group| group.len() + 1);
        self.always.len() + 1 + of_groups.sum::<usize>()
    }
}

/// The groups of one thread.
#[derive(Debug)]
pub(super) struct OpenTurns {
    /// What is always counted, then the others.
    groups: Vec<OpenGroup>,
    counters: usize,
}

impl OpenTurns {
    /// Opens all groups for the calling thread; `None` if that can't be.
    pub(super) fn open(turns: &Turns) -> Option<OpenTurns> {
        let counters = turns.counters();
        if counters > MAX_COUNTERS {
            return None;
        }
        let mut groups = Vec::with_capacity(turns.groups.len() + 1);
        for chosen in core::iter::once(&turns.always).chain(&turns.groups) {
            match OpenGroup::open(chosen) {
                Some(group) => groups.push(group),
                None => {
                    groups.iter().for_each(OpenGroup::close);
                    return None;
                }
            }
        }
        Some(OpenTurns { groups, counters })
    }

    /// Number of counters, those of times among them.
    pub(super) fn counters(&self) -> usize {
        self.counters
    }

    /// Reads all counters, with a system call per group.
    pub(super) fn read(&self, out: &mut [u64; MAX_COUNTERS]) -> Result<(), Refusal> {
        let mut rest = &mut out[..];
        for (at, group) in self.groups.iter().enumerate() {
            let Some((counts, after)) = rest.split_at_mut_checked(group.len()) else {
                return Err(Refusal::Other);
            };
            let times = group.read(counts)?;
            let Some((time, after)) = after.split_first_mut() else {
                return Err(Refusal::Other);
            };
            *time = if at == 0 {
                times.enabled
            } else {
                times.running
            };
            rest = after;
        }
        Ok(())
    }

    /// Has all groups start or stop.
    pub(super) fn tell(&self, request: u32) {
        self.groups.iter().for_each(|group| group.tell(request));
    }

    /// Closes the descriptors.
    pub(super) fn close(&self) {
        self.groups.iter().for_each(OpenGroup::close);
    }
}
