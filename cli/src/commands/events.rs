//! `ompfuse events`.

use crate::counters::{self, EventCheck};
use crate::{output, simulate};
use anyhow::Result;
use ompfuse_report::view::table::{Column, wrap};
use serde::Serialize;
use std::collections::BTreeSet;

/// List the events that can be counted here, and say why the others can't
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
    events.extend(counters::by_code());
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

/// What is available is a table; what isn't is named with its reason, which most of it shares.
fn text(answer: &Answer) -> String {
    let columns = [
        Column::left("event"),
        Column::left("kind").leaves(1),
        Column::left("counts").keeps_front(20),
    ];
    let (available, missing): (Vec<&EventCheck>, Vec<_>) =
        answer.events.iter().partition(|e| e.available);
    let row = |e: &&EventCheck| {
        let counts = match e.includes_kernel || e.kind == "simulated" {
            true => e.what.to_owned(),
            false => format!("{}, without what the kernel does for the program", e.what),
        };
        vec![e.name.to_owned(), e.kind.to_owned(), counts]
    };
    let mut text = String::from("No event can be counted here.\n");
    if !available.is_empty() {
        let rows = available.iter().map(row).collect();
        let title = match available.iter().all(|e| e.kind == "simulated") {
            true => "Nothing can be counted here but what is simulated:",
            false => "What can be counted here:",
        };
        text = format!("{title}\n\n{}", output::table(&columns, rows));
    }
    if available.iter().any(|e| e.kind == "simulated") {
        text.push_str("\nSimulated events need `--simulate`.\n");
    }
    text.push_str("\n`--events` with an `:exact` event has the program count it.\n");
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for e in missing {
        let reason = e.reason.as_deref().unwrap_or("no reason is known");
        match reasons.iter_mut().find(|(r, _)| *r == reason) {
            Some((_, names)) => names.push(e.name),
            None => reasons.push((reason, vec![e.name])),
        }
    }
    if !reasons.is_empty() {
        text.push_str("\nWhat can't, and why:\n");
    }
    let width = output::Stream::Output.width().unwrap_or(100);
    for (reason, names) in reasons {
        let line = format!("- {reason}: {}", names.join(", "));
        text.push_str(&wrap(&line, width, "  "));
    }
    let remedies: BTreeSet<&str> = (answer.events.iter())
        .filter_map(|e| e.remedy.as_deref())
        .collect();
    if !remedies.is_empty() {
        text.push_str("\nTo count more:\n");
    }
    for remedy in remedies {
        text.push_str(&wrap(&format!("- {remedy}"), width, "  "));
    }
    text
}
