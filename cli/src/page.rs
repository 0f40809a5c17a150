//! `--html`: the report as a page, with what the records tell beside it.

mod code;

use crate::load::over_time::{Ends, Grown};
use crate::output::remark;
use crate::{atomic, load, progress};
use anyhow::Result;
use ompfuse_fuse::XuTable;
use ompfuse_fuse::run::InParts;
use ompfuse_report::Report;
use ompfuse_report::model::series::Series;
use ompfuse_report::units::Units;
use ompfuse_report::view::html::{self, Keys, Markup, Page, SourceFile, Sources, timeline};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Larger source files are nobody's own.
const LARGEST_SOURCE: u64 = 4 << 20;

/// The options of a page.
#[derive(Debug, clap::Args)]
pub(crate) struct PageArgs {
    /// Write the report to this file as one HTML page that needs no network; `report` then prints nothing
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// With --html: show no lines of source files
    #[arg(long, requires = "html")]
    no_source: bool,
    /// With --html: leave out host names, the program's arguments, and the folders of absolute paths
    #[arg(long, requires = "html")]
    redact: bool,
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
        atomic::check_ahead(file)
    }

    /// Writes the page of a series.
    pub(crate) fn write_series(&self, series: &Series) -> Result<()> {
        match &self.html {
            Some(file) if self.redact => save(file, &html::series::render(&html::redacted(series))),
            Some(file) => save(file, &html::series::render(series)),
            None => Ok(()),
        }
    }

    /// Writes the page of a report, if one is wanted. `input`: the run or profile that it is of, if that is at hand. `over_time`: how its
    /// first run goes on, if that was read already.
    pub(crate) fn write(
        &self,
        report: &Report,
        input: Option<&Path>,
        over_time: Option<Grown>,
    ) -> Result<()> {
        let Some(file) = &self.html else {
            return Ok(());
        };
        let begun = input.and_then(load::begun_at);
        let over_time = over_time.or_else(|| input.and_then(|input| over_time_of(report, input)));
        let (growth, in_parts) = over_time.map_or((None, None), |o| (Some(o.growth), o.in_parts));
        let growth = growth.as_ref();
        let mut units = match input {
            Some(input) => units(report, input, in_parts)?,
            None => None,
        };
        let mut sources = match self.no_source {
            true => Sources::new(),
            false => sources(report, begun),
        };
        let timeline = match input {
            Some(input) => drawn(report, input)?,
            None => None,
        };
        let mut code = code::code(report);
        let (redacted, redacted_growth);
        let (report, growth) = match self.redact {
            true => {
                units = units.map(|u| u.renamed(html::without_folders));
                sources = renamed(sources);
                code = (code.into_iter())
                    .map(|((m, site), lines)| ((html::without_folders(&m), site), lines))
                    .collect();
                redacted = html::redacted(report);
                redacted_growth = growth.map(html::redacted);
                (&redacted, redacted_growth.as_ref())
            }
            false => (report, growth),
        };
        let page = Page {
            report,
            date: begun.and_then(date),
            units: units.as_ref(),
            growth,
            sources,
            code,
            timeline,
        };
        save(file, &html::render(&page))
    }
}

/// The execution units; `None`: there are sums only.
pub(crate) fn units(
    report: &Report,
    input: &Path,
    in_parts: Option<InParts>,
) -> Result<Option<Units>> {
    let has_units = report.xus > 0 && !report.runs.iter().any(|r| r.sums_only);
    if !has_units {
        return Ok(None);
    }
    let bar = progress::whole("reading units");
    let mut units = Units::default();
    let add = &mut |table: &XuTable| units.add(table);
    load::units(input, in_parts, bar.progress(), add)?;
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

/// Intervals that a run is divided into where nobody has said how.
const INTERVALS: f64 = 60.0;

/// How the run goes on over time; `None`: its records don't tell.
fn over_time_of(report: &Report, input: &Path) -> Option<Grown> {
    if report.runs.iter().any(|r| r.sums_only) {
        return None;
    }
    let run = load::first_run(input)?;
    grown(&run, report.lifetime_s.or(report.duration_s)?).ok()
}

/// A run that takes so many seconds, and how it goes on.
fn grown(run: &Path, all_s: f64) -> Result<Grown> {
    let ns = ((all_s / INTERVALS * 1e9) as u64).max(1);
    let bar = progress::whole("reading");
    load::over_time::over_time(run, Ends::Time(ns), bar.progress())
}

/// What a page needs of a path that is one run with records, by one reading of these; `None`: it is something else.
pub(crate) fn read_once(input: &Path) -> Result<Option<Grown>> {
    let Some((run, seconds)) = load::one_with_records(input)? else {
        return Ok(None);
    };
    let Ok(mut grown) = grown(&run, seconds) else {
        return Ok(None); // whoever reads it otherwise says why
    };
    load::analyse_run(&run, &mut grown.summary)?;
    Ok(Some(grown))
}

/// The source files of a report's regions that are still there. `begun`: when the program ran, in seconds since 1970.
pub(crate) fn sources(report: &Report, begun: Option<f64>) -> Sources {
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

/// Source files by names without folders; of those that share a name none is shown.
fn renamed(sources: Sources) -> Sources {
    let mut files: BTreeMap<String, Option<SourceFile>> = BTreeMap::new();
    for (path, file) in sources {
        let name = html::without_folders(&path);
        let known = files.contains_key(&name);
        files.insert(name, (!known).then_some(file));
    }
    let one = |(name, file): (String, Option<SourceFile>)| Some((name, file?));
    files.into_iter().filter_map(one).collect()
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

/// Writes a page, and says where it is.
pub(crate) fn save(file: &Path, page: &str) -> Result<()> {
    atomic::write(file, page.as_bytes(), 0o644)?;
    remark(format_args!("the page is {}", file.display()));
    Ok(())
}

/// Seconds since 1970 as people read them.
fn date(seconds: f64) -> Option<String> {
    let time = chrono::DateTime::from_timestamp(seconds as i64, 0)?;
    Some(time.format("%Y-%m-%d %H:%M UTC").to_string())
}
