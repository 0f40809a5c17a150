//! Record files as they are read.

use super::context::{self, Calls, Context, Object};
use super::depend::{self, Depend, Point};
use super::lock::{self, Lock};
use super::message::{self, Message};
use super::short::{self, Origin};
use super::*;

/// What is wrong with a record file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Shorter than its header, or not a record file.
    #[error("not a record file of ompfuse")]
    NotRecords,
    /// Written by another version.
    #[error(
        "its records have version {0}, and this ompfuse reads version {VERSION}: read them with the ompfuse that recorded them"
    )]
    Version(u32),
    /// The header claims more than the file holds.
    #[error("cut short: its header tells of {claimed} bytes, {present} are there")]
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
    /// What a thread's parts of a region took.
    Parts(PartSum<'a>),
    /// A file that addresses are in.
    Object(Object<'a>),
    /// A chain of calls.
    Context(Context<'a>),
    /// What was called from where.
    Calls(Calls),
    /// Where a lock is.
    Lock(Lock),
    /// What calls of MPI handed over.
    Message(Message),
    /// What a task depends on.
    Depend(Depend<'a>),
    /// A point of a doacross loop.
    Point(Point),
}

impl ThreadHeader {
    /// Whether a file has no header yet: its process ended while a thread was beginning to record.
    pub fn is_missing(bytes: &[u8]) -> bool {
        let header = bytes.get(..HEADER_LEN).unwrap_or(bytes);
        header.iter().all(|&byte| byte == 0)
    }

    /// Reads the header that a file begins with.
    ///
    /// # Errors
    /// [`RecordError`] if it is not of this version.
    pub fn parse(bytes: &[u8]) -> Result<ThreadHeader, RecordError> {
        let header = bytes.get(..HEADER_LEN).ok_or(RecordError::NotRecords)?;
        let word = |at: usize| get(header, at);
        let half = |at: usize| (get(header, at & !7) >> (8 * (at & 7))) as u32;
        if header[..8] != MAGIC {
            return Err(RecordError::NotRecords);
        }
        let version = half(8);
        if version != VERSION {
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
            unattributed: array(64 + 16 * MAX_COUNTERS + 24),
            reads_for_units: word(64 + 24 * MAX_COUNTERS + 24),
            sums: word(64 + 24 * MAX_COUNTERS + 32),
            sums_at: word(64 + 24 * MAX_COUNTERS + 40),
            sums_len: word(64 + 24 * MAX_COUNTERS + 48),
            prepared_ticks: word(64 + 24 * MAX_COUNTERS + 56),
            ours_ticks: word(64 + 24 * MAX_COUNTERS + 64),
            completed_ticks: word(64 + 24 * MAX_COUNTERS + 72),
            has_marks: word(64 + 24 * MAX_COUNTERS + 80),
            queued: word(64 + 24 * MAX_COUNTERS + 88),
            name: {
                let at = 64 + 24 * MAX_COUNTERS + 96;
                core::array::from_fn(|nth| header[at + nth])
            },
            ran: word(64 + 24 * MAX_COUNTERS + 112),
            queued_start: word(64 + 24 * MAX_COUNTERS + 120),
            ran_start: word(64 + 24 * MAX_COUNTERS + 128),
        })
    }

    /// Where the records behind the first `from` bytes of them lie in the file, in their order: ranges of offsets. Only for
    /// the file as it is at the moment: a stage is used again once its records are in the log.
    pub fn behind(&self, from: u64) -> [core::ops::Range<u64>; 2] {
        let begin = HEADER_LEN as u64;
        let (log, stage) = match self.stage {
            0 => (self.committed, 0),
            stage => (self.flushed.min(self.committed), stage),
        };
        let (from, end) = (from.min(self.committed), self.committed);
        let in_log = from.min(log)..log;
        let staged = from.max(log) - log..end - log;
        // Numbers of a damaged file lie behind its end then.
        let shift =
            |r: core::ops::Range<u64>, by| r.start.saturating_add(by)..r.end.saturating_add(by);
        [
            shift(in_log, begin.saturating_add(stage)),
            shift(staged, begin),
        ]
    }
}

/// A thread's record file, read.
#[derive(Debug, Clone, Copy)]
pub struct ThreadFile<'a> {
    /// Its header.
    pub header: ThreadHeader,
    log: &'a [u8],
    staged: &'a [u8],
    pub(super) sums: &'a [[u8; 8]],
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
        let (log, staged) = if header.stage == 0 {
            (part(0, header.committed), Some(&[][..]))
        } else {
            let staged = header.committed.wrapping_sub(header.flushed);
            if staged > header.stage {
                return Err(RecordError::NotRecords);
            }
            (part(header.stage, header.flushed), part(0, staged))
        };
        let (Some(log), Some(staged)) = (log, staged) else {
            // Flushed records stand behind the stage.
            return Err(truncated(
                header
                    .committed
                    .max(header.stage.saturating_add(header.flushed)),
            ));
        };
        Ok(ThreadFile {
            header,
            log,
            staged,
            sums: header.table(bytes),
        })
    }

    /// The records that tell of calling contexts, in the order of writing. The others are passed over, which is much faster than
    /// reading them. Stops before the first that is malformed.
    pub fn contexts(&self) -> impl Iterator<Item = Record<'a>> {
        let mut parts = [self.log, self.staged].into_iter();
        let mut rest: &[u8] = &[];
        core::iter::from_fn(move || {
            loop {
                while rest.is_empty() {
                    rest = parts.next()?;
                }
                let (head, body) = frame(rest)?;
                rest = &rest[body.len()..];
                match head as u8 {
                    context::KIND_OBJECT => {
                        return Some(Record::Object(context::read_object(body)?));
                    }
                    context::KIND_CONTEXT => {
                        return Some(Record::Context(context::read_context(body)?));
                    }
                    context::KIND_CALLS => {
                        return Some(Record::Calls(context::read_calls(body)?));
                    }
                    lock::KIND_LOCK => return Some(Record::Lock(lock::read_lock(body)?)),
                    _ => {}
                }
            }
        })
    }

    /// The records in the order of writing. Stops after the first error.
    pub fn records(&self) -> Records<'a> {
        Records {
            bytes: self.log,
            next: self.staged,
            at: 0,
            origin: Origin::of(&self.header),
            more: [None; 2],
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
    origin: Origin,
    /// What the last record says besides, in the order of saying.
    more: [Option<Interval<'a>>; 2],
}

impl<'a> Records<'a> {
    /// Of bytes that begin and end where records do, from the file with this header.
    pub fn of(header: &ThreadHeader, bytes: &'a [u8]) -> Records<'a> {
        Records {
            bytes,
            next: &[],
            at: 0,
            origin: Origin::of(header),
            more: [None; 2],
        }
    }

    /// Bytes that were not read yet.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at + self.next.len()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(next) = self.more.iter_mut().find_map(Option::take) {
            return Some(Ok(Record::Interval(next)));
        }
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
            match parse_record(rest, self.origin) {
                Some((len, record, more)) => {
                    self.at += len;
                    self.more = more;
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

/// A record's length, what it says unless its kind is unknown, and what it says besides.
type Parsed<'a> = (usize, Option<Record<'a>>, [Option<Interval<'a>>; 2]);

/// The first word of the first record in `bytes`, and all of its bytes; `None` if malformed.
#[inline]
fn frame(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let head = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let kind = head as u8;
    let len = if kind == KIND_PAD {
        usize::try_from(u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?)).ok()?
    } else if short::is_short(kind) {
        usize::from((head >> 16) as u8) * 8
    } else {
        usize::from((head >> 16) as u16)
    };
    if len < 8 || len % 8 != 0 || (kind == KIND_PAD && len < 16) {
        return None;
    }
    Some((head, bytes.get(..len)?))
}

/// The first record in `bytes`; `None` if malformed.
fn parse_record(bytes: &[u8], origin: Origin) -> Option<Parsed<'_>> {
    let (head, body) = frame(bytes)?;
    let (kind, len) = (head as u8, body.len());
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
        short::KIND_NODE => Some(Record::Node(short::read_node(body.as_chunks().0, origin)?)),
        kind if short::is_short(kind) => {
            let (interval, more) = short_interval(body, origin, kind)?;
            return Some((len, Some(Record::Interval(interval)), more));
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
                disturbed: get(body, 24) >> 32 & 1 != 0,
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
                short: get(body, 24) >> 33 & 1 != 0,
                team: TeamPlace::from_word(get(body, 32))?,
            }))
        }
        KIND_PARTS => {
            if !(PartSum::LEN..=PartSum::LEN + 8 * MAX_COUNTERS).contains(&len) {
                return None;
            }
            Some(Record::Parts(PartSum {
                construct: Construct::from_number((head >> 8) as u8)?,
                site,
                t0: get(body, 8),
                t1: get(body, 16),
                parts: get(body, 24),
                read: get(body, 32),
                member: get(body, 40) as u32,
                ticks: get(body, 48),
                read_ticks: get(body, 56),
                processor_ns: get(body, 64),
                wait_ticks: get(body, 72),
                counts: Counts(&body[PartSum::LEN..]),
            }))
        }
        context::KIND_OBJECT => Some(Record::Object(context::read_object(body)?)),
        context::KIND_CONTEXT => Some(Record::Context(context::read_context(body)?)),
        context::KIND_CALLS => Some(Record::Calls(context::read_calls(body)?)),
        lock::KIND_LOCK => Some(Record::Lock(lock::read_lock(body)?)),
        message::KIND_MESSAGE => Some(Record::Message(message::read_message(body)?)),
        depend::KIND_DEPEND => Some(Record::Depend(depend::read_depend(body)?)),
        depend::KIND_POINT => Some(Record::Point(depend::read_point(body)?)),
        _ => None,
    };
    Some((len, record, [None; 2]))
}

/// The intervals of a short record: a range comes before its loop, and that before its fetches.
fn short_interval(
    body: &[u8],
    origin: Origin,
    kind: u8,
) -> Option<(Interval<'_>, [Option<Interval<'_>>; 2])> {
    let words = body.as_chunks().0;
    let (range, read) = if short::is_loop(kind) {
        let (range, read) = short::read_loop(words, origin)?;
        (Some(range), read)
    } else {
        (None, short::read_interval(words, origin)?)
    };
    let counts = body.get(8 * read.words..)?;
    if counts.len() > 8 * MAX_COUNTERS {
        return None;
    }
    let interval = |head: &IntervalHead, counts| Interval {
        construct: head.construct,
        site: head.site,
        node: head.node,
        parent: head.parent,
        step: head.step,
        cpu: head.cpu,
        index: head.index,
        extent: head.extent,
        t0: head.t0,
        t1: head.t1,
        own_ticks: head.own_ticks,
        disturbed: head.disturbed,
        set: read.set,
        counts: Counts(counts),
    };
    let own = interval(&read.head, counts);
    let dispatch = read.fetched.map(|f| short::dispatch(&read.head, f));
    let dispatch = dispatch.map(|head| interval(&head, &[]));
    Some(match range {
        Some(range) => (interval(&range, &[]), [Some(own), dispatch]),
        None => (own, [dispatch, None]),
    })
}

/// Word at `at`, which the caller has checked to be inside.
pub(super) fn get(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
