//! Source lines from DWARF.

use super::image::Image;
use gimli::{EndianSlice, LittleEndian};
use object::elf;
use ompfuse_format::site::Source;

/// Looks source lines up. Without (readable) debug information it finds none.
pub(crate) struct Lines<'a> {
    context: Option<addr2line::Context<EndianSlice<'a, LittleEndian>>>,
}

impl<'a> Lines<'a> {
    /// Reads the debug sections; compressed ones count as absent.
    pub(crate) fn read(image: &Image<'a>) -> Lines<'a> {
        let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
            let data = image
                .sections
                .iter()
                .find(|s| s.name == id.name() && s.flags & u64::from(elf::SHF_COMPRESSED.0) == 0)
                .and_then(|s| image.section_data(s))
                .unwrap_or(&[]);
            Ok(EndianSlice::new(data, LittleEndian))
        };
        let context = gimli::Dwarf::load(load)
            .ok()
            .and_then(|dwarf| addr2line::Context::from_dwarf(dwarf).ok());
        Lines { context }
    }

    /// The line of the instruction at an address.
    pub(crate) fn at(&self, va: u64) -> Option<Source> {
        let location = self.context.as_ref()?.find_location(va).ok()??;
        let line = location.line.filter(|&l| l > 0)?;
        Some(Source { file: location.file?.to_owned(), line })
    }
}
