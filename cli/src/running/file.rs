//! A control file, from the outside.

use anyhow::{Context, Result, bail};
use ompfuse_format::control::{self, HEADER_LEN, MAX_SETS, MODULES, OFF, OWN_SET, PAGE, SET_LEN};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The control file of a process.
pub(crate) struct ControlFile {
    file: File,
    path: PathBuf,
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
}

impl ControlFile {
    /// Opens a file that a process has made; `None`: it hasn't written it yet.
    pub(super) fn open(path: &Path) -> Result<Option<ControlFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
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

    fn write(&self, at: usize, bytes: &[u8]) -> Result<()> {
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

    /// Changes something as a whole: no thread takes over a part of it.
    pub(crate) fn change(&self, change: impl FnOnce(&Changing<'_>) -> Result<()>) -> Result<()> {
        flock(&self.file, FlockOperation::LockExclusive)
            .with_context(|| format!("cannot lock {}", self.path.display()))?;
        // Who was ended in the middle has left it odd.
        let before = self.number(control::AT_GENERATION)? | 1;
        self.write(control::AT_GENERATION, &before.to_le_bytes())?;
        let changed = change(&Changing(self));
        let special = self.is_special().map(u32::from);
        let told = special.and_then(|s| self.write(control::AT_SPECIAL, &s.to_le_bytes()));
        let after = before.wrapping_add(1);
        self.write(control::AT_GENERATION, &after.to_le_bytes())?;
        let _ = flock(&self.file, FlockOperation::Unlock); // closing does it too
        changed.and(told)
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

/// A control file that threads don't take anything over from at the moment.
pub(crate) struct Changing<'a>(&'a ControlFile);

impl Changing<'_> {
    /// Whether regions of a module are recorded. `meant`: by site.
    pub(crate) fn switch(&self, module: u32, meant: &[bool], on: bool) -> Result<()> {
        self.each(
            module,
            meant,
            |byte| {
                if on { byte & !OFF } else { byte | OFF }
            },
        )
    }

    /// Gives regions of a module an event set of their own, or takes it.
    pub(crate) fn own_set(&self, module: u32, meant: &[bool], set: Option<u32>) -> Result<()> {
        let number = set.map_or(0, |set| set as u8 + 1) & OWN_SET;
        self.each(module, meant, |byte| byte & !OWN_SET | number)
    }

    /// Takes back whatever was changed in a module.
    pub(crate) fn reset(&self, module: u32) -> Result<()> {
        let Some((at, table)) = self.0.table(module)? else {
            return Ok(());
        };
        self.0.write(at, &vec![0; table.len()])
    }

    fn each(&self, module: u32, meant: &[bool], change: impl Fn(u8) -> u8) -> Result<()> {
        let Some((at, mut table)) = self.0.table(module)? else {
            return Ok(());
        };
        for (byte, &meant) in table.iter_mut().zip(meant) {
            if meant {
                *byte = change(*byte);
            }
        }
        self.0.write(at, &table)
    }

    /// Number of an event set; a new one, if there is none of these names.
    pub(crate) fn set(&self, names: &str) -> Result<u32> {
        let state = self.0.state()?;
        if let Some(known) = state.sets.iter().position(|s| s == names) {
            return Ok(known as u32);
        }
        let number = state.sets.len();
        if number == MAX_SETS {
            bail!("{names}: a process can have {MAX_SETS} event sets, and has them already");
        }
        let mut field = vec![0; SET_LEN];
        control::put_text(&mut field, names.as_bytes())
            .with_context(|| format!("{names}: too many names for one event set"))?;
        self.0.write(control::at_set_names(number), &field)?;
        let count = number as u32 + 1;
        self.0.write(control::AT_SETS, &count.to_le_bytes())?;
        Ok(number as u32)
    }

    /// The event set of regions that have none of their own.
    pub(crate) fn common_set(&self, set: u32) -> Result<()> {
        self.0.write(control::AT_SET, &set.to_le_bytes())
    }

    /// Has event sets take turns; 0 instances: no more.
    pub(crate) fn rotate(&self, instances: u32, sets: &[u32]) -> Result<()> {
        let mask = sets.iter().fold(0u32, |mask, set| mask | 1 << set);
        self.0.write(control::AT_ROTATE, &instances.to_le_bytes())?;
        self.0.write(control::AT_ROTATING, &mask.to_le_bytes())
    }

    /// The file that a signal reloads.
    pub(crate) fn reload_file(&self, path: &Path) -> Result<()> {
        let mut field = vec![0; control::RELOAD_FILE_LEN];
        control::put_text(&mut field, path.as_os_str().as_encoded_bytes())
            .with_context(|| format!("{} is too long a path", path.display()))?;
        self.0.write(control::AT_RELOAD_FILE, &field)
    }

    /// What holds so far.
    pub(crate) fn state(&self) -> Result<State> {
        self.0.state()
    }
}
