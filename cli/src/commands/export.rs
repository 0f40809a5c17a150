//! `ompfuse export`.

mod graphs;
mod profiles;
mod tables;
mod traces;

use crate::output::Usage;
use crate::select::Selector;
use crate::{atomic, load, memory, output, progress};
use anyhow::{Result, bail};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use tables::{Form, Table};

/// Write a profile or run for other tools: as a table, metrics, a call-path profile or a trace
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile, a run folder, or a folder of runs; for a trace one run; for metrics and call-path profiles also a job's folder
    #[arg(value_name = "PROFILE|RUN")]
    input: PathBuf,
    /// Further runs or profiles (extra-p only): repetitions, or other numbers of threads
    #[arg(value_name = "RUN")]
    more: Vec<PathBuf>,
    /// The format
    #[arg(long, value_enum)]
    to: Target,
    /// What a row of a table stands for (default: units)
    #[arg(long, value_enum)]
    table: Option<Table>,
    /// Take only these regions, for a call-path profile or a trace with what is inside (may be repeated);
    /// selectors as for `record`
    #[arg(long, value_name = "S")]
    select: Vec<Selector>,
    /// Add a column `label_hex` to a table of units, with the numbers of labels in hexadecimal (csv only)
    #[arg(long)]
    hex_labels: bool,
    /// What values of collapsed stacks are: `time`, `visits`, a class of overhead as `imbalance`, an event, or
    /// `samples` (default: time)
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Take only this stretch of a trace's time, as 1s..2s, 1.5s.. or ..20ms
    ///
    /// Times are counted from the begin of the trace. A span that crosses a border is cut there; spans inside it stay nested. A piece
    /// has no own time and no counts.
    #[arg(long, value_name = "FROM..TO")]
    interval: Option<traces::Window>,
    #[command(flatten)]
    memory: memory::Arg,
    /// The file to write (default: standard output), or for tau and otf2 the folder
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    /// Table, as text
    Csv,
    /// Table: pandas, polars, duckdb
    Parquet,
    /// Table: a file of Arrow's IPC format
    Arrow,
    /// Metrics of regions: Prometheus
    Openmetrics,
    /// Call-path profile: Cube, Extra-P, Scalasca's tools
    Cube,
    /// Stacks with a value each: flame graphs
    Collapsed,
    /// Call-path profile: pprof
    Pprof,
    /// Folder with a profile for each thread: TAU's ParaProf, Hatchet, Thicket
    Tau,
    /// Call-path profile by rank: Hatchet, Thicket
    Caliper,
    /// Runs with several numbers of threads: Extra-P's models
    ExtraP,
    /// Graph of up to some thousand units, with the critical path: Graphviz
    Dot,
    /// Trace: ui.perfetto.dev
    Perfetto,
    /// Trace as JSON: Chrome
    Chrome,
    /// Flame graph over time: www.speedscope.app
    Speedscope,
    /// Markers, and stacks of samples: profiler.firefox.com
    Firefox,
    /// Folder with a trace: Vampir, Scalasca; OTF2's library has to be installed
    Otf2,
}

/// What a target is made by.
enum Maker {
    Table(Form),
    Metrics,
    Profile(profiles::Form),
    Graph,
    Trace(traces::Form),
}

impl Target {
    fn maker(self) -> Maker {
        match self {
            Target::Csv => Maker::Table(Form::Csv),
            Target::Parquet => Maker::Table(Form::Parquet),
            Target::Arrow => Maker::Table(Form::Arrow),
            Target::Openmetrics => Maker::Metrics,
            Target::Cube => Maker::Profile(profiles::Form::Cube),
            Target::Collapsed => Maker::Profile(profiles::Form::Collapsed),
            Target::Pprof => Maker::Profile(profiles::Form::Pprof),
            Target::Tau => Maker::Profile(profiles::Form::Tau),
            Target::Caliper => Maker::Profile(profiles::Form::Caliper),
            Target::ExtraP => Maker::Profile(profiles::Form::ExtraP),
            Target::Dot => Maker::Graph,
            Target::Perfetto => Maker::Trace(traces::Form::Perfetto),
            Target::Chrome => Maker::Trace(traces::Form::Chrome),
            Target::Speedscope => Maker::Trace(traces::Form::Speedscope),
            Target::Firefox => Maker::Trace(traces::Form::Firefox),
            Target::Otf2 => Maker::Trace(traces::Form::Otf2),
        }
    }
}

impl Target {
    /// Whether a terminal can't show what is written.
    fn is_binary(self) -> bool {
        match self {
            Target::Parquet | Target::Arrow | Target::Cube | Target::Pprof | Target::Perfetto => {
                true
            }
            Target::Csv
            | Target::Openmetrics
            | Target::Collapsed
            | Target::Tau
            | Target::Caliper
            | Target::ExtraP
            | Target::Dot
            | Target::Chrome
            | Target::Speedscope
            | Target::Firefox
            | Target::Otf2 => false,
        }
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    let maker = args.to.maker();
    args.check(&maker)?;
    let bar = progress::whole("exporting");
    if let Some(path) = &args.output {
        let inputs = std::iter::once(&args.input).chain(&args.more);
        load::check_output(path, &inputs.cloned().collect::<Vec<_>>())?;
    }
    let is_summed = matches!(maker, Maker::Metrics | Maker::Profile(_));
    if !is_summed && let Some(ranks) = load::ranks(&args.input) {
        bail!(
            "cannot export {}: the summaries of a job's ranks have no single units and threads; export the folder of a rank, as {}",
            args.input.display(),
            ranks[0].display()
        );
    }
    match maker {
        Maker::Table(form) => tables::write(args, form, bar.progress()),
        Maker::Metrics => tables::metrics(args, bar.progress()),
        Maker::Profile(form) => profiles::write(args, form, bar.progress()),
        Maker::Graph => graphs::write(args, bar.progress()),
        Maker::Trace(form) => traces::write(args, form, bar.progress()),
    }
}

impl Args {
    /// Refuses options that would do nothing.
    fn check(&self, maker: &Maker) -> Result<()> {
        let is_table = matches!(maker, Maker::Table(_));
        let is_trace = matches!(maker, Maker::Trace(_));
        let is_csv = matches!(maker, Maker::Table(Form::Csv)) && self.table() == Table::Units;
        let is_stacks = matches!(maker, Maker::Profile(profiles::Form::Collapsed));
        let are_several = matches!(maker, Maker::Profile(profiles::Form::ExtraP));
        let wrong = match () {
            () if self.hex_labels && !is_csv => "--hex-labels is of use with --to csv only",
            () if self.table.is_some() && !is_table => {
                "--table is of use with --to csv, parquet or arrow only"
            }
            () if !self.select.is_empty() && matches!(maker, Maker::Graph) => {
                "--select is of no use with --to dot; give it to `record`"
            }
            () if self.interval.is_some() && !is_trace => "--interval is of use for traces only",
            () if self.metric.is_some() && !is_stacks => {
                "--metric is of use with --to collapsed only"
            }
            () if !self.more.is_empty() && !are_several => {
                "one input is exported, several are given; only --to extra-p takes more"
            }
            () if self.output.is_none() && self.to.is_binary() && io::stdout().is_terminal() => {
                "this format is no text for a terminal; name a file with -o, or hand it on with a pipe"
            }
            () => return Ok(()),
        };
        Err(Usage(wrong.to_owned()).into())
    }

    /// What a row stands for.
    fn table(&self) -> Table {
        self.table.unwrap_or(Table::Units)
    }

    /// Writes to the file, which has no name until it is whole, or to standard output.
    fn write(&self, write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>) -> Result<()> {
        match &self.output {
            Some(path) => atomic::write_with(path, 0o644, |file| {
                let mut buffered = io::BufWriter::new(file);
                write(&mut buffered)?;
                Ok(buffered.flush()?)
            }),
            None => {
                let mut out = io::BufWriter::new(io::stdout());
                let written = write(&mut out).and_then(|()| Ok(out.flush()?));
                written.map_err(|error| match error.downcast_ref::<io::Error>() {
                    Some(e) if e.kind() == io::ErrorKind::BrokenPipe => output::ReaderGone.into(),
                    Some(_) => error.context("cannot write to standard output"),
                    // What was read is wrong, and says where.
                    None => error,
                })
            }
        }
    }
}
