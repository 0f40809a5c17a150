//! What is said where nothing was recorded.

use super::{Recorder, Then};
use crate::output::note;
use crate::recording::strays::{self, Stray};
use crate::select::SelectArgs;
use anyhow::Result;
use ompfuse_report::words::shell_words;
use std::path::{Path, PathBuf};

/// A run without any record.
#[derive(Debug)]
pub(crate) struct Nothing {
    /// Its folder, with samples perhaps.
    pub(crate) run: PathBuf,
    /// `None`: that was said already.
    why: Option<String>,
    /// The program with its arguments, as a shell takes them.
    pub(crate) command: String,
}

impl std::fmt::Display for Nothing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "nothing was recorded in {}", self.run.display())?;
        match &self.why {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Nothing {}

impl Recorder<'_> {
    /// After a run without any record: a program that failed has said why, otherwise it is this command that failed.
    pub(super) fn nothing(&self, run: &Path, strays: &[Stray]) -> Result<Then> {
        if self.recording.status() != 0 {
            if !self.is_stopped() {
                note(format_args!("nothing was recorded in {}", run.display()));
            }
            return Ok(Then::Stop);
        }
        Err(Nothing {
            run: run.to_owned(),
            why: self.why_nothing(strays),
            command: self.command(),
        }
        .into())
    }

    /// Why there is no record; `None`: that was said already.
    fn why_nothing(&self, strays: &[Stray]) -> Option<String> {
        let libraries = &self.prepared.libraries;
        let name = Path::new(self.program.name);
        if !libraries.refusals().is_empty() {
            return None;
        }
        if let Some(stray) = strays.first() {
            return Some(stray.told(&self.recording.folder));
        }
        let mut left_out = libraries.left_out();
        if self.prepared.is_left_out && left_out.is_empty() {
            left_out.push(name.display().to_string());
        }
        if let [first, ..] = &left_out[..] {
            return Some(format!(
                "--select, --skip or --filter leave out all that calls an OpenMP runtime: {} (`ompfuse scan {first}` lists what \
                 there is)",
                left_out.join(", ")
            ));
        }
        if self.prepared.is_unprobed && !libraries.has_patched() {
            return Some(format!(
                "nothing of what {name} calls of an OpenMP runtime can have a probe (`ompfuse scan {name}` says why), and no library or \
                 program that it has loaded or started has more",
                name = name.display()
            ));
        }
        if self.prepared.module.is_some() {
            return Some("the runtime library did not start in the program's process".to_owned());
        }
        if libraries.has_patched() {
            return Some(format!(
                "the runtime library did not start where {} has loaded or started a patched copy",
                name.display()
            ));
        }
        // It may have been too short to be seen.
        let named = self.program.args.iter().map(Path::new);
        let mut programs = named.filter(|file| strays::calls_openmp(file));
        if let Some(program) = programs.next() {
            let program = program.display();
            return Some(format!(
                "{program} calls an OpenMP runtime, but {} has not started it, or without the variables that ompfuse sets (env -i, \
                 sudo and setpriv drop them); record it by itself: ompfuse record -- {program}",
                name.display()
            ));
        }
        // The functions of a file that starts an interpreter say nothing.
        let options = match name.file_name().and_then(|n| n.to_str()) {
            Some(name) if name.starts_with("python") => "--calls pthread,io",
            _ => "--functions '*' --calls pthread,io",
        };
        Some(format!(
            "neither {} nor a library or program that it has loaded or started with the variables that ompfuse sets (LD_AUDIT and \
             OMPFUSE_*) calls an OpenMP runtime (GOMP_*, __kmpc_*), MPI, or what --calls names; what is linked statically can't be \
             seen; for what takes its time: ompfuse profile {options} -- {}",
            name.display(),
            self.command()
        ))
    }

    fn command(&self) -> String {
        let words =
            std::iter::once(self.program.name).chain(self.program.args.iter().map(|a| &**a));
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        shell_words(words.iter().map(|w| &**w))
    }

    /// Says which parts of a selection matched nothing in all that was recorded.
    pub(in crate::recording) fn tell_unmatched(&self, selection: &SelectArgs) {
        let modules = self.program.modules.iter();
        let modules: Vec<_> = modules
            .map(|m| (m.binary.path.as_str(), &m.sites[..]))
            .collect();
        for pattern in selection.without_match(&modules) {
            note(format_args!(
                "{pattern} matched nothing in what the program has loaded or started; `ompfuse scan FILE` lists what there is"
            ));
        }
    }
}
