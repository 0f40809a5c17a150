//! `ompfuse evaluate`.

mod experiment;
mod truth;

use crate::{atomic, load, output, progress};
use anyhow::{Context, Result, ensure};
use ompfuse_fuse::evaluate::{Interval, Intervals, PairDistance, RESAMPLES};
use ompfuse_fuse::{Evaluation, Profile, References, XuTable};
use ompfuse_progress::Progress;
use ompfuse_report::view::pictures::{self, PairPicture};
use ompfuse_report::view::table::Column;
use ompfuse_study::{EventError, TruthError, hem};
use serde::Serialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Say how good a combined profile is, against complete runs
///
/// Each reference is one run (or table) that counted all events together. EPD (execution profile dissimilarity) is about 1 for a
/// perfect profile.
///
/// With --mask each complete run shows only a few events, every strategy combines them, and the results are compared with what was
/// hidden. This tells which strategy suits a program.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The profile
    #[arg(required_unless_present = "mask", conflicts_with = "mask")]
    profile: Option<PathBuf>,
    /// Complete runs or tables, at least two
    #[arg(long, required = true, num_args = 1.., value_name = "RUN|TABLE")]
    reference: Vec<PathBuf>,
    /// The profile's first run with all events, to show the error of the counts
    #[arg(long, value_name = "RUN|TABLE", requires = "profile")]
    truth: Option<PathBuf>,
    /// Show this many event pairs, those with the highest TMD first
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Write an HTML page with pictures of these pairs' distributions
    ///
    /// With --mask it shows every method, for the first repetition.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    masked: experiment::MaskArgs,
    #[command(flatten)]
    format: output::FormatArg,
}

#[derive(Serialize)]
struct Answer<'a> {
    epd: f64,
    correlation_error: f64,
    /// How far these depend on which references were given: the middle 95 % of a bootstrap over them.
    intervals: Option<Intervals>,
    /// Of each reference against the others.
    reference_epds: Vec<f64>,
    reference_correlation_errors: Vec<f64>,
    xus: usize,
    /// XUs without a count for every event, which are left out.
    incomplete: usize,
    reference_incomplete: usize,
    /// The profile's events that a reference lacks.
    not_evaluated: Vec<String>,
    /// Scaled counts that were missing, and lie between those of neighbours in time.
    interpolated: usize,
    /// Against --truth.
    truth: Option<TruthError>,
    pairs: &'a [PairDistance],
}

pub(super) fn run(args: &Args) -> Result<()> {
    let references = load::single(&args.reference)?;
    let runs: Vec<Profile> = {
        let bar = progress::whole("reading");
        let each = bar.progress().part(1.0 / references.len() as f64);
        let read = |path: &PathBuf| exact(path, each);
        references.iter().map(read).collect::<Result<_>>()?
    };
    runs.iter().for_each(|run| load::tell_damage(&run.summary));
    let runs: Vec<&XuTable> = runs.iter().map(|r| &r.xus).collect();
    let Some(profile) = &args.profile else {
        return experiment::run(&args.masked, &runs, args);
    };
    let cannot = || format!("cannot evaluate {}", profile.display());
    let bar = progress::whole("reading");
    let half = bar.progress().part(0.5);
    let profile_read = load::profile(profile, half)?;
    let truth = match &args.truth {
        Some(path) => Some(truth::compared(profile, &profile_read, path, half)?),
        None => None,
    };
    drop(bar);
    for (run, path) in runs.iter().zip(&references) {
        if !may_be_of_one_program(run, &profile_read.xus) {
            output::note(format_args!(
                "{} and {} have no construct in common: are these runs of the same program?",
                profile.display(),
                path.display()
            ));
        }
    }
    let Profile { xus, summary, .. } = profile_read;
    let is_scaled = |name: &str| summary.events.iter().any(|e| e.scaled && e.name == name);
    let (target, interpolated) = hem::interpolated(xus, &is_scaled);
    let bar = progress::whole("evaluating");
    let references =
        References::with_progress(&runs, &target, bar.progress()).with_context(cannot)?;
    let (evaluation, incomplete) = references.evaluate(&target).with_context(cannot)?;
    let spread = references.spread();
    bar.clear();
    if let Some(path) = &args.html {
        let title = format!("{} against complete runs", profile.display());
        let pictures = pictures("profile", &evaluation, &references, &target, args.top)
            .with_context(cannot)?;
        atomic::write(path, pictures::page(&title, &pictures).as_bytes(), 0o644)?;
    }
    let lacks = |event: &str| runs.iter().any(|run| run.event(event).is_none());
    let names = target.events.iter().map(|e| e.name.clone());
    let not_evaluated = names.filter(|name| lacks(name)).collect();
    let column = |f: fn(&Evaluation) -> f64| spread.iter().map(f).collect::<Vec<_>>();
    let answer = Answer {
        epd: evaluation.epd,
        correlation_error: evaluation.correlation_error,
        intervals: references.intervals(&evaluation),
        reference_epds: column(|e| e.epd),
        reference_correlation_errors: column(|e| e.correlation_error),
        xus: target.len(),
        incomplete,
        reference_incomplete: references.incomplete(),
        not_evaluated,
        interpolated,
        truth,
        pairs: &evaluation.pairs,
    };
    if args.format.is_json() {
        return output::print_json(&answer);
    }
    output::print(&text(&answer, args.top))
}

/// Whether two tables have a module and a type in common, as far as they tell.
fn may_be_of_one_program(a: &XuTable, b: &XuTable) -> bool {
    let modules = |xus: &XuTable| -> HashSet<String> {
        let known = xus.sites.iter().map(|s| s.module.clone());
        known.filter(|module| !module.is_empty()).collect()
    };
    let names =
        |xus: &XuTable| -> HashSet<String> { xus.sites.iter().map(|s| s.name.clone()).collect() };
    let (ours, theirs) = (modules(a), modules(b));
    let share_module = ours.is_empty() || theirs.is_empty() || !ours.is_disjoint(&theirs);
    share_module && !names(a).is_disjoint(&names(b))
}

/// A run or table whose counts were counted as they stand.
fn exact(path: &Path, progress: Progress<'_>) -> Result<Profile> {
    let profile = load::profile(path, progress)?;
    ensure!(
        !profile.summary.events.iter().any(|e| e.scaled),
        "cannot take {} for the truth: its counts are scaled (recorded with --rotate kernel), which makes them estimates",
        path.display()
    );
    Ok(profile)
}

/// The pairs, those with the highest TMD first.
fn worst(pairs: &[PairDistance]) -> Vec<&PairDistance> {
    let mut pairs: Vec<&PairDistance> = pairs.iter().collect();
    pairs.sort_by(|a, b| b.tmd.total_cmp(&a.tmd));
    pairs
}

/// The distributions of the worst pairs: the profile's, and two references'.
fn pictures(
    name: &str,
    evaluation: &Evaluation,
    references: &References<'_>,
    target: &XuTable,
    top: usize,
) -> Result<Vec<PairPicture>> {
    let picture = |pair: &PairDistance| {
        let grids = references.distributions(target, &pair.x, &pair.y)?;
        let names = [name, "reference 1", "reference 2"].map(str::to_owned);
        Ok(PairPicture {
            x: pair.x.clone(),
            y: pair.y.clone(),
            caption: format!(
                "{name}: TMD {:.2}: {:.4} bins to the references, which are {:.4} bins from each other",
                pair.tmd, pair.uncalibrated, pair.calibration
            ),
            grids: names.into_iter().zip(grids).collect(),
        })
    };
    worst(&evaluation.pairs)
        .into_iter()
        .take(top)
        .map(picture)
        .collect()
}

fn range(values: &[f64]) -> String {
    match (
        values.iter().copied().reduce(f64::min),
        values.iter().copied().reduce(f64::max),
    ) {
        (Some(low), Some(high)) => format!("{low:.3} to {high:.3}"),
        _ => "not known, three references are needed".to_owned(),
    }
}

fn text(answer: &Answer<'_>, top: usize) -> String {
    let interval = |of: fn(&Intervals) -> Interval| match answer.intervals.as_ref().map(of) {
        Some(Interval { low, high }) => format!("[{low:.3}, {high:.3}]"),
        None => String::new(),
    };
    let mut out = format!(
        "EPD                {:.3} {:16}  fresh complete runs: {}\nCorrelation Error  {:.3} {:16}  fresh complete runs: {}\n",
        answer.epd,
        interval(|i| i.epd),
        range(&answer.reference_epds),
        answer.correlation_error,
        interval(|i| i.correlation_error),
        range(&answer.reference_correlation_errors),
    );
    if answer.intervals.is_some() {
        out += &format!(
            "In brackets: 95 % interval over the choice of references (bootstrap, {RESAMPLES} resamples)\n"
        );
    }
    if let Some(truth) = &answer.truth {
        out += &format!(
            "Hidden-truth error {:.4}, {} of {} execution units compared  (",
            truth.hidden_error, truth.xus, answer.xus
        );
        let of_event = |e: &EventError| match e.error {
            Some(error) => format!("{} {error:.4}", e.event),
            None => format!("{} never happened", e.event),
        };
        let events: Vec<String> = truth.events.iter().map(of_event).collect();
        out += &(events.join(", ") + ")\n");
    }
    if answer.interpolated > 0 {
        out += &format!(
            "Interpolated: {} counts that were not seen while events took turns on the counters, from the neighbours in time on their thread\n",
            answer.interpolated
        );
    }
    if !answer.not_evaluated.is_empty() {
        out += &format!(
            "Not evaluated, since a reference did not count them: {}\n",
            answer.not_evaluated.join(", ")
        );
    }
    let left_out = answer.incomplete + answer.reference_incomplete;
    if left_out > 0 {
        out += &format!(
            "Left out: {} of the profile's {} execution units and {} of the references', without a count for every event\n",
            answer.incomplete, answer.xus, answer.reference_incomplete
        );
    }
    let pairs = worst(answer.pairs);
    let columns = [
        Column::left("event"),
        Column::left("event"),
        Column::left("distance (bins)").leaves(2),
        Column::left("between references").leaves(1),
        Column::left("TMD"),
    ];
    let row = |pair: &&PairDistance| {
        vec![
            pair.x.clone(),
            pair.y.clone(),
            format!("{:.4}", pair.uncalibrated),
            format!("{:.4}", pair.calibration),
            format!("{:.2}", pair.tmd),
        ]
    };
    let rows = pairs.iter().take(top).map(row).collect();
    out + "\nThe event pairs that differ most\n" + &output::table(&columns, rows)
}
