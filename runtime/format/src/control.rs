//! The control file of a process: what `ompfuse ctl` changes while the program runs.
//!
//! The runtime library maps the file shared and reads it on its probes' path; the command writes into it with `pwrite`.
//! Nothing is sent and nobody is stopped: a thread sees at its next execution unit that the generation has changed.
//!
//! ```text
//! +0       fixed fields (constants below), little-endian
//! +64      MODULES times: first page of the module's table: u32, its sites: u32
//! +4096    MAX_SETS times SET_LEN bytes: an event set's names, as text (see `text`)
//! +12288   the file that a reload reads, as text
//! +16384   tables: a byte per site of a module
//! ```
//! Event sets are only ever added, so the number of a set means the same in every record. Who changes something makes
//! the generation odd, and even again when all of it is there: a reader takes nothing over in between.

/// First bytes.
pub const MAGIC: [u8; 8] = *b"OMPFCTL1";
/// Version of the layout.
pub const VERSION: u32 = 2;
/// Bytes before the first table.
pub const HEADER_LEN: usize = 16384;
/// Tables begin at multiples of this.
pub const PAGE: usize = 4096;

/// Offset of [`VERSION`]: u32.
pub const AT_VERSION: usize = 8;
/// Offset of the process's number: u32.
pub const AT_PID: usize = 12;
/// Offset of the generation: u64. The lower half is the command's, the upper half the program's own.
pub const AT_GENERATION: usize = 16;
/// Offset of: u32, whether any site's byte is not 0, sets rotate, or the program has paused the recording.
pub const AT_SPECIAL: usize = 24;
/// Offset of: u32, after how many instances of a region on a thread the next event set comes; 0: never.
pub const AT_ROTATE: usize = 28;
/// Offset of: u32, the sets that take part in that, a bit each.
pub const AT_ROTATING: usize = 32;
/// Offset of: u32, the set of regions that have none of their own.
pub const AT_SET: usize = 36;
/// Offset of: u32, number of event sets.
pub const AT_SETS: usize = 40;
/// Offset of: u32, how often the program has paused the recording without resuming it.
pub const AT_PAUSED: usize = 44;
/// Offset of: u32, how often a signal has asked for a reload.
pub const AT_RELOADS: usize = 48;
/// Offset of: u32, 1 if SIGUSR1 does so.
pub const AT_SIGNAL: usize = 52;
/// Offset of: u32, 1 while the command holds the recording: it has not begun yet, is paused, or is over.
pub const AT_HELD: usize = 56;
/// Offset of: u32, 1 if recording has ended, since the run's records have reached the size that they may have. It is as if the
/// program had paused it, and of what goes on already no execution unit is on record any more.
pub const AT_ENDED: usize = 60;
/// Offset of the modules' tables.
pub const AT_MODULES: usize = 64;
/// Modules of a process.
pub const MODULES: usize = 256;
/// Offset of the event sets.
pub const AT_SET_NAMES: usize = 4096;
/// Event sets of a process.
pub const MAX_SETS: usize = 16;
/// Bytes of an event set's names.
pub const SET_LEN: usize = 512;
/// Offset of the file that a reload reads.
pub const AT_RELOAD_FILE: usize = AT_SET_NAMES + MAX_SETS * SET_LEN;
/// Bytes of its name.
pub const RELOAD_FILE_LEN: usize = HEADER_LEN - AT_RELOAD_FILE;

/// In a site's byte: nothing of its region is recorded.
pub const OFF: u8 = 0x80;
/// In a site's byte: number of the region's own event set, plus 1; 0: it has none.
pub const OWN_SET: u8 = 0x1f;

/// Ending of a control file's name; in front of it stands the process, as in the name of its header.
pub const ENDING: &str = ".ctl";

/// Name of a file in a run's folder: as long as it is there, processes that start begin with [`AT_HELD`]. Who changes that for a
/// whole run makes or removes this file first, then tells the processes that have a control file.
pub const HELD_FILE: &str = "held";

/// Name of a process's control file. `key`: as in the name of its header.
pub fn file_name(key: &str) -> String {
    format!("{key}{ENDING}")
}

/// A text in a field of `field.len()` bytes: its length as u16, then its bytes. `None` if it is too long.
pub fn put_text(field: &mut [u8], text: &[u8]) -> Option<()> {
    let len = u16::try_from(text.len()).ok()?;
    let (head, rest) = field.split_at_mut_checked(2)?;
    rest.get_mut(..text.len())?.copy_from_slice(text);
    head.copy_from_slice(&len.to_le_bytes());
    Some(())
}

/// The text of a field; `None` if it holds none.
pub fn text(field: &[u8]) -> Option<&str> {
    let (head, rest) = field.split_at_checked(2)?;
    let len = usize::from(u16::from_le_bytes(head.try_into().ok()?));
    let text = core::str::from_utf8(rest.get(..len)?).ok()?;
    (!text.is_empty()).then_some(text)
}

/// Offset of an event set's names.
pub const fn at_set_names(set: usize) -> usize {
    AT_SET_NAMES + set % MAX_SETS * SET_LEN
}

/// Offset of a module's entry.
pub const fn at_module(module: usize) -> usize {
    AT_MODULES + module % MODULES * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_overlap() {
        const { assert!(AT_ENDED + 4 <= AT_MODULES && MAX_SETS <= OWN_SET as usize) };
        assert!(at_module(MODULES - 1) + 8 <= AT_SET_NAMES);
        assert_eq!(AT_RELOAD_FILE, 12288);
    }

    #[test]
    fn texts_round_trip() {
        let mut field = [0xff; 8];
        assert_eq!(text(&field), None);
        put_text(&mut field, b"a,b").unwrap();
        assert_eq!(text(&field), Some("a,b"));
        assert_eq!(put_text(&mut field, b"1234567"), None);
        put_text(&mut field, b"").unwrap();
        assert_eq!(text(&field), None);
        assert_eq!(text(&[1]), None);
        assert_eq!(text(&[9, 0, 65]), None);
    }
}
