//! The call-path profile as a tree.

use super::{Paint, TextOptions, laid_out, titled};
use crate::view::table::{Column, wrap};
use crate::words::{called_from, kind, location};
use ompfuse_account::model::{CallPath, Region, Report};
use ompfuse_account::units::{count, percent, several};
use std::collections::{BTreeMap, BTreeSet};

/// Share of the threads' time from which on a path is shown.
const SHOWN: f64 = 0.001;

/// A path that is shown, and how deep it is.
struct Row<'r> {
    path: &'r CallPath,
    depth: usize,
}

/// The section.
pub(super) fn paths(report: &Report, options: TextOptions) -> Option<String> {
    let paths = &report.call_paths;
    let regions: BTreeMap<u32, &Region> = report.regions.iter().map(|r| (r.id, r)).collect();
    let whole = paths.first()?.inclusive_s;
    if whole <= 0.0 {
        return None;
    }
    let share = |path: &CallPath| path.inclusive_s / whole;
    let mut below: Vec<Vec<usize>> = vec![vec![]; paths.len()];
    for (at, path) in paths.iter().enumerate() {
        if let Some(parent) = path.parent {
            below[parent as usize].push(at);
        }
    }
    let mut rows = vec![];
    let mut rest = vec![(0, 0)];
    while let Some((at, depth)) = rest.pop() {
        rows.push(Row {
            path: &paths[at],
            depth,
        });
        let inner = below[at].iter().copied();
        let mut inner: Vec<usize> = inner.filter(|&i| share(&paths[i]) >= SHOWN).collect();
        // The last comes first off the stack.
        inner.sort_by(|&a, &b| paths[a].inclusive_s.total_cmp(&paths[b].inclusive_s));
        rest.extend(inner.into_iter().map(|i| (i, depth + 1)));
    }
    let left_out = paths.len() - rows.len();
    let callers = callers(report, &rows);
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| cells(row, &regions, (report, &callers), share(row.path), whole))
        .collect();
    let columns = [
        Column::right("incl."),
        Column::right("excl."),
        Column::right("#"),
        Column::left("call path").keeps_front(24),
        Column::left("location").keeps_place(14),
        Column::right("execs").leaves(1),
    ];
    let explanation =
        "shares of thread time, with and without constructs inside; a task is below its creator";
    let mut text = titled("Call paths", explanation, options);
    text.push_str(&laid_out(&columns, rows, options));
    let mut legend: Vec<&(String, String)> = callers.values().collect();
    legend.sort_by_key(|(letter, _)| (letter.len(), letter));
    for (letter, callers) in legend {
        let line = format!("{letter} = {callers}");
        text.push_str(&wrap(&line, options.width, "    "));
    }
    if left_out > 0 {
        let more = format!("{left_out} more paths below {} each", percent(SHOWN));
        let paint = Paint { on: options.colour };
        text.push_str(&paint.dim(&more));
        text.push('\n');
    }
    Some(text)
}

/// By context a letter, and who has called, from outside inwards. Those of regions that are called from several places, and those that
/// lead through libraries.
fn callers(report: &Report, rows: &[Row<'_>]) -> BTreeMap<u32, (String, String)> {
    let mut of_region: BTreeMap<Option<u32>, BTreeSet<u32>> = BTreeMap::new();
    for row in rows {
        let contexts = of_region.entry(row.path.region).or_default();
        contexts.extend(row.path.context);
    }
    let mut callers = BTreeMap::new();
    let mut next = 0;
    for row in rows {
        let Some(context) = row.path.context else {
            continue;
        };
        let several = of_region.get(&row.path.region).is_some_and(|c| c.len() > 1);
        if callers.contains_key(&context) || !(several || is_in_library(report, context)) {
            continue;
        }
        if let Some(text) = called_from(&report.contexts, context) {
            callers.insert(context, (letter(next), text));
            next += 1;
        }
    }
    callers
}

/// Whether the call to a region is in another file than the program's.
fn is_in_library(report: &Report, context: u32) -> bool {
    let at = report.contexts.partition_point(|c| c.id < context);
    let innermost = report.contexts.get(at).filter(|c| c.id == context);
    let file = innermost.and_then(|c| c.file.as_deref());
    file.is_some_and(|file| file.rsplit('/').next() != report.program.rsplit('/').next())
}

/// A, B, ..., Z, AA, ...
fn letter(number: usize) -> String {
    let last = char::from(b'A' + (number % 26) as u8);
    match number / 26 {
        0 => last.to_string(),
        more => letter(more - 1) + &last.to_string(),
    }
}

fn cells(
    row: &Row<'_>,
    regions: &BTreeMap<u32, &Region>,
    (report, callers): (&Report, &BTreeMap<u32, (String, String)>),
    share: f64,
    whole: f64,
) -> Vec<String> {
    let path = row.path;
    let region = path.region.and_then(|id| regions.get(&id));
    let (name, place) = match region {
        Some(region) => (kind(region), location(region)),
        None if path.parent.is_none() => (
            format!("[program: {}]", several(report.threads.into(), "thread")),
            String::new(),
        ),
        None => ("unknown place".to_owned(), String::new()),
    };
    let callers = path.context.and_then(|c| callers.get(&c));
    let context = callers.map_or_else(String::new, |(letter, _)| format!(" from {letter}"));
    vec![
        percent(share),
        percent(path.exclusive_s / whole),
        path.region.map_or_else(String::new, |id| id.to_string()),
        format!("{}{name}{context}", "· ".repeat(row.depth)),
        place,
        match path.parent {
            Some(_) => count(path.executions),
            None => String::new(),
        },
    ]
}
