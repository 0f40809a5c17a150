//! Which strategy, and which run gives the times, as far as the manifest and what stands beside it tell.

use super::super::Args;
use crate::commands::partition::summary_file;
use crate::output::note;
use crate::{input, strategy};
use anyhow::{Context, Result, bail};
use ompfuse_fuse::Strategy;
use ompfuse_fuse::combine::arrangement;
use ompfuse_fuse::evaluate::{Sample, typical};
use ompfuse_fuse::exchange::{Manifest, PartSummary};
use std::path::Path;

/// How units are combined.
pub(super) struct Plan {
    pub(super) strategy: Strategy,
    /// The run that gives the times.
    pub(super) first: u16,
}

impl Plan {
    /// The runs in their order.
    pub(super) fn order(&self, runs: usize) -> Vec<u16> {
        let others = (0..runs as u16).filter(|&run| run != self.first);
        std::iter::once(self.first).chain(others).collect()
    }
}

/// What is to be done: as the command line says, or by default as `combine` does it.
pub(super) fn plan(args: &Args, units: &Path, manifest: &Manifest) -> Result<Plan> {
    match args.strategy {
        strategy::Strategy::BcUnlabelled | strategy::Strategy::Instances => {
            bail!("an engine combines by groups: name --strategy lgl, joint, ctc or bc")
        }
        _ => {}
    }
    if let Some(strategy) = args.strategy.with(args.relax, args.seed) {
        return Ok(Plan { strategy, first: 0 });
    }
    let events = manifest.runs()?;
    let found = arrangement(&events);
    let of = |runs: &[usize]| -> Result<Vec<Sample>> {
        let samples = runs.iter().map(|&run| sample(units, manifest, run as u16));
        samples.map(|s| Ok(s?.only(&events[0]))).collect()
    };
    let (alike, beside) = (of(&found.alike)?, of(&found.beside)?);
    let first = found.alike.get(typical(&alike, &beside)).copied();
    if let Some(first) = first {
        note(format_args!(
            "run {first} is the most typical of {} runs that counted {}: the times and these counts are from it",
            alike.len(),
            events[0].join(",")
        ));
    }
    Ok(Plan {
        strategy: match found.by_behaviour {
            true => Strategy::Joint,
            false => Strategy::Lgl,
        },
        first: first.unwrap_or(0) as u16,
    })
}

/// Counts of all parts of a run.
fn sample(units: &Path, manifest: &Manifest, run: u16) -> Result<Sample> {
    let mut all = Sample::default();
    for part in manifest.parts.iter().filter(|p| p.run == run) {
        let file = summary_file(units, run, part.part);
        let known = read(&file).with_context(|| {
            format!(
                "cannot read {}; name a --strategy, or partition again",
                file.display()
            )
        })?;
        all.merge(known.sample);
    }
    Ok(all)
}

/// What is known of a part beside its units.
pub(super) fn read(file: &Path) -> Result<PartSummary> {
    Ok(serde_json::from_slice(&input::map(file)?)?)
}
