//! Reading a table of sums, entry by entry.

use super::{
    BUCKETS, CONTEXT_WORDS, FIRST, Kind, LARGEST, MEMBER, PARTS_WORDS, ROAD, TEAM, UNIT, covered,
    histogram_at, interval, interval_words, largest_at,
};
use crate::construct::Construct;
use crate::record::context::ChainEnd;
use crate::record::{Counts, MAX_COUNTERS, NO_SITE, PartSum, TeamPlace, ThreadFile, ThreadHeader};

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
    /// How its label continues that of what it is in, by number ([`Step`](crate::record::Step)).
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
        (place.site != NO_SITE).then_some(place.site)
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
            let len = interval_words(construct.is_xu(), counters);
            if counters > MAX_COUNTERS || entry.len() != len {
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
    pub(in crate::record) fn table<'a>(&self, bytes: &'a [u8]) -> &'a [[u8; 8]] {
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
