//! `ompfuse baseline`.

use crate::load::{self, sides};
use crate::output::Usage;
use crate::{atomic, git, output, progress};
use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use ompfuse_compare::{Commit, Side};
use std::io::Write;
use std::path::PathBuf;

/// Write a small summary of runs to commit; `ompfuse diff` accepts it as a side
///
/// The runs must be of one build: repetitions, or runs with other events. The file is compressed JSON without host, arguments and
/// absolute paths. In a git repository it also has the commit that is checked out, its branch and its date, for `ompfuse history`,
/// and whether there were changes that are in no commit.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ompfuse baseline ompfuse-out -o perf/baseline.json.gz
  ompfuse diff perf/baseline.json.gz ompfuse-out --fail-on 'time>5%'
  ompfuse baseline ompfuse-out -o perf/history/$(git rev-parse HEAD).json.gz
  zcat perf/baseline.json.gz | jq .origin")]
pub(crate) struct Args {
    /// Run folders, folders of runs, profiles, folders of jobs
    #[arg(value_name = "RUNS", required = true)]
    inputs: Vec<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Leave times out: what is left is the same on every machine
    #[arg(long)]
    counts: bool,
    /// The commit that was built (default: the one that is checked out here)
    #[arg(long, value_name = "HASH")]
    commit: Option<String>,
    /// Its branch (default: the pipeline's, or the one that is checked out)
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// When it was committed, as 2026-11-12T10:30:00+01:00 (default: what git says)
    #[arg(long, value_name = "DATE")]
    date: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let commit = args.commit()?;
    load::check_output(&args.output, &args.inputs)?;
    let bar = progress::whole("reading");
    let mut side = sides::side("A", &args.inputs, &mut |_, _| (), bar.progress())?;
    drop(bar);
    if !side.origin.damage.is_empty() {
        bail!(
            "cannot make a baseline of damaged runs: {}; record them again",
            side.origin.damage.join("; ")
        );
    }
    if commit.as_ref().is_some_and(|c| c.is_changed) {
        output::note(
            "files of the repository have changes that are in no commit; the baseline says so",
        );
    }
    side.origin.commit = commit;
    if args.counts {
        side = side.counts_only();
    }
    atomic::write(&args.output, &packed(side.redacted())?, 0o644)?;
    output::remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

impl Args {
    /// What was built: as the options say, and as git knows it where they don't.
    fn commit(&self) -> Result<Option<Commit>> {
        if let Some(date) = &self.date
            && chrono::DateTime::parse_from_rfc3339(date).is_err()
        {
            return Err(Usage(format!(
                "--date {date}: it is no date with a time and a zone; write it as 2026-11-12T10:30:00+01:00"
            ))
            .into());
        }
        // Of another commit than the one here git tells nothing.
        let here =
            git::commit().filter(|here| self.commit.as_ref().is_none_or(|hash| here.hash == *hash));
        let hash = self
            .commit
            .clone()
            .or_else(|| Some(here.as_ref()?.hash.clone()));
        Ok(hash.map(|hash| Commit {
            hash,
            branch: self
                .branch
                .clone()
                .or_else(|| here.as_ref()?.branch.clone()),
            date: self.date.clone().or_else(|| here.as_ref()?.date.clone()),
            is_changed: here.as_ref().is_some_and(|here| here.is_changed),
        }))
    }
}

fn packed(side: Side) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(vec![], Compression::best());
    serde_json::to_writer(&mut encoder, &side).context("cannot encode the baseline")?;
    encoder.flush().context("cannot pack the baseline")?;
    encoder.finish().context("cannot pack the baseline")
}
