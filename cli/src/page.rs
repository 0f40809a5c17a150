//! `--html`: the report as a page, with what the records tell beside it.

mod code;
mod records;

pub(crate) use records::{Records, units};

use crate::output::remark;
use crate::{atomic, load};
use anyhow::Result;
use ompfuse_account::Report;
use ompfuse_account::model::growth::GrowthReport;
use ompfuse_account::model::series::Series;
use ompfuse_account::sampled::SampledReport;
use ompfuse_report::view::html::{self, Keys, Page, SourceFile, Sources, timeline};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Larger source files are nobody's own.
const LARGEST_SOURCE: u64 = 4 << 20;

/// The options of a page.
#[derive(Debug, clap::Args)]
pub(crate) struct PageArgs {
    /// Write the report to this file as one HTML page that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// With --html: leave out `names` (of hosts, the program's arguments, folders of absolute paths), or `sources`, the lines of files
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',', num_args = 0..=1, require_equals = true, default_missing_value = "names", requires = "html")]
    redact: Vec<Redacted>,
}

/// What a page has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Redacted {
    /// Names of hosts, the program's arguments, folders of absolute paths
    Names,
    /// Lines of source files
    Sources,
}

impl PageArgs {
    fn lacks(&self, what: Redacted) -> bool {
        self.redact.contains(&what)
    }

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
            Some(file) if self.lacks(Redacted::Names) => {
                save(file, &html::series::render(&html::redacted(series)))
            }
            Some(file) => save(file, &html::series::render(series)),
            None => Ok(()),
        }
    }

    /// Writes the page of a run with samples only, if one is wanted.
    pub(crate) fn write_sampled(&self, report: &SampledReport, run: &Path) -> Result<()> {
        let Some(file) = &self.html else {
            return Ok(());
        };
        let begun = load::begun_at(run);
        let lines = report.regions.iter().flat_map(|region| &region.lines);
        let is_foreign = report.process.as_ref().is_some_and(|p| p.is_foreign);
        let mut sources = match self.lacks(Redacted::Sources) || is_foreign {
            true => Sources::new(),
            false => files(lines.filter_map(|line| line.file.as_ref()), begun),
        };
        let redacted = self.lacks(Redacted::Names).then(|| html::redacted(report));
        if self.lacks(Redacted::Names) {
            sources = renamed(sources);
        }
        let report = redacted.as_ref().unwrap_or(report);
        save(
            file,
            &html::sampled::render(report, begun.and_then(date), &sources),
        )
    }

    /// Writes the page of a report, if one is wanted. `input`: the run or profile that it is of, if that is at hand.
    pub(crate) fn write(&self, report: &Report, input: Option<&Path>) -> Result<()> {
        self.write_grown(report, input, None)
    }

    /// The same; `growth`: how the first run goes on, if that was read already.
    pub(crate) fn write_grown(
        &self,
        report: &Report,
        input: Option<&Path>,
        growth: Option<GrowthReport>,
    ) -> Result<()> {
        if !self.is_wanted() {
            return Ok(());
        }
        let records = match input {
            Some(input) => Records::beside(report, input, growth)?,
            None => Records::default(),
        };
        self.write_with(report, input, records)
    }

    /// The same, where all was read.
    pub(crate) fn write_with(
        &self,
        report: &Report,
        input: Option<&Path>,
        records: Records,
    ) -> Result<()> {
        let Some(file) = &self.html else {
            return Ok(());
        };
        let begun = input.and_then(load::begun_at);
        let Records {
            growth,
            mut units,
            drawn,
        } = records;
        let growth = growth.as_ref();
        let mut sources = match self.lacks(Redacted::Sources) {
            true => Sources::new(),
            false => sources(report, begun),
        };
        let timeline = drawn.map(|drawn| timeline::section(&drawn, report, &Keys::new(report)));
        let mut code = code::code(report);
        let (redacted, redacted_growth);
        let (report, growth) = match self.lacks(Redacted::Names) {
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

/// The source files of a report's regions and hottest lines that are still there. `begun`: when the program ran, in seconds since 1970.
pub(crate) fn sources(report: &Report, begun: Option<f64>) -> Sources {
    let of_regions = report.regions.iter().filter_map(|r| r.source.as_ref());
    let of_regions = of_regions.map(|source| &source.file);
    let sampled = report.sampled.iter().flat_map(|s| &s.regions);
    let lines = sampled.flat_map(|region| &region.lines);
    let of_lines = lines.filter_map(|line| line.file.as_ref());
    files(of_regions.chain(of_lines), begun)
}

/// Those of these files that are there.
fn files<'a>(paths: impl Iterator<Item = &'a String>, begun: Option<f64>) -> Sources {
    let mut sources = Sources::new();
    for path in paths {
        if sources.contains_key(path) {
            continue;
        }
        if let Some(file) = source_file(Path::new(path), begun) {
            sources.insert(path.clone(), file);
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
