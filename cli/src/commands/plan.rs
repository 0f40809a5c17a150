//! `ompfuse plan`.

use crate::event_sets::SetArgs;
use crate::recording;
use crate::{counters, load, output};
use anyhow::Result;
use ompfuse_fuse::plan::Correlations;
use serde::Serialize;
use std::path::PathBuf;

/// Show which events would be counted together, one run per set
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Events, separated by commas, or `all` that ompfuse knows; without it everything that can be counted here
    #[arg(long, value_name = "LIST")]
    events: Option<String>,
    /// A run or profile whose counts say which events predict which others, and whose time says how long the runs will take
    #[arg(long, value_name = "RUN|PROFILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    sets: SetArgs,
    #[command(flatten)]
    output: output::FormatArg,
}

#[derive(Serialize)]
struct Answer {
    sets: Vec<Vec<String>>,
    /// Runs that are needed.
    runs: usize,
    /// How long they will take, if each takes as long as the one given by `--from`.
    seconds: Option<f64>,
    /// Events that are in no set, as there may be no more sets.
    left_out: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let events = match &args.events {
        Some(list) => counters::parse_list(list)?,
        None => recording::countable(None)?,
    };
    let measured = args.from.as_deref().map(load::profile).transpose()?;
    let known = measured.as_ref().map(|p| Correlations::of(&p.xus));
    let known = known.unwrap_or_default();
    let correlation = |a: &str, b: &str| known.get(a, b);
    let sets = args.sets.planned(&events, correlation);
    let (sets, left_out) = args.sets.limited(sets);
    let runs = measured.iter().flat_map(|p| &p.summary.runs);
    let lengths: Vec<f64> = runs.filter_map(|r| r.duration_s).collect();
    let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
    let answer = Answer {
        runs: sets.len(),
        seconds: (!lengths.is_empty()).then_some(mean * sets.len() as f64),
        sets,
        left_out,
    };
    if args.output.is_json() {
        return output::print_json(&answer);
    }
    let line = |(n, set): (usize, &Vec<String>)| format!("run {}: {}\n", n + 1, set.join(","));
    let mut text: String = answer.sets.iter().enumerate().map(line).collect();
    if let Some(seconds) = answer.seconds {
        text += &format!("{} runs, about {seconds:.1} s\n", answer.runs);
    }
    if !answer.left_out.is_empty() {
        text += &format!("left out: {}\n", answer.left_out.join(","));
    }
    output::print(&text)
}
