//! The bytes of a thread's record file: a header page, then records, all little-endian and 8-byte aligned.
//!
//! ```text
//! +0              ThreadHeader, padded to HEADER_LEN
//! +4096           the stage: records that are not flushed yet, `committed - flushed` bytes
//! +4096 + stage   the log: `flushed` bytes of records
//! ```
//! Where sums are kept ([`sums`]), their table lies between the stage's records and the log.
//!
//! The stage is what the recording thread has mapped. When it is full it is written to the end of the log, then counted
//! as flushed, and used again from its beginning. Without a stage (length 0: short files that were closed in an orderly way)
//! all records follow the header. Who reads while the thread records copies the stage and asks for `flushed`
//! before and after: the copy is good if it hasn't changed.
//!
//! Every record starts with `kind:u8 construct:u8 len:u16 site:u32`, `len` in bytes, a multiple of 8; a reader skips
//! kinds that it does not know. A writer stores a record in full before it adds its length to `committed`, so what is
//! committed is whole, whatever ends the process.
//!
//! Nodes and intervals have a short form ([`short`]) besides the full one: what is written costs time by the byte. Where regions
//! were called from is in records of their own ([`context`]), and so are locks ([`lock`]), messages ([`message`]) and what orders units
//! ([`depend`]).

pub mod context;
pub mod depend;
pub mod lock;
pub mod message;
mod read;
pub mod short;
pub mod sums;
#[cfg(test)]
mod tests;
mod write;

pub use read::{Record, RecordError, Records, ThreadFile};
pub use write::{encode_interval, encode_left_out, encode_name, encode_node, encode_parts};

use crate::construct::Construct;
use read::get;
use zerocopy::FromZeros;

/// First bytes of a record file.
pub const MAGIC: [u8; 8] = *b"OMPFXU01";
/// Version of the layout. Files of another one are not read.
pub const VERSION: u32 = 4;
/// Bytes before the first record.
pub const HEADER_LEN: usize = 4096;
/// Bytes of a thread's name, as the kernel has it.
pub const THREAD_NAME: usize = 16;
/// Most counters that one event set can have.
pub const MAX_COUNTERS: usize = 16;

/// Header of a thread's record file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct ThreadHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// [`HEADER_LEN`].
    pub header_len: u32,
    /// Process.
    pub pid: u32,
    /// Kernel's thread number.
    pub tid: u32,
    /// Thread's number in this run, from 0 in the order of first records.
    pub index: u32,
    /// Number of counters of event set 0, at most [`MAX_COUNTERS`]; their events are in the process header.
    pub counters: u32,
    /// Time stamp counter when recording began on this thread.
    pub tsc_start: u64,
    /// ... when it ended; 0 if the thread did not end in an orderly way.
    pub tsc_end: u64,
    /// Bytes of records, in log and stage.
    pub committed: u64,
    /// Records that could not be written.
    pub lost: u64,
    /// Values of set 0's counters at `tsc_start`.
    pub counts_start: [u64; MAX_COUNTERS],
    /// Values of set 0's counters at `tsc_end`.
    pub counts_end: [u64; MAX_COUNTERS],
    /// Ticks in intervals that were switched off, and are in no record.
    pub unrecorded_ticks: u64,
    /// Bytes of records in the log; the rest is in the stage.
    pub flushed: u64,
    /// Length of the stage in bytes.
    pub stage: u64,
    /// Per counter of set 0 what was counted while nobody's count was wanted (counters are read where a recorded unit begins, ends
    /// or is interrupted): it is in no interval. [`NOT_COUNTED`]: it isn't known how much that is.
    pub unattributed: [u64; MAX_COUNTERS],
    /// Whether counters were read in that way only, so that intervals without a count are no loss.
    pub reads_for_units: u64,
    /// Whether the thread keeps sums: 0, [`sums::INSTEAD`] or [`sums::BESIDE`].
    pub sums: u64,
    /// Where in the file they are.
    pub sums_at: u64,
    /// Bytes of them.
    pub sums_len: u64,
    /// Ticks before `tsc_start` in which the thread was prepared for recording.
    pub prepared_ticks: u64,
    /// Ticks since `tsc_start` that recording took for itself, and that are in no interval: a library came while the thread ran, or the
    /// process's files were completed. What it does in probes is not in it.
    pub ours_ticks: u64,
    /// Ticks behind `tsc_end` in which the thread's file was completed, where the thread ended before its process.
    pub completed_ticks: u64,
    /// Whether it is known which of the thread's intervals were disturbed ([`Interval::disturbed`]).
    pub has_marks: u64,
    /// One more than the nanoseconds in which the thread had been ready to run and had no processor when the program began to exit, where
    /// it was there until then and the kernel tells it; else 0.
    pub queued: u64,
    /// The name that the thread had at its end (`pthread_setname_np`), and zeros behind it.
    pub name: [u8; THREAD_NAME],
    /// As `queued`: the nanoseconds in which it had a processor.
    pub ran: u64,
    /// What `queued` was when recording began on this thread.
    pub queued_start: u64,
    /// What `ran` was then.
    pub ran_start: u64,
}

impl ThreadHeader {
    /// The thread's name, if it is known.
    pub fn name(&self) -> Option<&str> {
        let end = self.name.iter().position(|&b| b == 0);
        let name = core::str::from_utf8(&self.name[..end.unwrap_or(THREAD_NAME)]);
        name.ok().filter(|name| !name.is_empty())
    }

    /// Nanoseconds of its recorded time in which the thread was ready to run and had no processor, if they are known.
    pub fn queued_ns(&self) -> Option<u64> {
        let before = self.queued_start.saturating_sub(1);
        Some(self.queued.checked_sub(1)?.saturating_sub(before))
    }

    /// Nanoseconds before its recorded time in which it was ready to run and had no processor, if they are known.
    pub fn queued_before_ns(&self) -> Option<u64> {
        self.queued_start.checked_sub(1)
    }

    /// Nanoseconds of its recorded time in which the thread had a processor, if they are known.
    pub fn ran_ns(&self) -> Option<u64> {
        let before = self.ran_start.checked_sub(1)?;
        Some(self.ran.checked_sub(1)?.saturating_sub(before))
    }
}

/// First byte of a [`Node`] record.
pub const KIND_NODE: u8 = 1;
/// First byte of an [`Interval`] record.
pub const KIND_INTERVAL: u8 = 2;
/// First byte of padding: the second word holds its length in bytes (at least 16, not limited by `len`).
pub const KIND_PAD: u8 = 3;

/// First byte of a [`Name`] record.
pub const KIND_NAME: u8 = 4;

/// First byte of a [`LeftOut`] record.
pub const KIND_LEFT_OUT: u8 = 5;

/// First byte of a [`PartSum`] record.
pub const KIND_PARTS: u8 = 7;

/// What one thread's parts of an outermost parallel region took since it last said so, several executions together. Processor time
/// and counts are those of the parts that were read, which are only some where parts are short: nothing is extrapolated. A nested region's
/// threads belong to the thread of the outermost team that has forked them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartSum<'a> {
    /// Parallel or teams.
    pub construct: Construct,
    /// The region, `module << 24 | site`.
    pub site: u32,
    /// Number of the thread (or team) in the outermost team.
    pub member: u32,
    /// Time stamp counter at the begin of the first part.
    pub t0: u64,
    /// ... and at the end of the last one.
    pub t1: u64,
    /// Parts that were executed.
    pub parts: u64,
    /// Those that were read.
    pub read: u64,
    /// Ticks from begin to end of all parts.
    pub ticks: u64,
    /// Ticks of those that were read.
    pub read_ticks: u64,
    /// Processor time of those that were read, in nanoseconds (`CLOCK_THREAD_CPUTIME_ID`); [`NOT_COUNTED`]: not known.
    pub processor_ns: u64,
    /// Ticks of those that were read in which the thread waited for others: it may have slept.
    pub wait_ticks: u64,
    /// Counts of those that were read, in the order of [`run::ProcessHeader::region_events`](crate::run::ProcessHeader);
    /// [`NOT_COUNTED`] where one is not known.
    pub counts: Counts<'a>,
}

impl PartSum<'_> {
    /// Encoded length in bytes without counts; each adds 8.
    pub const LEN: usize = 80;
}

/// Instances of a region that a thread has executed and not recorded, since it last said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// What they are; [`Construct::Program`]: anything that was switched off and executed at the end of the region `site`.
    pub construct: Construct,
    /// `module << 24 | site`.
    pub site: u32,
    /// How many; 0: not known.
    pub count: u64,
    /// Their own time in ticks.
    pub ticks: u64,
    /// One in so many was recorded at last.
    pub one_in: u32,
    /// Because their probes would have cost too much.
    pub throttled: bool,
    /// Some of them because they were shorter than is wanted on record.
    pub short: bool,
    /// Where they were executed.
    pub team: TeamPlace,
}

impl LeftOut {
    /// Encoded length in bytes.
    pub const LEN: usize = 40;
}

/// Where in which parallel region (or league of teams) a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TeamPlace {
    /// Site of the innermost parallel region; [`NO_SITE`] outside of all.
    pub site: u32,
    /// The thread's own part of it has ended: it waits at the region's end, or executes tasks there.
    pub behind: bool,
}

impl TeamPlace {
    /// Outside of all parallel regions.
    pub const OUTSIDE: TeamPlace = TeamPlace {
        site: NO_SITE,
        behind: false,
    };

    /// The bit of [`TeamPlace::behind`] in [`TeamPlace::word`].
    pub const BEHIND: u64 = 1 << 32;
    const KNOWN: u64 = 1 << 33;

    /// Beside [`TeamPlace::word`]: the thread is in its part of a parallel region, on record or not.
    pub const IN_PARALLEL: u64 = 1 << 34;
    /// Beside [`TeamPlace::word`]: the same of a team's part of a `teams` region.
    pub const IN_TEAMS: u64 = 1 << 35;
    /// Either of them.
    pub const INSIDE: u64 = TeamPlace::IN_PARALLEL | TeamPlace::IN_TEAMS;

    /// As a word, which is not 0.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        self.site as u64 | TeamPlace::KNOWN | if self.behind { TeamPlace::BEHIND } else { 0 }
    }

    /// From a word.
    #[inline(always)]
    pub const fn from_word(word: u64) -> Option<TeamPlace> {
        if word & TeamPlace::KNOWN == 0 {
            return None;
        }
        Some(TeamPlace {
            site: word as u32,
            behind: word & TeamPlace::BEHIND != 0,
        })
    }
}

/// The number that stands for a module in the sites of regions that the program names itself; their names are in
/// [`Name`] records.
pub const USER_MODULE: u32 = 254;
/// Longest name of such a region, in bytes.
pub const MAX_NAME: usize = 255;

/// How a node's label continues its parent's ([XU] section 4; docs/design/labels.md has the choices).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, FromZeros)]
#[repr(u8)]
pub enum Step {
    /// `0`: the root.
    Root = 0,
    /// `rank.addr`; index = rank among the siblings, from 1.
    Ranked = 1,
    /// `0.ordinal.addr`, directly inside a parallel construct; index = TID + previous calls * team size.
    TidRanked = 2,
    /// `index`: a range's first iteration (logical, from 0) or a section's number.
    Range = 3,
    /// Nothing: the interval has no label of its own (a wait, one thread's part of a region).
    None = 4,
}

impl Step {
    /// The step with this number.
    pub const fn from_number(number: u8) -> Option<Step> {
        Some(match number {
            0 => Step::Root,
            1 => Step::Ranked,
            2 => Step::TidRanked,
            3 => Step::Range,
            4 => Step::None,
            _ => return None,
        })
    }
}

/// Identity of a construct instance or XU: written as soon as something refers to it as its parent.
///
/// Node numbers are `(thread index + 1) << 40 | sequence`, unique in a process; 0 is "none".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Its kind.
    pub construct: Construct,
    /// `module << 24 | site`, see [`site_ref`].
    pub site: u32,
    /// Its number.
    pub node: u64,
    /// Its parent's number.
    pub parent: u64,
    /// How its label continues the parent's.
    pub step: Step,
    /// Meaning by `step`.
    pub index: i64,
}

impl Node {
    /// Encoded length in bytes.
    pub const LEN: usize = 40;
}

/// The name of a site of [`USER_MODULE`], in the file of whichever thread used it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    /// The site.
    pub site: u32,
    /// Its name, as the program has it: most often UTF-8.
    pub text: &'a [u8],
}

impl Name<'_> {
    /// Encoded length in bytes.
    pub const fn len_of(text: usize) -> usize {
        16 + text.next_multiple_of(8)
    }
}

/// In [`Interval::counts`]: how much happened is not known.
pub const NOT_COUNTED: u64 = u64::MAX;

/// A stretch of a thread's execution. `own_ticks` and `counts` are exclusive: what another interval of the same thread
/// took in between is not in them. Several intervals with one `node` are the parts of one XU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval<'a> {
    /// Its kind.
    pub construct: Construct,
    /// `module << 24 | site`; [`NO_SITE`] for the program.
    pub site: u32,
    /// Its own node, 0 for waits and the like.
    pub node: u64,
    /// The node that it happened in (for one with a node of its own: the label's parent).
    pub parent: u64,
    /// How the label continues the parent's.
    pub step: Step,
    /// Logical processor at the end, `u16::MAX` if not known.
    pub cpu: u16,
    /// Meaning by `step`. Critical and locks: number of the lock ([`lock::Lock`]), 0 where it is not known.
    pub index: i64,
    /// Range, or task of a taskloop: number of iterations (0: not known, or none). Parallel: team size. Implicit task: thread number in the team.
    /// Critical and locks: ticks spent waiting to enter, a part of `own_ticks`; the rest of these is releasing, and what is
    /// missing from `t0` to `t1` was executed in it. Cancel: 1 if nothing was cancelled.
    pub extent: u64,
    /// Time stamp counter at the begin.
    pub t0: u64,
    /// ... and at the end.
    pub t1: u64,
    /// Exclusive time in ticks.
    pub own_ticks: u64,
    /// In its exclusive time the kernel took the processor from the thread, moved it to another one, or delivered a signal. A
    /// thread that waits in a system call may leave its processor, too. Tells nothing without [`ThreadHeader::has_marks`].
    pub disturbed: bool,
    /// Number of the event set that `counts` are of.
    pub set: u8,
    /// Exclusive counts, one per counter, little-endian; [`NOT_COUNTED`] where the counter was not running all the time.
    pub counts: Counts<'a>,
}

impl Interval<'_> {
    /// Encoded length in bytes without counters; each adds 8.
    pub const LEN: usize = 72;
}

/// The counts of an [`Interval`], as they lie in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts<'a>(&'a [u8]);

impl Counts<'_> {
    /// The counts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.0
            .as_chunks::<8>()
            .0
            .iter()
            .map(|c| u64::from_le_bytes(*c))
    }
}

/// [`Interval::site`] of intervals that belong to no site.
pub const NO_SITE: u32 = u32::MAX;

/// Combines a module's number (at most 254) and a site's index (below 2^24) into a record's `site`.
pub const fn site_ref(module: u32, site: u32) -> u32 {
    module << 24 | site
}

/// The module and site of a record's `site`.
pub const fn split_site(site: u32) -> (u32, u32) {
    (site >> 24, site & 0xff_ffff)
}

/// [`Interval`] without its event set and counts, for writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "documented at Interval")]
pub struct IntervalHead {
    pub construct: Construct,
    pub site: u32,
    pub node: u64,
    pub parent: u64,
    pub step: Step,
    pub cpu: u16,
    pub index: i64,
    pub extent: u64,
    pub t0: u64,
    pub t1: u64,
    pub own_ticks: u64,
    pub disturbed: bool,
}
