//! A program over its commits, as a page of its own. Its curves are drawn here: it needs no script.

mod curve;

use super::{data, frame};
use crate::words;
use crate::words::history as said;
use maud::{Markup, html};
use ompfuse_compare::Quantity;
use ompfuse_compare::history::{ChangePoint, Curve, History, Series};
use serde_json::json;

/// Changes that are listed.
const CHANGES: usize = 60;

/// Series that are drawn.
const SERIES: usize = 8;

/// The page.
pub fn render(history: &History) -> String {
    let mut programs: Vec<&str> = history.series.iter().map(|s| &*s.program).collect();
    programs.sort_unstable();
    programs.dedup();
    let name = programs.join(", ");
    let sections = [
        ("overview", "Overview", Some(overview(history, &name))),
        ("changes", "Changes", changes(history)),
        ("curves", "Curves", curves(history)),
        ("terms", "Terms", Some(terms())),
    ];
    let title = format!("{name} over its commits – ompfuse");
    let values = json!({ "regions": {} });
    frame::page(&title, &sections, &data::json("data", &values))
}

fn overview(history: &History, name: &str) -> Markup {
    let verdict = words::history_verdict(history);
    let (first, others) = verdict.split_first().map_or(("", &[][..]), |(f, o)| (f, o));
    let notes = words::history_notes(history);
    let newest = history.series.first().and_then(|s| s.commits.last());
    html! {
        h1 { (name) }
        p.command { "over its commits" }
        ul.facts {
            li { span.what { "Commits" } " " span.value { (history.commits) } }
            @if let Some(newest) = newest { li { span.what { "Newest" } " " span.value { (said::commit_of_day(newest)) } } }
            li { span.what { "Machines" } " " span.value { @if history.machines.is_empty() { "counts only" } @else { (history.machines.len()) } } }
        }
        div.verdict {
            p.headline { (first) }
            @for line in others { p.prediction { (line) } }
        }
        @if let Some((series, curve)) = history.series.first().and_then(|s| Some((s, s.headline()?))) {
            h2.small { (capital(&said::curve_name(curve))) }
            (curve::large(series, curve))
        }
        @if !notes.is_empty() {
            div.alert role="note" { h2.small { "Mind" } ul { @for note in &notes { li { (note) } } } }
        }
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| {
        c.to_uppercase().collect::<String>() + chars.as_str()
    })
}

fn changes(history: &History) -> Option<Markup> {
    let mut rows: Vec<(&Series, &Curve, &ChangePoint)> = vec![];
    for series in &history.series {
        let own = series
            .curves
            .iter()
            .flat_map(|c| c.changes.iter().map(move |change| (series, c, change)));
        let mut own: Vec<_> = own.collect();
        own.sort_by_key(|(_, _, change)| std::cmp::Reverse(change.at));
        rows.extend(own);
    }
    if rows.is_empty() {
        return None;
    }
    let left = rows.len().saturating_sub(CHANGES);
    let many = history.machines.len() > 1;
    Some(html! {
        div.heading { h2 { "Changes" } p.sub { "The level from this commit on differs from the one before it." } }
        div.scroll.whole tabindex="0" role="region" aria-label="Changes" {
            table {
                thead { tr {
                    th.label scope="col" { "Since" } th.label.w1 scope="col" { "Date" } th scope="col" { "Change" } th.w1 scope="col" { "95% interval" }
                    th.name scope="col" { "Where" } th.label scope="col" { "What" } th.label.w2 scope="col" { "May be from" }
                    @if many { th.left.w3 scope="col" { "Processor" } }
                } }
                tbody {
                    @for (series, curve, change) in rows.iter().take(CHANGES) {
                        @let at = &series.commits[change.at as usize];
                        tr {
                            td.label { code { (said::commit(at)) } }
                            td.label.w1 { (said::day(at).unwrap_or_default()) }
                            td class=[worse(change)] { (said::change_size(curve, change)) }
                            td.w1 { (said::change_interval(curve, change)) }
                            th.name scope="row" { (said::curve_place(curve)) }
                            td.label.what { (words::quantity(&curve.quantity)) }
                            td.label.w2 { (said::change_range(series, change).unwrap_or_default()) }
                            @if many { td.left.w3 { (series.machine.as_ref().map_or("", said::processor)) } }
                        }
                    }
                }
            }
        }
        @if left > 0 { p.note { (left) " more are in the JSON." } }
    })
}

fn worse(change: &ChangePoint) -> Option<&'static str> {
    change.is_worse.map(|w| if w { "worse" } else { "better" })
}

/// `None`: there is none but the one at the top.
fn curves(history: &History) -> Option<Markup> {
    let all = history.series.iter().enumerate();
    let drawn: Vec<Markup> = all.filter_map(|(n, s)| curves_of(s, n == 0)).collect();
    let left = drawn.len().saturating_sub(SERIES);
    (!drawn.is_empty()).then(|| {
        html! {
            h2 { "Curves" }
            p.sub { "A point is a commit, a bar its level; a dashed line is a commit that changed it." }
            @for series in drawn.iter().take(SERIES) { (series) }
            @if left > 0 { p.note { (left) " more series are in the JSON." } }
        }
    })
}

/// `is_first`: its most important curve is at the top of the page.
fn curves_of(series: &Series, is_first: bool) -> Option<Markup> {
    let shown = series.headline().filter(|_| is_first);
    let of_program =
        |c: &Curve| c.region.is_none() && !c.quantity.is_efficiency() && Some(c) != shown;
    let groups = [
        group("Program", series, &of_program),
        group("Efficiencies", series, &|c| c.quantity.is_efficiency()),
        group("Regions", series, &is_shown_of_region),
    ];
    groups.iter().any(Option::is_some).then(|| {
        html! {
            h3 { (said::series_of(series)) }
            @for group in groups.iter().flatten() { (group) }
        }
    })
}

/// Counts of a region are drawn if they changed.
fn is_shown_of_region(curve: &Curve) -> bool {
    let is_count = matches!(curve.quantity, Quantity::Executions | Quantity::Units);
    curve.region.is_some() && (!is_count || !curve.changes.is_empty())
}

fn group(name: &str, series: &Series, is_in: &dyn Fn(&Curve) -> bool) -> Option<Markup> {
    let mut there: Vec<&Curve> = series.curves.iter().filter(|c| is_in(c)).collect();
    // What changed is seen first.
    there.sort_by_key(|c| c.changes.is_empty());
    (!there.is_empty()).then(|| {
        html! {
            h4 { (name) }
            div.curves { @for curve in &there {
                figure {
                    figcaption {
                        strong { (said::curve_name(curve)) }
                        span.sub { (said::curve_verdict(series, curve)) }
                    }
                    (curve::small(series, curve))
                }
            } }
        }
    })
}

fn terms() -> Markup {
    html! {
        h2 { "Terms" }
        dl.terms {
            div { dt { "Change" } dd { "A step of the level that noise doesn't explain. Of a hundred series without a change one shows a step, also where neighbouring commits have similar noise. All regions together count as one series." } }
            div { dt { "95% interval" } dd { "Where the size of the change is." } }
            div { dt { "May be from" } dd { "The first commit with the change is one of these." } }
            div { dt { "Exact" } dd { "The value depends on the executed code alone. Every difference is a change." } }
            div { dt { "Wall time" } dd { "Of the program, or of all executions of a parallel region. Other regions have the time of all threads." } }
            div { dt { "Efficiency" } dd { "Useful time as a share of the time that was available: 1 is perfect." } }
        }
    }
}
