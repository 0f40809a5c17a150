//! `ompfuse export`.

use crate::{atomic, load, output, progress};
use anyhow::{Context, Result, bail};
use ompfuse_export::csv;
use ompfuse_fuse::Profile;
use std::io::Write;
use std::path::PathBuf;

/// What reading takes of the time.
const OF_READING: f64 = 0.4;

/// Write the execution units of a profile or run in another format
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile, a run folder, or a folder of runs
    #[arg(value_name = "PROFILE|RUN")]
    input: PathBuf,
    /// The format
    #[arg(long, value_enum)]
    to: Target,
    /// Add a column `label_hex` with the numbers of labels in hexadecimal
    #[arg(long)]
    hex_labels: bool,
    /// The file to write (default: standard output)
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Target {
    /// A table, one row per execution unit
    Csv,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let Target::Csv = args.to;
    let options = csv::Options {
        hex_labels: args.hex_labels,
    };
    let bar = progress::whole("exporting");
    let reading = bar.progress().part(OF_READING);
    let writing = bar.progress().part(1.0 - OF_READING);
    if let Some(path) = &args.output {
        load::check_output(path, std::slice::from_ref(&args.input))?;
    }
    let Profile { xus, summary, .. } = load::profile(&args.input, reading)?;
    load::tell_damage(&summary);
    if summary.runs.iter().any(|run| run.sums_only) {
        bail!(
            "cannot export {}: {}",
            args.input.display(),
            ompfuse_report::words::SUMS_ONLY
        );
    }
    match &args.output {
        Some(path) => atomic::write_with(path, 0o644, |file| {
            let mut buffered = std::io::BufWriter::new(file);
            csv::write(&mut buffered, &xus, options, writing)?;
            Ok(buffered.flush()?)
        }),
        None => {
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            match csv::write(&mut out, &xus, options, writing).and_then(|()| out.flush()) {
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
                    Err(output::ReaderGone.into())
                }
                result => result.context("cannot write to standard output"),
            }
        }
    }
}
