//! `ompfuse plan`.

use crate::recording::{self, SetArgs};
use crate::{counters, load, output};
use anyhow::Result;
use ompfuse_fuse::XuTable;
use serde::Serialize;
use std::path::PathBuf;

/// Show which events would be counted together, one run per set
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Events, separated by commas, or `all` that ompfuse knows; without it everything that can be counted here
    #[arg(long, value_name = "LIST")]
    events: Option<String>,
    /// How runs will be combined
    #[arg(long, value_enum, default_value_t = super::combine::Strategy::Default)]
    strategy: super::combine::Strategy,
    /// For bc: a run or profile whose counts say which events predict which others
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
}

pub(super) fn run(args: &Args) -> Result<()> {
    let events = match &args.events {
        Some(list) => counters::parse_list(list)?,
        None => recording::countable(None)?,
    };
    let sets = if args.strategy.needs_overlap() {
        let measured = args.from.as_deref().map(load::profile).transpose()?;
        let measured = measured.map(|p| p.xus);
        args.sets
            .plan_overlapping(&events, |a, b| correlation(measured.as_ref(), a, b))
    } else {
        args.sets.plan(&events)
    };
    if args.output.is_json() {
        return output::print_json(&Answer { sets });
    }
    let line = |(n, set): (usize, &Vec<String>)| format!("run {}: {}\n", n + 1, set.join(","));
    output::print(&sets.iter().enumerate().map(line).collect::<String>())
}

/// How well one event predicts another, 0 where it is not known.
fn correlation(measured: Option<&XuTable>, a: &str, b: &str) -> f64 {
    let column = |name| measured?.event(name);
    match (column(a), column(b)) {
        (Some(a), Some(b)) => ompfuse_fuse::plan::correlation(a, b),
        _ => 0.0,
    }
}
