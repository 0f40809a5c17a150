//! The bytes of a program's samples: a file that the command writes beside a run's records, while the program runs.
//!
//! A header, then records, all little-endian and 8-byte aligned:
//!
//! ```text
//! +0    OMPFSM01 version:u32 header_len:u32 pid:u32 flags:u32 period_ns:u64
//! +32   records
//!
//! clock    kind:u8 flags:u8 len:u16 0:u32       | tsc:u64 raw_ns:u64
//! sample   kind:u8 flags:u8 len:u16 thread:u32  | raw_ns:u64 pid:u64 address:u64 ...
//! mapping  kind:u8 flags:u8 len:u16 pid:u32     | raw_ns:u64 begin:u64 size:u64 offset:u64 path, with zeros behind it
//! fork     kind:u8 flags:u8 len:u16 pid:u32     | raw_ns:u64 parent:u64
//! exec     kind:u8 flags:u8 len:u16 pid:u32     | raw_ns:u64
//! switch   kind:u8 flags:u8 len:u16 thread:u32  | raw_ns:u64 pid:u64
//! lost     kind:u8 flags:u8 len:u16 0:u32       | raw_ns:u64 count:u64
//! stop     kind:u8 flags:u8 len:u16 thread:u32  | raw_ns:u64 pid:u64 call:u64 address:u64 ...
//! closed   kind:u8 flags:u8 len:u16 0:u32       | raw_ns:u64 amount:u64
//! ```
//! `len` is in bytes, a multiple of 8; a reader skips kinds that it does not know. Times are CLOCK_MONOTONIC_RAW in nanoseconds. Each
//! processor's records are in order, those of several are not.

mod clock;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use clock::tsc;
pub use read::{SampleRecords, SamplesError, SamplesFile};
pub use write::{encode_header, encode_record};

use serde::{Deserialize, Serialize};

/// First bytes of a file of samples.
pub const MAGIC: [u8; 8] = *b"OMPFSM01";
/// Version of the layout. Files of another one are not read.
pub const VERSION: u32 = 1;
/// Bytes before the first record.
pub const HEADER_LEN: usize = 32;
/// How the file's name ends.
pub const ENDING: &str = ".samples";
/// Threads that have stopped are looked at so often, in nanoseconds: shorter stops may be missed.
pub const STOP_EVERY_NS: u64 = 20_000_000;
/// Those that have stopped only now are not looked at: they may go on at any moment.
pub const STOP_LEAST_NS: u64 = 200_000;
/// Most addresses of a stack.
pub const MAX_FRAMES: usize = 256;

/// Name of the file with the samples of a program whose first process has this number. `again`: how many such files there were before.
pub fn samples_file(pid: u32, again: u32) -> String {
    match again {
        0 => format!("{pid}{ENDING}"),
        again => format!("{pid}.{again}{ENDING}"),
    }
}

/// Header of a file of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplesHeader {
    /// The process that the command has started.
    pub pid: u32,
    /// Nanoseconds of processor time in user code between two samples of a thread.
    pub period_ns: u64,
    /// Whether the kernel's clock is the time stamp counter: if not, times of samples and of records can't be compared.
    pub has_tsc: bool,
}

/// A time on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TscPair {
    /// Time stamp counter.
    pub tsc: u64,
    /// CLOCK_MONOTONIC_RAW in nanoseconds.
    pub raw_ns: u64,
}

/// Where a thread was, and what had called that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// When, in nanoseconds.
    pub raw_ns: u64,
    /// Process.
    pub pid: u32,
    /// Kernel's thread number.
    pub tid: u32,
    /// The instruction that was next, then return addresses, the innermost first; at least one, at most [`MAX_FRAMES`].
    pub addresses: Vec<u64>,
    /// Whether it reaches the thread's begin.
    pub is_whole: bool,
}

/// Code that a process has mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// When, in nanoseconds.
    pub raw_ns: u64,
    /// Process.
    pub pid: u32,
    /// First address.
    pub begin: u64,
    /// Bytes.
    pub size: u64,
    /// Where in the file they are.
    pub offset: u64,
    /// The file, as the kernel has it; `[vdso]` and the like are none. It may hold any bytes but zeros.
    pub path: &'a [u8],
}

/// What samples are of no use without, or tells of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleRecord<'a> {
    /// Both clocks.
    Clock(TscPair),
    /// A sample.
    Sample(Sample),
    /// Code.
    Mapping(Mapping<'a>),
    /// A process began as the copy of another one.
    Fork {
        /// When, in nanoseconds.
        raw_ns: u64,
        /// Its number.
        pid: u32,
        /// The other one's.
        parent: u32,
    },
    /// A process executes another program: what it had mapped is gone.
    Exec {
        /// When, in nanoseconds.
        raw_ns: u64,
        /// Process.
        pid: u32,
    },
    /// A thread got a processor, or lost it.
    Switch(Switch),
    /// A thread that has no processor, because it wants none.
    Stop(Stop),
    /// The kernel had no room for records.
    Lost {
        /// When that was told, in nanoseconds.
        raw_ns: u64,
        /// How many.
        count: u64,
    },
    /// From now on there are no samples: they would have cost too much.
    Closed(Closed),
}

/// A thread that has no processor, because it wants none: it was looked at once since it gave the last one away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// When it was looked at, and where it was.
    pub sample: Sample,
    /// The number of the system call that it is in; `None`: it is in none (it waits for a page of memory).
    pub call: Option<u32>,
}

/// A thread got a processor, or lost it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// When, in nanoseconds.
    pub raw_ns: u64,
    /// Process.
    pub pid: u32,
    /// Kernel's thread number.
    pub tid: u32,
    /// It lost it.
    pub is_out: bool,
    /// It lost it, and would have gone on.
    pub is_preempted: bool,
}

/// From now on there are no samples: they would have cost too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// When, in nanoseconds.
    pub raw_ns: u64,
    /// What there was too much of.
    pub because: TooMuch,
    /// How much of that there was in a second; of events and bytes in all.
    pub amount: u64,
}

/// What there was too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TooMuch {
    /// Threads that got processors, and lost them.
    Switches,
    /// Threads and processes that began.
    Threads,
    /// Events: the kernel has one for each thread and processor.
    Events,
    /// Bytes of the run's records and samples (`--max-size`).
    Bytes,
}

/// What became of the sampling of a run: a part of its header.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Samples a second of processor time that were wanted.
    pub rate: u32,
    /// Samples.
    pub samples: u64,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// Since when there were none any more, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<ClosedAt>,
    /// Why there are none, with what helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Sampling {
    /// That of two processes together.
    #[must_use]
    pub fn and(self, more: Sampling) -> Sampling {
        let Sampling {
            rate,
            samples,
            lost,
            closed,
            reason,
        } = more;
        let first = |a: ClosedAt, b: ClosedAt| if b.at_s < a.at_s { b } else { a };
        Sampling {
            rate: self.rate.max(rate),
            samples: self.samples + samples,
            lost: self.lost + lost,
            closed: match (self.closed, closed) {
                (Some(a), Some(b)) => Some(first(a, b)),
                (a, b) => a.or(b),
            },
            reason: self.reason.or(reason),
        }
    }
}

/// Since when there were no samples any more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClosedAt {
    /// What there was too much of.
    pub because: TooMuch,
    /// How much of that there was in a second; of events and bytes in all.
    pub amount: u64,
    /// Since when, in seconds from the program's start.
    pub at_s: f64,
}

const KIND_CLOCK: u8 = 1;
const KIND_SAMPLE: u8 = 2;
const KIND_MAPPING: u8 = 3;
const KIND_FORK: u8 = 4;
const KIND_EXEC: u8 = 5;
const KIND_SWITCH: u8 = 6;
const KIND_LOST: u8 = 7;
const KIND_CLOSED: u8 = 8;
const KIND_STOP: u8 = 9;

/// The number of no system call.
const NO_CALL: u64 = u64::MAX;

/// Flags of a header.
const HAS_TSC: u32 = 1;
/// Flags of a sample.
const IS_WHOLE: u8 = 1;
/// Flags of a switch.
const IS_OUT: u8 = 1;
const IS_PREEMPTED: u8 = 2;
/// Flags of what is closed: what there was too much of.
const OF_THREADS: u8 = 1;
const OF_EVENTS: u8 = 2;
const OF_BYTES: u8 = 3;
