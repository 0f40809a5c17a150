//! Short records as they are read.

use super::{
    Construct, FIRST_WORDS, HAS_COST, HAS_FETCHES, HAS_NODE, HAS_ORIGIN, IntervalHead,
    KIND_INTERVAL, KIND_LOOP, KIND_MASK, KIND_NODE, LOOP_COST, LOOP_FETCHES, LOOP_FIRST, LOOP_MARK,
    LOOP_MASK, MARK, NO_NODE, Node, Origin, RANGE_MARK, SEQUENCE, SET, SETS, Step, part_of,
};

/// Whether records of this kind are short.
pub(in crate::record) fn is_short(kind: u8) -> bool {
    kind == KIND_NODE || kind & KIND_MASK == KIND_INTERVAL || is_loop(kind)
}

/// Whether records of this kind are those of a loop and its only range.
pub(in crate::record) fn is_loop(kind: u8) -> bool {
    kind & LOOP_MASK == KIND_LOOP
}

/// A loop's record and its range, as they were written by [`with_range`]; `None` if it is malformed.
pub(in crate::record) fn read_loop(
    words: &[[u8; 8]],
    origin: Origin,
) -> Option<(IntervalHead, Read)> {
    let first: &[[u8; 8]; LOOP_FIRST] = words.first_chunk()?;
    let [head, end, parent, node, own, iterations] = first.map(u64::from_le_bytes);
    let (kind, set_and_step) = (head as u8, (head >> 24) as u8);
    let mut at = LOOP_FIRST;
    let mut optional = |flag: u8| {
        if kind & flag == 0 {
            return Some(None);
        }
        at += 1;
        Some(Some(u64::from_le_bytes(*words.get(at - 1)?)))
    };
    let fetched = optional(LOOP_FETCHES)?;
    let range_own = optional(LOOP_COST)?;
    let t1 = origin.start.wrapping_add(end >> 16);
    let head = IntervalHead {
        construct: Construct::from_number((head >> 8) as u8)?,
        site: (head >> 32) as u32,
        node: u64::from(node as u32) | origin.nodes,
        parent: u64::from(parent as u32) | origin.nodes,
        step: Step::from_number(set_and_step >> SET)?,
        cpu: end as u16,
        index: (node >> 32) as i64,
        extent: 0,
        t0: t1.wrapping_sub(parent >> 32),
        t1,
        own_ticks: u64::from(own as u32),
        disturbed: kind & LOOP_MARK != 0,
    };
    let inner = own >> 32;
    let range = IntervalHead {
        construct: part_of(head.construct),
        node: head.node.wrapping_add(1),
        parent: head.node,
        step: Step::Range,
        index: i64::from(iterations as u32),
        extent: iterations >> 32,
        t0: t1.wrapping_sub(inner),
        own_ticks: range_own.unwrap_or(inner),
        disturbed: kind & RANGE_MARK != 0,
        ..head
    };
    let read = Read {
        head,
        set: set_and_step & SETS,
        fetched: fetched.map(|word| (u64::from(word as u32), word >> 32)),
        words: at,
    };
    Some((range, read))
}

/// A node's record, as it was written by [`node`]; `None` if it is malformed.
pub(in crate::record) fn read_node(words: &[[u8; 8]], origin: Origin) -> Option<Node> {
    let [head, numbers, index] = words.first_chunk()?.map(u64::from_le_bytes);
    Some(Node {
        construct: Construct::from_number((head >> 8) as u8)?,
        site: (head >> 32) as u32,
        node: u64::from(numbers as u32) ^ origin.nodes,
        parent: numbers >> 32 ^ origin.nodes,
        step: Step::from_number((head >> 24) as u8)?,
        index: index as i64,
    })
}

/// An interval's record, as it was read.
pub(in crate::record) struct Read {
    pub(in crate::record) head: IntervalHead,
    pub(in crate::record) set: u8,
    /// See [`interval`].
    pub(in crate::record) fetched: Option<(u64, u64)>,
    /// Words before the first count.
    pub(in crate::record) words: usize,
}

/// An interval's record, as it was written by [`interval`]; `None` if it is malformed.
pub(in crate::record) fn read_interval(words: &[[u8; 8]], origin: Origin) -> Option<Read> {
    let [head, end, parent] = words.first_chunk()?.map(u64::from_le_bytes);
    let (kind, set_and_step) = (head as u8, (head >> 24) as u8);
    let mut at = FIRST_WORDS;
    let mut optional = |flag: u8| {
        if kind & flag == 0 {
            return Some(None);
        }
        at += 1;
        Some(Some(u64::from_le_bytes(*words.get(at - 1)?)))
    };
    let nodes = optional(HAS_ORIGIN)?.map_or(origin.nodes, |thread| thread << SEQUENCE);
    let node = optional(HAS_NODE)?;
    let cost = optional(HAS_COST)?;
    let fetched = optional(HAS_FETCHES)?;
    let ticks = parent >> 32;
    let t1 = origin.start.wrapping_add(end >> 16);
    let head = IntervalHead {
        construct: Construct::from_number((head >> 8) as u8)?,
        site: (head >> 32) as u32,
        node: match node {
            Some(node) if kind & NO_NODE == 0 => u64::from(node as u32) | nodes,
            _ => 0,
        },
        parent: u64::from(parent as u32) | nodes,
        step: Step::from_number(set_and_step >> SET)?,
        cpu: end as u16,
        index: node.map_or(0, |node| (node >> 32) as i64),
        extent: cost.map_or(0, |cost| cost >> 32),
        t0: t1.wrapping_sub(ticks),
        t1,
        own_ticks: cost.map_or(ticks, |cost| u64::from(cost as u32)),
        disturbed: kind & MARK != 0,
    };
    Some(Read {
        head,
        set: set_and_step & SETS,
        fetched: fetched.map(|word| (u64::from(word as u32), word >> 32)),
        words: at,
    })
}
