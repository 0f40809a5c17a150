//! What of a rank's report is left for its job's.

use super::paths::Paths;
use crate::model::{Note, Report};

/// Most bytes of a program's arguments that are kept.
const ARGS: usize = 4 << 10;
/// Most kinds of units that could not be matched, and most losses.
const ENTRIES: usize = 16;

/// Without what grows, and with so many regions.
pub fn small(report: &Report, keep: usize, has_paths: bool) -> Report {
    let mut left = ARGS;
    let args = report.args.iter().take_while(|arg| {
        left = left.saturating_sub(arg.len() + 1);
        left > 0
    });
    let mut small = Report {
        args: args.cloned().collect(),
        regions: report.regions.iter().take(keep).cloned().collect(),
        ..report.clone()
    };
    small.call_paths.clear();
    if has_paths {
        let mut paths = Paths::default();
        paths.add(&report.call_paths, Some);
        small.call_paths = paths.finish(Some);
    }
    super::without_details(&mut small);
    small.unmatched.truncate(ENTRIES);
    small.losses.truncate(ENTRIES);
    for region in &mut small.regions {
        region.per_thread.clear();
        region.distribution = None;
    }
    if let Some(sampled) = &mut small.sampled {
        sampled.regions.clear(); // no job tells them
        sampled.held.clear();
    }
    if let Some(mpi) = &mut small.mpi {
        mpi.missing.clear(); // all ranks but its own
    }
    if let Some(account) = &mut small.account {
        for state in &mut account.states {
            state.parts.truncate(keep);
        }
    }
    let out = &report.regions[small.regions.len()..];
    if !out.is_empty() {
        small.shortcomings.push(Note::RegionsLeftOut {
            regions: out.len() as u32,
            seconds: out.iter().map(|r| r.time_s).sum(),
        });
    }
    small
}
