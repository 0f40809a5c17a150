//! The table of regions.

use super::rows::Row;
use super::{Context, terms, title};
use crate::words::{kind, location};
use maud::{Markup, html};
use ompfuse_account::model::Region;
use ompfuse_account::units::{count, percent, seconds};

/// Columns by term: the name of the column, and from which width of a screen on it is shown.
const COLUMNS: [(&str, &str); 9] = [
    ("share", ""),
    ("time", ""),
    ("efficiency", "w2"),
    ("units", "w2"),
    ("min", "w3"),
    ("median", "w3"),
    ("max", "w3"),
    ("imbalance", "w2"),
    ("worst", "w1"),
];

/// Contexts of a region that are rows below it, at most.
const CALLERS: usize = 12;
/// Sites, likewise.
const SITES: usize = 20;

/// The section; `None`: there are no regions.
pub(super) fn section(context: &Context<'_>) -> Option<Markup> {
    if context.rows.is_empty() {
        return None;
    }
    let report = context.page.report;
    let all_s = report.available_s.unwrap_or(report.thread_time_s);
    let share = |s: f64| match all_s > 0.0 {
        true => s / all_s,
        false => 0.0,
    };
    let outside = crate::view::outside(report)
        .into_iter()
        .filter(|o| o.0 > 0.0);
    Some(html! {
        div.heading {
            h2 { "Regions" }
            p.sub { "Where " (seconds(all_s)) @if report.available_s.is_some() { " of available time" } @else { " of the threads' time" } " went. Select a region for its details." }
        }
        div.tools {
            label { span.what { "Filter " } input #filter type="search" placeholder="construct, file, function" autocomplete="off" spellcheck="false"; }
            span #shown.sub role="status" {}
        }
        div.table tabindex="0" role="region" aria-label="Table of regions" {
            table #regions-table {
                thead {
                    tr {
                        th.name scope="col" title=(terms::term("region").1) { button type="button" data-sort="name" { "Region" } }
                        @for (term, shown) in COLUMNS {
                            @let (name, about) = terms::term(term);
                            th class={ "c-" (term) " " (shown) } scope="col" title=(about) aria-sort=[(term == "share").then_some("descending")] {
                                button type="button" data-sort=(term) { (name) }
                            }
                        }
                    }
                }
                @for row in &context.rows { (one(context, row)) }
                @for (s, class, name, place) in outside {
                    tbody.outside data-text=(name) data-v=(values(name, share(s), s, [None; 6], None)) {
                        tr {
                            th.name scope="row" { span class={ "key " (class) } {} span { (name) " " span.sub { (place) } } }
                            td.c-share { (share_bar(class, share(s), 1.0)) }
                            td.c-time { (seconds(s)) }
                            @for (term, shown) in &COLUMNS[2..] { td class={ "c-" (term) " " (shown) } {} }
                        }
                    }
                }
            }
        }
        p #none.note hidden { "No region matches." }
    })
}

/// What rows are sorted by, in the order of the columns.
fn values(
    name: &str,
    share: f64,
    time: f64,
    others: [Option<f64>; 6],
    worst: Option<f64>,
) -> String {
    let mut values = vec![serde_json::Value::from(name)];
    values.extend([share, time].map(serde_json::Value::from));
    values.extend(
        others
            .into_iter()
            .chain([worst])
            .map(|v| serde_json::json!(v)),
    );
    serde_json::Value::from(values).to_string()
}

fn one(context: &Context<'_>, row: &Row<'_>) -> Markup {
    let region = row.region;
    let key = context.keys.of(region.id).unwrap_or_default();
    let has_more = row.sites.len() > 1 || row.callers.len() > 1;
    let others = [
        row.efficiency(),
        Some(region.xus as f64),
        region.xu_min_s,
        row.median_s(),
        region.xu_max_s,
        row.imbalance(),
    ];
    let worst = row.worst.as_ref().map(|w| w.share);
    let name = title(region);
    let text = [
        region.function.as_deref().unwrap_or_default(),
        region.function_demangled.as_deref().unwrap_or_default(),
        region.source.as_ref().map_or("", |s| &s.file),
        region.detail.as_deref().unwrap_or_default(),
    ];
    html! {
        tbody.row data-key=(key) data-text=(format!("{name} {}", text.join(" ")))
            data-v=(values(&location(region), region.of_available, region.time_s, others, worst)) {
            tr {
                th.name scope="row" {
                    @if has_more {
                        button.more type="button" aria-expanded="false" aria-label={ "Calling contexts and sites of " (name) } {}
                    }
                    a href={ "#region=" (key) } { span.kind { (kind(region)) } " " span.place { (location(region)) } }
                    @if let Some(function) = function(region) { span.sub.fn { (function) } }
                    @if let Some(caller) = &row.python { span.sub.fn { "called from " (caller) } }
                }
                td.c-share { (share_bar("work", region.of_available, work(region))) }
                td.c-time { (seconds(region.time_s)) }
                td.c-efficiency.w2 { (row.efficiency().map(percent).unwrap_or_default()) }
                td.c-units.w2 { @if region.xus > 0 { (count(region.xus)) } }
                td.c-min.w3 { (region.xu_min_s.map(seconds).unwrap_or_default()) }
                td.c-median.w3 { (row.median_s().map(seconds).unwrap_or_default()) }
                td.c-max.w3 { (region.xu_max_s.map(seconds).unwrap_or_default()) }
                td.c-imbalance.w2 {
                    (row.imbalance().map(percent).unwrap_or_default())
                    @if region.doubt_kind.is_some() { "?" }
                }
                td.c-worst.w1 {
                    @if let Some(worst) = &row.worst {
                        span class={ "key " (worst.class) } {}
                        (worst.name) " " span.sub { (percent(worst.share)) }
                    }
                }
            }
            @if row.callers.len() > 1 { (callers(row)) }
            @if row.sites.len() > 1 { (sites(row)) }
        }
    }
}

/// Rows below a region: where it was called from.
fn callers(row: &Row<'_>) -> Markup {
    let left = row.callers.len().saturating_sub(CALLERS);
    html! {
        @for caller in row.callers.iter().take(CALLERS) {
            tr.child hidden {
                th.name scope="row" { span.what { "from " } (caller.text) }
                td.c-share {}
                td.c-time title="Own time on this path" { (seconds(caller.exclusive_s)) }
                td.c-efficiency.w2 {}
                td.c-units.w2 {}
                td.c-min.w3 colspan="5" { (count(caller.executions)) " executions, " (seconds(caller.inclusive_s)) " inclusive" }
            }
        }
        @if left > 0 { tr.child hidden { td colspan="10" { (left) " more contexts" } } }
    }
}

/// Rows below a region: its places in machine code.
fn sites(row: &Row<'_>) -> Markup {
    let left = row.sites.len().saturating_sub(SITES);
    html! {
        @for site in row.sites.iter().take(SITES) {
            tr.child hidden {
                th.name scope="row" {
                    span.what { "site " } code { (site.name) }
                    @if let Some(function) = function(site) { span.sub.fn { (function) } }
                }
                td.c-share { (share_bar("work", site.of_available, work(site))) }
                td.c-time { (seconds(site.time_s)) }
                td.c-efficiency.w2 {}
                td.c-units.w2 { @if site.xus > 0 { (count(site.xus)) } }
                td.c-min.w3 { (site.xu_min_s.map(seconds).unwrap_or_default()) }
                td.c-median.w3 {}
                td.c-max.w3 { (site.xu_max_s.map(seconds).unwrap_or_default()) }
                td.c-imbalance.w2 {}
                td.c-worst.w1 {}
            }
        }
        @if left > 0 { tr.child hidden { td colspan="10" { (left) " more sites" } } }
    }
}

fn function(region: &Region) -> Option<&str> {
    region
        .function_demangled
        .as_deref()
        .or(region.function.as_deref())
}

/// The part of a region's time that is work.
fn work(region: &Region) -> f64 {
    match region.time_s > 0.0 {
        true => (region.work_s / region.time_s).clamp(0.0, 1.0),
        false => 0.0,
    }
}

/// A share as a number and a bar; what is no work in it is lighter.
fn share_bar(class: &str, share: f64, work: f64) -> Markup {
    html! {
        span.num { (percent(share)) }
        span.track aria-hidden="true" {
            span class={ (class) } style=(format!("width:{:.2}%", 100.0 * share * work)) {}
            span.lost style=(format!("width:{:.2}%", 100.0 * share * (1.0 - work))) {}
        }
    }
}
