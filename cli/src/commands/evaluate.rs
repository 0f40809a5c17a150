//! `ompfuse evaluate`.

use crate::{load, output, progress};
use anyhow::{Context, Result};
use ompfuse_fuse::evaluate::PairDistance;
use ompfuse_fuse::{Evaluation, Profile, References, XuTable};
use serde::Serialize;
use std::path::PathBuf;

/// Say how good a combined profile is, against complete runs
///
/// Every reference is one run (or table) that counted all events together. The EPD (execution profile dissimilarity) of a
/// perfect profile is about 1, as is that of a fresh run against the others.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The profile
    profile: PathBuf,
    /// Complete runs or tables, two at least
    #[arg(long, required = true, num_args = 1.., value_name = "RUN|TABLE")]
    reference: Vec<PathBuf>,
    /// Event pairs to show, those with the highest TMD
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    #[command(flatten)]
    format: output::FormatArg,
}

#[derive(Serialize)]
struct Answer<'a> {
    epd: f64,
    correlation_error: f64,
    /// Of each reference against the others.
    reference_epds: Vec<f64>,
    reference_correlation_errors: Vec<f64>,
    xus: usize,
    /// XUs without a count for every event, which are left out.
    incomplete: usize,
    reference_incomplete: usize,
    pairs: &'a [PairDistance],
}

pub(super) fn run(args: &Args) -> Result<()> {
    let (evaluation, incomplete, references, xus) = {
        let _spinner = progress::spinner("evaluating");
        let target = load::profile(&args.profile)?.xus;
        let runs: Vec<Profile> = args
            .reference
            .iter()
            .map(|path| load::profile(path))
            .collect::<Result<_>>()?;
        let runs: Vec<&XuTable> = runs.iter().map(|r| &r.xus).collect();
        let cannot = || format!("cannot evaluate {}", args.profile.display());
        let references = References::new(&runs, &target).with_context(cannot)?;
        let (evaluation, incomplete) = references.evaluate(&target).with_context(cannot)?;
        (evaluation, incomplete, references, target.len())
    };
    let spread = {
        let _spinner = progress::spinner("evaluating the references");
        references.spread()
    };
    let column = |f: fn(&Evaluation) -> f64| spread.iter().map(f).collect::<Vec<_>>();
    let answer = Answer {
        epd: evaluation.epd,
        correlation_error: evaluation.correlation_error,
        reference_epds: column(|e| e.epd),
        reference_correlation_errors: column(|e| e.correlation_error),
        xus,
        incomplete,
        reference_incomplete: references.incomplete(),
        pairs: &evaluation.pairs,
    };
    if args.format.is_json() {
        return output::print_json(&answer);
    }
    output::print(&text(&answer, args.top))
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
    let mut out = format!(
        "EPD                {:.3}   (fresh complete runs: {})\nCorrelation Error  {:.3}   (fresh complete runs: {})\n",
        answer.epd,
        range(&answer.reference_epds),
        answer.correlation_error,
        range(&answer.reference_correlation_errors),
    );
    let left_out = answer.incomplete + answer.reference_incomplete;
    if left_out > 0 {
        out += &format!(
            "Left out: {} of the profile's {} execution units and {} of the references', without a count for every event\n",
            answer.incomplete, answer.xus, answer.reference_incomplete
        );
    }
    let mut pairs: Vec<&PairDistance> = answer.pairs.iter().collect();
    pairs.sort_by(|a, b| b.tmd.total_cmp(&a.tmd));
    let header = [
        "event",
        "event",
        "distance (bins)",
        "between references",
        "TMD",
    ];
    let mut table = output::table(&header);
    for pair in pairs.iter().take(top) {
        table.add_row([
            pair.x.clone(),
            pair.y.clone(),
            format!("{:.4}", pair.uncalibrated),
            format!("{:.4}", pair.calibration),
            format!("{:.2}", pair.tmd),
        ]);
    }
    out + "\nThe event pairs that differ most\n" + &output::lines(&table)
}
