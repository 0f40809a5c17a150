//! Numbers and texts in bytes that may end anywhere.

/// The little-endian `u16` at this offset.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(
        bytes.get(at..at.checked_add(2)?)?.try_into().ok()?,
    ))
}

/// The little-endian `u32` at this offset.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

/// The little-endian `u64` at this offset.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(
        bytes.get(at..at.checked_add(8)?)?.try_into().ok()?,
    ))
}

/// The NUL-terminated string at this offset, if it is UTF-8 and not absurdly long.
pub(crate) fn str_at(bytes: &[u8], at: usize) -> Option<&str> {
    let rest = bytes.get(at..)?;
    let rest = &rest[..rest.len().min(4096)];
    let end = rest.iter().position(|&b| b == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

/// `bytes[offset..offset + len]` for file offsets.
pub(crate) fn part(bytes: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(len).ok()?)?)
}

/// The notes of a segment or section: name, type and description of each.
pub(crate) fn notes(bytes: &[u8]) -> impl Iterator<Item = (&[u8], u32, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (name, desc) = (u32_at(rest, 0)? as usize, u32_at(rest, 4)? as usize);
        let from = 12usize.checked_add(name.checked_next_multiple_of(4)?)?;
        let to = from.checked_add(desc)?;
        let found = (
            rest.get(12..12 + name)?,
            u32_at(rest, 8)?,
            rest.get(from..to)?,
        );
        // The last one may end without its padding.
        let next = to.checked_next_multiple_of(4)?;
        rest = rest.get(next..).unwrap_or_default();
        Some(found)
    })
}
