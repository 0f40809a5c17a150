//! The dynamic table: one more library to load.

use crate::image::{DynamicTable, Image};
use crate::model::LinkVa;
use crate::patch_error::PatchError;
use object::elf::{DT_NEEDED, DT_NULL, DT_STRSZ, DT_STRTAB, DynamicTag};

/// The change of the dynamic table, before addresses are known.
#[derive(Debug)]
pub(crate) struct Needed {
    table: DynamicTable,
    /// Address of the original string table.
    pub old_strings_va: u64,
    /// The new string table: the original's, and the library's name.
    pub strings: Vec<u8>,
    name_offset: u64,
    /// Indices of the entries to change: `DT_STRTAB`, `DT_STRSZ`.
    strtab: usize,
    strsz: usize,
    /// Index of the first null entry.
    end: usize,
    /// No null entry is to spare: the table has to move.
    pub moves: bool,
}

impl Needed {
    /// Looks for room for `DT_NEEDED`; it goes behind the others, so that no symbol is looked up there first.
    pub(crate) fn new(image: &Image<'_>, library: &str) -> Result<Needed, PatchError> {
        let error = |what: &str| PatchError::Needed {
            path: image.path.into(),
            library: library.into(),
            what: what.into(),
        };
        if library.is_empty() || library.contains('\0') {
            return Err(error("that is no file name"));
        }
        let table = image
            .dynamic
            .clone()
            .ok_or_else(|| error("it is linked statically"))?;
        let tag = |t: DynamicTag| {
            table
                .get(t.0 as u64)
                .ok_or_else(|| error("its string table is missing"))
        };
        let (strtab, old_strings_va) = tag(DT_STRTAB)?;
        let (strsz, size) = tag(DT_STRSZ)?;
        let old = image
            .table(LinkVa(old_strings_va), size)
            .ok_or_else(|| error("its string table lies outside the file"))?;
        let mut strings = old.to_vec();
        let name_offset = strings.len() as u64;
        strings.extend_from_slice(library.as_bytes());
        strings.push(0);
        let null = DT_NULL.0 as u64;
        // Some linkers leave the terminating entry to the zeros behind the table.
        let end = table
            .entries
            .iter()
            .position(|(t, _)| *t == null)
            .unwrap_or(table.entries.len());
        let moves = table.entries.get(end + 1).is_none_or(|(t, _)| *t != null);
        Ok(Needed {
            table,
            old_strings_va,
            strings,
            name_offset,
            strtab,
            strsz,
            end,
            moves,
        })
    }

    /// Index of the `PT_DYNAMIC` segment.
    pub(crate) fn segment(&self) -> usize {
        self.table.segment
    }

    fn needed_entry(&self) -> (u64, u64) {
        (DT_NEEDED.0 as u64, self.name_offset)
    }

    /// The new value of the string table's address or size: (entry, value).
    fn changed_values(&self, strings_va: u64) -> [(usize, u64); 2] {
        [
            (self.strtab, strings_va),
            (self.strsz, self.strings.len() as u64),
        ]
    }

    /// File offset and bytes of each change, for a table that stays where it is.
    pub(crate) fn edits(&self, strings_va: u64) -> Vec<(u64, Vec<u8>)> {
        let mut edits: Vec<_> = self
            .changed_values(strings_va)
            .iter()
            .map(|&(i, value)| {
                (
                    self.table.offset + 16 * i as u64 + 8,
                    value.to_le_bytes().to_vec(),
                )
            })
            .collect();
        edits.push((
            self.table.offset + 16 * self.end as u64,
            encode(&[self.needed_entry()]),
        ));
        edits.sort();
        edits
    }

    /// The whole table, for a new place.
    pub(crate) fn moved_table(&self, strings_va: u64) -> Vec<u8> {
        let mut entries = self.table.entries[..self.end].to_vec();
        for (i, value) in self.changed_values(strings_va) {
            entries[i].1 = value;
        }
        entries.push(self.needed_entry());
        entries.push((DT_NULL.0 as u64, 0));
        encode(&entries)
    }

    /// Length in bytes of [`Self::moved_table`].
    pub(crate) fn moved_len(&self) -> u64 {
        16 * (self.end as u64 + 2)
    }
}

fn encode(entries: &[(u64, u64)]) -> Vec<u8> {
    entries
        .iter()
        .flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()])
        .flatten()
        .collect()
}
