//! `ompfuse combine`.

use crate::{atomic, load, output, progress};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use ompfuse_fuse::Profile;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Combine runs into one profile in which every execution unit has a count for every event
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run folders, folders of runs, profiles, or CSV tables of another recorder; the first one gives the times
    #[arg(required = true, value_name = "RUN|TABLE")]
    inputs: Vec<PathBuf>,
    /// How execution units of different runs are matched
    #[arg(long, value_enum, default_value_t = Strategy::Default)]
    strategy: Strategy,
    /// The profile
    #[arg(short, long, value_name = "PROFILE.parquet")]
    output: PathBuf,
    #[command(flatten)]
    format: output::FormatArg,
}

/// The strategies of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// The best there is: lgl
    Default,
    /// By label
    Lgl,
    /// In a chain of runs that share events
    Bc,
    /// As bc, without labels
    BcUnlabelled,
    /// By type and time
    Ctc,
}

impl Strategy {
    /// The fuse crate's, if it has it.
    pub(crate) fn check(self) -> Result<ompfuse_fuse::Strategy> {
        let value = self.to_possible_value().expect("no value is hidden");
        let all = ompfuse_fuse::Strategy::ALL;
        match all
            .iter()
            .find(|s| self == Strategy::Default || s.name() == value.get_name())
        {
            Some(_) if self == Strategy::Default => Ok(ompfuse_fuse::Strategy::default()),
            Some(&strategy) => Ok(strategy),
            None => bail!(
                "strategy {} is not available in this version; take one of {}",
                value.get_name(),
                all.iter().map(|s| s.name()).collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    output: &'a Path,
    xus: usize,
    unmatched: u64,
    events: Vec<&'a str>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let strategy = args.strategy.check()?;
    let profile = {
        let _spinner = progress::spinner("combining");
        let profile = load::combined(&args.inputs, strategy)?;
        write(&profile, &args.output)?;
        profile
    };
    let answer = Answer {
        output: &args.output,
        xus: profile.xus.len(),
        unmatched: profile
            .summary
            .matching
            .iter()
            .flat_map(|m| &m.unmatched)
            .map(|u| u.count)
            .sum(),
        events: profile.xus.events.iter().map(|e| e.name.as_str()).collect(),
    };
    if args.format.is_json() {
        return output::print_json(&answer);
    }
    let Answer { xus, unmatched, .. } = answer;
    let unmatched = if unmatched > 0 {
        format!(" ({unmatched} could not be matched)")
    } else {
        String::new()
    };
    output::print(&format!(
        "{}: {xus} execution units{unmatched}, {}",
        args.output.display(),
        answer.events.join(",")
    ))
}

/// Writes a profile.
pub(super) fn write(profile: &Profile, path: &Path) -> Result<()> {
    let bytes = profile
        .to_parquet()
        .with_context(|| format!("cannot encode {}", path.display()))?;
    atomic::write(path, &bytes, 0o600)
}
