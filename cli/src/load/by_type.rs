//! What doesn't fit into memory, combined type by type (`ompfuse_fuse::profile::by_type`).

use super::Source;
use crate::{input, interrupt};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use ompfuse_fuse::profile::by_type::{
    Passes, Scanned, Selected, Selection, bucket_passes, need, passes,
};
use ompfuse_fuse::run::RunReader;
use ompfuse_fuse::{Profile, Strategy, Summary, XuTable};
use ompfuse_progress::Progress;
use std::path::Path;

/// Whether everything fits into so many bytes for sure.
pub(crate) fn fits(inputs: &[Source], memory: u64) -> Result<bool> {
    let of_file = |path: &Path| {
        if super::folder::is_folder(path) {
            return Ok(super::folder::known(path)?.need());
        }
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

/// What the first reading takes of the time.
const OF_FIRST: f64 = 0.4;

/// Combines with about so many bytes of memory, or what one type needs, and hands each type's profile to `write`.
pub(crate) fn combine(
    inputs: &[Source],
    strategy: Strategy,
    memory: u64,
    write: &mut dyn FnMut(&Profile) -> Result<()>,
    progress: Progress<'_>,
) -> Result<Summary> {
    let reading = progress.part(OF_FIRST);
    let each = reading.part(1.0 / inputs.len() as f64);
    let scan = |input| scan(input, memory, each);
    let scanned = inputs.iter().map(scan).collect::<Result<Vec<Scanned>>>()?;
    let passes = passes(&scanned, memory);
    let steps = passes.len() * (inputs.len() + 1);
    let step = || progress.part(1.0 - OF_FIRST).steps(1, steps);
    let mut state = Passes::default();
    for pass in &passes {
        let selected = inputs.iter().zip(&scanned).map(|(input, scanned)| {
            interrupt::hold().check()?;
            let profile = select(input, pass.of(scanned));
            step();
            profile
        });
        let combined = state.combine(strategy, selected)?;
        write(&combined.context("nothing to combine")?)?;
        step();
    }
    Ok(state.into_summary())
}

/// The first reading.
fn scan(input: &Source, memory: u64, progress: Progress<'_>) -> Result<Scanned> {
    let scanned = match input {
        Source::Run(folder) => super::with_files(folder, |files| {
            let name = super::name(folder);
            let mut reader = RunReader::new(files);
            progress.advance(0.5);
            let rest = progress.part(0.5);
            Ok(Scanned::of_run(&name, &mut reader, memory, rest))
        })?,
        Source::File(path) => super::pieces(path)?
            .scan(&super::name(path))
            .inspect(|_| progress.advance(1.0))
            .with_context(|| format!("cannot read {}", path.display()))?,
    };
    Ok(scanned)
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

/// The first reading of an input whose units are handed on by themselves.
pub(crate) fn scanned(input: &Source, memory: u64, progress: Progress<'_>) -> Result<Scanned> {
    input.check_exact()?;
    ensure!(
        !input.has_sums_only(),
        "it has sums only (recorded with --units sums), and no units"
    );
    scan(input, memory, progress)
}

/// Hands on its units, some buckets of types at a time, with their places in the input.
pub(crate) fn by_bucket(
    (input, scanned): (&Source, &Scanned),
    buckets: u32,
    memory: u64,
    each: &mut dyn FnMut(&XuTable, &[u32]) -> Result<()>,
    progress: Progress<'_>,
) -> Result<()> {
    let passes = bucket_passes(scanned, buckets, memory);
    for pass in &passes {
        interrupt::hold().check()?;
        let (table, positions) = select(input, pass.of(scanned))?.into_rows();
        each(&table, &positions)?;
        progress.steps(1, passes.len());
    }
    Ok(())
}
