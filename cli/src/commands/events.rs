//! `ompfuse events`.

use crate::counters::{self, EventCheck};
use crate::{output, simulate};
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Tell what can be counted here, and why not the rest
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    output: output::FormatArg,
}

#[derive(Serialize)]
struct Answer {
    perf_event_paranoid: Option<i32>,
    hardware_slots: usize,
    events: Vec<EventCheck>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let mut events = counters::check_all();
    events.extend(simulate::check_all());
    let answer = Answer {
        perf_event_paranoid: counters::paranoid(),
        hardware_slots: counters::hardware_slots(),
        events,
    };
    if args.output.is_json() {
        output::print_json(&answer)
    } else {
        output::print(&text(&answer))
    }
}

fn text(answer: &Answer) -> String {
    let mut table = output::table(&["event", "kind", "available", ""]);
    for e in &answer.events {
        let remark = match &e.reason {
            Some(reason) => reason.clone(),
            None if e.includes_kernel || e.kind == "simulated" => e.what.to_owned(),
            None => format!("{}, without what the kernel does for the program", e.what),
        };
        table.add_row([
            e.name,
            e.kind,
            if e.available { "yes" } else { "no" },
            &remark,
        ]);
    }
    let mut text = output::lines(&table);
    let remedies: BTreeSet<&str> = answer
        .events
        .iter()
        .filter_map(|e| e.remedy.as_deref())
        .collect();
    if !remedies.is_empty() {
        text.push_str("\nTo count more:\n");
        remedies
            .iter()
            .for_each(|r| writeln!(text, "  {r}").expect("strings take everything"));
    }
    text
}
