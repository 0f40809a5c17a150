//! The debug sections of a file, decompressed where they are compressed.

use object::read::elf::ElfFile64;
use object::read::{CompressedData, CompressionFormat};
use object::{Endianness, Object, ObjectSection};
use std::borrow::Cow;

/// The sections that lines, the names of their files, and inlined functions are made of.
const WANTED: [gimli::SectionId; 10] = [
    gimli::SectionId::DebugAbbrev,
    gimli::SectionId::DebugAddr,
    gimli::SectionId::DebugAranges,
    gimli::SectionId::DebugInfo,
    gimli::SectionId::DebugLine,
    gimli::SectionId::DebugLineStr,
    gimli::SectionId::DebugRanges,
    gimli::SectionId::DebugRngLists,
    gimli::SectionId::DebugStr,
    gimli::SectionId::DebugStrOffsets,
];

/// No section grows more than this by decompression; what claims to is damaged.
const MAX_RATIO: u64 = 2000;

/// The debug sections.
#[derive(Default)]
pub(crate) struct DebugSections<'a>(Vec<(&'static str, Cow<'a, [u8]>)>);

impl<'a> DebugSections<'a> {
    /// Finds the sections. What can't be decompressed counts as absent.
    pub(crate) fn read(bytes: &'a [u8]) -> DebugSections<'a> {
        let Ok(file) = ElfFile64::<Endianness>::parse(bytes) else {
            return DebugSections::default();
        };
        let data = |name: &'static str| {
            let data = file.section_by_name(name)?.compressed_data().ok()?;
            Some((name, decompressed(data)?))
        };
        DebugSections(
            WANTED
                .into_iter()
                .filter_map(|id| data(id.name()))
                .collect(),
        )
    }

    pub(super) fn get(&self, id: gimli::SectionId) -> &[u8] {
        let found = self.0.iter().find(|(name, _)| *name == id.name());
        found.map_or(&[], |(_, data)| data)
    }
}

fn decompressed(data: CompressedData<'_>) -> Option<Cow<'_, [u8]>> {
    let limit = MAX_RATIO.saturating_mul(data.data.len() as u64);
    let is_plain = data.format == CompressionFormat::None;
    (is_plain || data.uncompressed_size <= limit)
        .then(|| data.decompress().ok())
        .flatten()
}
