//! The simulated PMU: its events, and the page that the simulator shares with the program that it runs.
//!
//! The page is a file of the process's number in a folder that both know. It begins with [`MAGIC`]; from [`SLOTS_AT`] on
//! follow [`SLOTS`] slots of [`SLOT_WORDS`] 64-bit words: who owns the slot, then a count per event, in the order of
//! [`EVENTS`]. Both map the file and name places in it by their offsets, so no address needs translation.
//!
//! A thread can't see which slot the simulator keeps for it. It makes up a number that no other thread of the process has
//! used, and calls `prctl(OPTION, CLAIM, number)`; the simulator sees the call and writes the number into the thread's slot.
//! The kernel knows no such option and refuses the call, so it does no harm where there is no simulator.
//!
//! Counts only grow. They are those of everything that the thread executed before it entered the runtime library the last time.

/// Environment variable: absolute path of the folder with the pages. Only the simulator's own process gets it from
/// `ompfuse record`.
pub const ENV_SIMULATED: &str = "OMPFUSE_SIMULATED";

/// What an event depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// On the executed code alone: equal in every run that executes the same.
    Code,
    /// On the model of caches and predictors, and so on what the thread did before.
    Model,
    /// On what the OpenMP runtime does.
    Runtime,
}

/// An event of the simulated PMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub name: &'static str,
    /// What it depends on.
    pub source: Source,
    /// What it counts.
    pub what: &'static str,
}

const fn event(name: &'static str, source: Source, what: &'static str) -> Event {
    Event { name, source, what }
}

/// Positions in [`EVENTS`].
pub mod index {
    /// Instructions.
    pub const INSTRUCTIONS: usize = 0;
    /// Reading accesses.
    pub const LOADS: usize = 1;
    /// Writing accesses.
    pub const STORES: usize = 2;
    /// Bytes read.
    pub const LOAD_BYTES: usize = 3;
    /// Bytes written.
    pub const STORE_BYTES: usize = 4;
    /// Conditional branches.
    pub const BRANCHES: usize = 5;
    /// Taken conditional branches.
    pub const TAKEN: usize = 6;
    /// Calls.
    pub const CALLS: usize = 7;
    /// Returns.
    pub const RETURNS: usize = 8;
    /// Floating-point instructions.
    pub const FP: usize = 9;
    /// Mispredictions.
    pub const BRANCH_MISSES: usize = 10;
    /// First-level instruction cache.
    pub const L1I_MISSES: usize = 11;
    /// First-level data cache.
    pub const L1D_MISSES: usize = 12;
    /// Second-level cache.
    pub const L2_MISSES: usize = 13;
    /// Translations of data addresses.
    pub const DTLB_MISSES: usize = 14;
    /// Instructions of the OpenMP runtime.
    pub const RUNTIME_INSTRUCTIONS: usize = 15;
    /// Multiplications.
    pub const MULTIPLICATIONS: usize = 16;
    /// Divisions and square roots.
    pub const DIVISIONS: usize = 17;
    /// Locked instructions.
    pub const ATOMICS: usize = 18;
    /// Indirect jumps and calls.
    pub const INDIRECT: usize = 19;
    /// How many there are.
    pub const COUNT: usize = 20;
}

use Source::{Code, Model, Runtime};

/// All events. The first [`DEFAULT_EVENTS`] fit into one run.
pub const EVENTS: [Event; index::COUNT] = [
    event("sim-instructions", Code, "instructions"),
    event("sim-loads", Code, "reading memory accesses"),
    event("sim-stores", Code, "writing memory accesses"),
    event("sim-load-bytes", Code, "bytes read"),
    event("sim-store-bytes", Code, "bytes written"),
    event("sim-branches", Code, "conditional branches"),
    event("sim-taken", Code, "conditional branches that were taken"),
    event("sim-calls", Code, "calls"),
    event("sim-returns", Code, "returns"),
    event(
        "sim-fp-instructions",
        Code,
        "floating-point arithmetic instructions",
    ),
    event(
        "sim-branch-misses",
        Model,
        "mispredicted branches, indirect jumps and returns",
    ),
    event(
        "sim-l1i-misses",
        Model,
        "misses of the first-level instruction cache",
    ),
    event(
        "sim-l1d-misses",
        Model,
        "misses of the first-level data cache",
    ),
    event("sim-l2-misses", Model, "misses of the second-level cache"),
    event("sim-dtlb-misses", Model, "misses of the data TLB"),
    event(
        "sim-runtime-instructions",
        Runtime,
        "instructions of the OpenMP runtime, which are in no other event",
    ),
    event("sim-multiplications", Code, "multiplying instructions"),
    event("sim-divisions", Code, "dividing and rooting instructions"),
    event("sim-atomics", Code, "locked instructions"),
    event(
        "sim-indirect-branches",
        Code,
        "jumps and calls through registers or memory",
    ),
];

/// Events that are counted without a wish.
pub const DEFAULT_EVENTS: usize = 16;

/// Position of an event in [`EVENTS`].
pub fn position(name: &str) -> Option<usize> {
    EVENTS.iter().position(|e| e.name == name)
}

/// `prctl` option of a program's requests ("ompf"); no kernel has one of this number.
pub const OPTION: u64 = 0x6f6d_7066;
/// Second argument: the third is a number for the calling thread's slot.
pub const CLAIM: u64 = 1;

/// First word of the page.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ompfsim1");

/// Threads at once that are counted.
pub const SLOTS: usize = 1024;
/// Word that slots begin at.
pub const SLOTS_AT: usize = 512;
/// Words of a slot.
pub const SLOT_WORDS: usize = 32;
/// Words of a page.
pub const PAGE_WORDS: usize = SLOTS_AT + SLOTS * SLOT_WORDS;

/// Word that a slot begins at: its owner; the counts follow.
pub const fn slot_at(slot: usize) -> usize {
    SLOTS_AT + slot * SLOT_WORDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::MAX_COUNTERS;

    #[test]
    fn names_are_unique_and_slots_have_room() {
        for (at, event) in EVENTS.iter().enumerate() {
            assert_eq!(position(event.name), Some(at));
            assert!(!crate::event::names().any(|n| n == event.name));
        }
        assert!(EVENTS.len() < SLOT_WORDS);
        const { assert!(DEFAULT_EVENTS <= MAX_COUNTERS) };
        assert_eq!(slot_at(SLOTS), PAGE_WORDS);
    }
}
