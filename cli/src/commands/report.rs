//! `ompfuse report`.

use crate::{atomic, load, memory, output, progress};
use anyhow::Result;
use ompfuse_fuse::Summary;
use ompfuse_report::{Report, TextOptions, filter, text};
use std::path::PathBuf;

/// Show regions, overheads and events of a profile or run
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile, a run folder, or a folder of runs
    #[arg(value_name = "PROFILE|RUN")]
    input: PathBuf,
    /// Instead of the report: lines for --filter that leave out regions whose probes take more than SHARE percent of their
    /// time
    #[arg(
        long,
        value_name = "SHARE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "5",
        value_parser = parse_share
    )]
    suggest_filter: Option<f64>,
    /// File for these lines (default: standard output)
    #[arg(short, long, value_name = "FILE", requires = "suggest_filter")]
    output: Option<PathBuf>,
    #[command(flatten)]
    memory: memory::Arg,
    #[command(flatten)]
    report: ReportArgs,
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(share) if (0.0..=1e6).contains(&share) => Ok(share),
        _ => Err("a percentage is needed, as 5".to_owned()),
    }
}

/// The options of every command that reports.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Regions to list; the others are summed up in one line (text only)
    #[arg(long, value_name = "N", default_value_t = TextOptions::default().top)]
    top: usize,
    #[command(flatten)]
    output: output::FormatArg,
}

impl ReportArgs {
    /// How to print.
    pub(super) fn format(&self) -> &output::FormatArg {
        &self.output
    }

    /// Whether JSON is wanted.
    pub(super) fn is_json(&self) -> bool {
        self.output.is_json()
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    let bar = progress::whole("reading");
    let summary = load::summary(&args.input, args.memory.bytes(), bar.progress())?;
    drop(bar);
    if let Some(share) = args.suggest_filter {
        let lines = filter::suggest(&summary, share / 100.0);
        let lines = lines.map_err(anyhow::Error::msg)?;
        return match &args.output {
            Some(file) => atomic::write(file, lines.as_bytes(), 0o644),
            None => output::print(&lines),
        };
    }
    print(&summary, &args.report)
}

/// Prints the report of a profile.
pub(super) fn print(summary: &Summary, args: &ReportArgs) -> Result<()> {
    let report = Report::new(summary);
    if args.is_json() {
        return output::print(&report.to_json());
    }
    let width = output::width().unwrap_or(TextOptions::default().width);
    output::print(&text::render(
        &report,
        TextOptions {
            top: args.top,
            width,
            colour: output::colour(),
        },
    ))
}
