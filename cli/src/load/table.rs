//! The execution units that a path means, piece by piece, for tables of them.

use super::{
    OF_ORDER, PARQUET_MAGIC, Source, analyse, arranged, by_type, combine, inputs, pieces,
    profile_in,
};
use crate::input;
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use ompfuse_fuse::{Profile, ProfileError, ProfileReader, Summary};
use ompfuse_progress::Progress;
use ompfuse_report::words::SUMS_ONLY;
use std::path::Path;

/// Memory that the units of a piece may take: more makes nothing faster.
const PIECE: u64 = 128 << 20;

/// Hands on the profile that a path means, and returns what is known beside its units. A profile and a single run are read once, in pieces;
/// for what has to be combined about `memory` bytes are used.
pub(crate) fn table(
    path: &Path,
    memory: u64,
    write: &mut dyn FnMut(&Profile) -> Result<()>,
    progress: Progress<'_>,
) -> Result<Summary> {
    let path = &profile_in(path);
    if let Some(reader) = reader(path)? {
        return of_profile(path, reader, write, progress);
    }
    let inputs = inputs(std::slice::from_ref(path))?;
    if inputs.iter().any(Source::has_sums_only) {
        bail!("cannot export {}: {SUMS_ONLY}", path.display());
    }
    if let Some(mut summary) = pieces::combine(&inputs, memory.min(PIECE), write, progress)? {
        analyse(&inputs, &mut summary)?;
        return Ok(summary);
    }
    let (inputs, strategy) = arranged(inputs, None, memory, progress.part(OF_ORDER))?;
    let progress = progress.part(1.0 - OF_ORDER);
    if by_type::fits(&inputs, memory)? {
        let profile = combine(inputs, strategy, progress)?;
        write(&profile)?;
        return Ok(profile.summary);
    }
    let mut summary = by_type::combine(&inputs, strategy, memory, write, progress)?;
    analyse(&inputs, &mut summary)?;
    Ok(summary)
}

/// Of a profile; `None`: it is something else.
fn reader(path: &Path) -> Result<Option<ProfileReader>> {
    if !path.is_file() {
        return Ok(None); // opening a pipe waits for its writer
    }
    let bytes = Bytes::from_owner(input::map(path)?);
    if !bytes.starts_with(PARQUET_MAGIC) {
        return Ok(None);
    }
    match ProfileReader::new(bytes) {
        Err(ProfileError::NoSummary) => Ok(None), // another recorder's table
        reader => {
            Ok(Some(reader.with_context(|| {
                format!("cannot read {}", path.display())
            })?))
        }
    }
}

fn of_profile(
    path: &Path,
    mut reader: ProfileReader,
    write: &mut dyn FnMut(&Profile) -> Result<()>,
    progress: Progress<'_>,
) -> Result<Summary> {
    if reader.summary().runs.iter().any(|run| run.sums_only) {
        bail!("cannot export {}: {SUMS_ONLY}", path.display());
    }
    let all = reader.rows();
    while let Some(piece) = reader
        .read()
        .with_context(|| format!("cannot read {}", path.display()))?
    {
        write(&piece)?;
        progress.steps(piece.xus.len(), all);
    }
    Ok(reader.summary().clone())
}
