//! The section of the timeline: what each thread did, drawn by `assets/timeline/`.
//!
//! Spans are exclusive: at each moment a thread is in one. At most [`MOST`] of them are in the page one by one, the longest. All
//! shorter ones are there as sums: by thread, stretch of time and class.

mod encode;
mod lanes;
mod whats;

use super::Keys;
use crate::Report;
use crate::words::units::{count, percent, seconds};
use encode::Columns;
use lanes::{LaneSums, Short, each, survey};
use maud::{Markup, html};
use ompfuse_fuse::run::timeline::{Lane, Timeline};
use ompfuse_progress::Progress;
use rayon::prelude::*;
use serde::Serialize;
use whats::{CLASSES, Whats};

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

/// The section; `None`: no thread has recorded anything.
pub fn section(
    timeline: &Timeline<'_>,
    report: &Report,
    keys: &Keys,
    progress: Progress<'_>,
) -> Option<Markup> {
    let begin = timeline.lanes().iter().map(|l| l.begin_ns).min()?;
    let end = timeline.lanes().iter().map(|l| l.end_ns).max()?.max(begin);
    let mut whats = Whats::new(timeline, report, keys);
    let surveyed = survey(timeline, &mut whats, progress.part(0.5));
    let short = Short::new(&surveyed, timeline.lanes().len(), end - begin);
    whats.arrange();
    let events = timeline.counted().len().min(match surveyed.units {
        0 => 0,
        units => (MOST_COUNTS / units.min(MOST)) as usize,
    });
    let all = timeline.intervals() as usize;
    let order = order(timeline);
    let encode = |whats: &mut Whats<'_>, &number: &usize| {
        let mut lane = encode::Lane::new(begin, events, short);
        each(timeline, number, whats, &mut lane);
        let intervals = timeline.lanes()[number].intervals as usize;
        progress.part(0.5).steps(intervals, all);
        progress.release();
        lane
    };
    // All numbers are known by now.
    let encoded: Vec<encode::Lane> = { order.par_iter() }
        .map_init(|| whats.clone(), encode)
        .collect();
    let mut columns = Columns::default();
    let mut lanes: Vec<LaneData> = vec![];
    for (&number, encoded) in order.iter().zip(encoded) {
        let lane = &timeline.lanes()[number];
        let (spans, items) = columns.add(encoded);
        lanes.push(LaneData {
            name: format!("thread {}", lane.thread),
            detail: detail(lane),
            begin: (lane.begin_ns - begin).max(0) as u64,
            end: (lane.end_ns - begin).max(0) as u64,
            spans,
            items,
        });
    }
    let mut told = told(timeline, &surveyed, &short, end - begin, events);
    if report.runs.len() > 1 {
        told.insert(0, format!("Of the first of {} runs.", report.runs.len()));
    }
    let table = table(timeline, &order, &surveyed.lanes);
    let (regions, whats) = whats.finish();
    let groups = groups(timeline, &order, lanes);
    let data = Data {
        begin,
        end,
        classes: CLASSES.map(|c| c.colour),
        regions,
        whats,
        events: timeline.counted()[..events].to_vec(),
        bins: short.bins,
        bin_ns: short.bin_ns,
        columns: columns.finish(),
        groups,
    };
    Some(markup(&data, &told, &table))
}

fn detail(lane: &Lane) -> &'static str {
    match (lane.has_ended, lane.is_root) {
        (false, _) => "did not end",
        (true, true) => "root",
        (true, false) => "",
    }
}

/// Lanes as they are shown, by their numbers in the timeline: ranks in their order.
fn order(timeline: &Timeline<'_>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..timeline.lanes().len()).collect();
    let rank = |lane: &Lane| timeline.processes()[lane.process as usize].mpi_rank;
    order.sort_by_key(|&number| {
        let lane = &timeline.lanes()[number];
        (rank(lane).unwrap_or(u32::MAX), lane.process, lane.thread)
    });
    order
}

/// By process. `lanes`: in this order.
fn groups(timeline: &Timeline<'_>, order: &[usize], lanes: Vec<LaneData>) -> Vec<Group> {
    let several = timeline.processes().len() > 1;
    let is_open = lanes.len() <= MANY_LANES;
    let mut groups: Vec<(u16, Group)> = vec![];
    for (&number, data) in order.iter().zip(lanes) {
        let lane = &timeline.lanes()[number];
        if groups
            .last()
            .is_none_or(|(process, _)| *process != lane.process)
        {
            let process = &timeline.processes()[lane.process as usize];
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
fn told(
    timeline: &Timeline<'_>,
    surveyed: &lanes::Surveyed,
    short: &Short,
    length: i64,
    events: usize,
) -> Vec<String> {
    let lanes = timeline.lanes();
    let ns = |ns: u64| seconds(ns as f64 / 1e9);
    let mut told = vec![format!(
        "{} threads over {}, {} spans of time.",
        lanes.len(),
        ns(length.max(0) as u64),
        count(surveyed.spans)
    )];
    if short.bins > 0 {
        told.push(format!(
            "The {} longest are drawn one by one. Those shorter than {} are drawn as sums over {} each: striped where you zoom in.",
            count(surveyed.spans - surveyed.shorter(short.least)),
            ns(short.least),
            ns(short.bin_ns as u64),
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
    let left = &timeline.counted()[events..];
    if !left.is_empty() && surveyed.units > 0 {
        told.push(format!("Counts of {} are left out.", left.join(", ")));
    }
    told
}

/// Time of each thread by class, for who doesn't see the drawing.
fn table(timeline: &Timeline<'_>, order: &[usize], sums: &[LaneSums]) -> Markup {
    let several = timeline.processes().len() > 1;
    html! {
        table {
            thead { tr {
                th scope="col" { "Thread" }
                @for class in &CLASSES { th scope="col" { (class.name) } }
            } }
            tbody {
                @for &number in order.iter().take(MANY_LANES) {
                    @let lane = &timeline.lanes()[number];
                    @let sums = &sums[number];
                    tr {
                        th scope="row" {
                            @if several {
                                @let process = &timeline.processes()[lane.process as usize];
                                @match process.mpi_rank {
                                    Some(rank) => { "rank " (rank) " " },
                                    None => { "process " (process.pid) " " },
                                }
                            }
                            "thread " (lane.thread)
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
