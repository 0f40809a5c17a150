//! `--html`: the report as a page, with what the records tell beside it.

use crate::output::remark;
use crate::{atomic, load, progress};
use anyhow::{Result, ensure};
use ompfuse_report::Report;
use ompfuse_report::units::Units;
use ompfuse_report::view::html::{self, Keys, Markup, Page, SourceFile, Sources, timeline};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Larger source files are nobody's own.
const LARGEST_SOURCE: u64 = 4 << 20;

/// The options of a page.
#[derive(Debug, clap::Args)]
pub(crate) struct PageArgs {
    /// Write the report to this file instead, as one HTML page that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// With --html: show no lines of source files
    #[arg(long, requires = "html")]
    no_source: bool,
}

impl PageArgs {
    /// Whether a page is wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.html.is_some()
    }

    /// Finds out before anything takes long that the page can't be written.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(file) = &self.html else {
            return Ok(());
        };
        atomic::check(file)?;
        let folder = atomic::parent(file);
        ensure!(
            folder.is_dir(),
            "cannot write {}: there is no folder {}",
            file.display(),
            folder.display()
        );
        Ok(())
    }

    /// Writes the page of a report, if one is wanted. `input`: the run or profile that it is of, if that is at hand.
    pub(crate) fn write(&self, report: &Report, input: Option<&Path>) -> Result<()> {
        let Some(file) = &self.html else {
            return Ok(());
        };
        let begun = input.and_then(load::begun_at);
        let units = match input {
            Some(input) => units(report, input)?,
            None => None,
        };
        let page = Page {
            report,
            date: begun.and_then(date),
            units: units.as_ref(),
            sources: match self.no_source {
                true => Sources::new(),
                false => sources(report, begun),
            },
            timeline: match input {
                Some(input) => drawn(report, input)?,
                None => None,
            },
        };
        save(file, &html::render(&page))
    }
}

/// The execution units; `None`: there are sums only.
fn units(report: &Report, input: &Path) -> Result<Option<Units>> {
    let has_units = report.xus > 0 && !report.runs.iter().any(|r| r.sums_only);
    if !has_units {
        return Ok(None);
    }
    let bar = progress::whole("reading units");
    let mut units = Units::default();
    load::units(input, bar.progress(), &mut |table| units.add(table))?;
    Ok(Some(units))
}

/// The timeline of the first run; `None`: it has sums only, or there is only a profile.
fn drawn(report: &Report, input: &Path) -> Result<Option<Markup>> {
    let Some(run) = load::first_run(input) else {
        return Ok(None);
    };
    if report.runs.iter().any(|r| r.sums_only) {
        return Ok(None);
    }
    let bar = progress::whole("drawing the timeline");
    let keys = Keys::new(report);
    load::timeline(&run, bar.progress(), |spans, progress| {
        Ok(timeline::section(spans, report, &keys, progress))
    })
}

/// The source files of a report's regions that are still there. `begun`: when the program ran, in seconds since 1970.
fn sources(report: &Report, begun: Option<f64>) -> Sources {
    let mut sources = Sources::new();
    for region in &report.regions {
        let Some(source) = &region.source else {
            continue;
        };
        if sources.contains_key(&source.file) {
            continue;
        }
        if let Some(file) = source_file(Path::new(&source.file), begun) {
            sources.insert(source.file.clone(), file);
        }
    }
    sources
}

fn source_file(path: &Path, begun: Option<f64>) -> Option<SourceFile> {
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST_SOURCE {
        return None;
    }
    let begun = begun.filter(|s| *s > 0.0).map(Duration::from_secs_f64);
    let begun: Option<SystemTime> = begun.map(|d| UNIX_EPOCH + d);
    let is_newer = begun.zip(metadata.modified().ok());
    Some(SourceFile {
        text: String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned(),
        is_newer: is_newer.is_some_and(|(begun, changed)| changed > begun),
    })
}

fn save(file: &Path, page: &str) -> Result<()> {
    atomic::write(file, page.as_bytes(), 0o644)?;
    remark(format_args!("the page is {}", file.display()));
    Ok(())
}

/// Seconds since 1970 as people read them.
fn date(seconds: f64) -> Option<String> {
    let time = chrono::DateTime::from_timestamp(seconds as i64, 0)?;
    Some(time.format("%Y-%m-%d %H:%M UTC").to_string())
}
