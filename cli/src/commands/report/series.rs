//! Reports over numbers of threads.

use super::{Args, ReportArgs};
use crate::output::{self, Stream};
use crate::{atomic, load, memory, pager, progress};
use anyhow::Result;
use ompfuse_account::model::series::{Scaling, Series};
use ompfuse_report::view;
use ompfuse_report::view::series::SeriesJson;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Reports over numbers of threads.
pub(super) fn series(inputs: &[PathBuf], args: &Args) -> Result<()> {
    let series = read_series(inputs, args.weak, &args.memory)?;
    if args.report.page.is_wanted() {
        return args.report.page.write_series(&series);
    }
    if args.report.is_json() {
        return output::print_json(&SeriesJson::new(&series));
    }
    let options = args.options();
    pager::print(&view::series::text(&series, options))
}

fn read_series(inputs: &[PathBuf], weak: bool, memory: &memory::Arg) -> Result<Series> {
    let scaling = if weak { Scaling::Weak } else { Scaling::Strong };
    let bar = progress::whole("reading");
    load::series::series(inputs, scaling, memory.bytes(), bar.progress())
}

/// As [`hand_over`], of what `--threads` has recorded in a folder.
pub(crate) fn hand_over_series(
    folder: &Path,
    weak: bool,
    memory: &memory::Arg,
    args: &ReportArgs,
    file: Option<&Path>,
    is_quiet: bool,
) -> Result<()> {
    let series = read_series(&[folder.to_owned()], weak, memory)?;
    args.page.write_series(&series)?;
    if is_quiet {
        return Ok(());
    }
    let text = |stream| view::series::text(&series, args.options(stream));
    let json = SeriesJson::new(&series);
    match file {
        Some(file) if args.is_json() => {
            let mut text = serde_json::to_vec_pretty(&json)?;
            text.push(b'\n');
            atomic::write(file, &text, 0o644)
        }
        Some(file) => atomic::write(file, text(None).as_bytes(), 0o644),
        None if args.is_json() => output::print_json(&json),
        None if std::io::stdout().is_terminal() => output::print(&text(Some(Stream::Output))),
        None => {
            output::print_aside(&text(Some(Stream::Error)));
            Ok(())
        }
    }
}
