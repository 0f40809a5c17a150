//! What changes in a control file together.

use super::file::{ControlFile, State};
use anyhow::{Context, Result, bail};
use ompfuse_format::control::{self, MAX_SETS, OFF, OWN_SET, SET_LEN};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

/// Changes of a control file, worked out before the first byte is written: threads read a site's byte at any moment, so it
/// goes from what it was to what it will be, with nothing in between.
pub(crate) struct Changing<'a> {
    file: &'a ControlFile,
    /// By module; `None`: its regions can't be switched.
    tables: BTreeMap<u32, Option<Table>>,
    /// Other fields: offset and bytes, in the order of the changes.
    fields: Vec<(usize, Vec<u8>)>,
}

/// A module's sites.
struct Table {
    at: usize,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Table {
    /// From the first byte that is another one to the last: offset and bytes; `None` if all are the same.
    fn changed(&self) -> Option<(usize, &[u8])> {
        let differs = |(before, after): (&u8, &u8)| before != after;
        let first = self.before.iter().zip(&self.after).position(differs)?;
        let last = self.before.iter().zip(&self.after).rposition(differs)?;
        Some((self.at + first, &self.after[first..=last]))
    }
}

impl<'a> Changing<'a> {
    pub(super) fn new(file: &'a ControlFile) -> Changing<'a> {
        Changing {
            file,
            tables: BTreeMap::new(),
            fields: Vec::new(),
        }
    }

    /// Whether regions of a module are recorded. `meant`: numbers of sites.
    pub(crate) fn switch(&mut self, module: u32, meant: &[u32], on: bool) -> Result<()> {
        self.each(
            module,
            meant,
            |byte| {
                if on { byte & !OFF } else { byte | OFF }
            },
        )
    }

    /// Gives regions of a module an event set of their own, or takes it.
    pub(crate) fn own_set(&mut self, module: u32, meant: &[u32], set: Option<u32>) -> Result<()> {
        let number = set.map_or(0, |set| set as u8 + 1) & OWN_SET;
        self.each(module, meant, |byte| byte & !OWN_SET | number)
    }

    /// Takes back whatever was changed in a module.
    pub(crate) fn reset(&mut self, module: u32) -> Result<()> {
        if let Some(table) = self.table(module)? {
            table.after.fill(0);
        }
        Ok(())
    }

    fn each(&mut self, module: u32, meant: &[u32], change: impl Fn(u8) -> u8) -> Result<()> {
        if let Some(table) = self.table(module)? {
            for &site in meant {
                if let Some(byte) = table.after.get_mut(site as usize) {
                    *byte = change(*byte);
                }
            }
        }
        Ok(())
    }

    fn table(&mut self, module: u32) -> Result<Option<&mut Table>> {
        let table = match self.tables.entry(module) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.file.table(module)?.map(|(at, before)| Table {
                at,
                after: before.clone(),
                before,
            })),
        };
        Ok(table.as_mut())
    }

    /// Number of an event set; a new one, if there is none of these names. It is written at once: nobody uses it yet.
    pub(crate) fn set(&self, names: &str) -> Result<u32> {
        let state = self.file.state()?;
        if let Some(known) = state.sets.iter().position(|s| s == names) {
            return Ok(known as u32);
        }
        let number = state.sets.len();
        if number == MAX_SETS {
            bail!(
                "cannot count {names}: the process has {MAX_SETS} event sets already, and can have no more"
            );
        }
        let mut field = vec![0; SET_LEN];
        control::put_text(&mut field, names.as_bytes())
            .with_context(|| format!("{names}: too many names for one event set"))?;
        self.file.write(control::at_set_names(number), &field)?;
        let count = number as u32 + 1;
        self.file.write(control::AT_SETS, &count.to_le_bytes())?;
        Ok(number as u32)
    }

    /// The event set of regions that have none of their own.
    pub(crate) fn common_set(&mut self, set: u32) {
        self.put(control::AT_SET, set);
    }

    /// Holds the recording, or lets it go on.
    pub(crate) fn hold(&mut self, held: bool) {
        self.put(control::AT_HELD, u32::from(held));
    }

    /// Has event sets take turns; 0 instances: no more.
    pub(crate) fn rotate(&mut self, instances: u32, sets: &[u32]) {
        let mask = sets.iter().fold(0u32, |mask, set| mask | 1 << set);
        self.put(control::AT_ROTATE, instances);
        self.put(control::AT_ROTATING, mask);
    }

    /// Ends the recording, for ever.
    pub(crate) fn end(&mut self) {
        self.put(control::AT_ENDED, 1);
    }

    fn put(&mut self, at: usize, number: u32) {
        self.fields.push((at, number.to_le_bytes().to_vec()));
    }

    /// The file that a signal reloads.
    pub(crate) fn reload_file(&mut self, path: &Path) -> Result<()> {
        let mut field = vec![0; control::RELOAD_FILE_LEN];
        control::put_text(&mut field, path.as_os_str().as_encoded_bytes())
            .with_context(|| format!("{} is too long a path", path.display()))?;
        self.fields.push((control::AT_RELOAD_FILE, field));
        Ok(())
    }

    /// What held before, but for new event sets.
    pub(crate) fn state(&self) -> Result<State> {
        self.file.state()
    }

    /// Writes all of it.
    pub(super) fn write(&self) -> Result<()> {
        for table in self.tables.values().flatten() {
            if let Some((at, bytes)) = table.changed() {
                self.file.write(at, bytes)?;
            }
        }
        // Of several changes of a field only the last is written.
        let last: BTreeMap<usize, &[u8]> = (self.fields.iter())
            .map(|(at, bytes)| (*at, &bytes[..]))
            .collect();
        last.into_iter()
            .try_for_each(|(at, bytes)| self.file.write(at, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_written() {
        let table = |before: &[u8], after: &[u8]| Table {
            at: 100,
            before: before.to_vec(),
            after: after.to_vec(),
        };
        assert_eq!(table(&[1, 2, 3], &[1, 2, 3]).changed(), None);
        let some = table(&[0x80, 0, 0x80, 7], &[0x80, 1, 0x80, 0]);
        assert_eq!(some.changed(), Some((101, &[1, 0x80, 0][..])));
        assert_eq!(table(&[], &[]).changed(), None);
    }
}
