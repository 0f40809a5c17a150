//! Lines and functions of regions as text for a terminal.

pub(in crate::view) mod process;
pub mod shares;

use super::paint::{self, Paint};
use super::table::{self, Column, wrap};
use super::text::TextOptions;
use crate::words::in_sentence;
use crate::words::uneven::{meant, mostly_asleep, noun, reason};
use ompfuse_account::sampled::{LEAST, SampledLine, SampledPool, SampledRegion, SampledReport};
use ompfuse_account::units::{count, percent, seconds, several};
use ompfuse_format::Construct;
use ompfuse_format::samples::{ClosedAt, TooMuch};
use ompfuse_fuse::samples::{Asleep, IMPORT};

/// Lines of a region that are listed.
const LINES: usize = 10;
/// Of a path so many characters stay.
const PATH: usize = 24;

/// The samples of a run as text, lines ending in a line feed.
pub fn text(report: &SampledReport, options: TextOptions) -> String {
    let width = paint::width(options.width);
    let options = TextOptions { width, ..options };
    let mut sections = match &report.process {
        Some(process) => process::sections(report, process, options),
        None => vec![head(report, options)],
    };
    if !report.threads.is_empty() {
        sections.push(process::threads(report, options));
    }
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
        pools,
        regions,
        process: _,
        threads: _,
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
    facts.extend(importing(regions, *period_ns));
    let work = regions.iter().map(|r| r.work).sum();
    facts.extend(pools.iter().map(|p| pool(p, work)));
    for fact in facts {
        text += &wrap(&format!("  {fact}"), options.width, "    ");
    }
    text
}

/// How much of the work outside of constructs imports Python's modules.
fn importing(regions: &[SampledRegion], period_ns: u64) -> Option<String> {
    let mut outside = regions.iter();
    let outside = outside.find(|r| r.construct.is_none() && !r.is_unknown)?;
    let mut functions = outside.functions.iter();
    let import = functions.find(|f| f.function.as_deref() == Some(IMPORT))?;
    let share = import.total as f64 / outside.work.max(1) as f64;
    let time = |samples: u64| seconds((samples * period_ns) as f64 * 1e-9);
    (share >= MUCH).then(|| {
        format!(
            "importing Python modules: at least {} of the {} of work outside of constructs",
            time(import.total),
            time(outside.work)
        )
    })
}

/// A library with threads of its own. `work`: samples of work.
fn pool(pool: &SampledPool, work: u64) -> String {
    let share = |n: u64| percent(n as f64 / work.max(1) as f64);
    let waits = match pool.waits {
        0 => String::new(),
        n => format!(", {} more is its threads' wait for work", share(n)),
    };
    format!(
        "{} ({}) has threads of its own, which are not recorded: {} of the work is in it{waits}; {} says how many threads",
        pool.name,
        pool.files.join(", "),
        share(pool.samples),
        pool.variable
    )
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
    if let Some(uneven) = &region.uneven {
        let noun = noun(region.construct.unwrap_or(Construct::Task));
        let told = match reason(uneven, noun) {
            Some(reason) => format!("  {}: {reason}", meant(uneven)),
            None => format!(
                "  {}: why they are slow isn't known, with so few units or samples",
                meant(uneven)
            ),
        };
        text += &wrap(&told, options.width, "    ");
    }
    if let Some(asleep) = region
        .asleep
        .as_ref()
        .filter(|a| is_much(a, report, region))
    {
        let mostly = mostly_asleep(asleep).map_or_else(String::new, |at| format!(", {at}"));
        let told = format!(
            "  its code slept or waited by itself for {} of its threads' time{mostly}",
            seconds(asleep.seconds)
        );
        text += &wrap(&told, options.width, "    ");
    }
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
            line.place(),
            function(line),
        ]
    });
    let plain = |_: usize, cell: &str| cell.to_owned();
    let head = |line: &str| paint.dim(line);
    text += &table::fitted(&columns, rows.collect(), Some(options.width), &plain, &head).text;
    text + &of_functions(region, options)
}

/// Of a region's own time.
const MUCH: f64 = 0.05;

fn is_much(asleep: &Asleep, report: &SampledReport, region: &SampledRegion) -> bool {
    let work_s = region.work as f64 * report.period_ns as f64 * 1e-9;
    asleep.seconds >= MUCH * (work_s + asleep.seconds)
}

/// The functions that a region calls, with what each calls: where most of the work is behind some that do it not by themselves.
fn of_functions(region: &SampledRegion, options: TextOptions) -> String {
    let own = region.function.as_deref();
    let callers = region.functions.iter();
    let callers = callers.filter(|f| f.total > f.samples + region.work / 20 && f.object.is_none());
    let callers: Vec<_> = callers.filter(|f| f.function.as_deref() != own).collect();
    if callers.is_empty() {
        return String::new();
    }
    let paint = Paint { on: options.colour };
    let columns = [
        Column::right("samples"),
        Column::right("of work"),
        Column::right("own"),
        Column::left("function, with what it calls").keeps_front(PATH),
    ];
    let rows = callers.into_iter().take(LINES / 2).map(|function| {
        vec![
            count(function.total),
            percent(function.total as f64 / region.work.max(1) as f64),
            count(function.samples),
            function.function.clone().unwrap_or_else(|| "?".to_owned()),
        ]
    });
    let plain = |_: usize, cell: &str| cell.to_owned();
    let head = |line: &str| paint.dim(line);
    table::fitted(&columns, rows.collect(), Some(options.width), &plain, &head).text
}

/// A region in words.
pub(in crate::view) fn name(region: &SampledRegion) -> String {
    let source = region.file.as_deref().zip(region.line);
    if region.is_unknown {
        return UNKNOWN.to_owned();
    }
    named(&Named {
        construct: region.construct,
        called: region.called.as_deref(),
        source,
        site: region.sites.first().map(String::as_str),
        function: region.function.as_deref(),
    })
}

/// What code is in that the runtime has called, where the stack doesn't tell for which construct.
const UNKNOWN: &str = "in a construct that isn't known";

/// What names a region.
struct Named<'a> {
    construct: Option<Construct>,
    called: Option<&'a str>,
    source: Option<(&'a str, u32)>,
    site: Option<&'a str>,
    function: Option<&'a str>,
}

fn named(region: &Named<'_>) -> String {
    let Some(construct) = region.construct else {
        return "outside of constructs".to_owned();
    };
    let mut name = region.called.unwrap_or(construct.name()).to_owned();
    match (region.source, region.site) {
        (Some((file, line)), _) => name += &format!(" {}:{line}", base(file)),
        (None, Some(site)) => name += &format!(" {site}"),
        (None, None) => {}
    }
    match region.function {
        Some(function) => format!("{name} ({})", in_sentence(function)),
        None => name,
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub(in crate::view) fn function(line: &SampledLine) -> String {
    let name = match (&line.function, &line.inlined_into) {
        (Some(function), Some(into)) => format!("{function} (inlined into {into})"),
        (Some(function), None) => function.clone(),
        _ => "?".to_owned(),
    };
    let Some(callee) = &line.callee else {
        return name;
    };
    let object = callee.object.as_deref().map(base);
    match (&callee.function, object) {
        (Some(callee), Some(object)) => format!("{name}: {callee} in {object}"),
        (Some(callee), None) => format!("{name}: {callee}"),
        (None, object) => format!("{name}: code of {}", object.unwrap_or("?")),
    }
}
