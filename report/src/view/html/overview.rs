//! The first screen: what the program is, where its time went, and what is missing.

use super::Context;
use super::missing;
use super::shares::Shares;
use crate::words::verdict::{Verdict, is_without_regions, verdict};
use crate::words::{self, head, shell_words};
use maud::{Markup, html};
use ompfuse_account::model::Report;
use ompfuse_account::units::{count, percent, seconds};

/// The section.
pub(super) fn section(context: &Context<'_>) -> Markup {
    let report = context.page.report;
    let shares = Shares::new(report);
    html! {
        h1 title=(words::recorded_program(report)) { (words::recorded_program(report).rsplit('/').next().unwrap_or_default()) }
        p.command { code { (command(report)) } }
        ul.facts { @for (name, value) in facts(context) { li { span.what { (name) } " " span.value { (value) } } } }
        @let goes_on = words::goes_on(report);
        @if !goes_on.is_empty() {
            div.alert role="note" { ul { @for line in &goes_on { li { (line) } } } }
        }
        @if let Some(tried) = &report.tried { p.note { "Tried: " (words::tried(tried)) } }
        @if let Some(verdict) = verdict(report) { (told(context, &verdict)) }
        h2.small { "Where the available time went" }
        @match shares {
            Some(shares) => {
                p.sub {
                    (seconds(shares.available_s)) " available: "
                    @let threads = head::threads(report);
                    (threads) @if threads == 1 { " thread" } @else { " threads" }
                    @match report.account.as_ref().map_or(0, |a| a.processes.len()) {
                        0 | 1 => { " × " (seconds(shares.available_s / threads as f64)) " of the program's own time" },
                        n => { " of " (n) " processes, each for as long as its process took" },
                    }
                }
                (shares.bar(report.probes.as_ref()))
            }
            None => p.note { "It can't be divided: the program's time isn't known." }
        }
        (missing::alerts(context))
    }
}

fn command(report: &Report) -> String {
    let words = std::iter::once(&report.program).chain(&report.args);
    shell_words(words.map(String::as_str))
}

fn facts(context: &Context<'_>) -> Vec<(&'static str, String)> {
    let report = context.page.report;
    let mut facts = vec![];
    facts.extend(head::own_s(report).map(|s| ("Time", seconds(s))));
    facts.push(("Threads", head::threads(report).to_string()));
    let processors = report.running.as_ref().and_then(|r| r.processors);
    facts.extend(processors.map(|n| ("Processors", n.to_string())));
    if let Some(mpi) = &report.mpi {
        facts.push(("Ranks", mpi.ranks.len().to_string()));
    }
    facts.push(("Runs", report.runs.len().to_string()));
    facts.push(("Units", count(report.xus)));
    let coverage = report.coverage.filter(|_| !is_without_regions(report));
    facts.extend(coverage.map(|c| ("In parallel regions", percent(c))));
    if report.mpi.as_ref().is_some_and(|m| m.is_apart) {
        facts.push((
            "In parallel regions",
            "not known of ranks recorded apart".to_owned(),
        ));
    }
    if !report.host.is_empty() {
        facts.push(("Host", report.host.clone()));
    }
    let counted = report.events.iter().filter(|e| e.run.is_some());
    let counted: Vec<&str> = counted.map(|e| e.name.as_str()).collect();
    if !counted.is_empty() {
        facts.push(("Events", counted.join(", ")));
    }
    facts.extend(context.page.date.clone().map(|date| ("Date", date)));
    facts
}

fn told(context: &Context<'_>, verdict: &Verdict) -> Markup {
    html! {
        div.verdict {
            p.headline { (verdict.headline) }
            ol {
                @for loss in &verdict.losses {
                    li {
                        span.big { (percent(loss.share)) }
                        div {
                            p {
                                @if let Some(place) = &loss.place {
                                    @match loss.region.and_then(|id| context.keys.of(id)) {
                                        Some(key) => a href={ "#region=" (key) } { (place) },
                                        None => (place),
                                    }
                                    ": "
                                }
                                (loss.cause)
                                span.sub { " " (seconds(loss.seconds)) }
                            }
                            @if let Some(remedy) = &loss.remedy { p.remedy { "Try: " (remedy) } }
                        }
                    }
                }
            }
            @if let Some(efficiencies) = &verdict.efficiencies { p.prediction { (efficiencies) } }
            @if let Some(prediction) = &verdict.prediction { p.prediction { (prediction) } }
            @let hints = verdict.hint.iter().chain(&verdict.trying).chain(&verdict.samples);
            @for hint in hints { p.prediction { (hint) } }
        }
    }
}
