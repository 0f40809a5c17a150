//! Debug information in other files than the one that is scanned: what names them, and what tells them. Files are opened by
//! who calls: this crate takes their bytes.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection};

/// The files that a file's debug information is in, where it isn't there itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct DebugFiles<'a> {
    /// What was stripped off it (`objcopy --only-keep-debug`, `eu-strip -f`).
    pub separate: Option<&'a [u8]>,
    /// What it has in common with others (`dwz -m`).
    pub supplementary: Option<&'a [u8]>,
}

/// What a file says of its debug information.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DebugLinks {
    /// Source lines are in the file itself.
    pub has_lines: bool,
    /// Its build id, in hexadecimal.
    pub build_id: Option<String>,
    /// `.gnu_debuglink`: name and CRC-32 of the separate file.
    pub link: Option<(Vec<u8>, u32)>,
    /// `.gnu_debugaltlink`: path and build id, in hexadecimal, of the supplementary file.
    pub supplementary: Option<(Vec<u8>, String)>,
}

/// Reads what a file says of its debug information; nothing of what can't be read.
#[must_use]
pub fn links(bytes: &[u8]) -> DebugLinks {
    let Ok(file) = ElfFile64::<Endianness>::parse(bytes) else {
        return DebugLinks::default();
    };
    let has_data = |name| {
        let section = file.section_by_name(name);
        section.is_some_and(|s| s.file_range().is_some_and(|(_, size)| size > 0))
    };
    let link = file.gnu_debuglink().ok().flatten();
    let supplementary = file.gnu_debugaltlink().ok().flatten();
    DebugLinks {
        has_lines: has_data(".debug_line"),
        build_id: file.build_id().ok().flatten().map(hex),
        link: link.map(|(name, crc)| (name.to_vec(), crc)),
        supplementary: supplementary.map(|(path, id)| (path.to_vec(), hex(id))),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl DebugFiles<'_> {
    /// What tells these files from others: build ids, and lengths in bytes.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        let files = self.separate.iter().chain(&self.supplementary);
        let each = files.map(|bytes| {
            let id = links(bytes).build_id.unwrap_or_default();
            format!("{id}:{}", bytes.len())
        });
        let all: Vec<String> = each.collect();
        (!all.is_empty()).then(|| all.join(" "))
    }
}
