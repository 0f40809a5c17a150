//! `ompfuse patch-cached`: what the auditing library in a recorded process asks for.

use crate::{libraries, memory};
use anyhow::Result;
use std::path::PathBuf;

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
    libraries::decide(&args.folder, &args.key, &args.file)
}
