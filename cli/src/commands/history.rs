//! `ompfuse history`.

use crate::load::baselines::baselines;
use crate::output::{FormatArg, Stream};
use crate::pager;
use crate::{atomic, git, output, page, progress};
use anyhow::{Context, Result, bail};
use ompfuse_compare::Quantity;
use ompfuse_compare::history::{self, Named, Wanted};
use ompfuse_fuse::names::{Chooses, Selector};
use ompfuse_report::view::history as view;
use ompfuse_report::view::text::TextOptions;
use ompfuse_report::view::{html, schema};
use std::path::PathBuf;

/// Exit status where something got worse within `--fail-within`.
const FAILED: u8 = 3;

/// Show how a program's times, efficiencies and counts changed over its commits
///
/// `ompfuse baseline` writes one file per commit into a folder. Changes are steps of the level that noise doesn't explain: of 100
/// series without one, at most one shows one. Exact counts have no noise.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ompfuse history perf/history
  ompfuse history origin/perf-history:. --html history.html --badge badge.svg
  ompfuse history perf/history --metric time --region 'solve*' --fail-within 5

Exit status: 0 done, 1 a baseline could not be read, 2 wrong usage, 3 something got worse within --fail-within commits.")]
pub(crate) struct Args {
    /// Print the JSON Schema of --format json
    #[arg(long, exclusive = true)]
    schema: bool,
    /// Folder of baselines (*.json.gz), here or as REVISION:FOLDER in git
    #[arg(value_name = "FOLDER", required_unless_present = "schema")]
    folder: Option<String>,
    /// Only this quantity: time, load-balance, instructions, ...
    #[arg(long, value_name = "QUANTITY")]
    metric: Option<String>,
    /// Only these regions: a selector as for --select, without addresses
    #[arg(long, value_name = "S", value_parser = of_builds)]
    region: Option<Selector>,
    /// Only baselines of this branch (default: the one that is checked out, if there are several)
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    #[command(flatten)]
    format: FormatArg,
    /// Also write one HTML page to this file; it needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write a badge to this file: a small SVG with the verdict
    #[arg(long, value_name = "FILE")]
    badge: Option<PathBuf>,
    /// Exit with status 3 if one of the newest N commits may have changed something for the worse
    #[arg(long, value_name = "N")]
    fail_within: Option<u32>,
    /// List this many changes (text)
    #[arg(long, value_name = "N", default_value_t = 15)]
    top: usize,
}

pub(super) fn run(args: &Args) -> Result<u8> {
    if args.schema {
        return output::print(&schema::history()).map(|()| 0);
    }
    for file in [&args.html, &args.badge].into_iter().flatten() {
        atomic::check(file)?;
    }
    let folder = args.folder.as_deref().unwrap_or_default();
    let bar = progress::whole("reading");
    let (all, is_whole) = baselines(folder, bar.progress())?;
    drop(bar);
    let all = of_branch(all, args.branch.as_deref())?;
    let quantity = args.metric.as_ref().map(|name| name.parse());
    let wanted = Wanted {
        quantity: quantity
            .map(|parsed: Result<Quantity, _>| parsed.unwrap_or_else(|never| match never {})),
        region: args.region.clone(),
    };
    let found = history::history(&all, &wanted)
        .with_context(|| format!("cannot show the history of {folder}"))?;
    if let Some(file) = &args.html {
        page::save(file, &html::history::render(&found))?;
    }
    if let Some(file) = &args.badge {
        atomic::write(file, view::badge(&found).as_bytes(), 0o644)?;
    }
    if args.format.is_json() {
        output::print_json(&view::HistoryJson::new(&found))?;
    } else {
        let stream = Stream::Output;
        let default = TextOptions::default();
        let options = TextOptions {
            top: args.top,
            width: stream.width().unwrap_or(default.width),
            colour: stream.colour(),
            ..default
        };
        pager::print(&view::text(&found, options))?;
    }
    match args.fail_within.is_some_and(|n| found.got_worse_within(n)) {
        true => Ok(FAILED),
        false => Ok(u8::from(!is_whole)),
    }
}

fn of_builds(text: &str) -> Result<Selector, String> {
    Selector::parse(text, Chooses::OfBuilds)
}

/// Those of a branch: the one that is wanted, else the current one, where there are several.
fn of_branch(all: Vec<Named>, wanted: Option<&str>) -> Result<Vec<Named>> {
    let branch = |n: &Named| n.side.origin.commit.as_ref()?.branch.clone();
    let mut known: Vec<String> = all.iter().filter_map(branch).collect();
    known.sort();
    known.dedup();
    let Some(wanted) = wanted else {
        return Ok(of_current(all, &known, branch));
    };
    let found: Vec<Named> = (all.into_iter())
        .filter(|n| branch(n).as_deref() == Some(wanted))
        .collect();
    match (found.is_empty(), known.is_empty()) {
        (false, _) => Ok(found),
        (true, true) => bail!(
            "cannot show branch {wanted}: no baseline says of which branch it is; leave --branch out"
        ),
        (true, false) => bail!(
            "cannot show branch {wanted}: the baselines are of {}",
            known.join(", ")
        ),
    }
}

/// Without a wish: those of the current branch, and those that don't say. Whatever is done is said.
fn of_current(
    mut all: Vec<Named>,
    known: &[String],
    branch: impl Fn(&Named) -> Option<String>,
) -> Vec<Named> {
    if known.len() < 2 {
        return all;
    }
    let current = git::branch().filter(|current| known.contains(current));
    match current {
        Some(current) => {
            all.retain(|n| branch(n).is_none_or(|b| b == current));
            output::note(format_args!(
                "only baselines of the current branch, {current}; --branch takes another one of {}",
                known.join(", ")
            ));
        }
        None => output::note(format_args!(
            "baselines of the branches {} are mixed; --branch takes one",
            known.join(", ")
        )),
    }
    all
}
