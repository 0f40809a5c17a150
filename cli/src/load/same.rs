//! Whether inputs are of one program: runs of different programs, or of one that was built anew between them, have nothing in
//! common that could be combined.

use super::{Source, name, read_with};
use crate::run_dir::origin::{Difference, Origin, short};
use anyhow::{Result, bail};
use std::path::Path;

/// Refuses inputs that are not of one program.
pub(super) fn check(inputs: &[Source]) -> Result<()> {
    check_for(inputs, "combine")
}

/// The same. `what`: what can't be done with them, for messages.
pub(super) fn check_for(inputs: &[Source], what: &str) -> Result<()> {
    let mut first: Option<(&Path, Origin)> = None;
    for input in inputs {
        let (Source::Run(path) | Source::File(path)) = input;
        // What can't be read is told when all of it is read.
        let Some(origin) = origin(input).filter(|o| o.is_known()) else {
            continue;
        };
        let Some((first_path, known)) = &first else {
            first = Some((path, origin));
            continue;
        };
        let Some(difference) = known.differs(&origin) else {
            continue;
        };
        let (one, two) = (name(first_path), name(path));
        match difference {
            Difference::Programs => bail!(
                "cannot {what} {one} and {two}: they are runs of different programs, {} and {}; give runs of one program",
                known.describe(),
                origin.describe()
            ),
            Difference::Builds(path, [id, other]) => bail!(
                "cannot {what} {one} and {two}: {path} was rebuilt between them (builds {} and {}); give runs of one build",
                short(&id),
                short(&other)
            ),
            Difference::Ranks([rank, other]) => bail!(
                "cannot {what} {one} and {two}: they hold different ranks of an MPI program (rank {rank}, and rank {other}), \
                 which are no repetitions; record all ranks into one folder, as `ompfuse profile -- mpirun ...` does"
            ),
        }
    }
    Ok(())
}

fn origin(input: &Source) -> Option<Origin> {
    match input {
        Source::Run(folder) => {
            let read = read_with(folder, &[".json"], |files| {
                let origin = Origin::new(&files.header.program, &files.header.modules);
                let ranks = files.processes.iter().filter_map(|p| p.header.mpi_rank);
                Ok(origin.of_ranks(ranks.collect()))
            });
            read.ok()
        }
        Source::File(path) => super::summary_of(path).ok().map(Origin::of_summary),
    }
}
