//! The page of a run with samples only: what the text says, with the lines of the source.

use super::source::{Sources, line as source_line};
use super::{data, frame};
use crate::view::sampled::process::{NOTHING_TO_DO, first, lacks, share, title};
use crate::view::sampled::{function, name};
use crate::words::last::doing;
use crate::words::uneven::mostly_asleep;
use maud::{Markup, html};
use ompfuse_account::sampled::{
    LEAST, SampledProcess, SampledRegion, SampledReport, SampledThread,
};
use ompfuse_account::units::{count, percent, seconds, several};
use serde_json::json;

/// Regions and threads that are listed, and lines of a region.
const MOST: usize = 200;
const LINES: usize = 20;

/// The page.
pub fn render(report: &SampledReport, date: Option<String>, sources: &Sources) -> String {
    let nothing = SampledProcess::default();
    let process = report.process.as_ref().unwrap_or(&nothing);
    let program = report.program.rsplit('/').next().unwrap_or_default();
    let has_regions = !report.regions.is_empty();
    let has_threads = !report.threads.is_empty();
    let sections = [
        (
            "overview",
            "Overview",
            Some(overview(report, process, date)),
        ),
        ("shares", "Regions", has_regions.then(|| regions(report))),
        (
            "last",
            "Threads",
            has_threads.then(|| threads(&report.threads)),
        ),
        ("lines", "Lines", lines(report, sources)),
    ];
    let values = json!({ "regions": {} });
    frame::page(
        &format!("{program} – ompfuse"),
        &sections,
        &data::json("data", &values),
    )
}

fn overview(report: &SampledReport, process: &SampledProcess, date: Option<String>) -> Markup {
    let facts = [
        ("Samples", count(report.samples)),
        ("Looked at for", seconds(process.seconds)),
        ("Threads", report.threads.len().to_string()),
    ];
    let date = date.map(|date| ("Date", date));
    let lacks = lacks(report);
    html! {
        h1 title=(report.program) { (report.program.rsplit('/').next().unwrap_or_default()) }
        p.command { (title(report, process)) }
        ul.facts { @for (name, value) in facts.into_iter().chain(date) { li { span.what { (name) } " " span.value { (value) } } } }
        div.verdict { p.headline { (first(report, process)) } }
        p.note { "Samples tell shares of processor time. Executions, units and lengths need records, and aren't known." }
        @if !lacks.is_empty() {
            div.alert role="note" { h2.small { "Mind" } ul { @for lack in &lacks { li { (lack) } } } }
        }
    }
}

fn regions(report: &SampledReport) -> Markup {
    let time = |s: f64| if s > 0.0 { seconds(s) } else { String::new() };
    let number = |n: u64| if n > 0 { count(n) } else { String::new() };
    let asleep = |r: &SampledRegion| r.asleep.as_ref().map_or(0.0, |a| a.seconds);
    let mut mostly = report.regions.iter();
    let mostly = mostly.find_map(|r| mostly_asleep(r.asleep.as_ref()?));
    html! {
        h2 { "Regions" }
        p.command { "Shares of all samples, with their standard errors." }
        div.table tabindex="0" role="region" aria-label="Table of regions" {
            table {
                thead { tr {
                    th.name scope="col" { "Region" }
                    th scope="col" { "Of all" }
                    th.w1 scope="col" { "Samples" }
                    th.w1 scope="col" title="Samples in the program's code, and that of its libraries" { "Work" }
                    th.w1 scope="col" title="Samples in the OpenMP runtime, or in the library that it is a call of" { "Runtime" }
                    th scope="col" title="Time in the runtime without a processor" { "Waited" }
                    th scope="col" title="Time without a processor in code of its own" { "Asleep" }
                } }
                tbody { @for region in report.regions.iter().take(MOST) {
                    @let [p, error] = share(region.samples, report.samples);
                    tr {
                        th.name scope="row" { (name(region)) }
                        td { (percent(p)) span.sub { " ± " (percent(error)) } }
                        td.w1 { (count(region.samples)) } td.w1 { (number(region.work)) } td.w1 { (number(region.runtime)) }
                        td { (time(region.waits_s)) } td { (time(asleep(region))) }
                    }
                }
                @if report.idle > 0 {
                    @let [p, error] = share(report.idle, report.samples);
                    tr {
                        th.name scope="row" { (NOTHING_TO_DO) }
                        td { (percent(p)) span.sub { " ± " (percent(error)) } }
                        td.w1 { (count(report.idle)) } td.w1 {} td.w1 { (count(report.idle)) } td {} td {}
                    }
                } }
            }
        }
        @if let Some(mostly) = mostly { p.note { "asleep: " (mostly) } }
        (more(report.regions.len(), "region"))
    }
}

fn more(all: usize, one: &str) -> Markup {
    let more = all.saturating_sub(MOST) as u64;
    html! { @if more > 0 { p.note { "and " (several(more, &format!("more {one}"))) } } }
}

fn threads(threads: &[SampledThread]) -> Markup {
    html! {
        h2 { "What each thread did last" }
        ul.why { @for thread in threads.iter().take(MOST) {
            li {
                span.num { (thread.tid) }
                div { p {
                    @if thread.is_main { "(main) " }
                    @match &thread.last { Some(last) => (doing(last)), None => "isn't known" }
                } }
            }
        } }
        (more(threads.len(), "thread"))
    }
}

/// `None`: no region has a line with enough samples.
fn lines(report: &SampledReport, sources: &Sources) -> Option<Markup> {
    let told = report.regions.iter().filter(|r| !r.lines.is_empty());
    let told: Vec<&SampledRegion> = told.take(MOST).collect();
    (!told.is_empty()).then(|| {
        html! {
            h2 { "Lines" }
            p.sub { "Of each region's work. Lines with fewer than " (LEAST) " samples aren't listed." }
            @for region in told {
                h3 { (name(region)) }
                ul.hot { @for line in region.lines.iter().take(LINES) {
                    @let [p, error] = share(line.samples, region.work);
                    li {
                        p { span.num { (percent(p)) } span.sub { " ± " (percent(error)) " " } span.place { (line.place()) } " " code { (function(line)) } }
                        span.track aria-hidden="true" { span.work style=(format!("width:{:.2}%", 100.0 * p)) {} }
                        @if let Some(text) = source_line(line, sources) { pre { (text) } }
                    }
                } }
            }
        }
    })
}
