//! Libraries (and programs) that a recorded program loads or starts: where the auditing library in its processes finds
//! their patched copies. `runtime/audit` describes the folder that the two share.

use crate::binary::Besides;
use crate::cache::{self, Entry, Key, Origin};
use crate::select::set::Set;
use crate::select::{CountingArgs, SelectArgs, Selector};
use crate::{atomic, binary, input, loader};
use anyhow::{Context, Result, bail};
use clap::{Args, FromArgMatches};
use ompfuse_format::abi::RUNTIME_LIBRARY;
use ompfuse_format::run::{
    ENV_LIBRARIES, INTEREST_BEGINNINGS, INTEREST_CALLS, INTEREST_LIBRARIES, Unpatched, beginning,
    library_key,
};
use ompfuse_patterns::Families;
use ompfuse_patterns::calls::symbols;
use ompfuse_progress::Progress;
use std::ffi::{OsStr, OsString};
use std::fs::{File, FileType};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Variable with libraries that watch the loader.
pub(crate) const AUDIT: &str = "LD_AUDIT";
/// File with the selection, one argument per line.
const SELECTION: &str = "selection";
/// Beginning of the names of files with the paths of those that use OpenMP and of which nothing is selected.
const LEFT_OUT: &str = "left-out-";
/// Beginning of the names of files that say how long the program waited for a copy.
const WAITED: &str = "waited-";
/// Waits that are worth saying.
const LONG: Duration = Duration::from_secs(1);
/// File that says: copies hand over other values, and record nothing.
const TUNED: &str = "tuned";

/// The folder of one recording.
#[derive(Debug)]
pub(crate) struct Libraries {
    folder: TempDir,
    own: Entry,
    /// Keeps `ompfuse cache clear` from removing the folder, and the copies that it names.
    _lock: Option<cache::used::Hold>,
}

impl Libraries {
    /// Prepares the folder.
    pub(crate) fn prepare(selection: &SelectArgs) -> Result<Libraries> {
        Libraries::make(selection, true)
    }

    /// Of a program that isn't recorded, whose libraries hand over other values. Their copies are removed with the folder.
    pub(crate) fn tuned(set: &[Set]) -> Result<Libraries> {
        let mut select: Vec<Selector> = set.iter().map(|set| set.regions.clone()).collect();
        if select.is_empty() {
            select.push(Selector::nothing());
        }
        let selection = SelectArgs {
            select,
            set: set.to_vec(),
            ..SelectArgs::default()
        };
        let libraries = Libraries::make(&selection, false)?;
        atomic::write(&libraries.folder.path().join(TUNED), b"", 0o600)?;
        Ok(libraries)
    }

    fn make(selection: &SelectArgs, may_be_kept: bool) -> Result<Libraries> {
        let own = cache::own_libraries()?;
        let in_cache = || {
            let cache = cache::folder()?.canonicalize().ok()?;
            let folder = tempfile::Builder::new()
                .prefix(".libraries-")
                .tempdir_in(&cache);
            Some((folder.ok()?, cache))
        };
        let (folder, cache) = match in_cache().filter(|_| may_be_kept) {
            Some(both) => both,
            None => {
                let folder = cache::temporary::folder()
                    .context("cannot make a folder for patched libraries")?;
                let cache = folder.path().canonicalize()?;
                (folder, cache)
            }
        };
        let command = std::env::current_exe().context("cannot find this command itself")?;
        let lock = cache::used::hold(folder.path());
        let libraries = Libraries {
            folder,
            own,
            _lock: lock,
        };
        for (name, to) in [
            ("runtime", libraries.runtime()),
            ("command", command),
            ("cache", cache),
        ] {
            symlink(to, libraries.folder.path().join(name))
                .context("cannot prepare for patched libraries")?;
        }
        let families = selection.calls.families();
        let mut calls: Vec<String> = symbols(families).map(|(name, _)| name).collect();
        calls.sort_unstable();
        let named: Vec<&str> = selection.functions.libraries().collect();
        let write = |name: &str, lines: &str| {
            atomic::write(&libraries.folder.path().join(name), lines.as_bytes(), 0o600)
        };
        write(SELECTION, &selection.arguments().join("\n"))?;
        write(INTEREST_LIBRARIES, &named.join("\n"))?;
        let mut beginnings: Vec<&str> = calls.iter().map(|c| beginning(c)).collect();
        beginnings.dedup();
        for (name, lines) in [
            (INTEREST_BEGINNINGS, beginnings.join("\n")),
            (INTEREST_CALLS, calls.join("\n")),
        ] {
            match write(name, &lines) {
                // Without room for it no file can be patched either, which is said where one is tried.
                Err(_) if families == Families::default() => {}
                written => written?,
            }
        }
        Ok(libraries)
    }

    /// Decides about files before a process asks.
    pub(crate) fn decide_ahead(&self, files: &[PathBuf]) {
        for file in files {
            let Ok(m) = file.metadata() else { continue };
            let key = library_key(m.dev(), m.ino(), m.size(), m.mtime(), m.mtime_nsec());
            // Else the process asks.
            let _ = decide(self.folder.path(), &key, file, Progress::default());
        }
    }

    /// The runtime library of all processes.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.own.program.with_file_name(RUNTIME_LIBRARY)
    }

    /// Variables for the program. `others`: the user's value of LD_AUDIT.
    pub(crate) fn env(&self, others: Option<OsString>) -> [(&'static str, OsString); 2] {
        let mut audit = self.own.program.as_os_str().to_owned();
        for other in others.iter().filter(|o| !o.is_empty()) {
            audit.push(":");
            audit.push(other);
        }
        [
            (AUDIT, audit),
            (ENV_LIBRARIES, self.folder.path().as_os_str().to_owned()),
        ]
    }

    /// Whether any process has been given a patched copy.
    pub(crate) fn has_patched(&self) -> bool {
        self.entries()
            .any(|(name, kind, _)| name.contains('-') && kind.is_symlink())
    }

    /// Why files have no patched copy: a line each.
    pub(crate) fn refusals(&self) -> Vec<String> {
        let all = self.refused().into_iter();
        all.map(|unpatched| unpatched.told).collect()
    }

    /// Of which files something is not recorded that was to be.
    pub(crate) fn unpatched(&self) -> Vec<Unpatched> {
        let mut all = self.refused();
        all.retain(|unpatched| !unpatched.file.is_empty());
        all
    }

    /// Files that have no patched copy, and why; without a name where nothing is missing.
    fn refused(&self) -> Vec<Unpatched> {
        let is_other = |name: &str| [LEFT_OUT, WAITED].iter().any(|b| name.starts_with(b));
        let texts = self.texts(|name| name.contains('-') && !is_other(name));
        let parts = texts.iter().filter_map(|text| text.split_once('\n'));
        let unpatched = |(file, told): (&str, &str)| Unpatched {
            file: file.to_owned(),
            told: told.to_owned(),
        };
        parts.map(unpatched).collect()
    }

    /// For what copies the program waited long: a line each.
    pub(crate) fn waits(&self) -> Vec<String> {
        self.texts(|name| name.starts_with(WAITED))
    }

    /// Files that use OpenMP, and of which nothing is selected.
    pub(crate) fn left_out(&self) -> Vec<String> {
        self.texts(|name| name.starts_with(LEFT_OUT))
    }

    /// What stands in files with such names, unless that is nothing.
    fn texts(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let files = self
            .entries()
            .filter(|(name, kind, _)| kind.is_file() && is_wanted(name));
        let texts = files.filter_map(|(_, _, path)| std::fs::read_to_string(path).ok());
        let mut texts: Vec<_> = texts.filter(|t| !t.is_empty()).collect();
        texts.sort();
        texts
    }

    fn entries(&self) -> impl Iterator<Item = (String, FileType, PathBuf)> {
        let listing = std::fs::read_dir(self.folder.path());
        listing.into_iter().flatten().flatten().filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            Some((name, entry.file_type().ok()?, entry.path()))
        })
    }
}

/// Decides about a file, for `ompfuse patch-cached`: puts a link to its patched copy, or the reason why there is none, into
/// the folder.
pub(crate) fn decide(folder: &Path, key: &str, file: &Path, progress: Progress<'_>) -> Result<()> {
    let place = folder.join(key);
    match patched(folder, key, file, progress) {
        Ok(Some(copy)) => match symlink(copy, &place) {
            // Another process has asked at the same time.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            done => Ok(done?),
        },
        Ok(None) => atomic::write(&place, b"", 0o600),
        Err(error) => {
            // Who isn't recorded by the way can miss nothing.
            let file = match error.is::<OnlyCounts>() {
                true => String::new(),
                false => file.to_string_lossy().replace('\n', " "),
            };
            let text = format!("{file}\n{}", crate::one_line(&error));
            atomic::write(&place, text.as_bytes(), 0o600)
        }
    }
}

/// A library can't count, because nothing else of it is wanted.
#[derive(Debug, thiserror::Error)]
#[error(
    "{file} can't count, because nothing of it is recorded; name functions of it, too: --functions=lib:{name}:NAME"
)]
struct OnlyCounts {
    file: String,
    name: String,
}

/// Leaves word that the program has waited so long for a file's copy, if that is worth saying.
pub(crate) fn note_wait(folder: &Path, key: &str, file: &Path, waited: Duration) -> Result<()> {
    if waited < LONG {
        return Ok(());
    }
    let line = format!(
        "the program waited {:.1} s while {} was patched, which is in its time if it had begun; the copy is kept: record once more",
        waited.as_secs_f64(),
        file.display()
    );
    atomic::write(
        &folder.join(format!("{WAITED}{key}")),
        line.as_bytes(),
        0o600,
    )
}

/// The patched copy; `None` for a file without anything to patch.
fn patched(
    folder: &Path,
    key: &str,
    file: &Path,
    progress: Progress<'_>,
) -> Result<Option<PathBuf>> {
    let metadata = file
        .metadata()
        .with_context(|| format!("cannot examine {}", file.display()))?;
    let (dev, ino, size) = (metadata.dev(), metadata.ino(), metadata.size());
    if key != library_key(dev, ino, size, metadata.mtime(), metadata.mtime_nsec()) {
        bail!("{} has changed meanwhile", file.display());
    }
    let bytes = &input::map(file)?;
    if binary::description(file, bytes)?.is_some() {
        return Ok(None);
    }
    let selection = selection(folder)?;
    let file = std::path::absolute(file)?;
    let cache = std::fs::read_link(folder.join("cache"))?;
    let searched = loader::searched(bytes);
    let debug = selection.debug.find(&file, bytes);
    let is_tuned = folder.join(TUNED).exists();
    let how = if is_tuned { "tuned " } else { "" };
    let options = format!("{how}{}{}", selection.fingerprint(), debug.key());
    let left_out = folder.join(format!("{LEFT_OUT}{key}"));
    let key = Key {
        name: file.file_name().unwrap_or(OsStr::new("library")),
        original: bytes,
        options: &options,
        origin: Some(Origin {
            folder: atomic::parent(&file),
            searched: &searched,
        }),
        is_whole: cache::is_patched,
    };
    let mut nothing = false;
    let wanted = selection.functions.of(&file.to_string_lossy(), false);
    let entry = cache::get_or_make_in(Some(&cache), &key, || {
        let besides = Besides {
            functions: wanted.as_ref(),
            calls: selection.calls,
        };
        let of_scan = progress.part(binary::OF_SCAN);
        let scan = binary::scan(&file, bytes, &debug, besides, false, of_scan)
            .inspect_err(|e| nothing = binary::has_nothing(e))?;
        if binary::unprobed(&scan).is_some_and(|lost| lost.lost() == 0) {
            nothing = true; // what is left needs no probe: questions, settings
            bail!("nothing to patch")
        }
        match selection.for_library(&scan.binary.path, &scan.sites) {
            Some(own) if !scan.sites.is_empty() && !own.leaves_out(&scan.binary.path) => {
                let plan = binary::plan(bytes, scan, &own, is_tuned)?;
                Ok(move |file: &mut File| binary::write(bytes, &plan, file, progress))
            }
            _ => {
                nothing = true;
                if !scan.sites.is_empty() {
                    let path = file.to_string_lossy();
                    atomic::write(&left_out, path.as_bytes(), 0o600)?; // told at the end
                }
                bail!("nothing to patch")
            }
        }
    });
    if nothing {
        if wanted.is_some_and(|wanted| wanted.only_counts_library()) {
            let (file, name) = (file.display().to_string(), key.name.display().to_string());
            return Err(OnlyCounts { file, name }.into());
        }
        return Ok(None);
    }
    let entry = entry?;
    if !entry.is_kept() {
        bail!("cannot write into {}", cache.display());
    }
    Ok(Some(entry.program))
}

/// The recording's selection.
fn selection(folder: &Path) -> Result<SelectArgs> {
    let text = input::lasting_text(&folder.join(SELECTION))
        .context("cannot read the recording's selection")?;
    let parser = CountingArgs::augment_args(clap::Command::new("selection").no_binary_name(true));
    let arguments = text.split('\n').filter(|a| !a.is_empty());
    let matches = parser.try_get_matches_from(arguments)?;
    Ok(CountingArgs::from_arg_matches(&matches)?.whole())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_a_link_or_a_reason() {
        let selection = SelectArgs {
            skip: vec!["task".parse().unwrap(), "f*".parse().unwrap()],
            ..SelectArgs::default()
        };
        let libraries = Libraries::prepare(&selection).unwrap();
        let folder = libraries.folder.path();
        assert_eq!(
            super::selection(folder).unwrap().fingerprint(),
            selection.fingerprint()
        );
        let text = folder.join("text");
        std::fs::write(&text, "no ELF").unwrap();
        let m = text.metadata().unwrap();
        let key = library_key(m.dev(), m.ino(), m.size(), m.mtime(), m.mtime_nsec());
        decide(folder, &key, &text, Progress::default()).unwrap();
        decide(folder, "0-0-0-0.0", &text, Progress::default()).unwrap();
        // That the program waited is no reason.
        note_wait(folder, &key, &text, Duration::from_millis(900)).unwrap();
        assert!(libraries.waits().is_empty());
        note_wait(folder, &key, &text, Duration::from_millis(40_040)).unwrap();
        let waits = libraries.waits();
        assert_eq!(waits.len(), 1);
        assert!(waits[0].contains("waited 40.0 s while"), "{waits:?}");
        let refusals = libraries.refusals();
        assert_eq!(refusals.len(), 2, "{refusals:?}");
        assert!(refusals.iter().any(|r| r.contains("has changed meanwhile")));
        let [(_, audit), _] = libraries.env(Some("/mine.so".into()));
        assert!(
            audit
                .to_string_lossy()
                .ends_with("/libompfuse_audit.so:/mine.so")
        );
        assert!(libraries.runtime().is_file());
    }
}
