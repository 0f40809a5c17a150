//! The call-path profile as a tree.

use super::{Paint, TextOptions, laid_out, titled};
use crate::model::{CallPath, Region, Report};
use crate::view::table::Column;
use crate::words::units::{count, percent};
use crate::words::{kind, location};
use std::collections::BTreeMap;

/// Most lines where the tree was not asked for.
const FEW: usize = 20;
/// Share of the threads' time from which on a path is shown, and where the tree was asked for.
const SHOWN: f64 = 0.01;
const SHOWN_ALL: f64 = 0.001;

/// A path that is shown, and how deep it is.
struct Row<'r> {
    path: &'r CallPath,
    depth: usize,
}

/// The section. Where it was not asked for there is none that would tell no more than the list of regions.
pub(super) fn paths(report: &Report, options: TextOptions) -> Option<String> {
    let paths = &report.call_paths;
    let regions: BTreeMap<u32, &Region> = report.regions.iter().map(|r| (r.id, r)).collect();
    let whole = paths.first()?.inclusive_s;
    if whole <= 0.0 || !(options.call_paths || is_worth_it(report, &regions)) {
        return None;
    }
    let least = match options.call_paths {
        true => SHOWN_ALL,
        false => SHOWN,
    };
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
        let mut inner: Vec<usize> = inner.filter(|&i| share(&paths[i]) >= least).collect();
        // The last comes first off the stack.
        inner.sort_by(|&a, &b| paths[a].inclusive_s.total_cmp(&paths[b].inclusive_s));
        rest.extend(inner.into_iter().map(|i| (i, depth + 1)));
    }
    if !options.call_paths && rows.len() > FEW {
        keep_largest(&mut rows);
    }
    let left_out = paths.len() - rows.len();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| cells(row, &regions, report, share(row.path), whole))
        .collect();
    let columns = [
        Column::right("incl."),
        Column::right("excl."),
        Column::right("#"),
        Column::left("call path").keeps_front(24),
        Column::left("location").keeps_end(14),
        Column::right("execs").leaves(1),
    ];
    let explanation =
        "shares of thread time, with and without what is inside; a task is below what created it";
    let mut text = titled("Call paths", explanation, options);
    text.push_str(&laid_out(&columns, rows, options));
    if left_out > 0 {
        let more = match options.call_paths {
            true => format!("{left_out} more paths below {} each", percent(SHOWN_ALL)),
            false => format!("{left_out} more paths (--call-paths shows more)"),
        };
        let paint = Paint { on: options.colour };
        text.push_str(&paint.dim(&more));
        text.push('\n');
    }
    Some(text)
}

/// Whether something stands inside of a region that isn't just the other half of a combined construct.
fn is_worth_it(report: &Report, regions: &BTreeMap<u32, &Region>) -> bool {
    let paths = &report.call_paths;
    let source = |path: &CallPath| regions.get(&path.region?)?.source.clone();
    let whole = paths[0].inclusive_s;
    paths.iter().any(|path| {
        let parent = path.parent.map(|parent| &paths[parent as usize]);
        let Some(parent) = parent.filter(|parent| parent.parent.is_some()) else {
            return false;
        };
        let is_half = source(path).is_some_and(|line| source(parent) == Some(line));
        path.inclusive_s >= SHOWN * whole && !is_half
    })
}

/// Leaves the paths of largest inclusive time, and with each all around it, which have no less.
fn keep_largest(rows: &mut Vec<Row<'_>>) {
    let mut sizes: Vec<f64> = rows.iter().map(|row| row.path.inclusive_s).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let least = sizes[FEW - 1];
    let mut room = FEW - sizes.iter().filter(|&&s| s > least).count();
    rows.retain(|row| {
        let is_as_large = row.path.inclusive_s == least;
        let has_room = is_as_large && room > 0;
        room -= usize::from(has_room);
        row.path.inclusive_s > least || has_room
    });
}

fn cells(
    row: &Row<'_>,
    regions: &BTreeMap<u32, &Region>,
    report: &Report,
    share: f64,
    whole: f64,
) -> Vec<String> {
    let path = row.path;
    let region = path.region.and_then(|id| regions.get(&id));
    let (name, place) = match region {
        Some(region) => (kind(region), location(region)),
        None if path.parent.is_none() => (
            format!("[program: {} threads]", report.threads),
            String::new(),
        ),
        None => ("unknown place".to_owned(), String::new()),
    };
    let context = path
        .context
        .map_or_else(String::new, |c| format!(" from {c}"));
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
