//! Short forms of nodes and intervals: numbers that fit into half a word, and nothing that follows from the rest.
//!
//! ```text
//! node      kind:u8 construct:u8 words:u8 step:u8   site:u32 | node:u32 parent:u32 | index:u64
//! interval  kind:u8 construct:u8 words:u8 set:5 step:3 site:u32 | cpu:u16 end:u48 | parent:u32 ticks:u32
//!           [origin:u32 0:u32] [node:u32 index:u32] [own:u32 extent:u32] [fetches:u32 fetching:u32] counts:u64...
//! loop      kind:u8 construct:u8 words:u8 set:5 step:3 site:u32 | cpu:u16 end:u48 | parent:u32 ticks:u32
//!           | node:u32 index:u32 | own:u32 range's ticks:u32 | first:u32 iterations:u32
//!           [fetches:u32 fetching:u32] [range's own:u32 0:u32]
//! ```
//! Further bits of `kind` say that the interval, the loop or its range was disturbed.
//! `words` is the record's length in words. `node` and `parent` are numbers of the thread that writes, or of the one that
//! `origin` says, without the part that all of its nodes share. `end` counts from the beginning of the thread's recording,
//! `ticks` is the time since the interval's begin. Which of the words in brackets there are is in `kind`: without them the
//! thread is the one that writes, there is neither node nor index, and all ticks are the interval's own. With `fetches` a
//! second interval follows from the record, which is told of where a file is read: the loop's `dispatch`, with `fetching` as its
//! own ticks. A loop's record has its only range besides, whose node is the next one, and which ended when the loop did. What
//! doesn't fit (a day's recording, an interval of more than a second, a negative index) is written in full.

mod read;

pub(super) use read::{is_loop, is_short, read_interval, read_loop, read_node};

use super::{Construct, IntervalHead, Node, Step, ThreadHeader};
use zerocopy::FromZeros;

/// First byte of a short node.
pub const KIND_NODE: u8 = 6;
/// First byte of a short interval without any of the words below.
pub const KIND_INTERVAL: u8 = 0x40;
/// There is a word with node and index.
const HAS_NODE: u8 = 1;
/// In that word the node is none.
const NO_NODE: u8 = 2;
/// There is a word with own ticks and extent.
const HAS_COST: u8 = 4;
/// There is a word that tells whose the node and the parent are.
const HAS_ORIGIN: u8 = 8;
/// There is a word with the ranges that a loop has fetched.
const HAS_FETCHES: u8 = 16;
/// It was disturbed.
const MARK: u8 = 32;
/// The bits of an interval's kind that are no flags.
const KIND_MASK: u8 = !(HAS_NODE | NO_NODE | HAS_COST | HAS_ORIGIN | HAS_FETCHES | MARK);

/// First byte of a loop with its only range, without any of the words below.
pub const KIND_LOOP: u8 = 0x20;
/// There is a word with the ranges that it has fetched.
const LOOP_FETCHES: u8 = 1;
/// There is a word with the range's own ticks: they are not all of its ticks.
const LOOP_COST: u8 = 2;
/// It was disturbed.
const LOOP_MARK: u8 = 4;
/// Its range was.
const RANGE_MARK: u8 = 8;
/// The bits of a loop's kind that are no flags.
const LOOP_MASK: u8 = !(LOOP_FETCHES | LOOP_COST | LOOP_MARK | RANGE_MARK);
/// Words that every such record has.
const LOOP_FIRST: usize = 6;
/// Most words of it.
pub const LOOP_WORDS: usize = LOOP_FIRST + 2;

/// Words of a short node.
pub const NODE_WORDS: usize = 3;
/// Most words of a short interval without counts.
pub const INTERVAL_WORDS: usize = FIRST_WORDS + 4;
/// Words that every short interval has.
const FIRST_WORDS: usize = 3;

/// Bits of a node's number in its thread.
const SEQUENCE: u32 = 40;
/// Bits of an interval's event set.
const SET: u32 = 5;
/// The bits that are its number. There are not as many sets.
const SETS: u8 = (1 << SET) - 1;
const _: () = assert!(crate::control::MAX_SETS <= 1 << SET);
/// Bits of `end`.
const END: u32 = 48;

/// What short records leave out: whose nodes they mean, and from when on their time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromZeros)]
pub struct Origin {
    /// What the numbers of this thread's nodes have in common.
    pub nodes: u64,
    /// [`ThreadHeader::tsc_start`].
    pub start: u64,
}

impl Origin {
    /// Of the thread with this index.
    pub const fn new(index: u32, start: u64) -> Origin {
        Origin {
            nodes: (index as u64 + 1) << SEQUENCE,
            start,
        }
    }

    /// Of a file's thread.
    pub const fn of(header: &ThreadHeader) -> Origin {
        Origin::new(header.index, header.tsc_start)
    }
}

/// The words of a short node, or `None` if it doesn't fit.
#[inline]
pub fn node(n: &Node, origin: Origin) -> Option<[u64; NODE_WORDS]> {
    let (node, parent) = (n.node ^ origin.nodes, n.parent ^ origin.nodes);
    if (node | parent) >> 32 != 0 {
        return None;
    }
    let head = u64::from(KIND_NODE)
        | (n.construct as u64) << 8
        | (NODE_WORDS as u64) << 16
        | (n.step as u64) << 24
        | u64::from(n.site) << 32;
    Some([head, node | parent << 32, n.index as u64])
}

/// The words of a short interval, written through `put(word index, value)`, the first one last: how many they are. 0: it
/// doesn't fit. `fetched`: how often it fetched ranges, and the ticks that this took, if they are a record's worth.
#[inline(always)]
pub fn interval(
    i: &IntervalHead,
    origin: Origin,
    set: u8,
    fetched: Option<(u64, u64)>,
    counts: impl ExactSizeIterator<Item = u64>,
    put: impl FnMut(usize, u64),
) -> usize {
    if (i.parent ^ origin.nodes) >> 32 != 0 {
        return interval_of_others(*i, origin, set, fetched, counts, put);
    }
    words_of(
        i,
        origin.nodes,
        origin.start,
        (KIND_INTERVAL | mark(i, MARK), FIRST_WORDS),
        set,
        fetched,
        counts,
        put,
    )
}

/// As [`interval`] of the first set without counts, in fewer instructions. 0 also in a construct that began on another thread.
#[inline(always)]
pub fn plain(
    i: &IntervalHead,
    origin: Origin,
    fetched: Option<(u64, u64)>,
    mut put: impl FnMut(usize, u64),
) -> usize {
    let is_none = i.node == 0;
    let node = if is_none { 0 } else { i.node ^ origin.nodes };
    let parent = i.parent ^ origin.nodes;
    let end = i.t1.wrapping_sub(origin.start);
    let ticks = i.t1.wrapping_sub(i.t0);
    let (fetches, fetching) = fetched.unwrap_or_default();
    let halves = node | parent | ticks | i.index as u64 | i.extent | i.own_ticks;
    if ((halves | fetches | fetching) >> 32) | (end >> END) != 0 {
        return 0;
    }
    put(1, u64::from(i.cpu) | end << 16);
    put(2, parent | ticks << 32);
    let (mut kind, mut at) = (KIND_INTERVAL | mark(i, MARK), FIRST_WORDS);
    if !is_none || i.index != 0 {
        kind |= if is_none {
            HAS_NODE | NO_NODE
        } else {
            HAS_NODE
        };
        put(at, node | (i.index as u64) << 32);
        at += 1;
    }
    // Behind the record, if there is no such word.
    put(at, i.own_ticks | i.extent << 32);
    let has_cost = i.own_ticks ^ ticks | i.extent != 0;
    kind |= if has_cost { HAS_COST } else { 0 };
    at += usize::from(has_cost);
    if fetched.is_some() {
        kind |= HAS_FETCHES;
        put(at, fetches | fetching << 32);
        at += 1;
    }
    put(0, head(kind, at, 0, i));
    at
}

/// As [`interval`], in a construct that began on another thread (or long ago).
#[inline(never)]
fn interval_of_others(
    i: IntervalHead,
    origin: Origin,
    set: u8,
    fetched: Option<(u64, u64)>,
    counts: impl ExactSizeIterator<Item = u64>,
    mut put: impl FnMut(usize, u64),
) -> usize {
    // All nodes of a thread have the same upper half, if there aren't very many of them.
    let nodes = i.parent & !u64::from(u32::MAX);
    let thread = nodes >> SEQUENCE;
    if thread << SEQUENCE != nodes {
        return 0;
    }
    put(FIRST_WORDS, thread);
    let kind = (KIND_INTERVAL | HAS_ORIGIN | mark(&i, MARK), FIRST_WORDS + 1);
    words_of(&i, nodes, origin.start, kind, set, fetched, counts, put)
}

/// The words of a short interval whose nodes have all of `nodes` in common, with those that there are already.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "compiled into its callers")]
fn words_of(
    i: &IntervalHead,
    nodes: u64,
    start: u64,
    (mut kind, mut at): (u8, usize),
    set: u8,
    fetched: Option<(u64, u64)>,
    counts: impl ExactSizeIterator<Item = u64>,
    mut put: impl FnMut(usize, u64),
) -> usize {
    let none = i.node == 0;
    let node = if none { 0 } else { i.node ^ nodes };
    let end = i.t1.wrapping_sub(start);
    let ticks = i.t1.wrapping_sub(i.t0);
    let (fetches, fetching) = fetched.unwrap_or_default();
    let halves = node | ticks | i.index as u64 | i.extent | i.own_ticks | fetches | fetching;
    if (halves >> 32) | (end >> END) != 0 {
        return 0;
    }
    put(1, u64::from(i.cpu) | end << 16);
    put(2, i.parent & u64::from(u32::MAX) | ticks << 32);
    if !none || i.index != 0 {
        kind |= if none { HAS_NODE | NO_NODE } else { HAS_NODE };
        put(at, node | (i.index as u64) << 32);
        at += 1;
    }
    if i.own_ticks != ticks || i.extent != 0 {
        kind |= HAS_COST;
        put(at, i.own_ticks | i.extent << 32);
        at += 1;
    }
    if fetched.is_some() {
        kind |= HAS_FETCHES;
        put(at, fetches | fetching << 32);
        at += 1;
    }
    for count in counts {
        put(at, count);
        at += 1;
    }
    put(0, head(kind, at, set, i));
    at
}

/// The flag of an interval that was disturbed.
#[inline(always)]
fn mark(i: &IntervalHead, flag: u8) -> u8 {
    flag * u8::from(i.disturbed)
}

/// The first word of a record of so many words.
#[inline(always)]
fn head(kind: u8, words: usize, set: u8, i: &IntervalHead) -> u64 {
    u64::from(kind)
        | (i.construct as u64) << 8
        | (words as u64) << 16
        | u64::from(set & SETS) << 24
        | (i.step as u64) << (24 + SET)
        | u64::from(i.site) << 32
}

/// The words of a loop's record together with its only range, which has ended with it, as in [`interval`]. 0: they don't belong
/// together, or don't fit.
#[inline(always)]
pub fn with_range(
    l: &IntervalHead,
    range: &IntervalHead,
    origin: Origin,
    set: u8,
    fetched: Option<(u64, u64)>,
    mut put: impl FnMut(usize, u64),
) -> usize {
    let node = l.node ^ origin.nodes;
    let parent = l.parent ^ origin.nodes;
    let end = l.t1.wrapping_sub(origin.start);
    let (ticks, inner) = (l.t1.wrapping_sub(l.t0), range.t1.wrapping_sub(range.t0));
    let (fetches, fetching) = fetched.unwrap_or_default();
    let halves = node | parent | ticks | inner | (l.index | range.index) as u64 | range.extent;
    let halves = halves | l.own_ticks | range.own_ticks | fetches | fetching;
    // The range's number fits if it is the loop's plus 1, and that isn't a number of the next half.
    let is_next = range.node == l.node + 1 && range.node as u32 != 0;
    if (halves >> 32) | (end >> END) | l.extent != 0 || !is_next || range.site != l.site {
        return 0;
    }
    put(1, u64::from(l.cpu) | end << 16);
    put(2, parent | ticks << 32);
    put(3, node | (l.index as u64) << 32);
    put(4, l.own_ticks | inner << 32);
    put(5, range.index as u64 | range.extent << 32);
    let mut kind = KIND_LOOP | mark(l, LOOP_MARK) | mark(range, RANGE_MARK);
    let mut at = LOOP_FIRST;
    if fetched.is_some() {
        kind |= LOOP_FETCHES;
        put(at, fetches | fetching << 32);
        at += 1;
    }
    if range.own_ticks != inner {
        kind |= LOOP_COST;
        put(at, range.own_ticks);
        at += 1;
    }
    put(0, head(kind, at, set, l));
    at
}

/// What the ranges of a construct are.
pub const fn part_of(construct: Construct) -> Construct {
    match construct {
        Construct::Sections => Construct::Section,
        _ => Construct::Range,
    }
}

/// The interval of a loop's fetches.
pub fn dispatch(head: &IntervalHead, (fetches, fetching): (u64, u64)) -> IntervalHead {
    IntervalHead {
        construct: Construct::Dispatch,
        node: 0,
        parent: head.node,
        step: Step::None,
        index: 0,
        extent: fetches,
        own_ticks: fetching,
        disturbed: false,
        ..*head
    }
}
