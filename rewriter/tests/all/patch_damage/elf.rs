//! Where a file has what is damaged, read without the rewriter.

/// The number in a patched file's header, or at any place.
pub(crate) fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// Offset of the n-th program header of a type, from the end.
pub(crate) fn program_header(bytes: &[u8], kind: u32, from_end: usize) -> usize {
    let (at, count) = (
        word(bytes, 32),
        usize::from(bytes[56]) + 256 * usize::from(bytes[57]),
    );
    let mut found = (0..count)
        .rev()
        .map(|n| at + 56 * n)
        .filter(|&h| bytes[h..h + 4] == kind.to_le_bytes());
    found.nth(from_end).unwrap()
}

/// Offset of the section header with this name.
pub(crate) fn section_header(bytes: &[u8], name: &[u8]) -> usize {
    let (at, count) = (
        word(bytes, 40),
        usize::from(u16::from_le_bytes([bytes[60], bytes[61]])),
    );
    let names = usize::from(u16::from_le_bytes([bytes[62], bytes[63]]));
    let names = word(bytes, at + 64 * names + 24);
    let wanted = |h: &usize| {
        let name_at = names + u32::from_le_bytes(bytes[*h..*h + 4].try_into().unwrap()) as usize;
        bytes[name_at..].starts_with(name) && bytes[name_at + name.len()] == 0
    };
    (0..count).map(|n| at + 64 * n).find(wanted).unwrap()
}

/// Offset of the section's contents.
pub(crate) fn section(bytes: &[u8], name: &[u8]) -> usize {
    word(bytes, section_header(bytes, name) + 24)
}

pub(crate) const PT_LOAD: u32 = 1;
pub(crate) const PT_DYNAMIC: u32 = 2;
pub(crate) const PT_INTERP: u32 = 3;
pub(crate) const PT_NOTE: u32 = 4;
pub(crate) const PT_GNU_EH_FRAME: u32 = 0x6474_e550;

/// Offset of the value of the last `DT_NEEDED`.
pub(crate) fn tag_value(bytes: &[u8], dynamic: usize) -> usize {
    let entries = (0..64).map(|n| dynamic + 16 * n);
    let used = entries.take_while(|&at| word(bytes, at) != 0);
    used.filter(|&at| word(bytes, at) == 1).last().unwrap() + 8
}
