//! One run that doesn't fit into memory, combined with nothing: its units are handed on in pieces of so many.

use super::{Source, read_releasing, streamed};
use anyhow::Result;
use ompfuse_fuse::profile::piece_rows;
use ompfuse_fuse::run::Chunks;
use ompfuse_fuse::{Profile, Summary};
use ompfuse_progress::Progress;

/// What the sums take of the time, and what all pieces need.
const OF_SUMS: f64 = 0.1;
const OF_PREPARING: f64 = 0.15;

/// Hands the pieces to `write`, each in label order. `None`, and nothing was handed on: there are several inputs, or it is no run whose
/// records come in the order of time.
pub(crate) fn combine(
    inputs: &[Source],
    memory: u64,
    write: &mut dyn FnMut(&Profile) -> Result<()>,
    progress: Progress<'_>,
) -> Result<Option<Summary>> {
    let [Source::Run(folder)] = inputs else {
        return Ok(None);
    };
    let Some((summary, in_parts)) = streamed(folder, progress.part(OF_SUMS))? else {
        return Ok(None);
    };
    let rest = progress.part(1.0 - OF_SUMS - OF_PREPARING);
    let progress = progress.part(OF_PREPARING);
    read_releasing(folder, &[".json", ".rec"], |files, release| {
        let mut chunks = Chunks::new(files, &in_parts, progress.releasing(release));
        let rows = piece_rows(&summary, memory);
        let all = chunks.left();
        let mut left = all;
        while let Some(units) = chunks.read(rows) {
            release();
            let piece = Profile::of_units(units, &summary);
            write(&piece)?;
            rest.steps(left - chunks.left(), all);
            left = chunks.left();
        }
        Ok(())
    })?;
    Ok(Some(summary))
}
