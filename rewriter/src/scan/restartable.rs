//! Restartable sequences (`rseq(2)`): code that the kernel begins again if it interrupts the thread in its midst. It knows by the
//! address; a part that is elsewhere would go on as if nothing had happened.

use super::dynamic::Dynamic;
use super::image::Image;
use std::ops::Range;

/// The section of the descriptors that the kernel is shown: `struct rseq_cs`.
const DESCRIPTORS: &str = "__rseq_cs";
/// Length of a descriptor, and where it has the sequence's beginning and length.
const LEN: u64 = 32;
const START: u64 = 8;
const EXTENT: u64 = 16;

/// The addresses of all such sequences: disjoint, ascending.
pub(super) fn sequences(image: &Image<'_>, dynamic: &Dynamic<'_>) -> Vec<Range<u64>> {
    let sections = image.sections.iter();
    let tables = sections.filter(|s| s.name == DESCRIPTORS);
    let mut found: Vec<Range<u64>> = tables
        .flat_map(|table| {
            let read = image.section_data(table).map_or(0, <[u8]>::len) as u64;
            (0..read / LEN).filter_map(|n| {
                let at = table.va.checked_add(n * LEN)?;
                let start = dynamic.pointer(image, at.checked_add(START)?)?;
                let len = image.u64(at.checked_add(EXTENT)?)?;
                Some(start..start.checked_add(len)?)
            })
        })
        .collect();
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
