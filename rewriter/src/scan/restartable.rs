//! Restartable sequences (`rseq(2)`): code that the kernel begins again if it interrupts the thread in its midst. It knows by the
//! address; a part that is elsewhere would go on as if nothing had happened.

use super::dynamic::Dynamic;
use super::image::Image;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// The section of the descriptors that the kernel is shown: `struct rseq_cs`.
const DESCRIPTORS: &str = "__rseq_cs";
/// Length of a descriptor, and where it has the sequence's beginning and length.
const LEN: u64 = 32;
const START: u64 = 8;
const EXTENT: u64 = 16;

/// Where it has the address of the code that is executed instead of the rest.
const ABORT: u64 = 24;

/// What the kernel wants to see right before that code: as the C library and all users of theirs have it.
const SIGNATURE: [u8; 4] = 0x5305_3053_u32.to_le_bytes();

/// The addresses of all such sequences: disjoint, ascending.
pub(super) fn sequences(image: &Image<'_>, dynamic: &Dynamic<'_>) -> Vec<Range<u64>> {
    let sections = image.sections.iter();
    let tables = sections.filter(|s| s.name == DESCRIPTORS);
    let mut found: Vec<Range<u64>> = tables
        .flat_map(|table| {
            let read = image.section_data(table).map_or(0, <[u8]>::len) as u64;
            (0..read / LEN)
                .filter_map(|n| described(image, dynamic, table.va.checked_add(n * LEN)?))
        })
        .collect();
    let signed = signed(image);
    if !signed.is_empty() {
        let mut known = FxHashSet::default();
        for (abort, sequence) in named(image, dynamic, &signed) {
            known.insert(abort);
            found.push(sequence);
        }
        if image.sections.is_empty() && known.len() < signed.len() {
            // Of which code this is the end nobody says.
            found.push(0..u64::MAX);
        }
    }
    found.retain(|r| !r.is_empty());
    found.sort_by_key(|r| r.start);
    found.dedup_by(|next, before| {
        let joined = next.start <= before.end;
        if joined {
            before.end = before.end.max(next.end);
        }
        joined
    });
    found
}

/// The sequence of the descriptor at this address.
fn described(image: &Image<'_>, dynamic: &Dynamic<'_>, at: u64) -> Option<Range<u64>> {
    let start = dynamic.pointer(image, at.checked_add(START)?)?;
    let len = image.u64(at.checked_add(EXTENT)?)?;
    Some(start..start.checked_add(len)?)
}

/// Addresses of code with the signature before it.
fn signed(image: &Image<'_>) -> FxHashSet<u64> {
    let all = image.code().flat_map(|(va, code)| {
        let places = memchr::memmem::find_iter(code, &SIGNATURE);
        places.map(move |at| va.wrapping_add((at + SIGNATURE.len()) as u64))
    });
    all.collect()
}

/// The sequences of descriptors anywhere in the file's data that name this code, and what they name. They are aligned.
fn named(
    image: &Image<'_>,
    dynamic: &Dynamic<'_>,
    signed: &FxHashSet<u64>,
) -> Vec<(u64, Range<u64>)> {
    let relocated = dynamic.relative.iter().copied();
    let words = image.loads.iter().flat_map(|load| {
        let bytes = image.rest(load.va).unwrap_or_default();
        let skip = load.va.wrapping_neg() % 8;
        let aligned = bytes.get(skip as usize..).unwrap_or_default();
        let words = aligned.as_chunks::<8>().0.iter().zip(0u64..);
        let at = move |n: u64| load.va.wrapping_add(skip).wrapping_add(8 * n);
        words.map(move |(word, n)| (at(n), u64::from_le_bytes(*word)))
    });
    let pointers = relocated.chain(words);
    let is_code =
        |r: &Range<u64>| !r.is_empty() && image.is_code(r.start) && image.is_code(r.end - 1);
    pointers
        .filter(|(_, abort)| signed.contains(abort))
        .filter_map(|(at, abort)| {
            let sequence = described(image, dynamic, at.checked_sub(ABORT)?)?;
            (is_code(&sequence) && !sequence.contains(&abort)).then_some((abort, sequence))
        })
        .collect()
}

/// Whether one of the sequences has bytes in this range.
pub(super) fn meets(sequences: &[Range<u64>], range: &Range<u64>) -> bool {
    let first = sequences.partition_point(|s| s.end <= range.start);
    sequences.get(first).is_some_and(|s| s.start < range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_meets_a_sequence() {
        let meets = |range| meets(&[10..15, 20..25], &range);
        assert!(!meets(5..10) && !meets(15..20) && !meets(25..30));
        assert!(meets(9..11) && meets(14..16) && meets(11..12) && meets(0..30) && meets(24..25));
    }
}
