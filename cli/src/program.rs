//! The program that is to be recorded, patched.

use crate::binary::Besides;
use crate::cache::{self, Entry, Key};
use crate::input::Input;
use crate::libraries::{self, Libraries};
use crate::select::{FunctionArgs, SelectArgs};
use crate::{binary, counted, input, launch, loader, output, privileges};
use anyhow::{Context, Result, bail};
use ompfuse_format::abi::RUNTIME_LIBRARY;
use ompfuse_format::coverage::Coverage;
use ompfuse_format::run::RunModule;
use ompfuse_format::site::SelfDescription;
use ompfuse_progress::Progress;
use ompfuse_rewriter::model::Scan;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Variable with libraries that the loader loads before all others.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";
/// Variable with folders where the loader looks for libraries.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
/// Variable with the C library's settings.
const TUNABLES: &str = "GLIBC_TUNABLES";
/// So many bytes of every thread's stack for libraries' thread-local variables are enough for an allocator's (jemalloc's 2.6 KB).
const ROOM: &str = "glibc.rtld.optional_static_tls=4096";

/// A program, ready to record.
pub(crate) struct Prepared {
    /// The file to execute.
    pub(crate) file: PathBuf,
    /// What is in it; `None`: it uses no OpenMP itself, only what it loads or starts may.
    pub(crate) module: Option<RunModule>,
    /// Variables that it needs to run as the original does.
    pub(crate) env: Vec<(&'static str, OsString)>,
    /// It uses OpenMP, and nothing of that is selected.
    pub(crate) is_left_out: bool,
    /// It calls an OpenMP runtime, but nothing in it can have a probe.
    pub(crate) is_unprobed: bool,
    /// For what it loads.
    pub(crate) libraries: Libraries,
    /// Keeps what was made for it, where that is temporary.
    _made: Option<Entry>,
}

impl Prepared {
    /// Finds a command and patches it, unless it is patched already or there is nothing to patch.
    pub(crate) fn new(
        command: &OsStr,
        selection: &SelectArgs,
        progress: Progress<'_>,
    ) -> Result<Prepared> {
        let found = launch::find(command)?;
        let file = found
            .canonicalize()
            .with_context(|| format!("cannot find {}", found.display()))?;
        privileges::refuse_to_record(&file)?;
        let bytes = input::map(&file)?;
        loader::refuse_musl(&found, &bytes)?;
        let libraries = Libraries::prepare(selection)?;
        let mut prepared = Prepared {
            env: libraries.env(std::env::var_os(libraries::AUDIT)).into(),
            file: found.clone(),
            module: None,
            is_left_out: false,
            is_unprobed: false,
            libraries,
            _made: None,
        };
        if bytes.starts_with(b"#!") {
            return Ok(prepared);
        }
        match binary::description(&file, &bytes)? {
            None => prepared.patch(&file, &bytes, selection, progress)?,
            Some(_) if !selection.is_empty() => {
                bail!(
                    "{} is patched already: --select and --skip need the original",
                    found.display()
                )
            }
            Some(description)
                if description.binary.counted.is_none()
                    && !selection.functions.count.is_empty() =>
            {
                bail!(
                    "{} was patched without --count and counts no instructions; patch the original with --count",
                    found.display()
                )
            }
            Some(description) => prepared.keep(file, &bytes, description)?,
        }
        Ok(prepared)
    }

    /// Asks the loader for room for thread-local variables, unless the user has: for a simulated process, which can't begin once
    /// more where the auditing library finds too little.
    pub(crate) fn make_room(&mut self) {
        let mut value = std::env::var_os(TUNABLES).unwrap_or_default();
        if value.to_string_lossy().contains("optional_static_tls") {
            return;
        }
        if !value.is_empty() {
            value.push(":");
        }
        value.push(ROOM);
        self.env.push((TUNABLES, value));
    }

    /// Takes the patched copy in the cache, made if it isn't there; or the original, if that doesn't use OpenMP itself.
    fn patch(
        &mut self,
        file: &Path,
        bytes: &Input,
        selection: &SelectArgs,
        progress: Progress<'_>,
    ) -> Result<()> {
        let name = file.file_name().context("a program's file has a name")?;
        let debug = selection.debug.find(file, bytes);
        let options = selection.fingerprint() + &debug.key();
        let key = Key {
            name,
            original: bytes,
            options: &options,
            origin: None,
            is_whole: cache::is_patched,
        };
        let (mut nothing, mut left_out, mut is_unprobed) = (false, false, false);
        let (mut why, mut is_unmatched) = (None, false);
        let made = cache::get_or_make(&key, || {
            let wanted = selection.functions.of(&path_text(file), true);
            let named = wanted.as_ref().filter(|w| !w.only_counts());
            let besides = Besides {
                functions: wanted.as_ref(),
                calls: selection.calls,
            };
            let of_scan = progress.part(binary::OF_SCAN);
            let scan = binary::scan(file, bytes, &debug, besides, false, of_scan)
                .inspect_err(|e| nothing = binary::has_nothing(e))
                .inspect_err(|_| is_unmatched = named.is_some_and(FunctionArgs::names_some))
                .inspect_err(|_| why = named.map(|w| binary::unmatched(file, bytes, w)))?;
            binary::check_functions(&scan, wanted.as_ref(), (file, bytes))?;
            left_out = selection.leaves_out(&scan.binary.path) && !scan.sites.is_empty();
            if let Some(lost) = binary::unprobed(&scan) {
                why = without_probes(file, &scan, &lost);
                is_unprobed = scan.sites.iter().any(|s| !s.info.construct.is_code());
                nothing = true;
            }
            nothing |= left_out;
            let plan = binary::plan(bytes, scan, selection, false)?;
            Ok(move |file: &mut File| binary::write(bytes, &plan, file, progress))
        });
        if nothing && loader::is_dynamic(bytes) {
            (self.is_left_out, self.is_unprobed) = (left_out, is_unprobed && !left_out);
            if let Some(pattern) = selection.naming(&path_text(file)).filter(|_| !left_out) {
                bail!(
                    "nothing in {} matches {pattern}: it calls no OpenMP runtime itself, only what it loads or starts may",
                    file.display()
                );
            }
            match why {
                Some(why) if is_unmatched => bail!(why),
                why => why.iter().for_each(output::note),
            }
            return Ok(());
        }
        let entry = made?;
        let patched = entry.program.clone();
        let Some(mut description) = binary::description(&patched, &input::map(&patched)?)? else {
            bail!("{} is damaged; remove its folder", patched.display());
        };
        description.binary.path = path_text(file); // the entry may come from another file with the same contents
        if let Some(counted) = &description.binary.counted {
            let lost = counted::Coverage::of(counted).lost(&path_text(file));
            lost.iter().for_each(output::note);
            let sites = &description.sites;
            let unused = counted::without_units(counted, sites, &selection.functions);
            unused.iter().for_each(output::note);
        }
        let user = std::env::var_os(LIBRARY_PATH);
        let path = loader::library_path(file, bytes, user).map(|path| (LIBRARY_PATH, path));
        self.module = Some(module(&patched, description));
        self.file = patched;
        self.env.extend(path);
        self._made = Some(entry);
        Ok(())
    }

    /// Takes a file that the user patched.
    fn keep(&mut self, file: PathBuf, bytes: &[u8], description: SelfDescription) -> Result<()> {
        if !loader::loads_runtime(bytes)? {
            let value = preload(&self.libraries.runtime(), std::env::var_os(PRELOAD));
            self.env.push((PRELOAD, value));
        } else {
            let library = file.with_file_name(RUNTIME_LIBRARY);
            if !library.is_file() {
                bail!(
                    "{} needs {} beside it; patch the original again",
                    file.display(),
                    library.display()
                );
            }
        }
        self.module = Some(module(&file, description));
        self.file = file;
        Ok(())
    }
}

/// What is said of a file in which nothing can have a probe; `None`: it has only what needs none.
fn without_probes(file: &Path, scan: &Scan, lost: &Coverage) -> Option<String> {
    if lost.lost() == 0 {
        return None;
    }
    let what = match scan.sites.iter().all(|s| s.info.construct.is_code()) {
        true => "no function that --functions or --loops chooses",
        false => "no construct",
    };
    Some(format!(
        "{what} in {} can be recorded: {}; what the program loads or starts is recorded all the same",
        file.display(),
        lost.reasons()
    ))
}

/// A patched file that some process has loaded; `None`: it is not there any more, or not readable.
pub(crate) fn loaded(patched: &Path) -> Option<RunModule> {
    let bytes = input::map(patched).ok()?;
    let description = binary::description(patched, &bytes).ok()??;
    Some(module(patched, description))
}

fn module(patched: &Path, description: SelfDescription) -> RunModule {
    RunModule {
        patched: path_text(patched),
        binary: description.binary,
        sites: description.sites,
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Our library before the user's own.
fn preload(library: &Path, others: Option<OsString>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    for other in others.iter().filter(|o| !o.is_empty()) {
        value.push(":");
        value.push(other);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preloads_come_first() {
        assert_eq!(preload(Path::new("/a"), None), "/a");
        assert_eq!(preload(Path::new("/a"), Some("/b /c".into())), "/a:/b /c");
    }

    #[test]
    fn a_script_is_run_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("s");
        crate::atomic::write(&script, b"#!/bin/sh\n", 0o755).unwrap();
        let prepared = Prepared::new(
            script.as_os_str(),
            &SelectArgs::default(),
            Progress::default(),
        )
        .unwrap();
        assert_eq!(prepared.file, script);
        assert!(prepared.module.is_none());
        assert_eq!(loaded(&script), None);
    }
}
