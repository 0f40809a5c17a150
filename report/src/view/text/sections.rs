//! The sections of the text, each a string or nothing.

use super::bars::{bar, columns};
use super::{Paint, Sort, TextOptions, laid_out, titled};
use crate::view::html::rows::imbalance;
use crate::view::table::{Column, front, wrap};
use crate::words::python_caller;
use crate::words::verdict::is_without_regions;
use crate::words::{self, head, kind, location};
use ompfuse_account::model::{Class, Region, Report};
use ompfuse_account::units::{self, count, percent, seconds};
use ompfuse_format::run::Exit;
use ompfuse_fuse::Problem;
use ompfuse_fuse::names::readable;
use std::collections::BTreeMap;

/// Width of the bars that show shares.
const BAR: usize = 8;
/// Share of a region's time from which on it is shown what its probes took.
const PROBES_SHOWN: f64 = 0.01;
/// Widest picture of work per thread.
const THREADS: usize = 16;

/// Program, threads, duration, coverage, runs.
pub(super) fn header(report: &Report, options: TextOptions) -> String {
    let paint = Paint { on: options.colour };
    let mut command = report.program.clone();
    for arg in &report.args {
        command.push(' ');
        command.push_str(arg);
    }
    // A launcher's name says nothing.
    let recorded = words::recorded_program(report);
    if recorded != report.program {
        let name = recorded.rsplit('/').next().unwrap_or(recorded);
        command = format!("{name}: {command}");
    }
    let mut text = paint.bold(&front(&command, options.width));
    text.push('\n');
    let mut facts = vec![match head::threads(report) {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    }];
    facts.extend(head::own_s(report).map(seconds));
    facts.push(match report.runs.len() {
        1 => "1 run".to_owned(),
        n => format!("{n} runs"),
    });
    facts.push(format!("{} XUs", count(report.xus)));
    facts.extend((!report.host.is_empty()).then(|| format!("on {}", report.host)));
    facts.extend(head::recording(report));
    text.push_str(&wrap(&facts.join(" · "), options.width, "  "));
    let parallel = report.parallel_s.filter(|_| !is_without_regions(report));
    if let (Some(coverage), Some(parallel)) = (report.coverage, parallel) {
        let line = format!(
            "parallel coverage {} ({} inside parallel regions)",
            percent(coverage),
            seconds(parallel)
        );
        text.push_str(&wrap(&line, options.width, "  "));
    }
    if report.mpi.as_ref().is_some_and(|m| m.is_apart) {
        let line =
            "parallel coverage and late senders are not known of ranks that are recorded apart";
        text.push_str(&wrap(line, options.width, "  "));
    }
    if let Some(strategy) = &report.strategy {
        let left: u64 = report.unmatched.iter().map(|u| u.count).sum();
        let left = if left == 0 {
            "none left over".to_owned()
        } else {
            format!("{} left over", count(left))
        };
        let line = format!(
            "combined by {strategy}: {} XUs matched, {left}",
            count(report.xus)
        );
        text.push_str(&wrap(&line, options.width, "  "));
    }
    for (at, run) in report.runs.iter().enumerate() {
        let end = match run.exit {
            Some(Exit::Code(0)) | None => continue,
            Some(exit) => words::ended(exit).unwrap_or_else(|| {
                "still runs, or the command that recorded it was killed,".to_owned()
            }),
        };
        let line = wrap(
            &format!("the program {end} in run {}", at + 1),
            options.width,
            "  ",
        );
        text.push_str(&paint.warn(line.trim_end()));
        text.push('\n');
    }
    let ended = report.runs.iter().filter_map(|r| r.recording_ended_bytes);
    for bytes in ended.take(1) {
        let line = ompfuse_account::damage::problem(&Problem::EndedAtSize { bytes });
        text.push_str(&paint.warn(wrap(&line, options.width, "  ").trim_end()));
        text.push('\n');
    }
    text
}

/// Most lines about what is on record in part.
const IN_PART: usize = 3;

/// What is on record only in part, with the exact numbers.
pub(super) fn in_part(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let parts: Vec<_> = report
        .regions
        .iter()
        .flat_map(|r| r.in_part.iter().map(move |p| (r, p)))
        .collect();
    if parts.is_empty() {
        return None;
    }
    let about = "recorded in part; times and counts below are only of what was recorded:";
    let mut text = paint.warn(wrap(about, options.width, "  ").trim_end());
    text.push('\n');
    for (region, part) in parts.iter().take(IN_PART) {
        let line = format!("- {}", words::in_part(region, part));
        text.push_str(&wrap(&line, options.width, "  "));
    }
    if parts.len() > IN_PART {
        text.push_str(&format!("- and {} more\n", parts.len() - IN_PART));
    }
    Some(text)
}

/// The regions by own time. `several`: numbers of the rows that stand for several sites, and of how many.
pub(super) fn regions(
    report: &Report,
    several: &[(u32, usize)],
    options: TextOptions,
) -> Option<String> {
    let columns = [
        Column::right("#"),
        Column::left("").leaves(6),
        Column::right("share"),
        Column::right("time"),
        Column::left("construct"),
        Column::left("location").keeps_place(18),
        Column::right("execs").leaves(3),
        Column::right("XUs").leaves(4),
        Column::right("avg/XU").leaves(5),
        Column::left("threads").leaves(7),
        Column::right("imbal.").leaves(1),
        Column::right("probes").leaves(2),
    ];
    let shown = report.regions.iter().take(options.top);
    let mut rows: Vec<(f64, Vec<String>)> = shown
        .map(|region| (region.time_s, region_row(report, region)))
        .collect();
    let outside = crate::view::outside(report).into_iter();
    for (time, class, kind, place) in outside.filter(|o| o.0 > 0.0) {
        let share = share(report, time);
        let lost = if class == "serial" { 0.0 } else { share };
        let mut row = vec![
            String::new(),
            bar(share, lost, BAR),
            percent(share),
            seconds(time),
            kind.to_owned(),
            place.to_owned(),
        ];
        row.resize(columns.len(), String::new());
        rows.push((time, row));
    }
    if rows.is_empty() {
        return None;
    }
    // What is outside of regions comes last where these are sorted by something else.
    if options.sort == Sort::Time {
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    }
    // Where probes took next to nothing there is no such column.
    let last = columns.len() - 1;
    let has_probes = rows.iter().any(|(_, row)| !row[last].is_empty());
    let width = columns.len() - usize::from(!has_probes);
    rows.iter_mut().for_each(|(_, row)| row.truncate(width));
    let mut text = titled(
        &title_of_regions(report),
        match report.running.as_ref().is_some_and(|r| r.is_starved) {
            true => {
                "own time, XUs included: █ work, without a processor too ░ waiting and runtime library"
            }
            false => "own time, XUs included: █ work ░ waiting and runtime library",
        },
        options,
    );
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    text.push_str(&laid_out(&columns[..width], rows, options));
    text.push_str(&below_regions(report, several, options));
    Some(text)
}

/// A region's place; its function alone where no source line is known, since the caller's line tells more than an address.
fn without_address(region: &Region) -> String {
    match (&region.source, &region.function) {
        (None, Some(function)) => readable(function).into_owned(),
        _ => location(region),
    }
}

/// What the columns say of a region.
fn region_row(report: &Report, region: &Region) -> Vec<String> {
    let works = region.work_by_place();
    let share = share(report, region.time_s);
    let imbalance = imbalance(region).map(|imbalance| {
        let doubt = if region.doubt_kind.is_some() { "?" } else { "" };
        format!("{}{doubt}", percent(imbalance))
    });
    let probes = region.probes_share.filter(|&share| share >= PROBES_SHOWN);
    vec![
        region.id.to_string(),
        bar(share, lost_share(report, region), BAR),
        percent(share),
        seconds(region.time_s),
        kind(region),
        match python_caller(&report.contexts, &report.call_paths, region.id) {
            Some(caller) => format!("{caller} › {}", without_address(region)),
            None => location(region),
        },
        count(region.executions),
        if region.xus > 0 {
            count(region.xus)
        } else {
            String::new()
        },
        region.xu_mean_s.map(seconds).unwrap_or_default(),
        if works.len() > 1 {
            columns(&works, THREADS)
        } else {
            String::new()
        },
        imbalance.unwrap_or_default(),
        probes
            .map(|share| format!("~{}", percent(share)))
            .unwrap_or_default(),
    ]
}

fn title_of_regions(report: &Report) -> String {
    let Some(account) = &report.account else {
        let time = seconds(report.thread_time_s);
        return format!("Where {time} of thread time went");
    };
    let of = match (account.processes.len(), account.threads) {
        (0 | 1, 1) => "1 thread".to_owned(),
        (0 | 1, n) => format!("{n} threads"),
        (n, _) => format!("{n} processes"),
    };
    let all = seconds(account.available_ns as f64 * 1e-9);
    format!("Where {all} of {of} went")
}

/// What regions are doubtful, how many are not shown, and which rows are several sites.
fn below_regions(report: &Report, several: &[(u32, usize)], options: TextOptions) -> String {
    let paint = Paint { on: options.colour };
    let mut text = String::new();
    let shown = || report.regions.iter().take(options.top);
    for (region, doubt) in shown().filter_map(|r| Some((r, r.doubt_kind?))) {
        let told = words::doubted(region, doubt);
        text.push_str(&wrap(&told, options.width, "  "));
    }
    let rest = report.regions.get(options.top..).unwrap_or_default();
    if !rest.is_empty() {
        let time: f64 = rest.iter().map(|r| r.time_s).sum();
        let line = format!(
            "{}: {} ({})",
            units::several(rest.len() as u64, "more region"),
            seconds(time),
            percent(share(report, time))
        );
        text.push_str(&paint.dim(&line));
        text.push('\n');
    }
    let several: Vec<String> = shown()
        .filter_map(|r| several.iter().find(|(id, _)| *id == r.id))
        .map(|(id, sites)| format!("#{id} ({sites})"))
        .collect();
    if !several.is_empty() {
        let line = format!(
            "rows for several sites of one source line: {}; --by site lists each",
            several.join(", ")
        );
        text.push_str(&paint.dim(wrap(&line, options.width, "  ").trim_end()));
        text.push('\n');
    }
    text
}

/// Overheads per parallel region.
pub(super) fn overheads(report: &Report, options: TextOptions) -> Option<String> {
    if report.overheads.is_empty() {
        return None;
    }
    let place: BTreeMap<u32, String> = report.regions.iter().map(|r| (r.id, location(r))).collect();
    let rows = report
        .overheads
        .iter()
        .take(options.top)
        .map(|o| {
            let part = |s: Option<f64>| {
                s.filter(|_| o.total_s > 0.0)
                    .map_or("-".to_owned(), |s| percent(s / o.total_s))
            };
            let mut row = vec![
                o.region.to_string(),
                place.get(&o.region).cloned().unwrap_or_default(),
                count(o.executions),
                o.team.to_string(),
                seconds(o.wall_s),
                o.of_run.map_or_else(|| "-".to_owned(), percent),
                part(o.work_s),
            ];
            row.extend(Class::ALL.iter().map(|&class| part(o.overhead.get(class))));
            let largest = o.parts.first().filter(|p| p.seconds > 0.0);
            row.push(largest.map_or_else(String::new, |p| {
                format!("{} {}", p.what, seconds(p.seconds))
            }));
            row
        })
        .collect();
    let columns = [
        Column::right("#"),
        Column::left("parallel region").keeps_place(15),
        Column::right("execs").leaves(2),
        Column::right("team").leaves(1),
        Column::right("wall"),
        Column::right("of run").leaves(3),
        Column::right("work"),
        Column::right("sync"),
        Column::right("imbal"),
        Column::right("limpar"),
        Column::right("mgmt"),
        Column::left("mostly").leaves(4),
    ];
    let explanation = "shares of fork to join × team size";
    let mut text = titled("Overheads", explanation, options);
    text.push_str(&laid_out(&columns, rows, options));
    for overhead in report.overheads.iter().take(options.top) {
        if let Some(incomplete) = words::incomplete(&overhead.incomplete_because) {
            text.push_str(&wrap(
                &format!("#{}: {incomplete}", overhead.region),
                options.width,
                "  ",
            ));
        }
    }
    Some(text)
}

/// Overheads relative to the program's available time, those that cost most first (ompP's second table of overheads).
pub(super) fn of_program(report: &Report, options: TextOptions) -> Option<String> {
    let known = report.overheads.iter();
    let mut known: Vec<_> = known.filter_map(|o| Some((o, o.of_program?))).collect();
    if known.is_empty() {
        return None;
    }
    known.sort_by(|a, b| b.1.overheads.total_cmp(&a.1.overheads));
    let place: BTreeMap<u32, String> = report.regions.iter().map(|r| (r.id, location(r))).collect();
    let part = |share: Option<f64>| share.map_or("-".to_owned(), percent);
    let mut rows: Vec<Vec<String>> = known
        .iter()
        .take(options.top)
        .map(|(o, shares)| {
            let mut row = vec![
                o.region.to_string(),
                place.get(&o.region).cloned().unwrap_or_default(),
                percent(shares.total),
                percent(shares.overheads),
            ];
            row.extend(Class::ALL.iter().map(|&class| part(shares.get(class))));
            row
        })
        .collect();
    // Regions inside of other ones are in the time of these already.
    let outermost = known.iter().filter(|(o, _)| o.nested == 0);
    let total: f64 = outermost.map(|(_, s)| s.total).sum();
    let all: f64 = known.iter().map(|(_, s)| s.overheads).sum();
    let mut sum = vec![
        String::new(),
        "SUM".to_owned(),
        percent(total),
        percent(all),
    ];
    sum.extend(Class::ALL.iter().map(|&class| {
        let parts = known.iter().filter_map(|(_, s)| s.get(class));
        part(parts.reduce(|a, b| a + b))
    }));
    rows.push(sum);
    let columns = [
        Column::right("#"),
        Column::left("parallel region").keeps_place(15),
        Column::right("region"),
        Column::right("overheads"),
        Column::right("sync"),
        Column::right("imbal"),
        Column::right("limpar"),
        Column::right("mgmt"),
    ];
    let explanation = "shares of the available time";
    let mut text = titled("Overheads of the whole program", explanation, options);
    text.push_str(&laid_out(&columns, rows, options));
    Some(text)
}

/// Of the available time, or where that isn't known of what was recorded.
fn share(report: &Report, seconds: f64) -> f64 {
    let all = match &report.account {
        Some(account) => account.available_ns as f64 * 1e-9,
        None => report.thread_time_s,
    };
    match all > 0.0 {
        true => seconds / all,
        false => 0.0,
    }
}

/// The part of a region's share in which threads wait or are in the runtime library.
fn lost_share(report: &Report, region: &Region) -> f64 {
    share(report, region.wait_s + region.runtime_s)
}
