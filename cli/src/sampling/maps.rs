//! What a process that runs already has mapped: the code, as `/proc` tells it (proc_pid_maps(5)).

use ompfuse_format::samples::Mapping;

/// What the kernel calls a file that has no name any more.
const DELETED: &[u8] = b" (deleted)";
/// The path of memory without a file, as the kernel's records have it.
const ANONYMOUS: &[u8] = b"//anon";

/// The mappings that may be executed.
pub(super) fn code(maps: &[u8], pid: u32, raw_ns: u64) -> Vec<Mapping<'_>> {
    let lines = maps.split(|b| *b == b'\n');
    lines
        .filter_map(|line| mapping(line, pid, raw_ns))
        .collect()
}

fn mapping(line: &[u8], pid: u32, raw_ns: u64) -> Option<Mapping<'_>> {
    // Five words; the path is what follows, with its spaces.
    let mut rest = line;
    let mut word = || {
        let end = rest.iter().position(|b| *b == b' ')?;
        let word = std::str::from_utf8(&rest[..end]).ok()?;
        rest = rest[end..].trim_ascii_start();
        Some(word)
    };
    let (range, rights, offset) = (word()?, word()?, word()?);
    let (_device, _inode) = (word()?, word().unwrap_or_default());
    if !rights.contains('x') {
        return None;
    }
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (begin, end) = range.split_once('-')?;
    let (begin, end) = (hex(begin)?, hex(end)?);
    let path = match rest {
        b"" => ANONYMOUS,
        // Another file may have its name now.
        path if path.ends_with(DELETED) => b"[deleted]",
        path => path,
    };
    Some(Mapping {
        raw_ns,
        pid,
        begin,
        size: end.checked_sub(begin)?,
        offset: hex(offset)?,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_whatever_its_file_is_called() {
        let maps = b"00400000-00401000 r--p 00000000 08:01 7    /a\n\
            00401000-00403000 r-xp 00001000 08:01 7                          /a b\n\
            7f00-7f10 r-xp 00000000 00:00 0 \n\
            7f20-7f30 r-xp 00000000 08:01 9 /c (deleted)\n";
        let found = code(maps, 1, 5);
        let paths: Vec<&[u8]> = found.iter().map(|m| m.path).collect();
        assert_eq!(paths, [&b"/a b"[..], b"//anon", b"[deleted]"]);
        assert_eq!(
            (found[0].begin, found[0].size, found[0].offset),
            (0x40_1000, 0x2000, 0x1000)
        );
    }
}
