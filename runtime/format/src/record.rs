//! The bytes of a thread's record file: a header page, then records, all little-endian and 8-byte aligned.
//!
//! ```text
//! +0              ThreadHeader, padded to HEADER_LEN
//! +4096           the stage: records that are not flushed yet, `committed - flushed` bytes
//! +4096 + stage   the log: `flushed` bytes of records
//! ```
//! The stage is what the recording thread has mapped. When it is full it is written to the end of the log, then counted
//! as flushed, and used again from its beginning. Without a stage (length 0: version 1, and short files that were closed in
//! an orderly way) all records follow the header. Who reads while the thread records copies the stage and asks for `flushed`
//! before and after: the copy is good if it hasn't changed.
//!
//! Every record starts with `kind:u8 construct:u8 len:u16 site:u32`, `len` in bytes, a multiple of 8; a reader skips
//! kinds that it does not know. A writer stores a record in full before it adds its length to `committed`, so what is
//! committed is whole, whatever ends the process.

use crate::construct::Construct;

/// First bytes of a record file.
pub const MAGIC: [u8; 8] = *b"OMPFXU01";
/// Version of the layout. Version 1 had one event set per file (0 where an interval's set is), and no stage.
pub const VERSION: u32 = 2;
/// The first version that can be read.
pub const FIRST_VERSION: u32 = 1;
/// Bytes before the first record.
pub const HEADER_LEN: usize = 4096;
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

/// Instances of a region that a thread has executed and not recorded, since it last said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// What they are.
    pub construct: Construct,
    /// `module << 24 | site`.
    pub site: u32,
    /// How many.
    pub count: u64,
    /// Their own time in ticks.
    pub ticks: u64,
    /// One in so many was recorded at last.
    pub one_in: u32,
    /// Because their probes would have cost too much.
    pub throttled: bool,
}

impl LeftOut {
    /// Encoded length in bytes.
    pub const LEN: usize = 32;
}

/// The words of such a record, written through `put(word index, value)`.
pub fn encode_left_out(l: &LeftOut, mut put: impl FnMut(usize, u64)) {
    let len = LeftOut::LEN as u64;
    put(
        0,
        KIND_LEFT_OUT as u64 | (l.construct as u64) << 8 | len << 16 | (l.site as u64) << 32,
    );
    put(1, l.count);
    put(2, l.ticks);
    put(3, l.one_in as u64 | (l.throttled as u64) << 32);
}

/// The number that stands for a module in the sites of regions that the program names itself; their names are in
/// [`Name`] records.
pub const USER_MODULE: u32 = 254;
/// Longest name of such a region, in bytes.
pub const MAX_NAME: usize = 255;

/// How a node's label continues its parent's ([XU] section 4; the choices are in DESIGN.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// Meaning by `step`.
    pub index: i64,
    /// Range, or task of a taskloop: number of iterations (0: not known, or none). Parallel: team size. Implicit task: thread number in the team.
    /// Critical and locks: ticks spent waiting to enter, a part of `own_ticks`.
    pub extent: u64,
    /// Time stamp counter at the begin.
    pub t0: u64,
    /// ... and at the end.
    pub t1: u64,
    /// Exclusive time in ticks.
    pub own_ticks: u64,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Writes a node record. Returns the bytes written ([`Node::LEN`]); `out` must have room.
pub fn encode_node(out: &mut [u8; Node::LEN], n: &Node) {
    put(
        out,
        0,
        KIND_NODE as u64
            | (n.construct as u64) << 8
            | (Node::LEN as u64) << 16
            | (n.site as u64) << 32,
    );
    put(out, 8, n.node);
    put(out, 16, n.parent);
    put(out, 24, n.step as u64);
    put(out, 32, n.index as u64);
}

/// The words of an interval record for the `counts.len()` counters of event set `set`, written through
/// `put(word index, value)`.
///
/// The record is `(Interval::LEN + 8 * counts.len())` bytes long.
#[inline]
pub fn encode_interval(i: &IntervalHead, set: u8, counts: &[u64], mut put: impl FnMut(usize, u64)) {
    let len = (Interval::LEN + 8 * counts.len()) as u64;
    put(
        0,
        KIND_INTERVAL as u64 | (i.construct as u64) << 8 | len << 16 | (i.site as u64) << 32,
    );
    put(1, i.node);
    put(2, i.parent);
    put(3, i.step as u64 | (set as u64) << 8 | (i.cpu as u64) << 16);
    put(4, i.index as u64);
    put(5, i.extent);
    put(6, i.t0);
    put(7, i.t1);
    put(8, i.own_ticks);
    for (at, &count) in counts.iter().enumerate() {
        put(9 + at, count);
    }
}

/// The words of a name's record, written through `put(word index, value)`. `text` is at most [`MAX_NAME`] bytes long.
pub fn encode_name(site: u32, text: &[u8], mut put: impl FnMut(usize, u64)) {
    let len = Name::len_of(text.len()) as u64;
    put(0, KIND_NAME as u64 | len << 16 | (site as u64) << 32);
    put(1, text.len() as u64);
    for (at, bytes) in text.chunks(8).enumerate() {
        let step = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
        put(2 + at, bytes.iter().rev().fold(0, step));
    }
}

/// [`Interval`] without its event set and counts, for writers.
#[derive(Debug, Clone, Copy)]
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
}

fn put(out: &mut [u8], at: usize, value: u64) {
    out[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// What is wrong with a record file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Shorter than its header, or not a record file.
    #[error("not a record file of ompfuse")]
    NotRecords,
    /// Written by another version.
    #[error(
        "record version {0} is not supported (this is version {VERSION}, {FIRST_VERSION} can be read too)"
    )]
    Version(u32),
    /// The header claims more than the file holds.
    #[error("{claimed} bytes committed, {present} present")]
    Truncated {
        /// Bytes that the header counts.
        claimed: u64,
        /// Bytes that are there.
        present: u64,
    },
    /// A record that can't be.
    #[error("malformed record at byte {0}")]
    Malformed(usize),
}

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// An identity.
    Node(Node),
    /// A stretch of execution.
    Interval(Interval<'a>),
    /// What the program calls a region.
    Name(Name<'a>),
    /// What a thread has left out.
    LeftOut(LeftOut),
}

impl ThreadHeader {
    /// Reads the header that a file begins with.
    ///
    /// # Errors
    /// [`RecordError`] if it is none of these versions.
    pub fn parse(bytes: &[u8]) -> Result<ThreadHeader, RecordError> {
        let header = bytes.get(..HEADER_LEN).ok_or(RecordError::NotRecords)?;
        let word = |at: usize| get(header, at);
        let half = |at: usize| (get(header, at & !7) >> (8 * (at & 7))) as u32;
        if header[..8] != MAGIC {
            return Err(RecordError::NotRecords);
        }
        let version = half(8);
        if !(FIRST_VERSION..=VERSION).contains(&version) {
            return Err(RecordError::Version(version));
        }
        let counters = half(28);
        if half(12) as usize != HEADER_LEN || counters as usize > MAX_COUNTERS {
            return Err(RecordError::NotRecords);
        }
        let array = |at: usize| core::array::from_fn(|i| word(at + 8 * i));
        Ok(ThreadHeader {
            magic: MAGIC,
            version,
            header_len: HEADER_LEN as u32,
            pid: half(16),
            tid: half(20),
            index: half(24),
            counters,
            tsc_start: word(32),
            tsc_end: word(40),
            committed: word(48),
            lost: word(56),
            counts_start: array(64),
            counts_end: array(64 + 8 * MAX_COUNTERS),
            unrecorded_ticks: word(64 + 16 * MAX_COUNTERS),
            flushed: word(64 + 16 * MAX_COUNTERS + 8),
            stage: word(64 + 16 * MAX_COUNTERS + 16),
        })
    }

    /// Where the records behind the first `from` bytes of them lie in the file, in their order: ranges of offsets. Only for
    /// the file as it is at the moment: a stage is used again once its records are in the log.
    pub fn behind(&self, from: u64) -> [core::ops::Range<u64>; 2] {
        let begin = HEADER_LEN as u64;
        let (log, stage) = match (self.version, self.stage) {
            (1, _) | (_, 0) => (self.committed, 0),
            (_, stage) => (self.flushed.min(self.committed), stage),
        };
        let (from, end) = (from.min(self.committed), self.committed);
        let in_log = from.min(log)..log;
        let staged = from.max(log) - log..end - log;
        let shift = |r: core::ops::Range<u64>, by| r.start + by..r.end + by;
        [shift(in_log, begin + stage), shift(staged, begin)]
    }
}

/// A thread's record file, read.
#[derive(Debug, Clone, Copy)]
pub struct ThreadFile<'a> {
    /// Its header.
    pub header: ThreadHeader,
    log: &'a [u8],
    staged: &'a [u8],
}

impl<'a> ThreadFile<'a> {
    /// Reads the header and bounds the records.
    ///
    /// # Errors
    /// [`RecordError`] for everything that is no record file of this version.
    pub fn parse(bytes: &'a [u8]) -> Result<ThreadFile<'a>, RecordError> {
        let header = ThreadHeader::parse(bytes)?;
        let records = &bytes[HEADER_LEN..];
        let truncated = |claimed: u64| RecordError::Truncated {
            claimed,
            present: records.len() as u64,
        };
        let part = |from: u64, len: u64| {
            let end = from.saturating_add(len);
            let range = usize::try_from(from).ok()?..usize::try_from(end).ok()?;
            records.get(range)
        };
        let (log, staged) = if header.version == 1 || header.stage == 0 {
            (part(0, header.committed), Some(&[][..]))
        } else {
            let staged = header.committed.wrapping_sub(header.flushed);
            if staged > header.stage {
                return Err(RecordError::NotRecords);
            }
            (part(header.stage, header.flushed), part(0, staged))
        };
        let (Some(log), Some(staged)) = (log, staged) else {
            return Err(truncated(header.committed));
        };
        Ok(ThreadFile {
            header,
            log,
            staged,
        })
    }

    /// The records in the order of writing. Stops after the first error.
    pub fn records(&self) -> Records<'a> {
        Records {
            bytes: self.log,
            next: self.staged,
            at: 0,
        }
    }
}

/// Iterator over the records of a [`ThreadFile`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
    /// What comes after `bytes`.
    next: &'a [u8],
    at: usize,
}

impl<'a> Records<'a> {
    /// Of bytes that begin and end where records do.
    pub fn of(bytes: &'a [u8]) -> Records<'a> {
        Records {
            bytes,
            next: &[],
            at: 0,
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = &self.bytes[self.at..];
            if rest.is_empty() {
                if self.next.is_empty() {
                    return None;
                }
                (self.bytes, self.at) = (core::mem::take(&mut self.next), 0);
                continue;
            }
            let at = self.at;
            match parse_record(rest) {
                Some((len, record)) => {
                    self.at += len;
                    if let Some(record) = record {
                        return Some(Ok(record));
                    }
                }
                None => {
                    self.at = self.bytes.len();
                    self.next = &[];
                    return Some(Err(RecordError::Malformed(HEADER_LEN + at)));
                }
            }
        }
    }
}

/// Length of the first record in `bytes`, and the record unless it is of an unknown kind; `None` if malformed.
fn parse_record(bytes: &[u8]) -> Option<(usize, Option<Record<'_>>)> {
    let head = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let kind = head as u8;
    let len = if kind == KIND_PAD {
        usize::try_from(u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?)).ok()?
    } else {
        usize::from((head >> 16) as u16)
    };
    if len < 8 || len % 8 != 0 || (kind == KIND_PAD && len < 16) {
        return None;
    }
    let body = bytes.get(..len)?;
    let site = (head >> 32) as u32;
    let record = match kind {
        KIND_NODE => {
            if len < Node::LEN {
                return None;
            }
            Some(Record::Node(Node {
                construct: Construct::from_number((head >> 8) as u8)?,
                site,
                node: get(body, 8),
                parent: get(body, 16),
                step: Step::from_number(get(body, 24) as u8)?,
                index: get(body, 32) as i64,
            }))
        }
        KIND_INTERVAL => {
            if !(Interval::LEN..=Interval::LEN + 8 * MAX_COUNTERS).contains(&len) {
                return None;
            }
            Some(Record::Interval(Interval {
                construct: Construct::from_number((head >> 8) as u8)?,
                site,
                node: get(body, 8),
                parent: get(body, 16),
                step: Step::from_number(get(body, 24) as u8)?,
                cpu: (get(body, 24) >> 16) as u16,
                set: (get(body, 24) >> 8) as u8,
                index: get(body, 32) as i64,
                extent: get(body, 40),
                t0: get(body, 48),
                t1: get(body, 56),
                own_ticks: get(body, 64),
                counts: Counts(&body[Interval::LEN..]),
            }))
        }
        KIND_NAME => {
            let text = usize::try_from(get(body.get(..16)?, 8)).ok()?;
            if text > MAX_NAME {
                return None;
            }
            let text = body.get(16..16 + text)?;
            Some(Record::Name(Name { site, text }))
        }
        KIND_LEFT_OUT => {
            if len < LeftOut::LEN {
                return None;
            }
            Some(Record::LeftOut(LeftOut {
                construct: Construct::from_number((head >> 8) as u8)?,
                site,
                count: get(body, 8),
                ticks: get(body, 16),
                one_in: get(body, 24) as u32,
                throttled: get(body, 24) >> 32 & 1 != 0,
            }))
        }
        _ => None,
    };
    Some((len, record))
}

/// Word at `at`, which the caller has checked to be inside.
fn get(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(records: &[u8], counters: u32) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(HEADER_LEN as u32).to_le_bytes());
        bytes[28..32].copy_from_slice(&counters.to_le_bytes());
        bytes[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
        bytes.extend_from_slice(records);
        bytes
    }

    #[test]
    fn header_fields_lie_where_the_reader_looks() {
        use core::mem::offset_of;
        assert_eq!(offset_of!(ThreadHeader, pid), 16);
        assert_eq!(offset_of!(ThreadHeader, tid), 20);
        assert_eq!(offset_of!(ThreadHeader, index), 24);
        assert_eq!(offset_of!(ThreadHeader, counters), 28);
        assert_eq!(offset_of!(ThreadHeader, tsc_start), 32);
        assert_eq!(offset_of!(ThreadHeader, committed), 48);
        assert_eq!(offset_of!(ThreadHeader, counts_start), 64);
        assert_eq!(offset_of!(ThreadHeader, counts_end), 192);
        assert_eq!(offset_of!(ThreadHeader, unrecorded_ticks), 320);
        assert_eq!(offset_of!(ThreadHeader, flushed), 328);
        assert_eq!(offset_of!(ThreadHeader, stage), 336);
        assert!(size_of::<ThreadHeader>() <= HEADER_LEN);
    }

    #[test]
    fn records_round_trip() {
        let node = Node {
            construct: Construct::Task,
            site: site_ref(1, 7),
            node: 1 << 40 | 3,
            parent: 1 << 40,
            step: Step::TidRanked,
            index: 5,
        };
        let mut bytes = vec![0; Node::LEN];
        encode_node(bytes.as_mut_slice().try_into().unwrap(), &node);
        bytes.extend_from_slice(&[KIND_PAD, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&[0xee; 8]);
        bytes.extend_from_slice(&[200, 0, 16, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]); // a kind of the future
        let head = IntervalHead {
            construct: Construct::Range,
            site: 9,
            node: 2 << 40,
            parent: 1,
            step: Step::Range,
            cpu: 1,
            index: -4,
            extent: 8,
            t0: 100,
            t1: 200,
            own_ticks: 90,
        };
        let mut words = [0; 11];
        encode_interval(&head, 3, &[11, 22], |at, value| words[at] = value);
        words
            .iter()
            .for_each(|w| bytes.extend_from_slice(&w.to_le_bytes()));

        let bytes = file(&bytes, 2);
        let read: Vec<_> = ThreadFile::parse(&bytes)
            .unwrap()
            .records()
            .map(Result::unwrap)
            .collect();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0], Record::Node(node));
        let Record::Interval(i) = read[1] else {
            panic!("{read:?}")
        };
        assert_eq!(
            (i.index, i.own_ticks, i.cpu, i.step, i.set),
            (-4, 90, 1, Step::Range, 3)
        );
        assert_eq!(i.counts.iter().collect::<Vec<_>>(), [11, 22]);
    }

    fn node(sequence: u64) -> [u8; Node::LEN] {
        let mut bytes = [0; Node::LEN];
        let node = Node {
            construct: Construct::Task,
            site: 1,
            node: sequence,
            parent: 0,
            step: Step::Ranked,
            index: 1,
        };
        encode_node(&mut bytes, &node);
        bytes
    }

    /// Two records in the log, one in a stage that has room for three; what lies behind it there is old.
    #[test]
    fn the_log_comes_before_the_stage() {
        let stage: Vec<u8> = [3, 8, 9].into_iter().flat_map(node).collect();
        let log = [1, 2].into_iter().flat_map(node);
        let mut bytes = file(&stage, 0);
        bytes.extend(log);
        let mut put = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        put(48, 3 * Node::LEN as u64);
        put(328, 2 * Node::LEN as u64);
        put(336, stage.len() as u64);
        let of = |bytes: &[u8]| {
            let records = ThreadFile::parse(bytes)?.records();
            let sequence = |r| match r {
                Ok(Record::Node(n)) => n.node,
                other => panic!("{other:?}"),
            };
            Ok(records.map(sequence).collect::<Vec<_>>())
        };
        assert_eq!(of(&bytes), Ok(vec![1, 2, 3]));
        bytes.pop();
        assert!(matches!(of(&bytes), Err(RecordError::Truncated { .. })));
        // Version 1 has no such words.
        bytes[8] = 1;
        assert_eq!(of(&bytes), Ok(vec![3, 8, 9]));
    }

    #[test]
    fn fresh_records_are_in_the_log_or_in_the_stage() {
        let header = |committed: u64, flushed: u64, stage: u64| {
            let mut bytes = file(&[], 0);
            for (at, word) in [(48, committed), (328, flushed), (336, stage)] {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            ThreadHeader::parse(&bytes).unwrap()
        };
        assert_eq!(header(80, 0, 0).behind(16), [4112..4176, 4096..4096]);
        assert_eq!(header(80, 0, 640).behind(16), [4736..4736, 4112..4176]);
        assert_eq!(header(80, 48, 640).behind(16), [4752..4784, 4096..4128]);
        assert_eq!(header(80, 48, 640).behind(64), [4784..4784, 4112..4128]);
        assert_eq!(header(80, 48, 640).behind(999), [4784..4784, 4128..4128]);
    }

    #[test]
    fn names_round_trip() {
        for text in ["", "a", "12345678", "a longer name"] {
            let mut bytes = vec![0; Name::len_of(text.len())];
            let site = site_ref(USER_MODULE, 3);
            encode_name(site, text.as_bytes(), |at, word| {
                bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
            });
            let bytes = file(&bytes, 0);
            let read: Vec<_> = ThreadFile::parse(&bytes).unwrap().records().collect();
            let text = text.as_bytes();
            assert_eq!(read, [Ok(Record::Name(Name { site, text }))]);
        }
    }

    #[test]
    fn what_is_left_out_round_trips() {
        let left_out = LeftOut {
            construct: Construct::Task,
            site: site_ref(2, 5),
            count: 7 << 40,
            ticks: 9,
            one_in: 16,
            throttled: true,
        };
        let mut bytes = vec![0; LeftOut::LEN];
        encode_left_out(&left_out, |at, word| {
            bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        });
        let bytes = file(&bytes, 0);
        let read: Vec<_> = ThreadFile::parse(&bytes).unwrap().records().collect();
        assert_eq!(read, [Ok(Record::LeftOut(left_out))]);
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let mut bytes = file(&[1, 0, 40, 0, 0, 0, 0, 0], 0);
        assert_eq!(
            ThreadFile::parse(&bytes).unwrap().records().next(),
            Some(Err(RecordError::Malformed(HEADER_LEN)))
        );
        bytes.pop();
        assert!(matches!(
            ThreadFile::parse(&bytes),
            Err(RecordError::Truncated { .. })
        ));
        assert_eq!(
            ThreadFile::parse(&bytes[..100]).unwrap_err(),
            RecordError::NotRecords
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(records in proptest::collection::vec(any::<u8>(), 0..400), counters in 0u32..20) {
            let bytes = file(&records, counters);
            if let Ok(file) = ThreadFile::parse(&bytes) {
                for record in file.records() {
                    if let Ok(Record::Interval(i)) = record {
                        prop_assert!(i.counts.iter().len() <= MAX_COUNTERS);
                    }
                }
            }
        }
    }
}
