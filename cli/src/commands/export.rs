//! `ompfuse export`.

use crate::output::Usage;
use crate::{atomic, load, output, progress};
use anyhow::{Context, Result, bail};
use ompfuse_export::{chrome, csv, firefox, perfetto, speedscope};
use ompfuse_fuse::Profile;
use ompfuse_fuse::run::timeline::Timeline;
use ompfuse_progress::Progress;
use std::io::{self, Write};
use std::path::PathBuf;

/// What reading takes of the time.
const OF_READING: f64 = 0.4;

/// Write the units of a profile or run as a table, or a run as a trace
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile, a run folder, or a folder of runs; for a trace one run
    #[arg(value_name = "PROFILE|RUN")]
    input: PathBuf,
    /// The format
    #[arg(long, value_enum)]
    to: Target,
    /// Add a column `label_hex` to a table, with the numbers of labels in hexadecimal
    #[arg(long)]
    hex_labels: bool,
    /// The file to write (default: standard output)
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    /// A table, one row per execution unit
    Csv,
    /// A trace for Perfetto's page (ui.perfetto.dev)
    Perfetto,
    /// A trace as JSON, for Chrome and tools that read its traces
    Chrome,
    /// A flame graph over time for speedscope (www.speedscope.app), with a profile for each thread
    Speedscope,
    /// A profile of markers for the Firefox Profiler (profiler.firefox.com)
    Firefox,
}

/// Writes a run.
type Trace = fn(&mut dyn Write, &Timeline<'_>, Progress<'_>) -> io::Result<()>;

impl Target {
    /// Of a trace format.
    fn trace(self) -> Option<Trace> {
        match self {
            Target::Csv => None,
            Target::Perfetto => Some(perfetto::write),
            Target::Chrome => Some(chrome::write),
            Target::Speedscope => Some(speedscope::write),
            Target::Firefox => Some(firefox::write),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    if args.hex_labels && args.to != Target::Csv {
        return Err(Usage("--hex-labels is of use with --to csv only".to_owned()).into());
    }
    let bar = progress::whole("exporting");
    if let Some(path) = &args.output {
        load::check_output(path, std::slice::from_ref(&args.input))?;
    }
    match args.to.trace() {
        Some(write) => {
            let folder = load::one_run(&args.input)?;
            load::timeline(&folder, bar.progress(), |timeline, progress| {
                let lost = ompfuse_report::words::losses(timeline.health());
                for problem in lost {
                    output::note(format_args!("{}: {problem}", folder.display()));
                }
                args.write(|out| write(out, timeline, progress))
            })
        }
        None => table(args, bar.progress()),
    }
}

/// Writes a table of units.
fn table(args: &Args, progress: Progress<'_>) -> Result<()> {
    let options = csv::Options {
        hex_labels: args.hex_labels,
    };
    let writing = progress.part(1.0 - OF_READING);
    let Profile { xus, summary, .. } = load::profile(&args.input, progress.part(OF_READING))?;
    load::tell_damage(&summary);
    if summary.runs.iter().any(|run| run.sums_only) {
        bail!(
            "cannot export {}: {}",
            args.input.display(),
            ompfuse_report::words::SUMS_ONLY
        );
    }
    args.write(|out| csv::write(out, &xus, options, writing))
}

impl Args {
    /// Writes to the file, which has no name until it is whole, or to standard output.
    fn write(&self, write: impl Fn(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        match &self.output {
            Some(path) => atomic::write_with(path, 0o644, |file| {
                let mut buffered = io::BufWriter::new(file);
                write(&mut buffered)?;
                Ok(buffered.flush()?)
            }),
            None => {
                let mut out = io::BufWriter::new(io::stdout().lock());
                match write(&mut out).and_then(|()| out.flush()) {
                    Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                        Err(output::ReaderGone.into())
                    }
                    result => result.context("cannot write to standard output"),
                }
            }
        }
    }
}
