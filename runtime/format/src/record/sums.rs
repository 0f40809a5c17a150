//! Sums in place of records: what a thread keeps in a run that records no unit, wait or region one by one.
//!
//! The table lies in the thread's record file ([`ThreadHeader::sums_at`]). It is a row of entries, each of which begins with
//! `kind:u8 construct:u8 words:u16 site:u32`, as a record does. An entry is there as soon as its first word is not 0, which is
//! stored last. Its place never changes, and its numbers are words that grow in place.
//!
//! So no word is ever torn, and a process may be killed at any time. An interval that was just being added can be in some of its
//! entry's sums and not in the others: one interval per thread at most. A sequence word would tell that, and could not mend it.

use super::context::ChainEnd;
use super::{Counts, MAX_COUNTERS, PartSum, TeamPlace, ThreadFile, ThreadHeader};
use crate::construct::Construct;

/// [`ThreadHeader::sums`]: the thread keeps sums, and records nothing one by one.
pub const INSTEAD: u64 = 1;
/// [`ThreadHeader::sums`]: the thread keeps sums beside its records.
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
    /// The thread's parts of an outermost region ([`PartSum`]).
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

/// Position of the word that tells where the entry's intervals happened: [`TeamPlace::word`], with the bits of what is around, and from
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
    interval::COUNTS + counters + units
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

/// Buckets of an octave, as a power of two: a bucket is at most an eighth wider than its least number.
const SUB: u32 = 3;
/// The first octave with a number of its own that isn't counted apart any more: what is larger is in the last bucket.
const OCTAVES: u32 = 41;
/// Buckets of a histogram: 0 to 7 one by one, then eight for each octave up to 2^41 (twelve minutes at 3 GHz).
pub const BUCKETS: usize = ((OCTAVES - SUB + 1) as usize) << SUB;

/// The bucket of a number.
#[inline(always)]
pub const fn bucket_of(value: u64) -> usize {
    let octave = 63 - (value | 1).leading_zeros();
    if octave < SUB {
        return value as usize;
    }
    let at = (((octave - SUB + 1) as usize) << SUB)
        + ((value >> (octave - SUB)) as usize & ((1 << SUB) - 1));
    if at < BUCKETS { at } else { BUCKETS - 1 }
}

/// The least number of a bucket, and the least one behind it; of the last bucket `u64::MAX`.
pub const fn bounds_of(bucket: usize) -> (u64, u64) {
    const fn least(bucket: usize) -> u64 {
        if bucket < 1 << SUB {
            return bucket as u64;
        }
        let octave = (bucket >> SUB) as u32 - 1;
        ((1 << SUB) + (bucket & ((1 << SUB) - 1)) as u64) << octave
    }
    if bucket + 1 >= BUCKETS {
        return (least(BUCKETS - 1), u64::MAX);
    }
    (least(bucket), least(bucket + 1))
}

/// An entry.
#[derive(Debug, Clone, Copy)]
pub enum Entry<'a> {
    /// See [`Kind::Intervals`].
    Intervals(Intervals<'a>),
    /// See [`Kind::Executions`].
    Executions(Executions<'a>),
    /// See [`Kind::Member`].
    Member(Member<'a>),
    /// See [`Kind::Road`].
    Road {
        /// Its number, not 0.
        road: u16,
        /// The road that it continues; 0: the program's own code.
        parent: u16,
        /// Its last step.
        site: u32,
    },
    /// See [`Kind::Calls`].
    Calls {
        /// Its number, not 0.
        road: u16,
        /// The road that it continues; 0: the program's own code.
        parent: u16,
        /// The context's number.
        context: u32,
    },
    /// See [`Kind::Context`].
    Context(Context<'a>),
    /// See [`Kind::Parts`].
    Parts(PartSum<'a>),
    /// See [`Kind::Covered`].
    Covered {
        /// Ticks.
        ticks: u64,
        /// Time stamp of the first begin.
        begin: u64,
        /// ... and of the last end.
        end: u64,
    },
}

/// Sums over intervals.
#[derive(Debug, Clone, Copy)]
pub struct Intervals<'a> {
    /// Their kind.
    pub construct: Construct,
    /// Where they are, as [`Interval::site`](crate::record::Interval).
    pub site: u32,
    team: u64,
    counters: usize,
    words: Words<'a>,
}

/// A calling context.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Its number, the same on all threads of the process; not 0.
    pub number: u32,
    /// Why it has no further call.
    pub end: ChainEnd,
    addresses: &'a [[u8; 8]],
}

/// Executions of a parallel region.
#[derive(Debug, Clone, Copy)]
pub struct Executions<'a> {
    /// Parallel or teams.
    pub construct: Construct,
    /// The region.
    pub site: u32,
    words: Words<'a>,
}

/// What a thread did in them.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// Parallel or teams.
    pub construct: Construct,
    /// The region.
    pub site: u32,
    /// Number of the thread in the process.
    pub thread: u32,
    words: Words<'a>,
}

/// One of the largest units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Exclusive ticks.
    pub own_ticks: u64,
    /// How its label continues that of what it is in, by number ([`Step`](super::Step)).
    pub step: u8,
    /// Meaning by step.
    pub index: i64,
    /// Iterations, 0 if it has none.
    pub extent: u64,
    /// A hash of the path from the root, equal in all runs.
    pub path: u64,
}

impl Intervals<'_> {
    /// A sum, by its position in the entry ([`interval`]).
    pub fn sum(&self, at: usize) -> u64 {
        self.words.get(at)
    }

    /// The innermost parallel region that they happened in, if that was on record.
    pub fn parallel(&self) -> Option<u32> {
        let place = TeamPlace::from_word(self.team)?;
        (place.site != super::NO_SITE).then_some(place.site)
    }

    /// The road to them.
    pub fn road(&self) -> u16 {
        road(self.team)
    }

    /// Whether no parallel region was around them, on record or not.
    pub fn is_outside(&self) -> bool {
        self.parallel().is_none() && self.team & TeamPlace::INSIDE == 0
    }

    /// Exclusive counts, one per counter.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        (0..self.counters).map(|at| self.words.get(interval::COUNTS + at))
    }

    /// The largest units, the first first; of other intervals none.
    pub fn largest(&self) -> Vec<Unit> {
        if !self.construct.is_xu() {
            return vec![];
        }
        let unit = |nth: usize| {
            let word = |at: usize| self.words.get(largest_at(self.counters) + nth * UNIT + at);
            Unit {
                own_ticks: word(0),
                step: word(1) as u8,
                index: word(2) as i64,
                extent: word(3),
                path: word(4),
            }
        };
        let mut units: Vec<Unit> = (0..LARGEST).map(unit).filter(|u| u.own_ticks > 0).collect();
        units.sort_by_key(|u| core::cmp::Reverse(u.own_ticks));
        units
    }

    /// The buckets of a histogram that are not empty, and what is in them. The first histogram is of exclusive ticks, the next
    /// are of the counters.
    pub fn histogram(&self, nth: usize) -> Vec<(usize, u64)> {
        if !self.construct.is_xu() {
            return vec![];
        }
        let count = |at: usize| self.words.get(histogram_at(self.counters, nth) + at);
        let all = (0..BUCKETS).map(|at| (at, count(at)));
        all.filter(|(_, count)| *count > 0).collect()
    }
}

impl Context<'_> {
    /// Return addresses as the process had them, innermost first.
    pub fn addresses(&self) -> impl Iterator<Item = u64> + '_ {
        self.addresses.iter().map(|word| u64::from_le_bytes(*word))
    }
}

impl Executions<'_> {
    /// The road to it.
    pub fn road(&self) -> u16 {
        road(self.words.get(TEAM))
    }

    /// A sum, by its position in the entry ([`execution`]).
    pub fn sum(&self, at: usize) -> u64 {
        self.words.get(at)
    }
}

impl Member<'_> {
    /// The road to the region.
    pub fn road(&self) -> u16 {
        road(self.words.get(TEAM))
    }

    /// A sum, by its position in the entry ([`member`]).
    pub fn sum(&self, at: usize) -> u64 {
        self.words.get(at)
    }
}

/// The road in a word.
#[inline(always)]
pub const fn road(word: u64) -> u16 {
    (word >> ROAD) as u16
}

/// The words of an entry.
#[derive(Debug, Clone, Copy)]
struct Words<'a>(&'a [[u8; 8]]);

impl Words<'_> {
    fn get(&self, at: usize) -> u64 {
        self.0.get(at).map_or(0, |word| u64::from_le_bytes(*word))
    }
}

impl<'a> ThreadFile<'a> {
    /// The entries of the thread's table of sums, of those kinds that are known; none where it has kept none.
    pub fn sums(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        entries_of(self.sums)
    }
}

/// The entries in the bytes of a table.
pub fn entries(table: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    entries_of(table.as_chunks().0)
}

fn entries_of(mut rest: &[[u8; 8]]) -> impl Iterator<Item = Entry<'_>> {
    core::iter::from_fn(move || {
        loop {
            let first = u64::from_le_bytes(*rest.first()?);
            let words = usize::from((first >> 16) as u16);
            if words == 0 {
                return None; // not there yet, or damaged
            }
            let (entry, behind) = rest.split_at_checked(words)?;
            rest = behind;
            if let Some(entry) = parse(first, entry) {
                return Some(entry);
            }
        }
    })
}

fn parse(first: u64, entry: &[[u8; 8]]) -> Option<Entry<'_>> {
    let words = Words(entry);
    let (site, member) = ((first >> 32) as u32, words.get(MEMBER));
    let construct = Construct::from_number((first >> 8) as u8)?;
    Some(match Kind::from_number(first as u8)? {
        Kind::Intervals => {
            let counters = (member >> 32) as usize;
            if counters > MAX_COUNTERS || entry.len() != interval_words(construct.is_xu(), counters)
            {
                return None;
            }
            Entry::Intervals(Intervals {
                construct,
                site,
                team: words.get(TEAM),
                counters,
                words,
            })
        }
        Kind::Executions => Entry::Executions(Executions {
            construct,
            site,
            words,
        }),
        Kind::Member => Entry::Member(Member {
            construct,
            site,
            thread: member as u32,
            words,
        }),
        Kind::Road => Entry::Road {
            road: member as u16,
            parent: road(words.get(TEAM)),
            site,
        },
        Kind::Calls => Entry::Calls {
            road: member as u16,
            parent: road(words.get(TEAM)),
            context: site,
        },
        Kind::Context => Entry::Context(Context {
            number: member as u32,
            end: ChainEnd::from_number(words.get(FIRST) as u8)?,
            addresses: entry.get(CONTEXT_WORDS..)?,
        }),
        Kind::Parts => {
            let counts = entry.get(PARTS_WORDS..)?;
            if counts.len() > MAX_COUNTERS {
                return None;
            }
            let word = |at: usize| words.get(FIRST + at);
            Entry::Parts(PartSum {
                construct,
                site,
                member: member as u32,
                t0: word(0),
                t1: word(1),
                parts: word(2),
                read: word(3),
                ticks: word(4),
                read_ticks: word(5),
                processor_ns: word(6),
                wait_ticks: word(7),
                counts: Counts(counts.as_flattened()),
            })
        }
        Kind::Covered => Entry::Covered {
            ticks: words.get(covered::TICKS),
            begin: words.get(covered::BEGIN),
            end: words.get(covered::END),
        },
        Kind::Pad => return None,
    })
}

impl ThreadHeader {
    /// The words of the table, as they lie in the file; none if the file is shorter than it says.
    pub(super) fn table<'a>(&self, bytes: &'a [u8]) -> &'a [[u8; 8]] {
        let range = || {
            let from = usize::try_from(self.sums_at).ok()?;
            let len = usize::try_from(self.sums_len).ok()?;
            bytes.get(from..from.checked_add(len)?)
        };
        match self.sums {
            0 => &[],
            _ => range().unwrap_or_default().as_chunks().0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_in_its_bucket(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let (least, behind) = bounds_of(bucket_of(value));
            prop_assert!(least <= value && (value < behind || behind == u64::MAX));
        }
    }

    #[test]
    fn buckets_are_one_behind_the_other_and_narrow() {
        for bucket in 0..BUCKETS - 1 {
            let (least, behind) = bounds_of(bucket);
            assert_eq!(behind, bounds_of(bucket + 1).0);
            assert!(8 * (behind - least) <= least.max(8), "{least} to {behind}");
            assert_eq!((bucket_of(least), bucket_of(behind - 1)), (bucket, bucket));
        }
        assert_eq!(bounds_of(BUCKETS - 1).1, u64::MAX);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

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
