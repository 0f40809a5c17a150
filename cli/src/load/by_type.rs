//! What doesn't fit into memory, combined type by type (`ompfuse_fuse::profile::by_type`).

use super::Source;
use crate::{input, interrupt, progress};
use anyhow::{Context, Result};
use bytes::Bytes;
use ompfuse_fuse::profile::by_type::{Passes, Scanned, Selected, Selection, need, passes};
use ompfuse_fuse::run::RunReader;
use ompfuse_fuse::{Profile, Strategy, Summary};
use std::path::Path;

/// Whether everything fits into so many bytes for sure.
pub(crate) fn fits(inputs: &[Source], memory: u64) -> Result<bool> {
    let of_file = |path: &Path| {
        let bytes = Bytes::from_owner(input::map(path)?);
        need(&bytes).with_context(|| format!("cannot read {}", path.display()))
    };
    let mut sum = 0u64;
    for input in inputs {
        match input {
            Source::File(path) => sum = sum.saturating_add(of_file(path)?),
            Source::Run(folder) => {
                for path in super::listed(folder)? {
                    if path.extension().is_some_and(|e| e == "rec") {
                        sum = sum.saturating_add(of_file(&path)?);
                    }
                }
            }
        }
    }
    Ok(sum <= memory)
}

/// Combines with about so many bytes of memory, or what one type needs, and hands each type's profile to `write`.
pub(crate) fn combine(
    inputs: &[Source],
    strategy: Strategy,
    memory: u64,
    write: &mut dyn FnMut(&Profile) -> Result<()>,
) -> Result<Summary> {
    let scanned = {
        let bar = progress::bar("reading", inputs.len());
        let scan = |input| scan(input, memory).inspect(|_| bar.step());
        inputs.iter().map(scan).collect::<Result<Vec<Scanned>>>()?
    };
    let passes = passes(&scanned, memory);
    let bar = progress::bar("combining", passes.len() * (inputs.len() + 1));
    let mut state = Passes::default();
    for pass in &passes {
        let selected = inputs.iter().zip(&scanned).map(|(input, scanned)| {
            interrupt::hold().check()?;
            let profile = select(input, pass.of(scanned));
            bar.step();
            profile
        });
        let combined = state.combine(strategy, selected)?;
        write(&combined.context("nothing to combine")?)?;
        bar.step();
    }
    Ok(state.into_summary())
}

/// The first reading.
fn scan(input: &Source, memory: u64) -> Result<Scanned> {
    match input {
        Source::Run(folder) => super::with_files(folder, |files| {
            let name = super::name(folder);
            Ok(Scanned::of_run(&name, &mut RunReader::new(files), memory))
        }),
        Source::File(path) => super::pieces(path)?
            .scan(&super::name(path))
            .with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The rows of a pass.
fn select(input: &Source, mut selection: Selection<'_>) -> Result<Selected> {
    match input {
        Source::Run(folder) => super::with_files(folder, |files| {
            Ok(selection.of_run(&mut RunReader::new(files)))
        }),
        Source::File(path) => {
            super::each_piece(path, |piece| selection.add(piece))?;
            Ok(selection.finish())
        }
    }
}
