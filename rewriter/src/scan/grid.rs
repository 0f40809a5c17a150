//! What is known of every byte of a function while it is decoded: which instruction, or block, begins there.

use std::ops::Range;

/// The number of the instruction that begins at the byte, plus 1.
const NUMBER: u32 = (1 << 30) - 1;
/// The number is that of a block.
const BLOCK: u32 = 1 << 30;

/// The bytes of some ranges of addresses.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    /// The ranges, disjoint, in the order in which they were added.
    pub ranges: Vec<Range<u64>>,
    bytes: Vec<Vec<u32>>,
    /// Memory to use.
    spare: Vec<Vec<u32>>,
}

/// The longest range that memory is kept for, in bytes.
const MAX_KEPT: usize = 1 << 16;

impl Grid {
    /// Takes a range in.
    pub(crate) fn add(&mut self, range: Range<u64>) {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.resize(len, 0);
        self.bytes.push(bytes);
        self.ranges.push(range);
    }

    /// The range that holds an address.
    pub(crate) fn range_of(&self, va: u64) -> Option<&Range<u64>> {
        self.ranges.iter().find(|r| r.contains(&va))
    }

    fn byte(&self, va: u64) -> u32 {
        let place = self.ranges.iter().position(|r| r.contains(&va));
        place.map_or(0, |n| self.bytes[n][(va - self.ranges[n].start) as usize])
    }

    fn byte_mut(&mut self, va: u64) -> Option<&mut u32> {
        let n = self.ranges.iter().position(|r| r.contains(&va))?;
        self.bytes[n].get_mut((va - self.ranges[n].start) as usize)
    }

    /// The number of the instruction that begins at an address.
    pub(crate) fn insn(&self, va: u64) -> Option<usize> {
        let byte = self.byte(va);
        match byte & BLOCK {
            0 => (byte & NUMBER).checked_sub(1).map(|n| n as usize),
            _ => None,
        }
    }

    /// The number of the range that holds an address, and where that begins.
    pub(crate) fn place_of(&self, va: u64) -> Option<(usize, u64)> {
        let n = self.ranges.iter().position(|r| r.contains(&va))?;
        Some((n, self.ranges[n].start))
    }

    /// Says which instruction begins at an offset of a range; tells whether none was known to.
    pub(crate) fn begin(&mut self, range: usize, at: usize, number: usize) -> bool {
        let Some(byte) = self.bytes[range].get_mut(at) else {
            return false;
        };
        let new = *byte == 0;
        if new {
            *byte = (number as u32 + 1) & NUMBER;
        }
        new
    }

    /// Takes back that an instruction begins at an offset of a range.
    pub(crate) fn unset_insn(&mut self, range: usize, at: usize) {
        if let Some(byte) = self.bytes[range].get_mut(at) {
            *byte = 0;
        }
    }

    /// Takes memory that another grid gave back.
    pub(crate) fn reuse(&mut self, bytes: &mut Vec<Vec<u32>>) {
        self.spare.append(bytes);
    }

    /// Gives its memory back.
    pub(crate) fn give_back(&mut self, bytes: &mut Vec<Vec<u32>>) {
        bytes.append(&mut self.bytes);
        bytes.append(&mut self.spare);
        bytes.retain(|b| b.capacity() <= MAX_KEPT);
        bytes.truncate(2);
    }

    /// The last instruction that begins at an address or before it, in the same range.
    pub(crate) fn insn_before(&self, va: u64) -> Option<usize> {
        let n = self.ranges.iter().position(|r| r.contains(&va))?;
        let upto = (va - self.ranges[n].start) as usize;
        let found = self.bytes[n][..=upto]
            .iter()
            .rev()
            .find(|b| **b & NUMBER != 0)?;
        ((found & NUMBER) as usize).checked_sub(1)
    }

    /// From here on [`Grid::block`] tells which block begins at an address, and [`Grid::insn`] nothing.
    pub(crate) fn set_blocks(&mut self, starts: impl Iterator<Item = u64>) {
        for (number, va) in starts.enumerate() {
            if let Some(byte) = self.byte_mut(va) {
                *byte = BLOCK | (number as u32 + 1) & NUMBER;
            }
        }
    }

    /// The block that begins at an address.
    pub(crate) fn block(&self, va: u64) -> Option<usize> {
        let byte = self.byte(va);
        match byte & BLOCK {
            0 => None,
            _ => (byte & NUMBER).checked_sub(1).map(|n| n as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_and_blocks() {
        let mut grid = Grid::default();
        grid.add(0x100..0x110);
        grid.add(0x40..0x50);
        assert_eq!(grid.place_of(0x4f), Some((1, 0x40)));
        assert!(grid.begin(0, 0, 0) && !grid.begin(0, 0, 7) && !grid.begin(0, 0x10, 7));
        assert!(grid.begin(0, 8, 2));
        grid.unset_insn(0, 8);
        assert!(grid.begin(0, 4, 1));
        assert_eq!(
            (grid.insn(0x100), grid.insn(0x101), grid.insn(0x104)),
            (Some(0), None, Some(1))
        );
        assert_eq!(
            (
                grid.insn_before(0x10f),
                grid.insn_before(0x103),
                grid.insn_before(0x44)
            ),
            (Some(1), Some(0), None)
        );
        assert_eq!(grid.range_of(0x4f), Some(&(0x40..0x50)));
        assert_eq!(grid.block(0x104), None);
        grid.set_blocks([0x104].into_iter());
        assert_eq!(
            (grid.block(0x104), grid.block(0x100), grid.insn(0x104)),
            (Some(0), None, None)
        );
    }
}
