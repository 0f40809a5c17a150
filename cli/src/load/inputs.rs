//! What paths mean that are combined.

use super::{Source, folder, given, runs, same};
use anyhow::{Result, bail};
use std::path::PathBuf;

/// What the paths mean, in order.
pub(crate) fn inputs(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let inputs = sources(paths)?;
    if inputs.len() > 1 {
        check_sums(&inputs)?;
        inputs.iter().try_for_each(Source::check_exact)?;
        same::check(&inputs)?;
    }
    Ok(inputs)
}

/// The run of each rank of a job.
pub(crate) fn inputs_of_ranks(ranks: &[PathBuf]) -> Result<Vec<Source>> {
    let one = |folder: &PathBuf| {
        let found = runs(folder)?;
        let count = found.len();
        match <[PathBuf; 1]>::try_from(found) {
            Ok([run]) => Ok(Source::Run(run)),
            Err(_) => bail!(
                "{} has {count} runs: record each launch into a job's folder of its own",
                folder.display()
            ),
        }
    };
    ranks.iter().map(one).collect()
}

/// Refuses to combine sums with units: the counts of the one would be in no unit of the other.
fn check_sums(inputs: &[Source]) -> Result<()> {
    let sums: Vec<bool> = inputs.iter().map(Source::has_sums_only).collect();
    if let (Some(at), true) = (sums.iter().position(|&s| s), sums.contains(&false)) {
        bail!(
            "cannot combine {} with the others: it has sums only (recorded with --units sums), they have units; leave it out, or record \
             it without --units sums",
            inputs[at].path().display()
        );
    }
    Ok(())
}

pub(super) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = vec![];
    for path in paths {
        if folder::is_folder(path) {
            sources.push(Source::File(path.clone()));
        } else if path.is_dir() {
            sources.extend(runs(path)?.into_iter().map(Source::Run));
        } else {
            given::check(path)?;
            sources.push(Source::File(path.clone()));
        }
    }
    Ok(sources)
}
