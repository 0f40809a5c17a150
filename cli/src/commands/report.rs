//! `ompfuse report`.

use crate::{load, output};
use anyhow::Result;
use ompfuse_fuse::Summary;
use ompfuse_report::{Report, TextOptions, text};
use std::path::PathBuf;

/// Show regions, overheads and events of a profile or run
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile, a run folder, or a folder of runs
    #[arg(value_name = "PROFILE|RUN")]
    input: PathBuf,
    #[command(flatten)]
    report: ReportArgs,
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
    /// Whether JSON is wanted.
    pub(super) fn is_json(&self) -> bool {
        self.output.is_json()
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    print(&load::summary(&args.input)?, &args.report)
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
