//! `ompfuse diff`.

use crate::load::sides;
use crate::output::{Stream, Usage};
use crate::pager::PagerArg;
use crate::{atomic, output, page, progress};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use ompfuse_report::compare::gate::{self, Gate, Outcome};

use ompfuse_report::compare::units::SideUnits;
use ompfuse_report::compare::{self, Diff, Side, units};
use ompfuse_report::view::diff as view;
use ompfuse_report::view::html;
use ompfuse_report::view::schema;
use ompfuse_report::words;
use std::path::PathBuf;

/// Exit status where a `--fail-on` holds.
const FAILED: u8 = 3;

/// Compare two runs, builds or compilers: which regions changed, by how much, how sure that is, and why
///
/// Each side is a run folder, a folder of repeated runs, a profile, a job's folder, or a baseline. Repeat the runs: with one run on a
/// side the noise is unknown.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ompfuse diff out-gcc out-clang
  ompfuse diff --a old/run-0001 old/run-0002 --b new/run-0001 new/run-0002
  ompfuse diff perf/baseline.json.gz ompfuse-out --fail-on 'time>5%' --fail-on 'region(\"solve*\").time>3%'
  ompfuse diff baseline.json.gz ompfuse-out --fail-on 'instructions>1%' --format github

Exit status: 0 done, 1 it could not be compared, 2 wrong usage, 3 a --fail-on holds, or is undecided with --undecided fail.")]
pub(crate) struct Args {
    /// Print the JSON Schema of --format json
    #[arg(long, exclusive = true)]
    schema: bool,
    /// The side to compare with
    #[arg(value_name = "A", required_unless_present_any = ["side_a", "schema"], requires = "second")]
    first: Option<PathBuf>,
    /// The side that is judged
    #[arg(value_name = "B")]
    second: Option<PathBuf>,
    /// Several runs of A
    #[arg(
        long = "a",
        value_name = "RUN",
        num_args = 1..,
        requires = "side_b",
        conflicts_with_all = ["first", "second"]
    )]
    side_a: Vec<PathBuf>,
    /// Several runs of B
    #[arg(long = "b", value_name = "RUN", num_args = 1.., requires = "side_a")]
    side_b: Vec<PathBuf>,
    /// Exit with status 3 if this condition holds (may be repeated)
    ///
    /// Conditions: time>5%, instructions>1%, region("solve*").time>3%, imbalance>10%, executions!=,
    /// new-regions>0, max-unit>20%.
    #[arg(long, value_name = "EXPR")]
    fail_on: Vec<String>,
    /// Judge --fail-on by the estimate alone, even if it is uncertain
    #[arg(long)]
    strict: bool,
    /// What an undecided --fail-on does: runs vary so much that a change as large as its limit would not be seen
    #[arg(long, value_enum, default_value_t = Undecided::Pass, requires = "fail_on")]
    undecided: Undecided,
    /// Compare even if less than half of the regions' time can be matched and the rest is executed otherwise
    #[arg(long)]
    anyway: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also write Markdown to this file, for the summary of a pull request
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Also write JUnit XML to this file: a test case for each --fail-on
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also write a report for GitLab's Code Quality to this file
    #[arg(long, value_name = "FILE")]
    gitlab: Option<PathBuf>,
    /// Also write one HTML page to this file; it needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// With --html: leave out the folders of absolute paths
    #[arg(long, requires = "html")]
    redact: bool,
    /// Folder to which paths in annotations are relative (default: the current one)
    #[arg(long, value_name = "DIR")]
    source_root: Option<PathBuf>,
    /// List this many regions (text and Markdown)
    #[arg(long, value_name = "N", default_value_t = view::Options::default().top)]
    top: usize,
    #[command(flatten)]
    pager: PagerArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs
    Json,
    /// For the summary of a pull request
    Markdown,
    /// JUnit XML
    Junit,
    /// GitHub's annotations: `::warning file=...`
    Github,
    /// GitLab's Code Quality
    Gitlab,
}

/// What becomes of the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Undecided {
    /// It is named
    Pass,
    /// Status 3
    Fail,
}

pub(super) fn run(args: &Args) -> Result<u8> {
    if args.schema {
        return output::print(&schema::diff()).map(|()| 0);
    }
    let gates = gates(&args.fail_on)?;
    for file in [&args.markdown, &args.junit, &args.gitlab, &args.html]
        .into_iter()
        .flatten()
    {
        atomic::check(file)?;
    }
    let bar = progress::whole("comparing");
    let (half, rest) = (bar.progress().part(0.5), bar.progress().part(0.5));
    let (first, second) = args.sides();
    let (mut units_a, mut units_b) = (SideUnits::default(), SideUnits::default());
    let a = sides::side("A", &first, &mut |s, t| units_a.add(s, t), half)?;
    let b = sides::side("B", &second, &mut |s, t| units_b.add(s, t), rest)?;
    let (a, b) = compare::by_callers(&a, &b);
    let mut diff = compare::compare(&a, &b);
    units::add_slowest(&mut diff.pairs, &units_a, &units_b);
    drop(bar);
    args.check(&diff, &a, &b)?;
    let outcomes = gate::judge(&gates, &diff, &a, &b, args.strict);
    if let Some(file) = &args.html {
        page::save(
            file,
            &html::diff::render(&diff, &outcomes, [&a, &b], args.redact),
        )?;
    }
    args.hand_over(&diff, &outcomes)?;
    status(&outcomes, args.undecided)
}

/// What the expressions mean.
fn gates(expressions: &[String]) -> Result<Vec<Gate>> {
    let parsed = expressions.iter().map(|text| gate::parse(text));
    parsed
        .collect::<Result<_, _>>()
        .map_err(|error| Usage(format!("--fail-on: {error}")).into())
}

fn status(outcomes: &[Outcome], undecided: Undecided) -> Result<u8> {
    if let Some(error) = outcomes.iter().find(|o| o.is_error()) {
        bail!("--fail-on {}: {}", error.expression, words::outcome(error));
    }
    let fails = |o: &Outcome| o.holds() || (undecided == Undecided::Fail && o.is_undecided());
    match outcomes.iter().any(fails) {
        true => Ok(FAILED),
        false => Ok(0),
    }
}

impl Args {
    fn sides(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        match (&self.first, &self.second) {
            (Some(a), Some(b)) => (vec![a.clone()], vec![b.clone()]),
            _ => (self.side_a.clone(), self.side_b.clone()),
        }
    }

    /// Refuses to compare what isn't comparable.
    fn check(&self, diff: &Diff, a: &Side, b: &Side) -> Result<()> {
        for side in [a, b] {
            if side.regions.is_empty() && !self.anyway {
                if let regions @ 1.. = side.origin.left_out {
                    bail!(
                        "cannot compare the regions of {}: it has {regions}, and none of them is in the summaries of all ranks, which have \
                         no room for so many; compare folders of ranks, or the program's time with --anyway",
                        side.origin.name
                    );
                }
                bail!(
                    "{} has no recorded region, so nothing can be compared; record it again, or compare the program's time with --anyway",
                    side.origin.name
                );
            }
        }
        if !diff.is_one_program() && !self.anyway {
            let left_out = a.origin.left_out.max(b.origin.left_out);
            let why = match left_out {
                0 => {
                    "they are not executed as often, so these may be different programs".to_owned()
                }
                n => format!("ranks' summaries have no room for {n} others"),
            };
            bail!(
                "cannot compare {} with {}: only {:.0}% of the regions' time can be matched, and {why}; compare them all the same \
                 with --anyway",
                a.origin.name,
                b.origin.name,
                100.0 * diff.matched[0].min(diff.matched[1])
            );
        }
        Ok(())
    }

    fn hand_over(&self, diff: &Diff, outcomes: &[Outcome]) -> Result<()> {
        let stream = Stream::Output;
        let default = view::Options::default();
        let current = std::env::current_dir().ok();
        let root = self.source_root.clone().or(current);
        let options = view::Options {
            top: self.top,
            width: stream.width().unwrap_or(default.width),
            colour: stream.colour(),
            source_root: root.map(|r| r.to_string_lossy().into_owned()),
        };
        let write = |file: &Option<PathBuf>, text: &dyn Fn() -> Result<String>| match file {
            Some(file) => atomic::write(file, text()?.as_bytes(), 0o644),
            None => Ok(()),
        };
        let junit = || view::junit(diff, outcomes).context("cannot encode JUnit XML");
        let gitlab = || Ok(view::gitlab(diff, outcomes, &options));
        write(&self.markdown, &|| {
            Ok(view::markdown(diff, outcomes, &options))
        })?;
        write(&self.junit, &junit)?;
        write(&self.gitlab, &gitlab)?;
        let text = match self.format {
            Format::Text => view::text(diff, outcomes, &options),
            Format::Json => view::json(diff, outcomes),
            Format::Markdown => view::markdown(diff, outcomes, &options),
            Format::Junit => junit()?,
            Format::Github => view::github(diff, outcomes, &options),
            Format::Gitlab => gitlab()?,
        };
        match self.format {
            Format::Text => self.pager.print(&text),
            _ => output::print(&text),
        }
    }
}
