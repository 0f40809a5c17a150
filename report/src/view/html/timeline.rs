//! The section of the timeline: what each thread did, drawn by `assets/timeline/`.
//!
//! Spans are exclusive: at each moment a thread is in one. At most [`MOST`] of them are in the page one by one, the longest. All
//! shorter ones are there as sums: by thread, stretch of time and class.

mod bins;
mod encode;
mod lanes;
mod longest;
mod paths;
mod whats;

use super::Keys;
use crate::units::{Gather, Units};
use bins::Scale;
use encode::Columns;
use lanes::Reading;
use longest::Longest;
use maud::{Markup, html};
use ompfuse_account::Report;
use ompfuse_account::units::{count, percent, seconds, several};
use ompfuse_fuse::run::ProcessInfo;
use ompfuse_fuse::run::timeline::{Lane, Step, Timeline};
use ompfuse_fuse::span::{MOST_DRAWN, Stretch};
use ompfuse_fuse::table::Site;
use ompfuse_progress::Progress;
use rayon::prelude::*;
use serde::Serialize;
use whats::{CLASSES, Told, Whats};

/// Most spans that are in the page one by one.
pub const MOST: u64 = 100_000;

/// Stretches of time that sums are made of, all threads together and for each.
const MOST_BINS: usize = 1 << 16;
const BINS: std::ops::RangeInclusive<usize> = 64..=4096;

/// Counts that are in the page at most: with more, the last events are left out.
const MOST_COUNTS: u64 = 200_000;

/// So many threads are unfolded when the page is opened, and have a row in the table.
const MANY_LANES: usize = 32;

/// What the scripts read: `assets/timeline/decode.js`. Times are nanoseconds, but for `begin` and `end` since `begin`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    /// Since the run's begin.
    begin: i64,
    end: i64,
    /// Names of the classes' colours.
    classes: [&'static str; CLASSES.len()],
    regions: Vec<whats::Region>,
    /// What spans are: class, region (or -1), name.
    whats: Vec<(u8, i32, String)>,
    events: Vec<String>,
    groups: Vec<Group>,
    /// Stretches that sums are of; 0: there are none.
    bins: usize,
    bin_ns: f64,
    /// All threads' columns, deflated, as base64.
    columns: String,
    /// Units on the critical path, by execution of an outermost region: lane, begin, end.
    paths: Vec<Vec<(u32, u64, u64)>>,
}

/// A process.
#[derive(Debug, Serialize)]
struct Group {
    name: String,
    /// Unfolded at first.
    open: bool,
    lanes: Vec<LaneData>,
}

/// A thread.
#[derive(Debug, Serialize)]
struct LaneData {
    name: String,
    detail: &'static str,
    begin: u64,
    end: u64,
    spans: u64,
    items: u64,
}

/// Everything that is drawn, before a report says what it is called.
#[derive(Debug)]
pub struct Drawn {
    begin: i64,
    end: i64,
    /// In the timeline's order.
    lanes: Vec<Lane>,
    columns: Vec<encode::Lane>,
    processes: Vec<ProcessInfo>,
    sites: Vec<Site>,
    /// Events that are counted, and how many of them are in the page.
    counted: Vec<String>,
    events: usize,
    whats: Whats,
    /// Stretches from this length on are there one by one, in nanoseconds; 0: all are.
    least: u64,
    scale: Scale,
    spans: u64,
    units: u64,
    /// By execution of an outermost region, what is on its critical path; `None`: it is not known.
    paths: Option<Vec<Vec<Stretch>>>,
}

/// Reads all threads once. `gather`: who wants to be told of units, too. `None`: no thread has recorded anything.
pub fn draw(
    timeline: &Timeline<'_>,
    gather: Option<&Gather>,
    progress: Progress<'_>,
) -> Option<(Drawn, Units)> {
    let lanes = timeline.lanes();
    let begin = lanes.iter().map(|l| l.begin_ns).min()?;
    let end = lanes.iter().map(|l| l.end_ns).max()?.max(begin);
    let scale = Scale {
        begin,
        length: (end - begin).max(1) as u64,
        bins: (MOST_BINS / lanes.len().max(1)).clamp(*BINS.start(), *BINS.end()),
    };
    let longest = Longest::new();
    let all = timeline.intervals() as usize;
    let read = |number: usize| {
        let lane = &lanes[number];
        let mut reading = Reading::new(timeline, lane, scale, &longest);
        let mut units = gather.map(|gather| gather.lane(timeline, number));
        timeline.steps(number).for_each(|step| {
            if let (Some(units), Step::Leave(span, _)) = (&mut units, &step) {
                units.add(span);
            }
            reading.step(step);
        });
        reading.finish(number);
        progress.steps(lane.intervals as usize, all);
        progress.release();
        units
    };
    let units: Vec<_> = (0..lanes.len()).into_par_iter().map(read).collect();
    let units = Units::of_lanes(timeline, units.into_iter().flatten());
    let (least, drawings) = longest.finish();
    let (mut spans, mut number_of_units) = (0, 0);
    for drawing in &drawings {
        spans += drawing.spans;
        number_of_units += drawing.units;
    }
    let events = timeline.counted().len().min(match number_of_units {
        0 => 0,
        units => (MOST_COUNTS / units.min(MOST)) as usize,
    });
    let mut whats = Whats::default();
    let columns = drawings.into_iter().enumerate().map(|(number, drawing)| {
        encode::Lane::new(timeline, number, drawing, begin, events, &mut whats)
    });
    let drawn = Drawn {
        begin,
        end,
        columns: columns.collect(),
        lanes: lanes.to_vec(),
        processes: timeline.processes().to_vec(),
        sites: timeline.sites().to_vec(),
        counted: timeline.counted().to_vec(),
        events,
        whats,
        least,
        scale,
        spans,
        units: number_of_units,
        paths: None,
    };
    Some((drawn, units))
}

/// The section.
pub fn section(drawn: &Drawn, report: &Report, keys: &Keys) -> Markup {
    let names = Told {
        report,
        keys,
        sites: &drawn.sites,
    };
    let classes = drawn.whats.classes(&names);
    let order = order(drawn);
    let mut columns = Columns::default();
    let mut lanes: Vec<LaneData> = vec![];
    for &number in &order {
        let lane = &drawn.lanes[number];
        let sums = (drawn.least > 0).then_some(&classes[..]);
        let (spans, items) = columns.add(&drawn.columns[number], sums);
        lanes.push(LaneData {
            name: called(lane),
            detail: detail(lane),
            begin: (lane.begin_ns - drawn.begin).max(0) as u64,
            end: (lane.end_ns - drawn.begin).max(0) as u64,
            spans,
            items,
        });
    }
    let mut told = told(drawn);
    if report.runs.len() > 1 {
        told.insert(0, format!("Of the first of {} runs.", report.runs.len()));
    }
    let sums: Vec<_> = drawn.columns.iter().map(|c| c.sums(&classes)).collect();
    let table = table(drawn, &order, &sums);
    let (regions, whats) = drawn.whats.finish(&classes, &names);
    let has_sums = drawn.least > 0;
    let data = Data {
        begin: drawn.begin,
        end: drawn.end,
        classes: CLASSES.map(|c| c.colour),
        regions,
        whats,
        events: drawn.counted[..drawn.events].to_vec(),
        bins: if has_sums { drawn.scale.bins } else { 0 },
        bin_ns: if has_sums { drawn.scale.bin_ns() } else { 0.0 },
        columns: columns.finish(),
        paths: drawn.shown_paths(&order),
        groups: groups(drawn, &order, lanes),
    };
    markup(&data, &told, &table)
}

fn detail(lane: &Lane) -> &'static str {
    match (lane.has_ended, lane.is_root) {
        (false, _) => "did not end",
        (true, true) => "root",
        (true, false) => "",
    }
}

/// Lanes as they are shown, by their numbers in the timeline: ranks in their order.
fn order(drawn: &Drawn) -> Vec<usize> {
    let mut order: Vec<usize> = (0..drawn.lanes.len()).collect();
    let rank = |lane: &Lane| drawn.processes[lane.process as usize].mpi_rank;
    order.sort_by_key(|&number| {
        let lane = &drawn.lanes[number];
        (rank(lane).unwrap_or(u32::MAX), lane.process, lane.thread)
    });
    order
}

/// By process. `lanes`: in this order.
fn groups(drawn: &Drawn, order: &[usize], lanes: Vec<LaneData>) -> Vec<Group> {
    let several = drawn.processes.len() > 1;
    let is_open = lanes.len() <= MANY_LANES;
    let mut groups: Vec<(u16, Group)> = vec![];
    for (&number, data) in order.iter().zip(lanes) {
        let lane = &drawn.lanes[number];
        if groups
            .last()
            .is_none_or(|(process, _)| *process != lane.process)
        {
            let process = &drawn.processes[lane.process as usize];
            let name = match process.mpi_rank {
                Some(rank) => format!("rank {rank}"),
                None if several => format!("process {}", process.pid),
                None => "program".to_owned(),
            };
            groups.push((
                lane.process,
                Group {
                    name,
                    open: is_open,
                    lanes: vec![],
                },
            ));
        }
        if let Some((_, group)) = groups.last_mut() {
            group.lanes.push(data);
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// What is drawn, and what isn't.
fn told(drawn: &Drawn) -> Vec<String> {
    let lanes = &drawn.lanes;
    let ns = |ns: u64| seconds(ns as f64 / 1e9);
    let mut told = vec![format!(
        "{} over {}, {} spans of time.",
        several(lanes.len() as u64, "thread"),
        ns((drawn.end - drawn.begin).max(0) as u64),
        count(drawn.spans)
    )];
    if drawn.least > 0 {
        let kept: u64 = drawn.columns.iter().map(encode::Lane::spans).sum();
        told.push(format!(
            "The {} longest are drawn one by one. Those shorter than {} are drawn as sums over {} each: striped where you zoom in.",
            count(kept),
            ns(drawn.least),
            ns(drawn.scale.bin_ns() as u64),
        ));
    }
    let unrecorded: u64 = lanes.iter().map(|l| l.unrecorded_ns).sum();
    if unrecorded > 0 {
        told.push(format!(
            "{} of the threads' time are in nothing that is on record: they look like what is around them.",
            ns(unrecorded)
        ));
    }
    let killed = lanes.iter().filter(|l| !l.has_ended).count();
    if killed > 0 {
        told.push(format!(
            "{killed} threads did not end in an orderly way: what was open then is not drawn."
        ));
    }
    if drawn.paths.is_none() {
        let most = count(MOST_DRAWN as u64);
        told.push(format!(
            "The critical path is not drawn: a process has more than {most} spans."
        ));
    }
    let left = &drawn.counted[drawn.events..];
    if !left.is_empty() && drawn.units > 0 {
        told.push(format!("Counts of {} are left out.", left.join(", ")));
    }
    told
}

/// Time of each thread by class, for who doesn't see the drawing.
fn table(drawn: &Drawn, order: &[usize], sums: &[[u64; CLASSES.len()]]) -> Markup {
    let several = drawn.processes.len() > 1;
    html! {
        table {
            thead { tr {
                th scope="col" { "Thread" }
                @for class in &CLASSES { th scope="col" { (class.name) } }
            } }
            tbody {
                @for &number in order.iter().take(MANY_LANES) {
                    @let lane = &drawn.lanes[number];
                    @let sums = &sums[number];
                    tr {
                        th scope="row" {
                            @if several {
                                @let process = &drawn.processes[lane.process as usize];
                                @match process.mpi_rank {
                                    Some(rank) => { "rank " (rank) " " },
                                    None => { "process " (process.pid) " " },
                                }
                            }
                            (called(lane))
                        }
                        @let all = sums.iter().sum::<u64>().max(1);
                        @for ns in sums {
                            td { @if *ns > 0 { (percent(*ns as f64 / all as f64)) } }
                        }
                    }
                }
            }
        }
        @if sums.len() > MANY_LANES { p { "And " (sums.len() - MANY_LANES) " further threads." } }
    }
}

/// What keys and fingers do.
const HELP: [(&[&str], &str); 9] = [
    (&["drag", "←", "→"], "move in time"),
    (&["Ctrl + wheel", "pinch", "+", "−"], "zoom"),
    (&["double click"], "zoom in here"),
    (&["0", "All"], "show all"),
    (&["n", "p"], "next and previous span, of those found"),
    (&["click"], "choose a span"),
    (&["Enter"], "open the region of the span that is chosen"),
    (&["/"], "find a region"),
    (&["Esc"], "clear"),
];

fn markup(data: &Data, told: &[String], table: &Markup) -> Markup {
    let lanes = data.groups.iter().map(|g| g.lanes.len()).sum::<usize>();
    let rows = match (data.groups.len(), data.groups.iter().all(|g| g.open)) {
        (1, _) => lanes,
        (many, true) => many + lanes,
        (many, false) => many,
    };
    html! {
        h2 { "Timeline" }
        @for sentence in told { p.note { (sentence) } }
        div.ot-root style=(format!("--ot-rows:{rows}")) {
            div.ot-bar {
                input.ot-search type="search" placeholder="Find a region" aria-label="Find a region";
                span.ot-group {
                    button.ot-previous type="button" disabled aria-label="Previous span" { "‹" }
                    button.ot-next type="button" disabled aria-label="Next span" { "›" }
                }
                span.ot-found role="status" {}
                label.ot-right {
                    "Colour by "
                    select.ot-colour {
                        option value="class" { "what threads do" }
                        option value="region" { "region" }
                    }
                }
                span.ot-group {
                    button.ot-in type="button" aria-label="Zoom in" { "+" }
                    button.ot-out type="button" aria-label="Zoom out" { "−" }
                    button.ot-all type="button" { "All" }
                }
            }
            div.ot-frame {
                div.ot-top {
                    span { "All threads" }
                    canvas.ot-map aria-hidden="true" {}
                    canvas.ot-ruler aria-hidden="true" {}
                }
                div.ot-scroll {
                    div.ot-body {}
                    div.ot-names {}
                    canvas.ot-lanes tabindex="0" role="img"
                        aria-label="What each thread did over time. Keys are listed below; the table below has it in numbers." {}
                }
            }
            ul.ot-legend {
                @for class in &CLASSES {
                    li { i.key style=(format!("background:var(--{})", class.colour)) {} (class.name) }
                }
                @if !data.paths.is_empty() { li.ot-of-paths { i.key {} "Critical path" } }
            }
            div.ot-chosen role="status" data-empty="Choose a span to see its label and counts." {}
            div.ot-tip hidden {}
            details.ot-more {
                summary { "Keys" }
                ul {
                    @for (keys, what) in HELP {
                        li { @for key in keys { kbd { (key) } " " } (what) }
                    }
                }
            }
            details.ot-more { summary { "Each thread in numbers" } (table) }
        }
        (super::data::json("timeline-data", data))
    }
}

/// What a thread is called.
fn called(lane: &Lane) -> String {
    match &lane.name {
        Some(name) => format!("{name} (thread {})", lane.thread),
        None => format!("thread {}", lane.thread),
    }
}
