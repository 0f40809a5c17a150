//! All that is known of one region: what a page shows when it is selected.

mod source;
mod units;

use super::bars::bar;
use super::{Paint, TextOptions, callers, laid_out, mutexes, titled};
use crate::units::Units;
use crate::view::html::Sources;
use crate::view::html::rows::{Row, rows};
use crate::view::lines::Merged;
use crate::view::table::{Column, wrap};
use crate::view::{html::terms, lines, paint};
use crate::words::{self, kind, location, transfer};
use ompfuse_account::model::{Class, Loss, Region, RegionThread, Report};
use ompfuse_account::units::{self as numbers_of, count, percent, seconds, several};

/// Callers, sites and threads that are listed.
const CALLERS: usize = 20;
const SITES: usize = 12;
const THREADS: usize = 64;
/// Locks that are listed.
const MOST_LOCKS: usize = 20;
/// Width of bars.
const BAR: usize = 20;

/// What is told of a region beside the report.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// The execution units, if they are at hand.
    pub units: Option<&'a Units>,
    /// Source files that are still there.
    pub sources: &'a Sources,
}

/// The regions as rows of the report, each with all sites that it stands for; [`super::By::Site`]: each site.
pub fn rows_by(report: &Report, by: super::By) -> Vec<Region> {
    match by {
        super::By::Line => lines::merged(report).report.regions,
        super::By::Site => report.regions.clone(),
    }
}

/// A region's name in messages: its number, construct and place.
pub fn name(region: &Region) -> String {
    let place = words::in_sentence(&location(region));
    format!("#{} {} {place}", region.id, kind(region))
}

/// The text about the region with this number, lines ending in a line feed. `None`: there is no such region.
pub fn detail(
    report: &Report,
    id: u32,
    beside: Beside<'_>,
    options: TextOptions,
) -> Option<String> {
    let options = TextOptions {
        width: paint::width(options.width),
        ..options
    };
    let merged = match options.by {
        super::By::Line => lines::merged(report),
        super::By::Site => Merged {
            report: report.clone(),
            several: Vec::new(),
            number: report.regions.iter().map(|r| (r.id, r.id)).collect(),
        },
    };
    let rows = rows(report, &merged, beside.units);
    let row = rows.iter().find(|row| row.region.id == id)?;
    let region = row.region;
    let mut sections = vec![head(row, options), numbers(row, options)];
    sections.extend(notes(row, options));
    sections.extend(losses(report, row, options));
    sections.extend(overhead(row, options));
    sections.extend(threads(region, options));
    sections.extend(units::histogram(row, options));
    sections.extend(units::longest(row, beside.units, options));
    sections.extend(mutex(region, options));
    sections.extend(locks(&merged.report, region, options));
    sections.extend(handed_over(region, options));
    if !row.callers.is_empty() {
        let title = titled("Callers", "incl.: own time with everything inside", options);
        sections.push(title + &callers::table(&row.callers, CALLERS, options));
    }
    sections.extend(events(region, options));
    sections.extend(predicted(report, row, options));
    sections.extend(source::source(
        region,
        &report.regions,
        beside.sources,
        options,
    ));
    Some(sections.join("\n"))
}

fn head(row: &Row<'_>, options: TextOptions) -> String {
    let region = row.region;
    let paint = Paint { on: options.colour };
    let mut text = paint.bold(wrap(&name(region), options.width, "  ").trim_end()) + "\n";
    let mut facts = vec![];
    let function = region
        .function_demangled
        .as_ref()
        .or(region.function.as_ref());
    facts.extend(function.map(|f| format!("function {}", words::in_sentence(f))));
    facts.extend(region.detail.clone());
    let source = region.source.as_ref();
    facts.extend(source.map(|s| format!("{}:{}", s.file, s.line)));
    if !facts.is_empty() {
        text += &wrap(&facts.join(" · "), options.width, "  ");
    }
    let sites: Vec<&str> = row.sites.iter().map(|s| s.name.as_str()).collect();
    let more = sites.len().saturating_sub(SITES);
    let shown = &sites[..sites.len() - more];
    let more = match more {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    text + &wrap(
        &format!("machine code at {}{more}", shown.join(", ")),
        options.width,
        "  ",
    )
}

/// The numbers of the region as a whole, a line for each kind.
fn numbers(row: &Row<'_>, options: TextOptions) -> String {
    let region = row.region;
    let mut lines = vec![format!(
        "own time {} ({} of all threads' time): work {}, waiting {}, runtime library {}",
        seconds(region.time_s),
        percent(region.share),
        seconds(region.work_s),
        seconds(region.wait_s),
        seconds(region.runtime_s)
    )];
    let mut times = vec![];
    times.extend(
        region
            .wall_s
            .map(|s| format!("{} from fork to join", seconds(s))),
    );
    times.extend(
        region
            .inclusive_s
            .map(|s| format!("{} with everything inside", seconds(s))),
    );
    times.extend(
        row.efficiency()
            .map(|e| format!("efficiency {}", percent(e))),
    );
    let probes = region.probes_share.filter(|&s| s >= 0.001);
    times.extend(probes.map(|s| format!("probes about {}", percent(s))));
    lines.push(times.join(" · "));
    let mut counts = vec![several(region.executions, "execution")];
    if region.xus > 0 {
        counts.push(format!("{} execution units (XUs)", count(region.xus)));
    }
    counts.extend(
        region
            .iterations
            .map(|n| format!("{} iterations", count(n))),
    );
    if let (Some(most), Some(mean)) = (region.iterations_max, region.mean_iterations()) {
        counts.push(format!(
            "mean {}, most {}",
            numbers_of::mean(mean),
            count(most)
        ));
    }
    lines.push(counts.join(" · "));
    let unit = [
        ("shortest", region.xu_min_s),
        ("median", row.median_s()),
        ("mean", region.xu_mean_s),
        ("longest", region.xu_max_s),
    ];
    let unit: Vec<String> = (unit.into_iter())
        .filter_map(|(name, s)| Some(format!("{name} {}", seconds(s?))))
        .collect();
    if !unit.is_empty() {
        lines.push(format!("own time of a unit: {}", unit.join(", ")));
    }
    if let Some(imbalance) = row.imbalance() {
        let spread = &region.spread;
        lines.push(format!(
            "imbalance {} over {}: least work {}, mean {}, most {}",
            percent(imbalance),
            several(spread.threads.into(), "thread"),
            seconds(spread.min_s),
            seconds(spread.mean_s),
            seconds(spread.max_s)
        ));
    }
    let lines = lines.iter().filter(|l| !l.is_empty());
    lines.map(|l| wrap(l, options.width, "  ")).collect()
}

fn notes(row: &Row<'_>, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let notes = row.notes();
    let line = |note: &String| paint.warn(wrap(note, options.width, "  ").trim_end()) + "\n";
    (!notes.is_empty()).then(|| notes.iter().map(line).collect())
}

/// Why time is lost there.
fn losses(report: &Report, row: &Row<'_>, options: TextOptions) -> Option<String> {
    let losses = row.losses(report);
    let one = |(number, loss): (usize, &&Loss)| {
        let remedy = words::remedy(report, loss).map_or(String::new(), |r| format!("; try: {r}"));
        let line = format!(
            "{number}. {} ({}): {}{remedy}",
            percent(loss.share),
            seconds(loss.seconds),
            words::cause(report, loss)
        );
        wrap(&line, options.width, "   ")
    };
    let title = titled("Why", "shares of the available time", options);
    let lines: String = (1..).zip(&losses).map(one).collect();
    (!losses.is_empty()).then(|| title + &lines)
}

/// What a parallel region's time is, from fork to join, all threads.
fn overhead(row: &Row<'_>, options: TextOptions) -> Option<String> {
    let overhead = row.overhead.filter(|o| o.total_s > 0.0)?;
    let share = |s: f64| s / overhead.total_s;
    let mut parts = vec![("Work", overhead.work_s)];
    for class in Class::ALL {
        parts.push((terms::class_name(class), overhead.overhead.get(class)));
    }
    parts.push(("Not known", Some(overhead.unknown_s).filter(|&s| s > 0.0)));
    let row = |(name, s): (&str, Option<f64>)| {
        let s = s?;
        Some(vec![
            name.to_owned(),
            percent(share(s)),
            seconds(s),
            bar(share(s), 0.0, BAR),
        ])
    };
    let columns = [
        Column::left("fork to join"),
        Column::right("share"),
        Column::right("time"),
        Column::left("").leaves(1),
    ];
    let title = format!(
        "{} of {}",
        seconds(overhead.total_s),
        several(overhead.team, "thread")
    );
    let text = titled("Overheads", &title, options);
    Some(
        text + &laid_out(
            &columns,
            parts.into_iter().filter_map(row).collect(),
            options,
        ),
    )
}

/// A row for each thread.
fn threads(region: &Region, options: TextOptions) -> Option<String> {
    let time = |t: &RegionThread| t.work_s + t.wait_s + t.runtime_s;
    let most = region.per_thread.iter().map(time).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let process = |t: &RegionThread| (t.process, t.mpi_rank);
    let several = region
        .per_thread
        .windows(2)
        .any(|t| process(&t[0]) != process(&t[1]));
    let row = |t: &RegionThread| {
        let lost = (t.wait_s + t.runtime_s) / most;
        vec![
            super::per_thread::name(t, several),
            count(t.xus),
            seconds(t.work_s),
            seconds(t.wait_s),
            seconds(t.runtime_s),
            bar(time(t) / most, lost, BAR),
        ]
    };
    let columns = [
        Column::right("thread"),
        Column::right("XUs").leaves(1),
        Column::right("work"),
        Column::right("wait"),
        Column::right("runtime"),
        Column::left("").leaves(2),
    ];
    let shown = region.per_thread.iter().take(THREADS);
    let text = titled(
        "Threads",
        "own time: █ work ░ waiting and runtime library",
        options,
    );
    let mut text = text + &laid_out(&columns, shown.map(row).collect(), options);
    if let Some(more @ 1..) = region.per_thread.len().checked_sub(THREADS) {
        text.push_str(&format!("{more} more threads (--format json lists them)\n"));
    }
    Some(text)
}

/// Of what one thread at a time is in.
fn mutex(region: &Region, options: TextOptions) -> Option<String> {
    let mutex = region.mutex?;
    let known = |s: Option<f64>| s.map_or_else(|| "not known".to_owned(), seconds);
    let line = format!(
        "one thread at a time: {} entries, {} waiting to enter, held for {}, leaving {}",
        count(mutex.entries),
        seconds(mutex.enter_s),
        known(mutex.held_s),
        known(mutex.exit_s)
    );
    Some(wrap(&line, options.width, "  "))
}

/// Of calls of MPI.
fn handed_over(region: &Region, options: TextOptions) -> Option<String> {
    let of = region.transfer.as_ref()?;
    let mut line = format!(
        "{} calls handed over {} (mean {}) and received {} (mean {})",
        count(of.calls),
        transfer::left(of),
        transfer::mean(of.mean_out),
        transfer::came(of),
        transfer::mean(of.mean_in)
    );
    if of.bounded_calls > 0 {
        let bounded = count(of.bounded_calls);
        line += &format!("; {bounded} of them don't tell how much they received");
    }
    if let Some(late) = transfer::late_sender(of) {
        line += &format!("; began before the message was sent: {late} of waiting");
    }
    Some(wrap(&line, options.width, "  "))
}

/// The locks that it takes, where they are told apart.
fn locks(report: &Report, region: &Region, options: TextOptions) -> Option<String> {
    let of_region = report.locks.iter();
    let of_region: Vec<_> = of_region
        .filter(|l| l.regions.contains(&region.id))
        .collect();
    if of_region.is_empty() {
        return None;
    }
    let text = titled("Locks", "of all regions that take them", options);
    Some(text + &mutexes::table(&of_region, MOST_LOCKS, options))
}

fn events(region: &Region, options: TextOptions) -> Option<String> {
    if region.events.is_empty() {
        return None;
    }
    let per_unit = |n: u64| match region.xus {
        0 => String::new(),
        xus => words::times(n as f64 / xus as f64),
    };
    let row = |(name, &n): (&String, &u64)| vec![name.clone(), count(n), per_unit(n)];
    let columns = [
        Column::left("event").keeps_end(12),
        Column::right("count"),
        Column::right("per XU").leaves(1),
    ];
    let text = titled("Events", "own counts, all threads", options);
    Some(text + &laid_out(&columns, region.events.iter().map(row).collect(), options))
}

/// Predicted times with other numbers of threads; of a row for several sites nobody knows.
fn predicted(report: &Report, row: &Row<'_>, options: TextOptions) -> Option<String> {
    let [site] = row.sites[..] else { return None };
    let scaling = report.scaling.as_ref()?;
    let of = scaling.regions.iter().find(|r| r.region == site.id)?;
    if of.predicted.len() < 2 {
        return None;
    }
    let rows = of.predicted.iter();
    let rows = rows.map(|p| vec![p.threads.to_string(), seconds(p.seconds)]);
    let columns = [Column::right("threads"), Column::right("fork to join")];
    let text = titled(
        "Predicted",
        "time on the clock with other numbers of threads",
        options,
    );
    Some(text + &laid_out(&columns, rows.collect(), options))
}
