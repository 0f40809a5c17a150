//! `ompfuse report`.

mod browse;
mod detail;
mod series;

pub(super) use series::hand_over_series;

use super::trial;
use crate::going::{self, Going};
use crate::load::over_time::Ends;
use crate::newest::or_newest;
use crate::output::{Stream, Usage};
use crate::page::{PageArgs, Records};
use crate::pager;
use crate::select::Selector;
use crate::{atomic, lines, load, memory, output, progress, recording};
use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ompfuse_account::{Report, trying};
use ompfuse_format::site::SiteInfo;
use ompfuse_fuse::Summary;
use ompfuse_fuse::names::Place;
use ompfuse_progress::Progress;
use ompfuse_report::view::growth::GrowthJson;
use ompfuse_report::view::text::{Section, Sections};
use ompfuse_report::view::{self, json, schema, text};
use ompfuse_report::{By, Sort, TextOptions, filter};
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

/// Show where a program's time went: its regions, their overheads and event counts
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile, a run's folder, a folder of runs, or a report in JSON (default: the newest ompfuse-out*
    /// here)
    ///
    /// Of several runs the numbers of threads are compared.
    #[arg(value_name = "PROFILE|RUN|REPORT")]
    inputs: Vec<PathBuf>,
    /// The work grows with the number of threads, so the time should stay the same
    #[arg(long, conflicts_with = "suggest_filter")]
    weak: bool,
    /// Report over time, in intervals of this length (1s, 100ms), or from one execution of a region to the
    /// next
    ///
    /// region:SELECTOR ends an interval with each execution of that parallel region; selectors as for --select. Above 240
    /// intervals neighbours are merged.
    #[arg(long, value_name = "LENGTH|region:SELECTOR", value_parser = parse_interval, conflicts_with_all = ["suggest_filter", "output", "weak"])]
    interval: Option<Interval>,
    /// Instead of the report, write lines for --filter that leave out regions with costly probes
    ///
    /// A region is left out if its probes take more than SHARE percent of its time.
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    suggest_filter: Option<f64>,
    /// File for the lines of --suggest-filter (default: standard output)
    #[arg(short, long, value_name = "FILE", requires = "suggest_filter")]
    output: Option<PathBuf>,
    /// Show everything about one region: its threads, units, callers, events, source lines
    ///
    /// REGION is its number in the report, or a selector as for --select that means one region: `solve.c:61`,
    /// `mesh::refine`, `0x4011a6`. Text only: --html shows the same on selection.
    #[arg(long, value_name = "REGION", conflicts_with_all = ["suggest_filter", "output", "weak", "interval", "html"])]
    region: Option<detail::Wanted>,
    /// Look at the report on the whole screen: regions, each with its lines, units and threads; threads; call paths; events
    ///
    /// Keys are those of `watch`, and in texts those of less; `?` lists them.
    #[arg(long, conflicts_with_all = ["suggest_filter", "output", "weak", "interval", "html", "region", "lines", "format"])]
    browse: bool,
    /// Show the hottest lines of each region, and of the code outside of regions, by samples
    ///
    /// SELECTOR chooses regions, as for --select. No line is shown with fewer than ten samples. Of several runs the first one's are shown.
    #[arg(long, value_name = "SELECTOR", num_args = 0..=1, require_equals = true, conflicts_with_all = ["suggest_filter", "output", "weak", "interval", "html", "region"])]
    lines: Option<Option<Selector>>,
    /// Instead of a report, print the JSON Schema of --format json
    #[arg(
        long,
        value_name = "OF",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "report",
        conflicts_with_all = ["inputs", "suggest_filter"]
    )]
    schema: Option<SchemaOf>,
    /// Of a run that was recorded with --units with-sums: the sums instead of the records
    #[arg(long, hide = true, requires = "inputs", conflicts_with = "schema")]
    from_sums: bool,
    #[command(flatten)]
    memory: memory::Arg,
    #[command(flatten)]
    rows: Rows,
    #[command(flatten)]
    report: ReportArgs,
}

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SchemaOf {
    /// The report of a run or profile
    Report,
    /// That of several runs, over numbers of threads
    Series,
    /// That of --interval
    Intervals,
    /// That of --lines
    Lines,
}

/// Where intervals of time end.
#[derive(Debug, Clone)]
enum Interval {
    /// After so many nanoseconds.
    Time(u64),
    /// With executions of a parallel region.
    Region(Selector),
}

fn parse_interval(text: &str) -> Result<Interval, String> {
    match text.strip_prefix("region:") {
        Some(selector) => selector.parse().map(Interval::Region),
        None => recording::nanoseconds(text)
            .map(Interval::Time)
            .map_err(|error| format!("{error}; or region:SELECTOR, as region:solve.c:61")),
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(share) if (0.0..=1e6).contains(&share) => Ok(share),
        _ => Err("a percentage is needed, as 5".to_owned()),
    }
}

/// See [`By`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Row {
    /// A construct in a source line, with all copies of it; instances of a template have a row each
    Line,
    /// Each place in the machine code
    Site,
}

/// Which rows a text has.
#[derive(Debug, clap::Args)]
struct Rows {
    /// List this many regions, and sum up the others in one line (text only)
    #[arg(long, value_name = "N", default_value_t = TextOptions::default().top)]
    top: usize,
    /// Sort the regions by this (text only)
    #[arg(long, value_name = "COLUMN", default_value = "time", value_parser = sort_parser())]
    sort: Sort,
    /// Meaning of a row (text only; JSON has every site)
    #[arg(long, value_enum, default_value_t = Row::Line)]
    by: Row,
}

impl Args {
    /// How text for standard output is made.
    fn options(&self) -> TextOptions {
        TextOptions {
            top: self.rows.top,
            sort: self.rows.sort,
            by: match self.rows.by {
                Row::Line => By::Line,
                Row::Site => By::Site,
            },
            ..self.report.options(Some(Stream::Output))
        }
    }
}

/// The options of every command that reports.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Show more sections (text only; JSON and the page have them all)
    #[arg(long, value_name = "SECTION", value_delimiter = ',', value_parser = section_parser())]
    show: Vec<String>,
    #[command(flatten)]
    output: output::FormatArg,
    #[command(flatten)]
    page: PageArgs,
}

/// Takes the names of [`Sort::ALL`].
fn sort_parser() -> impl TypedValueParser<Value = Sort> {
    PossibleValuesParser::new(Sort::ALL.map(|(name, _)| name)).map(|name| {
        let known = Sort::ALL.iter().find(|(known, _)| *known == name);
        known.map_or_else(Sort::default, |(_, sort)| *sort)
    })
}

/// The name of all sections together.
const ALL_SECTIONS: &str = "all";

/// Takes the names of [`Section::ALL`], and that of all.
fn section_parser() -> PossibleValuesParser {
    let names = Section::ALL.into_iter().map(|(name, _)| name);
    PossibleValuesParser::new(names.chain([ALL_SECTIONS]))
}

impl ReportArgs {
    /// How to print.
    pub(super) fn format(&self) -> &output::FormatArg {
        &self.output
    }

    /// The page that is wanted instead, if one is.
    pub(super) fn page(&self) -> &PageArgs {
        &self.page
    }

    /// Whether JSON is wanted.
    pub(super) fn is_json(&self) -> bool {
        self.output.is_json()
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    if let Some(of) = args.schema {
        return output::print(&match of {
            SchemaOf::Report => schema::report(),
            SchemaOf::Series => schema::series(),
            SchemaOf::Intervals => schema::intervals(),
            SchemaOf::Lines => schema::lines(),
        });
    }
    args.report.page.check()?;
    let has_screen = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if args.browse && !has_screen {
        return Err(Usage(
            "--browse needs a terminal; without it the report is printed".to_owned(),
        )
        .into());
    }
    let first = or_newest(args.inputs.first().map(PathBuf::as_path))?;
    let inputs = match &args.inputs[..] {
        [] => std::slice::from_ref(&first),
        inputs => inputs,
    };
    if let Some(wanted) = &args.lines {
        return lines(inputs, wanted.as_ref(), args);
    }
    let has_samples_only =
        |input: &PathBuf| load::first_run(input).is_some_and(|run| load::has_samples_only(&run));
    // What else is asked for needs records, and is refused where these are read.
    let is_plain = !args.browse
        && args.interval.is_none()
        && args.region.is_none()
        && args.suggest_filter.is_none();
    if is_plain && inputs.len() == 1 && has_samples_only(&inputs[0]) {
        return lines(inputs, None, args);
    }
    let going = match inputs {
        [input] => going::going(input)?,
        _ => None,
    };
    let Some(going) = going else {
        return recorded(inputs, args, None);
    };
    let shown = recorded(std::slice::from_ref(&going.run), args, Some(&going));
    going.check()?;
    shown
}

/// Shows what runs have recorded. `going`: the one that goes on.
fn recorded(inputs: &[PathBuf], args: &Args, going: Option<&Going>) -> Result<()> {
    if let Some(interval) = &args.interval {
        return over_time(inputs, interval, args);
    }
    let is_series = inputs.iter().any(|p| load::is_series(p));
    let is_several = inputs.len() > 1 || is_series;
    if is_several && args.browse {
        return Err(Usage("--browse is about one run, several are given".to_owned()).into());
    }
    if is_several && args.suggest_filter.is_none() {
        return series::series(inputs, args);
    }
    let [input] = inputs else {
        return Err(
            Usage("--suggest-filter is about one run, several are given".to_owned()).into(),
        );
    };
    if args.weak {
        return Err(Usage("--weak is of use with several runs only".to_owned()).into());
    }
    if let Some(report) = printed_before(input)? {
        if args.suggest_filter.is_some() {
            bail!(
                "no filter for {}: a report does not say what single probes cost; name its run",
                input.display()
            );
        }
        return print(&report, args, None);
    }
    if let Some(ranks) = load::ranks(input) {
        if args.suggest_filter.is_some() {
            bail!(
                "no filter for {}: a job's report does not say what single probes cost; name the folder of a rank",
                input.display()
            );
        }
        let bar = progress::whole("reading");
        let report = load::job::report(
            input,
            &ranks,
            args.memory.bytes(),
            &going::summary,
            bar.progress(),
        )?;
        drop(bar);
        return print(&report, args, None);
    }
    if args.report.page.is_wanted()
        && !args.from_sums
        && args.suggest_filter.is_none()
        && let Some((mut summary, records)) = Records::with_summary(input)?
    {
        let page = &args.report.page;
        let report = of(&mut summary, input, going);
        return page.write_with(&report, Some(input), records);
    }
    let bar = progress::whole("reading");
    let mut summary = match args.from_sums {
        true => load::sums(input)?,
        false => load::summary(input, args.memory.bytes(), bar.progress())?,
    };
    drop(bar);
    if let Some(share) = args.suggest_filter {
        let lines = filter::suggest(&summary, share / 100.0);
        let lines = lines.map_err(anyhow::Error::msg)?;
        return match &args.output {
            Some(file) => atomic::write(file, lines.as_bytes(), 0o644),
            None => output::print(&lines),
        };
    }
    print(&of(&mut summary, input, going), args, Some(input))
}

/// The report of a run, with what was tried beside it, and what can be. `going`: it goes on.
fn of(summary: &mut Summary, input: &Path, going: Option<&Going>) -> Report {
    if let Some(going) = going {
        going.correct(summary);
    }
    let report = Report::new(summary);
    Report {
        tried: trial::read(input),
        to_try: trying::told(&report, summary),
        goes_on: going.map_or_else(Vec::new, |going| going.processes.clone()),
        ..report
    }
}

/// Shows lines and functions.
fn lines(inputs: &[PathBuf], wanted: Option<&Selector>, args: &Args) -> Result<()> {
    let [input] = inputs else {
        return Err(Usage("--lines is about one run, several are given".to_owned()).into());
    };
    let bar = progress::whole("reading");
    let report = lines::sampled(input, wanted, bar.progress())?;
    drop(bar);
    if args.report.page.is_wanted() {
        return args.report.page.write_sampled(&report, input);
    }
    if args.report.is_json() {
        return output::print_json(&report);
    }
    let options = args.options();
    pager::print(&view::sampled::text(&report, options))
}

/// The report of a process that ran already.
pub(super) fn hand_over_sampled(
    run: &Path,
    args: &ReportArgs,
    file: Option<&Path>,
    is_quiet: bool,
) -> Result<()> {
    let report = lines::sampled(run, None, Progress::default())?;
    args.page.write_sampled(&report, run)?;
    if is_quiet {
        return Ok(());
    }
    let text = |stream| view::sampled::text(&report, args.options(stream));
    match file {
        Some(file) => {
            let text = match args.is_json() {
                true => serde_json::to_string_pretty(&report)? + "\n",
                false => output::harmless(&text(None)).into_owned(),
            };
            atomic::write(file, text.as_bytes(), 0o644)
        }
        None if args.is_json() => output::print_json(&report),
        None if std::io::stdout().is_terminal() => output::print(&text(Some(Stream::Output))),
        None => {
            output::print_aside(&text(Some(Stream::Error)));
            Ok(())
        }
    }
}

/// Reports how a run goes on over time.
fn over_time(inputs: &[PathBuf], interval: &Interval, args: &Args) -> Result<()> {
    let [input] = inputs else {
        return Err(Usage("--interval is about one run, several are given".to_owned()).into());
    };
    let bar = progress::whole("reading");
    let grown = match interval {
        Interval::Time(ns) => load::over_time::over_time(input, Ends::Time(*ns), bar.progress())?,
        Interval::Region(pattern) => {
            let is_it =
                |module: &str, site: &SiteInfo| pattern.matches(&Place::of_site(module, site));
            let ends = Ends::Instances(&is_it, pattern.to_string());
            load::over_time::over_time(input, ends, bar.progress())?
        }
    };
    drop(bar);
    let page = &args.report.page;
    if page.is_wanted() {
        let bar = progress::whole("reading");
        let mut summary = load::summary(input, args.memory.bytes(), bar.progress())?;
        drop(bar);
        let report = of(&mut summary, input, None);
        return page.write_grown(&report, Some(input), Some(grown.growth));
    }
    let report = &grown.growth;
    if args.report.is_json() {
        return output::print_json(&GrowthJson::new(report));
    }
    let options = args.options();
    pager::print(&view::growth::text(report, options))
}

/// The report, where a file is the JSON of one.
fn printed_before(file: &Path) -> Result<Option<Report>> {
    if !file.is_file() {
        return Ok(None); // opening a pipe waits for its writer
    }
    if file.parent().is_some_and(load::is_run) {
        return Ok(None); // a run's own file, of which readers of runs tell what to give instead
    }
    let mut first = [0];
    let opened = File::open(file).and_then(|mut f| f.read_exact(&mut first));
    // What can't be read is told by those who read runs and profiles.
    if opened.is_err() || first != *b"{" {
        return Ok(None);
    }
    let cannot = || format!("cannot read {}", file.display());
    let text = std::fs::read_to_string(file).with_context(cannot)?;
    json::read(&text).with_context(cannot).map(Some)
}

/// Prints a report on standard output, or writes its page. `input`: where its records are.
fn print(report: &Report, args: &Args, input: Option<&Path>) -> Result<()> {
    let how = &args.report;
    if let Some(wanted) = &args.region {
        let options = args.options();
        return pager::print(&detail::text(report, wanted, input, options)?);
    }
    if args.browse {
        return browse::browse(report, input, args.options());
    }
    if how.page.is_wanted() {
        return how.page.write(report, input);
    }
    if how.is_json() {
        return output::print_json(&json::Json(report));
    }
    pager::print(&text::render(report, args.options()))
}

/// Gives the report of a program that has just printed its own output. JSON, or what goes to a terminal, is printed on standard
/// output; text otherwise on standard error, not to stand in the midst of what the program has printed there.
pub(super) fn hand_over(
    summary: &Summary,
    args: &ReportArgs,
    file: Option<&Path>,
    folder: &Path,
    is_quiet: bool,
) -> Result<()> {
    let report = of(&mut summary.clone(), folder, None);
    args.page.write(&report, Some(folder))?;
    if is_quiet {
        return Ok(());
    }
    match file {
        Some(file) => {
            let text = match args.is_json() {
                true => json::to_string(&report) + "\n",
                false => output::harmless(&args.text(&report, None)).into_owned(),
            };
            atomic::write(file, text.as_bytes(), 0o644)
        }
        None if args.is_json() => output::print_json(&json::Json(&report)),
        None if std::io::stdout().is_terminal() => {
            output::print(&args.text(&report, Some(Stream::Output)))
        }
        None => {
            output::print_aside(&args.text(&report, Some(Stream::Error)));
            Ok(())
        }
    }
}

impl ReportArgs {
    /// The text for a stream, or for a file.
    fn text(&self, report: &Report, stream: Option<Stream>) -> String {
        text::render(report, self.options(stream))
    }

    fn sections(&self) -> Sections {
        let named = |name: &String| Section::ALL.into_iter().find(|(known, _)| known == name);
        let all = self.show.iter().filter_map(named);
        match self.show.iter().any(|name| name == ALL_SECTIONS) {
            true => Sections::ALL,
            false => all.fold(Sections::default(), |all, (_, section)| all.with(section)),
        }
    }

    /// How text for a stream, or for a file, is made.
    fn options(&self, stream: Option<Stream>) -> TextOptions {
        let default = TextOptions::default();
        TextOptions {
            show: self.sections(),
            width: stream.and_then(Stream::width).unwrap_or(default.width),
            colour: stream.is_some_and(Stream::colour),
            ..default
        }
    }
}
