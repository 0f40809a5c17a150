//! `ompfuse diff`.

use crate::load::sides;
use crate::{output, progress};
use anyhow::{Result, bail};
use ompfuse_report::compare::units::SideUnits;
use ompfuse_report::compare::{self, Diff, Side, units};
use std::path::PathBuf;

/// Matched share of the regions' time below which two sides are no builds of one program.
const LEAST_MATCHED: f64 = 0.5;

/// Compare two runs, two builds, two compilers: which regions changed, by how much, how sure that is, and why
///
/// Each side is a run folder, a folder of repeated runs, a profile, or a baseline. Regions of different builds are matched by what
/// the source says of them, and where names are gone by what they do. Repeat the runs: with one run on a side noise is unknown.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ompfuse diff out-gcc out-clang
  ompfuse diff --a old/run-0001 old/run-0002 --b new/run-0001 new/run-0002
  ompfuse diff perf/baseline.json.gz ompfuse-out --fail-on 'time>5%' --fail-on 'region(\"solve*\").time>3%'
  ompfuse diff baseline.json.gz ompfuse-out --fail-on 'instructions>1%' --format github

Exit status: 0 done, 1 it could not be compared, 2 wrong usage, 3 a --fail-on holds.")]
pub(crate) struct Args {
    /// What is compared with
    #[arg(
        value_name = "A",
        required_unless_present = "side_a",
        requires = "second"
    )]
    first: Option<PathBuf>,
    /// What is judged
    #[arg(value_name = "B")]
    second: Option<PathBuf>,
    /// Several runs of A
    #[arg(
        long = "a",
        value_name = "RUN",
        num_args = 1..,
        requires = "side_b",
        conflicts_with_all = ["first", "second"]
    )]
    side_a: Vec<PathBuf>,
    /// Several runs of B
    #[arg(long = "b", value_name = "RUN", num_args = 1.., requires = "side_a")]
    side_b: Vec<PathBuf>,
    /// Compare even if less than half of the regions' time can be matched
    #[arg(long)]
    anyway: bool,
}

pub(super) fn run(args: &Args) -> Result<u8> {
    let bar = progress::whole("comparing");
    let (half, rest) = (bar.progress().part(0.5), bar.progress().part(0.5));
    let (first, second) = args.sides();
    let (mut units_a, mut units_b) = (SideUnits::default(), SideUnits::default());
    let a = sides::side("A", &first, &mut |s, t| Ok(units_a.add(s, t)), half)?;
    let b = sides::side("B", &second, &mut |s, t| Ok(units_b.add(s, t)), rest)?;
    let mut diff = compare::compare(&a, &b);
    units::add_slowest(&mut diff.pairs, &units_a, &units_b);
    drop(bar);
    args.check(&diff, &a, &b)?;
    output::print_json(&diff)?;
    Ok(0)
}

impl Args {
    fn sides(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        match (&self.first, &self.second) {
            (Some(a), Some(b)) => (vec![a.clone()], vec![b.clone()]),
            _ => (self.side_a.clone(), self.side_b.clone()),
        }
    }

    /// Refuses to compare what isn't comparable.
    fn check(&self, diff: &Diff, a: &Side, b: &Side) -> Result<()> {
        for side in [a, b] {
            if side.regions.is_empty() && !self.anyway {
                bail!(
                    "{} has no region on record, so nothing can be compared; record it again, or compare the program's time with --anyway",
                    side.origin.name
                );
            }
        }
        let least = diff.matched[0].min(diff.matched[1]);
        if least < LEAST_MATCHED && !self.anyway {
            bail!(
                "cannot compare {} with {}: only {:.0}% of the regions' time can be matched, so they may be different programs; \
                 compare them all the same with --anyway",
                a.origin.name,
                b.origin.name,
                100.0 * least
            );
        }
        Ok(())
    }
}
