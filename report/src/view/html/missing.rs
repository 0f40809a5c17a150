//! What was not measured or was lost.

use super::Context;
use crate::words;
use maud::{Markup, html};
use ompfuse_account::model::{EventState, Report};
use ompfuse_account::units::count;

/// The first lines of what is missing, for the first screen.
pub(super) fn alerts(context: &Context<'_>) -> Markup {
    let lines = lines(context.page.report);
    html! {
        @if !lines.is_empty() {
            div.alert role="note" {
                h2.small { "Mind" }
                ul { @for line in &lines { li { (line) } } }
            }
        }
    }
}

/// What makes the numbers less than complete or exact.
fn lines(report: &Report) -> Vec<String> {
    let mut lines = vec![];
    for (at, run) in report.runs.iter().enumerate() {
        use ompfuse_format::run::Exit;
        if let Some(exit) = run.exit.filter(|e| *e != Exit::Code(0)) {
            let end = words::ended(exit);
            let end = end.unwrap_or_else(|| {
                "still runs, or the command that recorded it was killed".to_owned()
            });
            lines.push(format!("the program {end} in run {}", at + 1));
        }
    }
    lines.extend(report.running.as_ref().and_then(words::told));
    lines.extend(words::notes(report));
    let parts = report
        .regions
        .iter()
        .flat_map(|r| r.in_part.iter().map(move |p| words::in_part(r, p)));
    lines.extend(parts.take(MOST));
    lines
}

/// Lines about what is on record in part.
const MOST: usize = 8;

/// The section: events without counts, units without a match, constructs without a probe.
pub(super) fn section(context: &Context<'_>) -> Option<Markup> {
    let report = context.page.report;
    let events: Vec<&EventState> = report.events.iter().filter(|e| e.run.is_none()).collect();
    let modules = report.modules.iter();
    let unseen: Vec<(&str, String)> = modules
        .filter_map(|m| {
            let of = &m.constructs;
            let name = m.path.rsplit('/').next().unwrap_or(&m.path);
            let why = of.reasons();
            let told = format!(
                "{} of {} constructs have no probe: {why}",
                of.lost(),
                of.constructs()
            );
            (of.lost() > 0).then_some((name, told))
        })
        .collect();
    if events.is_empty() && unseen.is_empty() && report.unmatched.is_empty() {
        return None;
    }
    Some(html! {
        h2 { "Not measured" }
        dl.missing {
            @for event in events {
                div {
                    dt { (event.name) }
                    dd { (event.reason.as_deref().unwrap_or("no reason given")) }
                }
            }
            @for (name, told) in unseen { div { dt { (name) } dd { (told) } } }
            @for xus in &report.unmatched {
                div {
                    dt { (count(xus.count)) " units of run " (xus.run) }
                    dd { (words::place(xus.source.as_ref(), xus.function.as_deref(), &xus.name)) ": " (words::reason(xus)) }
                }
            }
        }
    })
}
