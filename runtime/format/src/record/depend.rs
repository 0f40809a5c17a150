//! What orders execution units besides creation and barriers: the dependences of tasks, and the posts and waits of doacross loops.
//!
//! ```text
//! depend    kind:u8 0:u8 len:u16 flags:u32 | node:u64 | address << 3 | kind ...
//! point     kind:u8 0:u8 len:u16 flags:u32 | vector:u64
//! ```
//! A `depend` record tells what a task, or a wait for tasks, names in its `depend` clauses, in the order of the runtime's call. Edges
//! follow from these, the order of creation among siblings, and the kinds (OpenMP 5.2, section 15.9.5). Long lists are several records.
//! A `point` record tells the iteration that a doacross loop posts or waits for, or the event that is fulfilled; the interval that it is
//! about comes behind it on its thread.

use super::get;

/// First byte of a [`Depend`] record.
pub const KIND_DEPEND: u8 = 13;
/// First byte of a [`Point`] record.
pub const KIND_POINT: u8 = 14;

/// Addresses in one record, at most; more are told by further ones.
pub const MOST_ADDRESSES: usize = 64;

/// How an address is depended on (OpenMP 5.2, section 15.9.5; `out` and `inout` are one).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Access {
    /// `in`.
    In = 1,
    /// `out`, `inout`.
    Out = 2,
    /// `mutexinoutset`: one of a set at a time, in any order.
    MutexInOutSet = 3,
    /// `inoutset`: a set at once.
    InOutSet = 4,
    /// `out` or `inout` of `omp_all_memory`; the address means nothing.
    AllMemory = 5,
}

impl Access {
    /// The kind with this number.
    pub const fn from_number(number: u64) -> Option<Access> {
        Some(match number {
            1 => Access::In,
            2 => Access::Out,
            3 => Access::MutexInOutSet,
            4 => Access::InOutSet,
            5 => Access::AllMemory,
            _ => return None,
        })
    }

    /// With an address, as one word.
    pub const fn word(self, address: u64) -> u64 {
        address << 3 | self as u64
    }
}

/// [`Depend::flags`]: it is a wait of the task `node`, whose interval comes behind it on its thread; else `node` is the task that depends.
pub const OF_WAIT: u32 = 1;
/// [`Depend::flags`]: the task has ended when [`Depend::event`] is fulfilled, too (`detach`).
pub const DETACHED: u32 = 2;
/// [`Depend::flags`]: nobody waits here; tasks that are created later do (`taskwait nowait`).
pub const NO_WAIT: u32 = 4;
/// [`Depend::flags`]: who waits executes only what it waits for (libgomp).
pub const WAITS_ONLY: u32 = 8;
/// [`Depend::flags`]: a taskgroup of the task `node` begins. Its words are [`Depend::group`].
pub const OF_GROUP: u32 = 16;
/// [`Point::flags`]: an iteration is waited for; else one has come so far.
pub const WAITS: u32 = 1;
/// [`Point::flags`]: an event of this handle is fulfilled, in the call whose interval comes behind.
pub const FULFILS: u32 = 2;

/// What a task depends on, or a wait for tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depend<'a> {
    /// [`OF_WAIT`], [`DETACHED`], [`NO_WAIT`], [`WAITS_ONLY`], [`OF_GROUP`].
    pub flags: u32,
    /// The task's node; of a wait that of what waits.
    pub node: u64,
    words: &'a [u8],
}

impl<'a> Depend<'a> {
    /// Encoded length in bytes with so many addresses.
    pub const fn len_of(addresses: usize) -> usize {
        16 + 8 * addresses
    }

    /// Addresses and how they are depended on. Kinds that this version doesn't know are left out.
    pub fn addresses(&self) -> impl Iterator<Item = (u64, Access)> + use<'a> {
        let words = self.words.as_chunks::<8>().0.iter();
        let words = words.map(|w| u64::from_le_bytes(*w));
        words.filter_map(|word| Some((word >> 3, Access::from_number(word & 7)?)))
    }

    /// Of a task with `detach`: the handle of its event.
    pub fn event(&self) -> Option<u64> {
        let [handle] = self.words.as_chunks::<8>().0 else {
            return None;
        };
        (self.flags & DETACHED != 0).then_some(u64::from_le_bytes(*handle))
    }

    /// Of a taskgroup: its site, and the clock at the last boundary before it, in ticks.
    pub fn group(&self) -> Option<(u32, u64)> {
        let [site, since] = self.words.as_chunks::<8>().0 else {
            return None;
        };
        Some((u64::from_le_bytes(*site) as u32, u64::from_le_bytes(*since)))
    }
}

/// A point of a doacross loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// [`WAITS`].
    pub flags: u32,
    /// The iteration, as a hash of its vector; or an event's handle.
    pub vector: u64,
}

impl Point {
    /// Encoded length in bytes.
    pub const LEN: usize = 16;
}

/// The words of such a record in front of its addresses.
pub const fn depend_head(flags: u32, node: u64, addresses: usize) -> [u64; 2] {
    let len = Depend::len_of(addresses) as u64;
    [KIND_DEPEND as u64 | len << 16 | (flags as u64) << 32, node]
}

/// The words of such a record.
pub const fn point_words(point: &Point) -> [u64; 2] {
    let head = KIND_POINT as u64 | (Point::LEN as u64) << 16 | (point.flags as u64) << 32;
    [head, point.vector]
}

/// Such a record, whose bytes these are.
pub(super) fn read_depend(body: &[u8]) -> Option<Depend<'_>> {
    let words = body.get(16..)?;
    Some(Depend {
        flags: (get(body, 0) >> 32) as u32,
        node: get(body, 8),
        words,
    })
}

/// Such a record, whose bytes these are.
pub(super) fn read_point(body: &[u8]) -> Option<Point> {
    let body = body.get(..Point::LEN)?;
    Some(Point {
        flags: (get(body, 0) >> 32) as u32,
        vector: get(body, 8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependences_come_back() {
        let words = [Access::Out.word(0x7fff_1234_5671), Access::In.word(8), 7];
        let head = depend_head(DETACHED, 1 << 40, words.len());
        let body: Vec<u8> = (head.iter().chain(&words))
            .flat_map(|w| w.to_le_bytes())
            .collect();
        assert_eq!(body.len(), Depend::len_of(words.len()));
        let read = read_depend(&body).expect("such a record");
        assert_eq!((read.flags, read.node), (DETACHED, 1 << 40));
        let addresses: Vec<_> = read.addresses().collect();
        assert_eq!(
            addresses,
            [(0x7fff_1234_5671, Access::Out), (8, Access::In)]
        );
        assert_eq!(read_depend(&body[..8]), None);
    }

    #[test]
    fn points_come_back() {
        let point = Point {
            flags: WAITS,
            vector: u64::MAX,
        };
        let body: Vec<u8> = point_words(&point)
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect();
        assert_eq!(read_point(&body), Some(point));
        assert_eq!(read_point(&body[..8]), None);
    }
}
