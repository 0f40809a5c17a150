//! `ompfuse plan`.

use crate::event_sets::SetArgs;
use crate::recording;
use crate::{counters, output, simulate};
use anyhow::Result;
use serde::Serialize;

/// Show which events would be counted together, one run per set
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Events, separated by commas, or `all` that ompfuse knows; without it everything that can be counted here, but for the
    /// events of single caches. Where the processor has no counters, hardware events are planned for one that has four
    #[arg(long, value_name = "LIST")]
    events: Option<String>,
    /// Events of the simulated PMU, for runs with `record --simulate`
    #[arg(long)]
    simulate: bool,
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
    /// How long they will take, if each takes as long as those given by `--from`.
    seconds: Option<f64>,
    /// Events that are in no set, as there may be no more sets, or they share none.
    left_out: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let known = args.sets.known()?;
    let events = match &args.events {
        list if args.simulate => simulate::events(list.as_deref())?,
        // As they would be recorded here; elsewhere, where nothing could be.
        Some(list) if counters::hardware_slots() > 0 => recording::countable(Some(list))?,
        Some(list) => counters::parse_list(list)?,
        None => recording::countable(None)?,
    };
    let sets = args.sets.planned(&events, &known.correlations);
    let (sets, left_out) = args.sets.limited(sets, &events);
    let answer = Answer {
        runs: sets.len(),
        seconds: known.seconds.map(|mean| mean * sets.len() as f64),
        sets,
        left_out,
    };
    if args.output.is_json() {
        return output::print_json(&answer);
    }
    let line = |(n, set): (usize, &Vec<String>)| format!("run {}: {}\n", n + 1, set.join(","));
    let mut text: String = answer.sets.iter().enumerate().map(line).collect();
    text += &(recording::forecast(answer.runs, known.seconds) + "\n");
    if !answer.left_out.is_empty() {
        let why = args.sets.why_left_out(answer.runs);
        text += &format!("left out, {why}: {}\n", answer.left_out.join(","));
    }
    output::print(&text)
}
