//! Places that tracers put their breakpoints at: the `nop`s that `sys/sdt.h` leaves in a program, and lists in a note. A
//! breakpoint in the midst of a jump of ours would crash the program.

use super::bytes::{notes, u64_at};
use super::image::Image;

/// The section of the notes: it isn't loaded.
const NOTES: &str = ".note.stapsdt";
/// The section whose address tells whether the program was moved since the notes were made.
const BASE: &str = ".stapsdt.base";
/// Name and type of such a note.
const NAME: &[u8] = b"stapsdt\0";
const TYPE: u32 = 3;

/// The addresses of all such places.
pub(super) fn places<'x>(image: &'x Image<'_>) -> impl Iterator<Item = u64> + 'x {
    let named = |name: &'static str| image.sections.iter().filter(move |s| s.name == name);
    let base = named(BASE).map(|s| s.va).next();
    let data = named(NOTES).filter_map(|s| image.section_data(s));
    data.flat_map(traced)
        .map(move |(va, of)| moved(va, of, base))
}

/// Where the place at `va` is, in a file whose base was at `of` and is at `base`.
fn moved(va: u64, of: u64, base: Option<u64>) -> u64 {
    base.map_or(va, |base| va.wrapping_add(base).wrapping_sub(of))
}

/// Place and base that each of these notes tells.
fn traced(data: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    notes(data)
        .filter(|&(name, kind, _)| name == NAME && kind == TYPE)
        .filter_map(|(_, _, desc)| Some((u64_at(desc, 0)?, u64_at(desc, 8)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, words: &[u64]) -> Vec<u8> {
        let text = b"a\0b\0\0";
        let len = 8 * words.len() + text.len();
        let mut out: Vec<u8> = [name.len() as u32, len as u32, kind]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        out.extend(name);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        out.extend(text);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    #[test]
    fn places_are_read_from_notes() {
        let mut bytes = note(NAME, TYPE, &[0x1234, 0x2000, 0]);
        bytes.extend(note(b"other\0", TYPE, &[1, 2, 3]));
        bytes.extend(note(NAME, TYPE, &[7]));
        bytes.extend(note(NAME, TYPE, &[0x1250, 0x2000, 0]));
        let all = |bytes| traced(bytes).collect::<Vec<_>>();
        assert_eq!(all(&bytes), [(0x1234, 0x2000), (0x1250, 0x2000)]);
        assert_eq!(all(&bytes[..bytes.len() - 3]), all(&bytes));
        for end in 0..bytes.len() {
            assert!(all(&bytes[..end]).len() <= 2);
        }
        assert_eq!(all(&[0xff; 64]), []);
    }

    #[test]
    fn places_move_with_their_base() {
        assert_eq!(moved(0x1234, 0x2000, Some(0x2100)), 0x1334);
        assert_eq!(moved(0x1234, 0x2000, None), 0x1234);
    }
}
