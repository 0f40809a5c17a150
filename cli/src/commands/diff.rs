//! `ompfuse diff`.

mod shares;

use crate::load::sides;
use crate::output::{Stream, Usage};
use crate::pager;
use crate::{atomic, output, page, progress};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use ompfuse_compare::gate::{self, Gate, Outcome};

use ompfuse_compare::units::SideUnits;
use ompfuse_compare::{Diff, Side, units};
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
/// side the noise is unknown. Of a run with samples only, shares are compared.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ompfuse diff out-gcc out-clang
  ompfuse diff --a old/run-0001 old/run-0002 --b new/run-0001 new/run-0002
  ompfuse diff perf/baseline.json.gz ompfuse-out --fail-on 'time>5%' --fail-on 'region(\"solve*\").time>3%'
  ompfuse diff baseline.json.gz ompfuse-out --fail-on 'instructions>1%' --format github

Exit status: 0 done, 1 it could not be compared, 2 wrong usage, 3 a --fail-on holds, or is undecided with --undecided fail.")]
pub(crate) struct Args {
    /// Print the JSON Schema of --format json
    #[arg(
        long,
        value_name = "OF",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "diff",
        exclusive = true
    )]
    schema: Option<SchemaOf>,
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
    /// What an undecided --fail-on does: runs vary so much that a change as large as its limit would not be seen
    #[arg(long, value_enum, default_value_t = Undecided::Pass, requires = "fail_on")]
    undecided: Undecided,
    /// Compare even if less than half of the regions' time can be matched and the rest is executed otherwise
    #[arg(long)]
    anyway: bool,
    /// How to print; FORMAT=FILE writes it to a file, also beside what is printed (may be repeated)
    ///
    /// `markdown`: for the summary of a pull request; `junit`: JUnit XML, a test case for each --fail-on; `github`: annotations
    /// (`::warning file=...`); `gitlab`: a report for GitLab's Code Quality.
    #[arg(long, value_name = "text|json|markdown|junit|github|gitlab[=FILE]", value_parser = Printed::parse)]
    format: Vec<Printed>,
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

/// A format, and where it goes: to a file, or standard output.
#[derive(Debug, Clone)]
struct Printed {
    format: Format,
    file: Option<PathBuf>,
}

impl Printed {
    /// For clap.
    fn parse(text: &str) -> Result<Printed, String> {
        let (name, file) = match text.split_once('=') {
            Some((_, "")) => return Err("a file's name is needed behind =".to_owned()),
            Some((name, file)) => (name, Some(file.into())),
            None => (text, None),
        };
        let format = Format::from_str(name, false).map_err(|_| {
            let all = Format::value_variants().iter();
            let names = all.filter_map(|f| Some(f.to_possible_value()?.get_name().to_owned()));
            format!("there are {}", names.collect::<Vec<_>>().join(", "))
        })?;
        Ok(Printed { format, file })
    }
}

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SchemaOf {
    /// Runs with records on both sides
    Diff,
    /// Where a side has samples only
    Shares,
}

/// What becomes of the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Undecided {
    /// It is named
    Pass,
    /// Status 3
    Fail,
    /// It is judged by the estimate alone, as all others
    Estimate,
}

pub(super) fn run(args: &Args) -> Result<u8> {
    if let Some(of) = args.schema {
        let schema = match of {
            SchemaOf::Diff => schema::diff(),
            SchemaOf::Shares => schema::shares(),
        };
        return output::print(&schema).map(|()| 0);
    }
    let gates = gates(&args.fail_on)?;
    let (mut files, printed): (Vec<_>, Vec<_>) =
        (args.format.iter()).partition(|p| p.file.is_some());
    if printed.len() > 1 {
        return Err(Usage(
            "--format: one format is printed; give the others files, as junit=FILE".to_owned(),
        )
        .into());
    }
    let files = files.drain(..).filter_map(|p| p.file.as_ref());
    for file in files.chain(&args.html) {
        atomic::check(file)?;
    }
    let bar = progress::whole("comparing");
    let (half, rest) = (bar.progress().part(0.5), bar.progress().part(0.5));
    let (first, second) = args.sides();
    if let Some(shares) = shares::shares(args, [&first, &second], bar.progress())? {
        drop(bar);
        return shares::print(args, &shares).map(|()| 0);
    }
    let (mut units_a, mut units_b) = (SideUnits::default(), SideUnits::default());
    let a = sides::side("A", &first, &mut |s, t| units_a.add(s, t), half)?;
    let b = sides::side("B", &second, &mut |s, t| units_b.add(s, t), rest)?;
    let (a, b) = ompfuse_compare::by_callers(&a, &b);
    let mut diff = ompfuse_compare::compare(&a, &b);
    units::add_slowest(&mut diff.pairs, &units_a, &units_b);
    drop(bar);
    args.check(&diff, &a, &b)?;
    let outcomes = gate::judge(&gates, &diff, &a, &b, args.undecided == Undecided::Estimate);
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
        let text = |format| {
            Ok(match format {
                Format::Text => view::text(diff, outcomes, &options),
                Format::Json => view::json(diff, outcomes),
                Format::Markdown => view::markdown(diff, outcomes, &options),
                Format::Junit => view::junit(diff, outcomes).context("cannot encode JUnit XML")?,
                Format::Github => view::github(diff, outcomes, &options),
                Format::Gitlab => view::gitlab(diff, outcomes, &options),
            })
        };
        let text: &dyn Fn(Format) -> Result<String> = &text;
        let mut printed = Format::Text;
        for Printed { format, file } in &self.format {
            match file {
                Some(file) => atomic::write(file, text(*format)?.as_bytes(), 0o644)?,
                None => printed = *format,
            }
        }
        match printed {
            Format::Text => pager::print(&text(printed)?),
            _ => output::print(&text(printed)?),
        }
    }
}
