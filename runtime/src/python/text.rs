//! Texts of the interpreter, as UTF-8. Only compact ones: all that the compiler makes are.

use super::layout::Layout;
use super::word;

const LENGTH: usize = 16;
const HASH: usize = 24;
const STATE: usize = 32;
/// Bits of the state: width of a character from bit 2 on, and
const COMPACT: u32 = 1 << 5;
const ASCII: u32 = 1 << 6;

/// What tells the text of a file's path from most others: its length and its end.
///
/// # Safety
/// A text that lives.
#[inline(always)]
pub(super) unsafe fn end(text: usize, layout: &Layout) -> u64 {
    // SAFETY: the caller's promise. Behind a short text there are seven bytes, since objects' sizes are rounded up.
    unsafe {
        let (len, state) = (word(text + LENGTH), ((text + STATE) as *const u32).read());
        let begin = text + layout.texts[usize::from(state & ASCII == 0)];
        let size = len * (state >> 2 & 7) as usize;
        word(begin + size.saturating_sub(8)) as u64 ^ (len as u64).rotate_left(56)
    }
}

/// The same of a function's name: the hash that the interpreter keeps, which it has asked for, and its length.
///
/// # Safety
/// A text that lives.
#[inline(always)]
pub(super) unsafe fn hash(text: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { (word(text + HASH) as u64).rotate_left(9) ^ word(text + LENGTH) as u64 }
}

/// A character's bytes, and how many there are. (`char::encode_utf8` could panic.)
fn utf8(character: char) -> ([u8; 4], usize) {
    let number = character as u32;
    let more = |shift: u32| 0x80 | (number >> shift & 0x3f) as u8;
    match character.len_utf8() {
        1 => ([number as u8, 0, 0, 0], 1),
        2 => ([0xc0 | (number >> 6) as u8, more(0), 0, 0], 2),
        3 => ([0xe0 | (number >> 12) as u8, more(6), more(0), 0], 3),
        _ => ([0xf0 | (number >> 18) as u8, more(12), more(6), more(0)], 4),
    }
}

/// Writes as much of a text as there is room for. Returns how much that is.
///
/// # Safety
/// A text that lives.
pub(super) unsafe fn write(text: usize, layout: &Layout, out: &mut [u8]) -> usize {
    // SAFETY: the caller's promise.
    let (len, state) = unsafe { (word(text + LENGTH), ((text + STATE) as *const u32).read()) };
    let width = (state >> 2 & 7) as usize;
    let (is_compact, is_ascii) = (state & COMPACT != 0, state & ASCII != 0);
    if !is_compact || ![1, 2, 4].contains(&width) {
        return 0;
    }
    let begin = text + layout.texts[usize::from(!is_ascii)];
    let mut written = 0;
    for at in 0..len {
        let place = begin + at * width;
        // SAFETY: so many characters of this width follow the text's head.
        let number = unsafe {
            match width {
                1 => u32::from((place as *const u8).read()),
                2 => u32::from((place as *const u16).read()),
                _ => (place as *const u32).read(),
            }
        };
        // Halves of pairs stand for bytes of paths that aren't UTF-8; a zero byte is what ends a path.
        let character = char::from_u32(number)
            .filter(|c| *c != '\0')
            .unwrap_or(char::REPLACEMENT_CHARACTER);
        let (bytes, len) = utf8(character);
        let Some(room) = out.get_mut(written..written + len) else {
            break;
        };
        room.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        written += len;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::utf8;

    #[test]
    fn characters_are_encoded_as_the_language_does() {
        for number in (0..0x11_0000)
            .step_by(7)
            .chain([0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x1_0000])
        {
            let Some(character) = char::from_u32(number) else {
                continue;
            };
            let mut wanted = [0; 4];
            let len = character.encode_utf8(&mut wanted).len();
            assert_eq!(utf8(character), (wanted, len));
        }
    }
}
