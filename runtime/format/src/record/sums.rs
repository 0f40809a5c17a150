//! Sums in place of records: what a thread keeps in a run that records no unit, wait or region one by one.
//!
//! The table lies in the thread's record file ([`ThreadHeader::sums_at`](crate::record::ThreadHeader::sums_at)). It is a row of entries, each of which begins with
//! `kind:u8 construct:u8 words:u16 site:u32`, as a record does. An entry is there as soon as its first word is not 0, which is
//! stored last. Its place never changes, and its numbers are words that grow in place.
//!
//! So no word is ever torn, and a process may be killed at any time. An interval that was just being added can be in some of its
//! entry's sums and not in the others: one interval per thread at most. A sequence word would tell that, and could not mend it.

mod entry;
mod histogram;

pub use entry::{Context, Entry, Executions, Intervals, Member, Unit, entries, road};
pub use histogram::{BUCKETS, bounds_of, bucket_of};

use crate::construct::Construct;

/// [`ThreadHeader::sums`](crate::record::ThreadHeader::sums): the thread keeps sums, and records nothing one by one.
pub const INSTEAD: u64 = 1;
/// [`ThreadHeader::sums`](crate::record::ThreadHeader::sums): the thread keeps sums beside its records.
pub const BESIDE: u64 = 2;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Intervals of one kind, at one site, in one parallel region.
    Intervals = 1,
    /// Executions of a parallel region that the thread has forked.
    Executions = 2,
    /// What one thread did in such executions.
    Member = 3,
    /// The thread's parts of an outermost region ([`PartSum`](crate::record::PartSum)).
    Parts = 4,
    /// Time in outermost regions on record.
    Covered = 5,
    /// Fills up the end of a piece of the table; tells nothing.
    Pad = 6,
    /// A road: the constructs around something, from the program's own code inwards, as a number of the process.
    Road = 7,
    /// A road whose last step is the calling context in which the region that comes next was forked.
    Calls = 8,
    /// A calling context: a chain of return addresses.
    Context = 9,
}

impl Kind {
    const fn from_number(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Intervals,
            2 => Kind::Executions,
            3 => Kind::Member,
            4 => Kind::Parts,
            5 => Kind::Covered,
            6 => Kind::Pad,
            7 => Kind::Road,
            8 => Kind::Calls,
            9 => Kind::Context,
            _ => return None,
        })
    }
}

/// The first word of an entry.
#[inline(always)]
pub const fn head(kind: Kind, construct: Construct, words: usize, site: u32) -> u64 {
    kind as u64 | (construct as u64) << 8 | (words as u64) << 16 | (site as u64) << 32
}

/// Position of the word that tells where the entry's intervals happened: [`TeamPlace::word`](crate::record::TeamPlace::word), with the bits of what is around, and from
/// bit [`ROAD`] on the road. Of executions it is the road alone; of a road the one that it continues.
pub const TEAM: usize = 1;
/// Bits below the road's number.
pub const ROAD: u32 = 48;
/// Position of the word with the number of a thread in a team, or in the process; 0 where there is none.
pub const MEMBER: usize = 2;
/// Position of the first sum.
pub const FIRST: usize = 3;

/// Positions of the words of [`Kind::Intervals`], behind [`FIRST`].
pub mod interval {
    /// Intervals; a unit in several parts counts once, at its first part.
    pub const COUNT: usize = super::FIRST;
    /// Exclusive ticks.
    pub const OWN: usize = COUNT + 1;
    /// Ticks from begin to end.
    pub const WALL: usize = COUNT + 2;
    /// Sum of the extents ([`Interval::extent`](crate::record::Interval)).
    pub const EXTENT: usize = COUNT + 3;
    /// The least exclusive time of one, in ticks.
    pub const MIN: usize = COUNT + 4;
    /// The largest.
    pub const MAX: usize = COUNT + 5;
    /// Instances: what each thread of a team meets by itself counts once in the process.
    pub const INSTANCES: usize = COUNT + 6;
    /// Parts of units that had begun before (untied tasks); their ticks are in the sums.
    pub const FURTHER: usize = COUNT + 7;
    /// Of a natural loop, which has no parts: the most iterations of one.
    pub const LARGEST_EXTENT: usize = FURTHER;
    /// The last end, as a time stamp.
    pub const LAST: usize = COUNT + 8;
    /// Exclusive counts; [`NOT_COUNTED`](crate::record::NOT_COUNTED) where one interval's is not known.
    pub const COUNTS: usize = COUNT + 9;
}

/// Largest units that are kept of an entry.
pub const LARGEST: usize = 4;
/// Words of one of them: exclusive ticks, step, index, iterations, path.
pub const UNIT: usize = 5;

/// Positions of the words of [`Kind::Executions`], behind [`FIRST`].
pub mod execution {
    /// Executions.
    pub const COUNT: usize = super::FIRST;
    /// Those inside another parallel region.
    pub const NESTED: usize = COUNT + 1;
    /// Those whose parts are all known: the sums from [`STARTUP`] on are over these.
    pub const MEASURED: usize = COUNT + 2;
    /// Ticks from fork to join.
    pub const WALL: usize = COUNT + 3;
    /// The same times the team's threads.
    pub const TEAM_TICKS: usize = COUNT + 4;
    /// The largest team.
    pub const TEAM: usize = COUNT + 5;
    /// Ticks from fork to the parts' begins.
    pub const STARTUP: usize = COUNT + 6;
    /// Ticks from the end of the last work to the join, for each thread.
    pub const SHUTDOWN: usize = COUNT + 7;
    /// Ticks from the parts' ends to the end of the last work, less what was executed meanwhile.
    pub const IMBALANCE: usize = COUNT + 8;
    /// The part of it of threads that had next to nothing to do while one other thread executed something.
    pub const LIMITED: usize = COUNT + 9;
    /// Words of the entry.
    pub const WORDS: usize = COUNT + 10;
}

/// Positions of the words of [`Kind::Covered`], behind [`FIRST`].
pub mod covered {
    /// Ticks.
    pub const TICKS: usize = super::FIRST;
    /// Time stamp of the first begin.
    pub const BEGIN: usize = TICKS + 1;
    /// ... and of the last end.
    pub const END: usize = TICKS + 2;
    /// Words of the entry.
    pub const WORDS: usize = TICKS + 3;
}

/// Positions of the words of [`Kind::Member`], behind [`FIRST`]. Ticks from fork to join of a region's executions that the thread has a
/// part of: startup, body, barrier, task and shutdown are all of them where all of these are measured.
pub mod member {
    /// Executions as a worker.
    pub const WORKED: usize = super::FIRST;
    /// Ticks in which it, as a worker, did nothing for them.
    pub const WAITED: usize = WORKED + 1;
    /// Executions.
    pub const COUNT: usize = WORKED + 2;
    /// Those whose parts are all known; barrier, task and shutdown are of these only.
    pub const MEASURED: usize = WORKED + 3;
    /// Fork to the begin of its part.
    pub const STARTUP: usize = WORKED + 4;
    /// Its part.
    pub const BODY: usize = WORKED + 5;
    /// End of its part to the end of the team's last work, less tasks.
    pub const BARRIER: usize = WORKED + 6;
    /// What it executed behind its part.
    pub const TASK: usize = WORKED + 7;
    /// End of the team's last work to the join.
    pub const SHUTDOWN: usize = WORKED + 8;
    /// As a worker: time stamp of the last join. A nested region's thread may have ended before it, so the waiting until then is too long
    /// by what is missing.
    pub const LAST_JOIN: usize = WORKED + 9;
    /// End of its part then, and of as many ticks as it executed behind that.
    pub const LAST_END: usize = WORKED + 10;
    /// Words of the entry.
    pub const WORDS: usize = WORKED + 11;
}

/// Words of [`Kind::Road`] and [`Kind::Calls`]: its last step is the head's site, or the context's number; its own stands at [`MEMBER`].
pub const ROAD_WORDS: usize = FIRST;
/// Roads that a process tells apart; on a longer one than these it is where it was.
pub const MOST_ROADS: u32 = 10_000;

/// Words of [`Kind::Context`] without addresses: its number stands at [`MEMBER`], why it ends
/// ([`ChainEnd`]) at [`FIRST`], and behind it come run-time addresses, innermost first. Each is in an object that
/// the thread's records tell of.
pub const CONTEXT_WORDS: usize = FIRST + 1;
/// Calling contexts that a process tells apart; a region that is forked in another one has none.
pub const MOST_CONTEXTS: u32 = 1000;

/// Words of [`Kind::Parts`] without counts: behind [`FIRST`] come first begin, last end, parts, parts read, ticks, ticks of those
/// read, processor time, ticks of waiting.
pub const PARTS_WORDS: usize = FIRST + 8;

/// Words of [`Kind::Intervals`] with so many counters.
pub const fn interval_words(is_xu: bool, counters: usize) -> usize {
    let units = if is_xu {
        LARGEST * UNIT + (1 + counters) * BUCKETS
    } else {
        0
    };
    interval::COUNTS + counters + units + DISTURBED_WORDS
}

/// Words behind all others of [`Kind::Intervals`]: how many of them were disturbed.
const DISTURBED_WORDS: usize = 1;

/// Position of that word.
pub const fn disturbed_at(is_xu: bool, counters: usize) -> usize {
    interval_words(is_xu, counters) - DISTURBED_WORDS
}

/// Position of the largest units among the words of an entry with so many counters.
#[inline(always)]
pub const fn largest_at(counters: usize) -> usize {
    interval::COUNTS + counters
}

/// Position of a histogram: the first is of exclusive ticks, the next are of the counters.
#[inline(always)]
pub const fn histogram_at(counters: usize, nth: usize) -> usize {
    largest_at(counters) + LARGEST * UNIT + nth * BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_small() {
        // Work of 50 regions, each with a loop, its ranges, its barrier and its parts, by 8 threads that count 4 events.
        let words = interval_words(true, 4)
            + 4 * interval_words(false, 4)
            + execution::WORDS
            + 8 * member::WORDS
            + 4 * ROAD_WORDS
            + PARTS_WORDS;
        assert!(8 * words * 50 * 8 < 7_000_000);
    }
}
