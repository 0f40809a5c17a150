//! Tables of units and regions, and metrics.

use super::Args;
use crate::select::means_region;
use crate::{load, output};
use anyhow::{Result, bail, ensure};
use ompfuse_account::{Region, Report};
use ompfuse_export::units::UnitWriter;
use ompfuse_export::{csv, openmetrics, regions};
use ompfuse_fuse::names::Place;
use ompfuse_fuse::summary::ModuleSummary;
use ompfuse_fuse::{Profile, Site, Summary, XuTable};
use ompfuse_progress::Progress;
use ompfuse_report::words::SUMS_ONLY;
use std::path::Path;

/// What reading takes of the time.
const OF_READING: f64 = 0.4;

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Table {
    /// An execution unit: a task, a section, or a range of iterations
    Units,
    /// A region on a thread
    Regions,
}

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Csv,
    Parquet,
    Arrow,
}

/// Writes a table.
pub(super) fn write(args: &Args, form: Form, progress: Progress<'_>) -> Result<()> {
    check_input(args)?;
    match (args.table(), form) {
        (Table::Regions, _) => write_regions(args, form, progress),
        (Table::Units, Form::Csv) => write_csv(args, progress),
        (Table::Units, _) => write_units(args, form, progress),
    }
}

/// Writes the metrics of regions.
pub(super) fn metrics(args: &Args, progress: Progress<'_>) -> Result<()> {
    check_input(args)?;
    let report = report(args, &args.input, progress)?;
    let is_wanted = |region: &Region| args.means(&report, region);
    args.write(|out| Ok(openmetrics::write(out, &report, is_wanted)?))
}

/// Refuses what is several profiles.
fn check_input(args: &Args) -> Result<()> {
    ensure!(
        !load::is_series(&args.input),
        "cannot export {}: it has recordings with several numbers of threads; name the folder of one of them, as {}",
        args.input.display(),
        args.input.join("threads-2").display()
    );
    Ok(())
}

fn write_regions(args: &Args, form: Form, progress: Progress<'_>) -> Result<()> {
    let report = report(args, &args.input, progress)?;
    let unplaced = regions::unplaced(&report);
    if unplaced > 0 {
        output::note(format_args!(
            "{unplaced} counts of parallel regions are in no row: a member of the team was not always the same thread; \
             `ompfuse report --format json` has them (region_counts)"
        ));
    }
    let table = regions::table(&report, |region| args.means(&report, region));
    args.write(|out| {
        Ok(match form {
            Form::Csv => table.write_csv(out),
            Form::Arrow => table.write_arrow(out),
            Form::Parquet => table.write_parquet(out),
        }?)
    })
}

/// The report of an input that regions are taken from.
pub(super) fn report(args: &Args, input: &Path, progress: Progress<'_>) -> Result<Report> {
    let memory = args.memory.bytes();
    let report = match load::ranks(input) {
        Some(ranks) => load::job::in_detail(input, &ranks, memory, progress)?,
        None => {
            let summary = load::summary(input, memory, progress)?;
            load::tell_damage(&summary);
            Report::new(&summary)
        }
    };
    for pattern in &args.select {
        let mut regions = report.regions.iter();
        ensure!(
            regions.any(|region| means_region(pattern, &report, region)),
            "no region of {} is {pattern}; `ompfuse report` lists them",
            input.display()
        );
    }
    Ok(report)
}

/// Units as text.
fn write_csv(args: &Args, progress: Progress<'_>) -> Result<()> {
    let options = csv::Options {
        hex_labels: args.hex_labels,
    };
    let writing = progress.part(1.0 - OF_READING);
    let Profile { xus, summary, .. } = load::profile(&args.input, progress.part(OF_READING))?;
    load::tell_damage(&summary);
    if summary.runs.iter().any(|run| run.sums_only) {
        bail!("cannot export {}: {SUMS_ONLY}", args.input.display());
    }
    let xus = match args.rows(&xus, &summary)? {
        Some(rows) => xus.gather(&rows),
        None => xus,
    };
    args.write(|out| Ok(csv::write(out, &xus, options, writing)?))
}

/// Units as columns, which are written while they are read.
fn write_units(args: &Args, form: Form, progress: Progress<'_>) -> Result<()> {
    args.write(|out| {
        let mut writer = match form {
            Form::Arrow => UnitWriter::arrow(out),
            Form::Csv | Form::Parquet => UnitWriter::parquet(out),
        };
        let mut write = |piece: &Profile| {
            match args.rows(&piece.xus, &piece.summary)? {
                Some(rows) => writer.write(&piece.gather(&rows)),
                None => writer.write(piece),
            }?;
            Ok(())
        };
        let memory = args.memory.bytes();
        let summary = load::table(&args.input, memory, &mut write, progress)?;
        load::tell_damage(&summary);
        Ok(writer.finish(args.select.is_empty().then_some(&summary))?)
    })
}

impl Args {
    /// Whether a region is selected.
    pub(super) fn means(&self, report: &Report, region: &Region) -> bool {
        let mut patterns = self.select.iter();
        self.select.is_empty() || patterns.any(|p| means_region(p, report, region))
    }

    /// The rows of units that are selected; `None`: all are.
    fn rows(&self, xus: &XuTable, summary: &Summary) -> Result<Option<Vec<u32>>> {
        if self.select.is_empty() {
            return Ok(None);
        }
        let mut is_wanted = vec![false; xus.sites.len()];
        for pattern in &self.select {
            let is_meant =
                |site: &Site| pattern.matches(&Place::of_units(file_of(summary, site), site));
            let meant: Vec<bool> = xus.sites.iter().map(is_meant).collect();
            ensure!(
                meant.contains(&true),
                "no unit of {} is in {pattern}; `ompfuse report` lists the regions",
                self.input.display()
            );
            let both = is_wanted.iter_mut().zip(meant);
            both.for_each(|(wanted, meant)| *wanted |= meant);
        }
        let is_wanted = |site: u32| is_wanted.get(site as usize).copied().unwrap_or(false);
        let rows = (0..).zip(&xus.site);
        let rows = rows.filter(|(_, site)| is_wanted(**site));
        Ok(Some(rows.map(|(row, _)| row).collect()))
    }
}

/// The path of a site's module.
fn file_of<'s>(summary: &'s Summary, site: &Site) -> &'s str {
    let is_it = |m: &&ModuleSummary| m.build_id.as_deref().unwrap_or(&m.path) == site.module;
    let module = summary.modules.iter().find(is_it);
    module.map_or(&summary.program, |m| &m.path)
}
