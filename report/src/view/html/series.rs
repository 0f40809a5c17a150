//! A program over several numbers of threads, as a page of its own.

use super::detail::short;
use super::frame;
use super::shares::Shares;
use super::{data, terms};
use crate::words;
use maud::{Markup, html};
use ompfuse_account::model::series::{Loss, Series, SeriesRegion};
use ompfuse_account::units::{percent, seconds};
use serde_json::{Value, json};

/// Regions that are listed, and losses.
const REGIONS: usize = 40;
const LOSSES: usize = 12;
/// Regions whose speed-up is drawn.
const DRAWN: usize = 5;

/// The page.
pub fn render(series: &Series) -> String {
    let name = series.program.rsplit('/').next().unwrap_or_default();
    let sections = [
        ("overview", "Overview", Some(overview(series, name))),
        ("scaling", "Speed-up", Some(speedup(series))),
        ("regions", "Regions", regions(series)),
        ("terms", "Terms", Some(terms::section())),
    ];
    let values = json!({ "regions": {}, "scaling": values(series) });
    let title = format!("{name} over threads – ompfuse");
    frame::page(&title, &sections, &data::json("data", &values))
}

fn overview(series: &Series, name: &str) -> Markup {
    let verdict = words::series_verdict(series);
    let (first, others) = verdict.split_first().map_or(("", &[][..]), |(f, o)| (f, o));
    let words = std::iter::once(&series.program).chain(&series.args);
    let notes = words::series_notes(&series.notes);
    let runs: usize = series.points.iter().map(|p| p.runs.len()).sum();
    html! {
        h1 { (name) }
        p.command { code { (words::shell_words(words.map(String::as_str))) } }
        ul.facts {
            @let threads: Vec<String> = series.points.iter().map(|p| p.threads.to_string()).collect();
            li { span.what { "Threads" } " " span.value { (threads.join(", ")) } }
            li { span.what { "Runs" } " " span.value { (runs) } }
            li { span.what { "Fastest" } " " span.value { (series.fastest) @if series.fastest == 1 { " thread" } @else { " threads" } } }
        }
        div.verdict {
            p.headline { (first) }
            @for line in others { p.prediction { (line) } }
        }
        h2.small { "Where the available time went" }
        p.sub { "Own time × threads. Perfect scaling would keep the bars at the length of the first." }
        (stacks(series))
        @if !notes.is_empty() {
            div.alert role="note" { h2.small { "Mind" } ul { @for note in &notes { li { (note) } } } }
        }
    }
}

/// A bar for each number of threads, as long as the time that was available.
fn stacks(series: &Series) -> Markup {
    let longest = series
        .points
        .iter()
        .map(|p| p.available_s)
        .fold(1e-12, f64::max);
    html! {
        div.stacks {
            @for point in &series.points {
                div.line {
                    span.who { (point.threads) @if point.threads == 1 { " thread" } @else { " threads" } }
                    div {
                        div style=(format!("width:{:.2}%", 100.0 * point.available_s / longest)) {
                            @match &point.stack {
                                Some(stack) => (Shares::of_stack(stack, point.available_s, point.threads).segments()),
                                None => div.bar { div.seg.unknown style="width:100%" {} },
                            }
                        }
                    }
                    span.num { (seconds(point.wall.mean_s)) }
                    span.num { (percent(point.efficiency)) }
                }
            }
        }
        (terms::keys())
    }
}

fn speedup(series: &Series) -> Markup {
    html! {
        div.heading { h2 { "Speed-up" } p.sub { "How many times as fast as with the smallest number of threads. The dashed line is perfect." } }
        div.two {
            div { h3 { "Program" } div #scaling-program {} }
            div { h3 { "Regions that lose most" } div #scaling-regions {}
                ul.keys { @for (region, n) in drawn(series).zip(0..) { li { span class=(format!("key by-{n}")) {} (words::series_location(&region.place)) } } }
            }
        }
    }
}

fn regions(series: &Series) -> Option<Markup> {
    if series.regions.is_empty() {
        return None;
    }
    let losses = series.points.last().map_or(&[][..], |p| &p.losses[..]);
    let threads: Vec<u32> = series.points.iter().map(|p| p.threads).collect();
    Some(html! {
        h2 { "Regions" }
        div.scroll tabindex="0" role="region" aria-label="Parallel regions over threads" {
            table {
                thead { tr {
                    th.name scope="col" { "Parallel region" }
                    @for n in &threads { th scope="col" { (n) @if *n == 1 { " thread" } @else { " threads" } } }
                    th.w1 scope="col" { "Efficiency" } th.w1 scope="col" { "Lost" } th.left.w2 scope="col" { "Mostly" }
                } }
                tbody { @for region in series.regions.iter().take(REGIONS) { (region_row(region, &threads)) } }
            }
        }
        @if !losses.is_empty() {
            h3 { "What is lost with " (threads.last().copied().unwrap_or(0)) " threads" }
            ul.why { @for loss in losses.iter().filter(|l| l.seconds > 0.0).take(LOSSES) { (loss_line(loss)) } }
        }
    })
}

fn region_row(region: &SeriesRegion, threads: &[u32]) -> Markup {
    let at = |n: u32| region.points.iter().find(|p| p.threads == n);
    html! {
        tr {
            th.name scope="row" {
                (words::series_location(&region.place))
                @if region.is_nested { span.sub { " inside of others" } }
            }
            @for n in threads { td { (at(*n).map_or_else(|| "–".to_owned(), |p| seconds(p.wall_s))) } }
            td.w1 { (region.points.last().and_then(|p| p.efficiency).map_or_else(|| "–".to_owned(), percent)) }
            td.w1 { (region.lost_s.map_or_else(|| "–".to_owned(), seconds)) }
            td.left.w2 { (region.mostly.map_or("", words::series_cause)) }
        }
    }
}

fn loss_line(loss: &Loss) -> Markup {
    let place = loss.place.as_ref().map_or_else(
        || "outside of parallel regions".to_owned(),
        words::series_place,
    );
    html! {
        li {
            span.num { (loss.share.map_or_else(|| "–".to_owned(), percent)) }
            div { p { (words::series_cause(loss.cause)) ": " (place) " " span.sub {
                (seconds(loss.seconds))
                @if let Some(i) = loss.inflation { ", the same units take " (format!("{:.2}", i.times)) " times as long" }
            } } }
        }
    }
}

/// The regions whose speed-up is drawn.
fn drawn(series: &Series) -> impl Iterator<Item = &SeriesRegion> {
    let known = |r: &&SeriesRegion| r.points.iter().any(|p| p.speedup.is_some());
    series.regions.iter().filter(known).take(DRAWN)
}

/// For the script: threads, the program's speed-up, and that of the regions that lose most.
fn values(series: &Series) -> Value {
    let region = |r: &SeriesRegion| {
        let points = r
            .points
            .iter()
            .filter_map(|p| Some(json!([p.threads, short(p.speedup?)])));
        json!([words::series_location(&r.place), points.collect::<Vec<_>>()])
    };
    json!({
        "threads": series.points.iter().map(|p| p.threads).collect::<Vec<_>>(),
        "program": series.points.iter().map(|p| json!([p.threads, short(p.speedup)])).collect::<Vec<_>>(),
        "regions": drawn(series).map(region).collect::<Vec<_>>(),
    })
}
