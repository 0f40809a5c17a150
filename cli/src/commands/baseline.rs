//! `ompfuse baseline`.

use crate::load::{self, sides};
use crate::{atomic, output, progress};
use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use ompfuse_report::compare::Side;
use std::io::Write;
use std::path::PathBuf;

/// Write a small summary of runs to commit; `ompfuse diff` accepts it as a side
///
/// The runs must be of one build: repetitions, or runs with other events. The file is compressed JSON without host,
/// arguments and absolute paths. A hash of the arguments tells `diff` whether they differ.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ompfuse baseline ompfuse-out -o perf/baseline.json.gz
  ompfuse diff perf/baseline.json.gz ompfuse-out --fail-on 'time>5%'
  zcat perf/baseline.json.gz | jq .origin")]
pub(crate) struct Args {
    /// Run folders, folders of runs, profiles
    #[arg(value_name = "RUNS", required = true)]
    inputs: Vec<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<()> {
    load::check_output(&args.output, &args.inputs)?;
    let bar = progress::whole("reading");
    let side = sides::side("A", &args.inputs, &mut |_, _| (), bar.progress())?;
    drop(bar);
    if !side.origin.damage.is_empty() {
        bail!(
            "cannot make a baseline of damaged runs: {}; record them again",
            side.origin.damage.join("; ")
        );
    }
    atomic::write(&args.output, &packed(side.redacted())?, 0o644)?;
    output::remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

fn packed(side: Side) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(vec![], Compression::best());
    serde_json::to_writer(&mut encoder, &side).context("cannot encode the baseline")?;
    encoder.flush().context("cannot pack the baseline")?;
    encoder.finish().context("cannot pack the baseline")
}
