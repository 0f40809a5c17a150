//! `ompfuse plan`.

use crate::recording::{self, SetArgs};
use crate::{counters, output};
use anyhow::Result;
use serde::Serialize;

/// Show which events would be counted together, one run per set
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Events, separated by commas, or `all` that ompfuse knows; without it everything that can be counted here
    #[arg(long, value_name = "LIST")]
    events: Option<String>,
    /// How runs will be combined
    #[arg(long, value_enum, default_value_t = super::combine::Strategy::Default)]
    strategy: super::combine::Strategy,
    #[command(flatten)]
    sets: SetArgs,
    #[command(flatten)]
    output: output::FormatArg,
}

#[derive(Serialize)]
struct Answer {
    sets: Vec<Vec<String>>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    args.strategy.check()?;
    let events = match &args.events {
        Some(list) => counters::parse_list(list)?,
        None => recording::countable(None)?,
    };
    let sets = args.sets.plan(&events);
    if args.output.is_json() {
        return output::print_json(&Answer { sets });
    }
    let line = |(n, set): (usize, &Vec<String>)| format!("run {}: {}\n", n + 1, set.join(","));
    output::print(&sets.iter().enumerate().map(line).collect::<String>())
}
