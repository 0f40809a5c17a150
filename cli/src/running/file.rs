//! A control file, from the outside.

use super::changing::Changing;
use super::lock::Lock;
use anyhow::{Context, Result, bail};
use ompfuse_format::control::{self, HEADER_LEN, MAX_SETS, MODULES, PAGE, SET_LEN};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The control file of a process.
pub(crate) struct ControlFile {
    file: File,
    path: PathBuf,
}

/// What a control file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Look,
    Change,
}

/// What holds in a process.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct State {
    /// The event sets, by number.
    pub(crate) sets: Vec<String>,
    /// Number of the set of regions that have none of their own.
    pub(crate) set: u32,
    /// After how many instances of a region the next set comes; 0: never.
    pub(crate) rotate: u32,
    /// The sets that take part in that.
    pub(crate) rotating: Vec<u32>,
    /// Whether the program has paused the recording.
    pub(crate) paused: bool,
    /// Whether the command holds it: it has not begun yet, was paused by `ompfuse ctl`, or is over.
    pub(crate) held: bool,
}

impl ControlFile {
    /// Opens a file that a process has made; `None`: it hasn't written it yet.
    pub(super) fn open(path: &Path, access: Access) -> Result<Option<ControlFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(access == Access::Change)
            .open(path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        let control = ControlFile {
            file,
            path: path.to_owned(),
        };
        let mut magic = [0; 8];
        if control.file.read_exact_at(&mut magic, 0).is_err() || magic != control::MAGIC {
            return Ok(None);
        }
        match control.number(control::AT_VERSION)? {
            control::VERSION => Ok(Some(control)),
            other => bail!(
                "{} has version {other}, this ompfuse has {}",
                path.display(),
                control::VERSION
            ),
        }
    }

    /// The process.
    pub(super) fn pid(&self) -> u32 {
        self.number(control::AT_PID).unwrap_or(0)
    }

    fn read(&self, at: usize, out: &mut [u8]) -> Result<()> {
        let read = self.file.read_exact_at(out, at as u64);
        read.with_context(|| format!("cannot read {}", self.path.display()))
    }

    pub(super) fn write(&self, at: usize, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all_at(bytes, at as u64);
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn number(&self, at: usize) -> Result<u32> {
        let mut bytes = [0; 4];
        self.read(at, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn text(&self, at: usize, len: usize) -> Result<Option<String>> {
        let mut field = vec![0; len];
        self.read(at, &mut field)?;
        Ok(control::text(&field).map(str::to_owned))
    }

    /// How often a signal has asked for a reload.
    pub(crate) fn reloads(&self) -> Result<u32> {
        self.number(control::AT_RELOADS)
    }

    /// The file that is read then.
    pub(crate) fn reload_file(&self) -> Result<Option<PathBuf>> {
        let text = self.text(control::AT_RELOAD_FILE, control::RELOAD_FILE_LEN)?;
        Ok(text.map(PathBuf::from))
    }

    /// What holds.
    pub(crate) fn state(&self) -> Result<State> {
        let count = (self.number(control::AT_SETS)? as usize).min(MAX_SETS);
        let names = |set| self.text(control::at_set_names(set), SET_LEN);
        let rotating = self.number(control::AT_ROTATING)?;
        Ok(State {
            sets: (0..count)
                .map(|set| Ok(names(set)?.unwrap_or_default()))
                .collect::<Result<_>>()?,
            set: self.number(control::AT_SET)?,
            rotate: self.number(control::AT_ROTATE)?,
            rotating: (0..MAX_SETS as u32)
                .filter(|set| rotating & 1 << set != 0)
                .collect(),
            paused: self.number(control::AT_PAUSED)? != 0,
            held: self.number(control::AT_HELD)? != 0,
        })
    }

    /// A module's table, and where it is; `None`: its regions can't be switched.
    pub(crate) fn table(&self, module: u32) -> Result<Option<(usize, Vec<u8>)>> {
        if module as usize >= MODULES {
            return Ok(None);
        }
        let entry = control::at_module(module as usize);
        let (page, sites) = (self.number(entry)?, self.number(entry + 4)?);
        let at = page as usize * PAGE;
        if at < HEADER_LEN || sites == 0 {
            return Ok(None);
        }
        let mut table = vec![0; sites as usize];
        self.read(at, &mut table)?;
        Ok(Some((at, table)))
    }

    /// Changes something as a whole: no thread takes over a part of it, and nothing is written if it fails. Who is at it
    /// already is waited for, for so long.
    pub(crate) fn change(
        &self,
        patience: Duration,
        change: impl FnOnce(&mut Changing<'_>) -> Result<()>,
    ) -> Result<()> {
        let lock = Lock::take(&self.file, &self.path, patience)?;
        let mut changing = Changing::new(self);
        change(&mut changing)?;
        // Who was ended in the middle has left it odd.
        let before = self.number(control::AT_GENERATION)? | 1;
        self.write(control::AT_GENERATION, &before.to_le_bytes())?;
        let written = changing.write();
        let special = self.is_special().map(u32::from);
        let told = special.and_then(|s| self.write(control::AT_SPECIAL, &s.to_le_bytes()));
        let after = before.wrapping_add(1);
        self.write(control::AT_GENERATION, &after.to_le_bytes())?;
        drop(lock);
        written.and(told)
    }

    fn is_special(&self) -> Result<bool> {
        for module in 0..MODULES as u32 {
            if let Some((_, table)) = self.table(module)?
                && table.iter().any(|&byte| byte != 0)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
