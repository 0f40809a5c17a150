//! Lines and functions of regions as text for a terminal.

use super::paint::{self, Paint};
use super::table::{self, Column, wrap};
use super::text::TextOptions;
use crate::sampled::{LEAST, SampledLine, SampledRegion, SampledReport};
use crate::words::units::{count, percent, seconds, several};
use ompfuse_format::samples::{ClosedAt, TooMuch};

/// Lines of a region that are listed.
const LINES: usize = 10;
/// Of a path so many characters stay.
const PATH: usize = 24;

/// The samples of a run as text, lines ending in a line feed.
pub fn text(report: &SampledReport, options: TextOptions) -> String {
    let width = paint::width(options.width);
    let options = TextOptions { width, ..options };
    let mut sections = vec![head(report, options)];
    let (told, few): (Vec<_>, Vec<_>) = (report.regions.iter()).partition(|r| r.samples >= LEAST);
    sections.extend(told.iter().map(|region| of_region(report, region, options)));
    if !few.is_empty() {
        let samples: u64 = few.iter().map(|r| r.samples).sum();
        let text = format!(
            "{} with fewer than {LEAST} samples each: {samples} in all",
            several(few.len() as u64, "region")
        );
        sections.push(wrap(&text, width, "  "));
    }
    sections.join("\n")
}

fn head(report: &SampledReport, options: TextOptions) -> String {
    let SampledReport {
        program,
        rate,
        period_ns,
        samples,
        lost,
        closed,
        idle,
        unrecorded,
        regions: _,
    } = report;
    let paint = Paint { on: options.colour };
    let each = seconds(*period_ns as f64 * 1e-9);
    let mut text = paint.bold(&table::front(
        &format!("Samples of {program}"),
        options.width,
    )) + "\n";
    let mut facts = vec![format!(
        "{}, {rate} a second: each stands for {each} of a thread's processor time in user code",
        several(*samples, "sample")
    )];
    if *idle > 0 {
        facts.push(format!(
            "{} of threads that had nothing to do outside of regions",
            several(*idle, "sample")
        ));
    }
    if *unrecorded > 0 {
        facts.push(format!(
            "{} of what is not on record (other processes, the program's begin and end)",
            several(*unrecorded, "sample")
        ));
    }
    if *lost > 0 {
        facts.push(format!(
            "{} lost: the kernel had no room for more",
            several(*lost, "record")
        ));
    }
    facts.extend(closed.as_ref().map(closed_at));
    for fact in facts {
        text += &wrap(&format!("  {fact}"), options.width, "    ");
    }
    text
}

/// Since when there are no samples, and why.
fn closed_at(closed: &ClosedAt) -> String {
    let since = seconds(closed.at_s);
    let amount = count(closed.amount);
    let because = match closed.because {
        TooMuch::Switches => format!("{amount} switches of threads a second"),
        TooMuch::Threads => format!("{amount} new threads a second"),
        TooMuch::Events => format!("{amount} events in the kernel"),
        TooMuch::Bytes => {
            return format!("no samples from {since} on: the run has its largest size");
        }
    };
    format!("no samples from {since} on: with {because} they would slow the program down")
}

fn of_region(report: &SampledReport, region: &SampledRegion, options: TextOptions) -> String {
    let paint = Paint { on: options.colour };
    let title = format!("{}: {}", name(region), several(region.samples, "sample"));
    let mut text = paint.bold(wrap(&title, options.width, "  ").trim_end()) + "\n";
    let share = |n: u64| percent(n as f64 / region.samples.max(1) as f64);
    let mut parts = vec![
        format!(
            "{} of all",
            percent(region.samples as f64 / report.samples.max(1) as f64)
        ),
        format!("{} work", share(region.work)),
        format!("{} in the OpenMP runtime or waiting", share(region.runtime)),
        format!("{} recording", share(region.recording)),
    ];
    if region.uncertain > 0 {
        parts.push(format!("{} uncertain", share(region.uncertain)));
    }
    text += &wrap(&format!("  {}", parts.join(" · ")), options.width, "    ");
    if region.lines.is_empty() {
        let why = format!("  no line has {LEAST} samples");
        return text + &paint.dim(&why) + "\n";
    }
    let columns = [
        Column::right("samples"),
        Column::right("of work"),
        Column::left("line").keeps_place(PATH),
        Column::left("function").leaves(1).keeps_front(PATH),
    ];
    let rows = region.lines.iter().take(LINES).map(|line| {
        vec![
            count(line.samples),
            percent(line.samples as f64 / region.work.max(1) as f64),
            place(line),
            function(line),
        ]
    });
    let plain = |_: usize, cell: &str| cell.to_owned();
    let head = |line: &str| paint.dim(line);
    text + &table::fitted(&columns, rows.collect(), Some(options.width), &plain, &head).text
}

/// A region in words.
fn name(region: &SampledRegion) -> String {
    let Some(construct) = region.construct else {
        return "outside of constructs".to_owned();
    };
    let mut name = construct.name().to_owned();
    match (&region.file, region.line) {
        (Some(file), Some(line)) => name += &format!(" {}:{line}", base(file)),
        _ => {
            name += &region
                .sites
                .first()
                .map_or(String::new(), |s| format!(" {s}"))
        }
    }
    match &region.function {
        Some(function) => format!("{name} ({function})"),
        None => name,
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn place(line: &SampledLine) -> String {
    match (&line.file, line.line, &line.object) {
        (Some(file), Some(line), _) => format!("{}:{line}", base(file)),
        (_, _, Some(object)) => base(object).to_owned(),
        _ => "?".to_owned(),
    }
}

fn function(line: &SampledLine) -> String {
    match (&line.function, &line.inlined_into) {
        (Some(function), Some(into)) => format!("{function} (inlined into {into})"),
        (Some(function), None) => function.clone(),
        _ => "?".to_owned(),
    }
}
