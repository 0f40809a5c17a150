//! Graphs of units.

use super::Args;
use crate::load;
use anyhow::{Result, bail, ensure};
use ompfuse_export::dot;
use ompfuse_fuse::span::{MOST_DRAWN, drawn};
use ompfuse_progress::Progress;

/// Units in one drawing; nobody can read more.
const MOST: usize = 5_000;

pub(super) fn write(args: &Args, progress: Progress<'_>) -> Result<()> {
    let folder = load::one_run(&args.input)?;
    let summary = load::summary(&folder, args.memory.bytes(), progress)?;
    let graphs = load::with_files(&folder, |files| Ok(drawn(files, &summary.sites)))?;
    let units: usize = graphs.iter().flatten().map(|g| g.units.len()).sum();
    let too_many = |count: &str| {
        let run = args.input.display();
        format!(
            "cannot draw {run}: it has {count} units, {MOST} can be drawn; record fewer regions (--select) or a smaller problem"
        )
    };
    let Some(graphs) = graphs else {
        bail!("{}", too_many(&format!("more than {MOST_DRAWN}")));
    };
    ensure!(
        units > 0,
        "cannot draw {}: no parallel region with tasks or ranges is on record",
        args.input.display()
    );
    ensure!(units <= MOST, "{}", too_many(&units.to_string()));
    args.write(|out| Ok(dot::write(out, &graphs, &summary)?))
}
