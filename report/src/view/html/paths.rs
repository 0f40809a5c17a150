//! The regions by what they are inside of, and units by what created them.

use super::detail::short;
use super::rows::class_of;
use super::{Context, title};
use crate::words::{called_from, kind, location};
use maud::{Markup, html};
use ompfuse_account::model::{CallPath, Region};
use ompfuse_account::units::{count, percent, seconds};
use ompfuse_format::Construct;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Paths with less of the threads' time are too narrow to be seen.
const LEAST: f64 = 2e-4;
/// Paths on a page.
const MOST: usize = 2000;
/// Height of a path in pixels.
const ROW: usize = 26;
/// Lines of the tree of units.
const LINES: usize = 120;

/// The section of the call paths; `None`: they aren't known.
pub(super) fn section(context: &Context<'_>) -> Option<Markup> {
    let whole = context.merged.call_paths.first()?.inclusive_s;
    if whole <= 0.0 || context.merged.call_paths.len() < 2 {
        return None;
    }
    Some(html! {
        div.heading {
            h2 { "Call paths" }
            p.sub { "Inclusive time of all threads: the wider, the more. Each region is below what it is inside of, each task below what created it. Select one to zoom." }
        }
        // Nothing below moves when it is drawn.
        div #icicle style=(format!("height:{}px", ROW * depth(&context.merged.call_paths, LEAST * whole))) {}
        p #icicle-told.told role="status" {}
        ul.keys {
            @for (class, name) in [("serial", "serial code"), ("work", "mostly work"), ("sync", "synchronization"), ("imbalance", "imbalance"), ("manage", "management")] {
                li { span class={ "key " (class) } {} (name) }
            }
        }
    })
}

/// How many paths with so much time lie above each other at most.
fn depth(paths: &[CallPath], least_s: f64) -> usize {
    let mut depths: Vec<usize> = vec![];
    for path in paths {
        let above = path.parent.map_or(0, |p| depths[p as usize]);
        // Those that are left out have nothing below that is shown.
        depths.push(match path.inclusive_s >= least_s {
            true => above + 1,
            false => above,
        });
    }
    depths.into_iter().max().unwrap_or(0)
}

/// The paths for the script that draws them: `[parent, key, name, class, own s, inclusive s, executions, called from]`.
pub(super) fn values(context: &Context<'_>) -> Value {
    let report = context.merged;
    let regions: BTreeMap<u32, &Region> = report.regions.iter().map(|r| (r.id, r)).collect();
    let Some(whole) = report.call_paths.first().map(|p| p.inclusive_s) else {
        return json!([]);
    };
    let mut position: Vec<Option<usize>> = vec![];
    let mut list = vec![];
    for path in &report.call_paths {
        let parent = path.parent.map(|p| position[p as usize]);
        let is_shown = path.inclusive_s >= LEAST * whole && list.len() < MOST;
        // Without what is around it nothing can be drawn.
        if !is_shown || parent == Some(None) {
            position.push(None);
            continue;
        }
        position.push(Some(list.len()));
        let region = path.region.and_then(|id| regions.get(&id));
        let (name, class) = match region {
            Some(region) => (title(region), class_of(region)),
            None if path.parent.is_none() => ("program".to_owned(), "serial"),
            None => ("unknown place".to_owned(), "unknown"),
        };
        let called = path.context.and_then(|c| called_from(&report.contexts, c));
        list.push(json!([
            parent.flatten(),
            path.region.and_then(|id| context.keys.of(id)),
            name,
            class,
            short(path.exclusive_s),
            short(path.inclusive_s),
            path.executions,
            called
        ]));
    }
    Value::from(list)
}

/// Constructs that have units or create them.
fn makes_units(construct: Option<Construct>) -> bool {
    construct.is_some_and(|c| {
        let is_tasks = matches!(c, Construct::Task | Construct::Taskloop);
        is_tasks || c.is_fork() || c.is_divided() || c.is_block()
    })
}

/// The section of units by what created them; `None`: there are no tasks.
pub(super) fn units(context: &Context<'_>) -> Option<Markup> {
    let report = context.merged;
    let is_task = |r: &Region| {
        matches!(r.construct, Some(Construct::Task | Construct::Taskloop)) && r.xus > 0
    };
    if report.call_paths.is_empty() || !report.regions.iter().any(is_task) {
        return None;
    }
    let regions: BTreeMap<u32, &Region> = report.regions.iter().map(|r| (r.id, r)).collect();
    let mut below: Vec<Vec<usize>> = vec![vec![]; report.call_paths.len()];
    for (at, path) in report.call_paths.iter().enumerate() {
        if let Some(parent) = path.parent {
            below[parent as usize].push(at);
        }
    }
    let mut lines: Vec<(usize, &CallPath, &Region)> = vec![];
    let mut rest = vec![(0usize, 0usize)];
    while let Some((at, depth)) = rest.pop() {
        let path = &report.call_paths[at];
        let region = path.region.and_then(|id| regions.get(&id).copied());
        let shown = region.filter(|r| makes_units(r.construct));
        if let Some(region) = shown {
            lines.push((depth, path, region));
        }
        let mut inner = below[at].clone();
        // The last comes first off the stack.
        inner.sort_by(|&a, &b| {
            let time = |at: usize| report.call_paths[at].inclusive_s;
            time(a).total_cmp(&time(b))
        });
        let depth = depth + usize::from(shown.is_some());
        rest.extend(inner.into_iter().map(|i| (i, depth)));
    }
    let whole = report.call_paths[0].inclusive_s;
    let left = lines.len().saturating_sub(LINES);
    Some(html! {
        div.heading {
            h2 { "Who created what" }
            p.sub { "Units below the construct that created them, wherever they were executed. A task that creates its own kind leads back to itself." }
        }
        div.scroll tabindex="0" role="region" aria-label="Units by what created them" {
            table.tree {
                thead { tr {
                    th.name scope="col" { "Created" } th scope="col" { "Executed" } th.w1 scope="col" { "Own time" } th scope="col" { "Inclusive" } th.w2 scope="col" { "Mean" }
                } }
                tbody {
                    @for (depth, path, region) in lines.iter().take(LINES) {
                        tr {
                            th.name scope="row" style=(format!("padding-left:{:.1}rem", 0.6 + 1.1 * (*depth).min(24) as f64)) {
                                @match context.keys.of(region.id) {
                                    Some(key) => a href={ "#region=" (key) } { (kind(region)) " " (location(region)) },
                                    None => (location(region)),
                                }
                            }
                            td { (count(path.executions)) }
                            td.w1 { (seconds(path.exclusive_s)) }
                            td { (percent(path.inclusive_s / whole)) }
                            td.w2 { @if path.executions > 0 { (seconds(path.exclusive_s / path.executions as f64)) } }
                        }
                    }
                }
            }
        }
        @if left > 0 { p.note { (left) " more lines" } }
    })
}
