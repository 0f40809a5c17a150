//! The table that leads from a code object's instructions to lines (CPython 3.11 and later, `Objects/locations.md` there).
//!
//! An entry begins with a byte whose highest bit is set: below it are the entry's kind and the number of its instructions. The bytes that follow
//! have that bit clear. Kinds tell how far the line is from that of the entry before.

/// No line.
const NOWHERE: u8 = 15;
/// The line's distance follows.
const FAR: [u8; 2] = [13, 14];
/// A distance of 0, 1 or 2.
const NEAR: [u8; 3] = [10, 11, 12];

/// The line of an instruction, which is number `wanted`; `None`: it has none.
pub(super) fn find(table: &[u8], first: i32, wanted: usize) -> Option<u32> {
    let (mut line, mut next, mut at) = (i64::from(first), 0, 0);
    while let Some(&head) = table.get(at) {
        let kind = head >> 3 & 15;
        if FAR.contains(&kind) {
            line += distance(table.get(at + 1..)?)?;
        } else if NEAR.contains(&kind) {
            line += i64::from(kind - NEAR[0]);
        }
        next += usize::from(head & 7) + 1;
        if wanted < next {
            return match kind {
                NOWHERE => None,
                _ => u32::try_from(line).ok(),
            };
        }
        let rest = table.get(at + 1..)?;
        at += 1 + rest.iter().take_while(|b| **b < 0x80).count();
    }
    None
}

/// A signed number: six bits a byte, the lowest first; bit 6 says that more follow. The lowest bit of all is the sign.
fn distance(bytes: &[u8]) -> Option<i64> {
    const MORE: u8 = 0x40;
    let (mut value, mut shift) = (0i64, 0);
    for byte in bytes.iter().take(6) {
        value |= i64::from(byte & (MORE - 1)) << shift;
        shift += 6;
        if byte & MORE == 0 {
            let size = value >> 1;
            return Some(if value & 1 == 0 { size } else { -size });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What CPython 3.11 made of `def f(g):`, a loop, and calls over several lines, beside what its `co_lines` says.
    #[test]
    fn lines_are_those_of_the_interpreter() {
        // One instruction on the first line, two on the next, none for the third entry, one three lines before.
        let entry = |kind: u8, len: u8| 0x80 | kind << 3 | (len - 1);
        let table = [
            entry(10, 1),
            0,
            4,
            entry(11, 2),
            4,
            8,
            entry(0, 3),
            0x11,
            entry(15, 1),
            entry(13, 1),
            7,
            entry(14, 8),
            0x40,
            0x02,
            0,
            1,
            1,
        ];
        let found: Vec<Option<u32>> = (0..17).map(|at| find(&table, 10, at)).collect();
        let lines = |line, len| std::iter::repeat_n(line, len);
        let wanted = lines(Some(10), 1)
            .chain(lines(Some(11), 5))
            .chain(lines(None, 1))
            .chain(lines(Some(8), 1))
            .chain(lines(Some(72), 8))
            .chain(lines(None, 1));
        assert_eq!(found, wanted.collect::<Vec<_>>());
    }

    #[test]
    fn damaged_tables_end() {
        for table in [
            &[0xff; 3][..],
            &[0x80 | 14 << 3],
            &[0; 9],
            &[0xf0, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f],
        ] {
            for at in [0, 5, 100] {
                let _ = find(table, 1, at);
            }
        }
    }
}
