//! Records as they are written.

use super::*;

/// The words of such a record, written through `put(word index, value)`.
pub fn encode_left_out(l: &LeftOut, mut put: impl FnMut(usize, u64)) {
    let len = LeftOut::LEN as u64;
    put(
        0,
        KIND_LEFT_OUT as u64 | (l.construct as u64) << 8 | len << 16 | (l.site as u64) << 32,
    );
    put(1, l.count);
    put(2, l.ticks);
    put(
        3,
        l.one_in as u64 | (l.throttled as u64) << 32 | (l.short as u64) << 33,
    );
    put(4, l.team.word());
}

/// The words of such a record with these counts (instead of the record's own), written through `put(word index, value)`: how
/// many they are. The record is `(PartSum::LEN + 8 * counts.len())` bytes long.
pub fn encode_parts(
    p: &PartSum<'_>,
    counts: impl ExactSizeIterator<Item = u64>,
    mut put: impl FnMut(usize, u64),
) -> usize {
    let words = PartSum::LEN / 8 + counts.len();
    let len = (8 * words) as u64;
    put(
        0,
        KIND_PARTS as u64 | (p.construct as u64) << 8 | len << 16 | (p.site as u64) << 32,
    );
    put(1, p.t0);
    put(2, p.t1);
    put(3, p.parts);
    put(4, p.read);
    put(5, p.member as u64);
    put(6, p.ticks);
    put(7, p.read_ticks);
    put(8, p.processor_ns);
    put(9, p.wait_ticks);
    for (at, count) in counts.enumerate() {
        put(10 + at, count);
    }
    words
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

/// The words of an interval record for the counters of event set `set`, written through `put(word index, value)`: how many
/// they are.
///
/// The record is `(Interval::LEN + 8 * counts.len())` bytes long.
pub fn encode_interval(
    i: &IntervalHead,
    set: u8,
    counts: impl ExactSizeIterator<Item = u64>,
    mut put: impl FnMut(usize, u64),
) -> usize {
    let words = Interval::LEN / 8 + counts.len();
    let len = (8 * words) as u64;
    put(
        0,
        KIND_INTERVAL as u64 | (i.construct as u64) << 8 | len << 16 | (i.site as u64) << 32,
    );
    put(1, i.node);
    put(2, i.parent);
    put(
        3,
        i.step as u64 | (set as u64) << 8 | (i.cpu as u64) << 16 | (i.disturbed as u64) << 32,
    );
    put(4, i.index as u64);
    put(5, i.extent);
    put(6, i.t0);
    put(7, i.t1);
    put(8, i.own_ticks);
    for (at, count) in counts.enumerate() {
        put(9 + at, count);
    }
    words
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

fn put(out: &mut [u8], at: usize, value: u64) {
    out[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
