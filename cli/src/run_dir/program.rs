//! A folder of runs holds those of one program.

use super::origin::{Difference, Origin, short};
use super::read_json;
use anyhow::{Result, bail};
use ompfuse_format::run::{RUN_FILE, RunHeader, RunModule};
use std::path::{Path, PathBuf};

/// Refuses to record a program into a folder with runs of another program or build: they would be combined. `module`: the program's;
/// without one it isn't known what of it will be recorded.
pub(crate) fn check_program(
    folder: &Path,
    program: &str,
    module: Option<&RunModule>,
) -> Result<()> {
    let Some(module) = module else { return Ok(()) };
    let listing = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let runs: Vec<PathBuf> = listing.map(|entry| entry.path()).collect();
    let own = Origin::new(program, std::slice::from_ref(module));
    // The newest tells: who has gone on after an earlier one was asked then.
    let Some(newest) = runs.iter().filter(|r| r.join(RUN_FILE).is_file()).max() else {
        return Ok(());
    };
    let Ok(Some(header)) = read_json::<RunHeader>(&newest.join(RUN_FILE)) else {
        return Ok(());
    };
    let there = Origin::new(&header.program, &header.modules);
    let folder = folder.display();
    match there.differs(&own) {
        None | Some(Difference::Ranks(_)) => Ok(()),
        Some(Difference::Programs) => bail!(
            "cannot record {} into {folder}: its runs are of another program, {}; name another folder with -o",
            own.describe(),
            there.describe()
        ),
        Some(Difference::Builds(path, [id, other])) => bail!(
            "cannot record {path} into {folder}: its runs are of another build of it ({}, now {}); name another folder with -o",
            short(&id),
            short(&other)
        ),
    }
}
