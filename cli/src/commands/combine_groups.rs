//! `ompfuse combine-groups`.

use crate::strategy::{RELAX, Relax, SEED, Strategy};
use crate::{atomic, input, output};
use anyhow::{Context, Result, bail};
use ompfuse_export::groups;
use ompfuse_fuse::exchange::{GroupBy, Groups, Manifest};
use std::io;
use std::path::PathBuf;

/// Combine groups of units that an engine feeds: Arrow IPC in, Arrow IPC out
///
/// The input has the columns of `ompfuse partition`, and stands in groups: all units of one type, of all runs. Each group is combined as
/// `ompfuse combine` does it. It fails if a group comes back, a column is missing, the input ends early, or a group has more or fewer units than
/// the manifest says. The output has no end then.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The manifest of `ompfuse partition`
    #[arg(long, value_name = "FILE")]
    manifest: PathBuf,
    /// How execution units of different runs are matched: lgl, joint, ctc or bc
    #[arg(long, value_enum, default_value_t = Strategy::Lgl)]
    strategy: Strategy,
    /// What the units of a group have in common
    #[arg(long, value_enum, default_value_t = By::Type)]
    by: By,
    /// How bc goes from one grid to the next, coarser one
    #[arg(long, value_enum, default_value_t = RELAX)]
    relax: Relax,
    /// The run that gives the times
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u16,
    /// Also write what was combined, and what wasn't, as JSON
    #[arg(long, value_name = "FILE")]
    done: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Their type
    Type,
    /// Type and MPI rank, which is for lgl
    Rank,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let by = match args.by {
        By::Type => GroupBy::Type,
        By::Rank => GroupBy::TypeAndRank,
    };
    let strategy = match args.strategy {
        Strategy::Default | Strategy::Instances => {
            bail!(
                "cannot combine groups: name a strategy that goes by groups: lgl, joint, ctc or bc"
            )
        }
        known => known
            .with(args.relax, SEED)
            .context("it is none of the default")?,
    };
    let cannot = || format!("cannot read {}", args.manifest.display());
    let text = input::text(&args.manifest).with_context(cannot)?;
    let manifest: Manifest = serde_json::from_str(&text).with_context(cannot)?;
    let cannot = "cannot combine groups";
    let mut groups = Groups::new(&manifest, strategy, by, args.first).context(cannot)?;
    let (input, output) = (io::stdin().lock(), io::BufWriter::new(io::stdout().lock()));
    groups::combine(io::BufReader::new(input), output, &mut groups).context(cannot)?;
    let done = groups.into_done();
    let of_first = done.unmatched.iter().filter(|u| u.run == 0);
    output::remark(format_args!(
        "{} units combined, {} of the first run left over",
        done.combined,
        of_first.map(|u| u.count).sum::<u64>()
    ));
    if let Some(file) = &args.done {
        let json = serde_json::to_vec(&done).context("cannot encode what was combined")?;
        atomic::write(file, &json, 0o644)?;
    }
    Ok(())
}
