//! The mark that says that code goes together with shadow stacks (user mode, Linux 6.6 and glibc 2.40): they hold return addresses a
//! second time, and returning to another one ends the process. A displaced call pushes its return address without calling, so
//! that a file with one may not have the mark; it is a bit of the property note. Without it in one of the files that a program
//! consists of, the loader leaves shadow stacks off.

use crate::image::Image;
use object::elf;

/// A program header of the property note alone.
const PT_GNU_PROPERTY: u32 = 0x6474_e553;
const NT_GNU_PROPERTY_TYPE_0: u32 = 5;
/// The property with a bit for each thing that all code of the file goes together with.
const FEATURE_1_AND: u32 = 0xc000_0002;
const SHADOW_STACK: u8 = 2;

/// File offsets and new values of the bytes without the mark that have it.
pub(crate) fn unmarked(image: &Image<'_>) -> Vec<(u64, u8)> {
    let mut out = Vec::new();
    let is_note = |kind| [PT_GNU_PROPERTY, elf::PT_NOTE.0].contains(&kind);
    for segment in image.segments.iter().filter(|s| is_note(s.kind)) {
        let bytes = image.at_offset(segment.offset, segment.file_size);
        for at in features(bytes.unwrap_or_default()) {
            let offset = segment.offset + at as u64;
            let byte = image.bytes[offset as usize];
            if byte & SHADOW_STACK != 0 {
                out.push((offset, byte & !SHADOW_STACK));
            }
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// Where the lowest bytes of such properties are in notes.
fn features(notes: &[u8]) -> Vec<usize> {
    let word = |at: usize| -> Option<u32> {
        let bytes = notes.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let aligned = |n: usize, to: usize| n.checked_next_multiple_of(to);
    let mut out = Vec::new();
    let mut at = 0;
    // Property notes are aligned to 8 bytes, others to 4; behind a name of four bytes that is the same.
    let mut note = || -> Option<()> {
        let (name, len, kind) = (word(at)? as usize, word(at + 4)? as usize, word(at + 8)?);
        let start = (at + 12).checked_add(aligned(name, 4)?)?;
        let end = start.checked_add(len)?;
        let is_property =
            kind == NT_GNU_PROPERTY_TYPE_0 && notes.get(at + 12..at + 16) == Some(b"GNU\0");
        let mut property = start;
        while is_property && property < end {
            let (kind, len) = (word(property)?, word(property + 4)? as usize);
            if kind == FEATURE_1_AND && len == 4 {
                word(property + 8)?;
                out.push(property + 8);
            }
            property = (property + 8).checked_add(aligned(len, 8)?)?;
        }
        at = aligned(end, if is_property { 8 } else { 4 })?;
        Some(())
    };
    while note().is_some() {}
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, contents: &[u32]) -> Vec<u8> {
        let head = [
            4,
            4 * contents.len() as u32,
            kind,
            u32::from_le_bytes(*b"GNU\0"),
        ];
        let words = head.iter().chain(contents);
        words.flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn features_among_other_properties_and_notes() {
        let isa = [0xc000_8002, 4, 1, 0];
        let both = [FEATURE_1_AND, 4, 3, 0];
        let of = |notes: &[Vec<u8>]| features(&notes.concat());
        assert_eq!(of(&[note(5, &both)]), [24]);
        assert_eq!(of(&[note(5, &[isa, both].concat())]), [40]);
        let id = note(3, &[1, 2, 3, 4, 5]);
        assert_eq!(of(&[id.clone(), note(5, &both), id.clone()]), [36 + 24]);
        assert!(of(&[note(5, &isa), id]).is_empty());
        // What is cut off, or of another length.
        assert!(of(&[note(5, &both)[..24].to_vec()]).is_empty());
        assert!(of(&[note(5, &[FEATURE_1_AND, 8, 3, 0])]).is_empty());
        assert!(of(&[note(5, &[FEATURE_1_AND, u32::MAX])]).is_empty());
        assert!(of(&[vec![0xff; 64]]).is_empty());
    }
}
