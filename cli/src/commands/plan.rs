//! `ompfuse plan`.

use crate::event_sets::SetArgs;
use crate::recording;
use crate::{counters, output, simulate};
use anyhow::Result;
use serde::Serialize;

/// Show which events would be counted together, one run per set
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Events to count per execution unit: a list with commas, or `all` (default: those of `record`)
    ///
    /// If the processor has no counters, hardware events are planned for one that has four.
    #[arg(long, value_name = "LIST")]
    events: Option<String>,
    /// Plan events of the simulated processor, for `record --simulate`
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
    /// Events that every run counts, per parallel region and thread.
    region_events: Vec<&'static str>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let known = args.sets.known()?;
    let mut of_regions = vec![];
    let events = match &args.events {
        list if args.simulate => simulate::events(list.as_deref())?,
        // As they would be recorded here; elsewhere, where nothing could be.
        Some(list) if counters::hardware_slots() > 0 => {
            counters::countable(Some(list), None)?.units
        }
        Some(list) => counters::parse_list(list)?,
        None => {
            let countable = counters::countable(None, None)?;
            of_regions = countable.regions;
            countable.units
        }
    };
    let sets = args.sets.planned(&events, &known.correlations);
    let (mut sets, left_out) = args.sets.limited(sets, &events);
    if sets.is_empty() {
        sets.push(Vec::new()); // one run, of which execution units have times only
    }
    let answer = Answer {
        runs: sets.len(),
        seconds: known.seconds.map(|mean| mean * sets.len() as f64),
        sets,
        left_out,
        region_events: of_regions,
    };
    if args.output.is_json() {
        return output::print_json(&answer);
    }
    let line = |(n, set): (usize, &Vec<String>)| match set.is_empty() {
        true => format!("run {}: times\n", n + 1),
        false => format!("run {}: {}\n", n + 1, set.join(",")),
    };
    let mut text: String = answer.sets.iter().enumerate().map(line).collect();
    if !answer.region_events.is_empty() {
        let names = answer.region_events.join(",");
        text += &format!("each run, per parallel region and thread: {names}\n");
    }
    text += &(recording::forecast(answer.runs, known.seconds) + "\n");
    if !answer.left_out.is_empty() {
        let why = args.sets.why_left_out(answer.runs);
        text += &format!("left out, {why}: {}\n", answer.left_out.join(","));
    }
    output::print(&text)
}
