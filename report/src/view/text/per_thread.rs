//! A table for each region: a row per thread, with ompP's columns.

use super::{Paint, TextOptions, laid_out};
use crate::view::table::Column;
use crate::words::{kind, location};
use ompfuse_account::model::{Region, RegionThread, Report, Times};
use ompfuse_account::units::{count, seconds};
use std::collections::BTreeSet;

/// Most threads that are listed of a region.
const THREADS: usize = 64;

/// A column of times or counts: its name and its cell, where there is one.
type Cell = (&'static str, fn(&Times) -> Option<String>);

fn s(value: Option<f64>) -> Option<String> {
    value.map(seconds)
}

fn n(value: Option<u64>) -> Option<String> {
    value.map(count)
}

/// In the order of what happens.
const CELLS: [Cell; 15] = [
    ("startup", |t| s(t.startup_s)),
    ("enter", |t| s(t.enter_s)),
    ("body", |t| s(t.body_s)),
    ("section", |t| s(t.section_s)),
    ("sections", |t| n(t.section_count)),
    ("single", |t| s(t.single_s)),
    ("singles", |t| n(t.single_count)),
    ("mgmt", |t| s(t.management_s)),
    ("wait", |t| s(t.waiting_s)),
    ("exit barrier", |t| s(t.exit_barrier_s)),
    ("tasks", |t| s(t.task_s)),
    ("exit", |t| s(t.exit_s)),
    ("shutdown", |t| s(t.shutdown_s)),
    ("create", |t| s(t.create_s)),
    ("created", |t| n(t.create_count)),
];

/// A section for each region that has such columns.
pub(super) fn per_thread(report: &Report, options: TextOptions) -> Vec<String> {
    let processes: BTreeSet<_> = (report.regions.iter())
        .flat_map(|r| r.per_thread.iter().map(|t| t.process))
        .collect();
    let many = processes.len() > 1;
    let with_columns = report.regions.iter().filter(|r| r.times.is_some());
    let shown = with_columns.take(options.top);
    shown
        .filter_map(|region| one(region, region.times.as_ref()?, many, options))
        .collect()
}

fn one(region: &Region, sum: &Times, many: bool, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let threads: Vec<(&RegionThread, &Times)> = (region.per_thread.iter())
        .filter_map(|t| Some((t, t.times.as_ref()?)))
        .collect();
    let is_there = |of: &dyn Fn(&Times) -> bool| threads.iter().any(|(_, t)| of(t)) || of(sum);
    // Of a kind that has only a body, that is all of it.
    let is_body_all = sum.body_s.is_some() && sum.body_s == sum.exec_s && sum.exit_s.is_none();
    let cells: Vec<Cell> = CELLS
        .into_iter()
        .filter(|(name, cell)| {
            is_there(&|t| cell(t).is_some()) && !(is_body_all && *name == "body")
        })
        .collect();
    let events: BTreeSet<&String> = threads.iter().flat_map(|(t, _)| t.events.keys()).collect();
    let event_names: Vec<(String, &String, bool)> = events
        .iter()
        .flat_map(|&e| [(format!("{e}/I"), e, true), (format!("{e}/E"), e, false)])
        .collect();
    let mut columns = vec![Column::right("thread"), Column::right("exec").leaves(1)];
    columns.push(Column::right("count").leaves(2));
    columns.extend(cells.iter().map(|(name, _)| Column::right(name)));
    columns.push(Column::right("own").leaves(2));
    let names = event_names.iter();
    columns.extend(names.map(|(name, ..)| Column::right(name).leaves(3)));
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let row = |name: String, t: &Times, own_s: f64| -> Vec<String> {
        let mut row = vec![name, dash(s(t.exec_s)), count(t.exec_count)];
        row.extend(cells.iter().map(|(_, cell)| dash(cell(t))));
        row.push(seconds(own_s));
        row
    };
    let mut rows: Vec<Vec<String>> = threads
        .iter()
        .take(THREADS)
        .map(|(thread, times)| {
            let own_s = thread.work_s + thread.wait_s + thread.runtime_s;
            let mut row = row(name(thread, many), times, own_s);
            row.extend(event_names.iter().map(|(_, event, is_inclusive)| {
                let of_event = thread.events.get(*event);
                let of_event = of_event.and_then(|c| match is_inclusive {
                    true => c.inclusive,
                    false => c.exclusive,
                });
                dash(n(of_event))
            }));
            row
        })
        .collect();
    let mut last = row("SUM".to_owned(), sum, region.time_s);
    last.extend(event_names.iter().map(|(_, event, is_inclusive)| {
        let of_thread = |t: &RegionThread| match is_inclusive {
            true => t.events.get(*event)?.inclusive,
            false => t.events.get(*event)?.exclusive,
        };
        let counts: Option<Vec<u64>> = region.per_thread.iter().map(of_thread).collect();
        dash(n(counts.map(|counts| counts.iter().sum())))
    }));
    rows.push(last);
    let title = format!("#{} {}, {}", region.id, kind(region), location(region));
    let mut text = paint.bold(&crate::view::table::place(&title, options.width));
    text.push('\n');
    text.push_str(&laid_out(&columns, rows, options));
    if threads.len() > THREADS {
        let more = threads.len() - THREADS;
        text.push_str(&paint.dim(&format!("{more} more threads (--format json lists them)")));
        text.push('\n');
    }
    Some(text)
}

/// A thread's name and number, behind its rank or process where there are `many`.
pub(super) fn name(thread: &RegionThread, many: bool) -> String {
    let number = match (thread.mpi_rank, thread.process) {
        (Some(rank), _) if many => format!("rank {rank}:{}", thread.thread),
        (None, Some(process)) if many => format!("{process}:{}", thread.thread),
        _ => thread.thread.to_string(),
    };
    match &thread.thread_name {
        Some(name) => format!("{name} {number}"),
        None => number,
    }
}
