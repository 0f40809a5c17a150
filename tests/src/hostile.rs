//! Files that are no programs, or no longer: cut off, of another machine, with headers that lie.

/// A small generator, so that every run of the suite tries the same files.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator with its own sequence.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// The next number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// The header of a 32-bit x86 executable without anything behind it.
pub fn elf32() -> Vec<u8> {
    let mut bytes = vec![0; 52];
    bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 1, 1, 1]);
    bytes[16..18].copy_from_slice(&2u16.to_le_bytes()); // ET_EXEC
    bytes[18..20].copy_from_slice(&3u16.to_le_bytes()); // EM_386
    bytes[20..24].copy_from_slice(&1u32.to_le_bytes());
    bytes[40..42].copy_from_slice(&52u16.to_le_bytes());
    bytes
}

/// A 64-bit file, said to be of another machine (183: arm64, 243: RISC-V).
pub fn for_machine(elf64: &[u8], machine: u16) -> Vec<u8> {
    let mut bytes = elf64.to_vec();
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes
}

/// A 64-bit file, said to be big-endian.
pub fn big_endian(elf64: &[u8]) -> Vec<u8> {
    let mut bytes = elf64.to_vec();
    bytes[5] = 2;
    bytes
}

/// A number in a 64-bit ELF file's header.
fn field(elf64: &[u8], at: usize, width: usize) -> usize {
    elf64[at..at + width]
        .iter()
        .rev()
        .fold(0, |value, &byte| value << 8 | usize::from(byte))
}

/// Where lies hurt: the file header, the program headers, the section headers, and what they lead to.
fn headers(elf64: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (programs, sections) = (field(elf64, 0x20, 8), field(elf64, 0x28, 8));
    let (n_programs, n_sections) = (field(elf64, 0x38, 2), field(elf64, 0x3c, 2));
    let mut ranges = vec![
        0x10..0x40,
        programs..programs + 56 * n_programs,
        sections..sections + 64 * n_sections,
    ];
    // Contents of dynamic sections, symbol tables, relocations, notes and unwind information.
    for section in (0..n_sections).map(|n| sections + 64 * n) {
        let kind = field(elf64, section + 4, 4);
        let (offset, size) = (
            field(elf64, section + 0x18, 8),
            field(elf64, section + 0x20, 8),
        );
        let telling = [2, 4, 5, 6, 7, 11, 0x6fff_fff6, 0x6fff_fffe, 0x6fff_ffff].contains(&kind);
        if telling && size > 0 {
            ranges.push(offset..offset + size);
        }
    }
    ranges.retain(|r| r.end <= elf64.len() && !r.is_empty());
    ranges
}

/// Replaces a number by one that hurts.
fn lie(bytes: &mut [u8], at: std::ops::Range<usize>, random: &mut Random) {
    let width = at.len();
    let old = field(bytes, at.start, width) as u64;
    let new = match random.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => u64::MAX - 7,
        3 => 1 << 63,
        4 => old ^ 1 << random.below(8 * width),
        5 => old.wrapping_add(0x1000),
        6 => bytes.len() as u64 - random.below(64) as u64,
        _ => random.below(1 << 31) as u64,
    };
    bytes[at].copy_from_slice(&new.to_le_bytes()[..width]);
}

/// Records or a header with one to four numbers replaced.
pub fn mutated_records(file: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = file.to_vec();
    for _ in 0..1 + random.below(4) {
        let width = [1, 2, 4, 8][random.below(4)];
        // A header of 4096 bytes, of which the first 600 mean something, and records.
        let part = match random.below(4) {
            0 => 0..600,
            _ => 4096..bytes.len(),
        };
        let part = part.start.min(bytes.len())..part.end.min(bytes.len());
        if part.len() < 8 {
            continue;
        }
        let at = part.start + random.below(part.len() / width) * width;
        lie(&mut bytes, at..at + width, &mut random);
    }
    bytes
}

/// A text with one or two of its numbers replaced.
pub fn mutated_text(text: &str, seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = text.to_owned();
    for _ in 0..1 + random.below(2) {
        let is_digit = |b: &u8| b.is_ascii_digit();
        let begins: Vec<usize> = (1..text.len())
            .filter(|&at| is_digit(&text.as_bytes()[at]) && !is_digit(&text.as_bytes()[at - 1]))
            .collect();
        if begins.is_empty() {
            break;
        }
        let begin = begins[random.below(begins.len())];
        let digits = text.as_bytes()[begin..]
            .iter()
            .take_while(|b| is_digit(b))
            .count();
        let new = match random.below(6) {
            0 => "0",
            1 => "18446744073709551615",
            2 => "9223372036854775807",
            3 => "4294967295",
            4 => "16777215",
            _ => "1e300",
        };
        text.replace_range(begin..begin + digits, new);
    }
    text
}

/// The file with one to four numbers in its headers or tables replaced.
pub fn mutated(elf64: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let ranges = headers(elf64);
    let mut bytes = elf64.to_vec();
    for _ in 0..1 + random.below(4) {
        let range = ranges[random.below(ranges.len())].clone();
        let width = [1, 2, 4, 8][random.below(4)].min(range.len());
        let at = range.start + random.below((range.len() - width) / width + 1) * width;
        lie(&mut bytes, at..at + width, &mut random);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutation_is_repeatable_and_changes_something() {
        let original = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let changed = (0..50)
            .filter(|&seed| mutated(&original, seed) != original)
            .count();
        assert!(changed >= 45, "{changed} of 50");
        assert!(mutated(&original, 7) == mutated(&original, 7));
    }
}
