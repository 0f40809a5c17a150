//! `ompfuse patch-cached`: what the auditing library in a recorded process asks for.

use crate::{libraries, memory, progress};
use anyhow::Result;
use std::path::PathBuf;
use std::time::Instant;

/// Patch a library that a recorded program loads; for the auditing library only
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of the recording's libraries
    folder: PathBuf,
    /// Name of the decision in it
    key: String,
    /// The library, or program
    file: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<()> {
    memory::give_back();
    let begin = Instant::now();
    // The program stands still meanwhile: its terminal shows why.
    let bar = progress::whole("patching a library");
    let decided = libraries::decide(&args.folder, &args.key, &args.file, bar.progress());
    drop(bar);
    libraries::note_wait(&args.folder, &args.key, &args.file, begin.elapsed())?;
    decided
}
