//! One run's thread time, divided into cells.

use crate::from_summary::overhead_by_place;
use crate::model::series::{SeriesCause, SeriesPlace};
use crate::model::{Class, ParallelOverhead};
use crate::{Region, Report};
use ompfuse_format::run::Exit;
use ompfuse_fuse::Summary;
use std::collections::BTreeMap;

/// A run, or a profile that was combined of several: what of it is part of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What the user calls it.
    pub name: String,
    /// The program as the user named it.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Host name.
    pub host: String,
    /// Whether a simulator executed it.
    pub is_simulated: bool,
    /// The largest team.
    pub threads: u32,
    /// Wall-clock time of the program in seconds, if known.
    pub wall_s: Option<f64>,
    /// Wall times of all processes together times threads, in seconds.
    pub available_s: f64,
    /// What the available thread time went to, all of it; `None` if parallel regions overlap in time.
    pub(crate) cells: Option<Cells>,
    /// The parallel regions.
    pub(crate) regions: BTreeMap<SeriesPlace, RegionCells>,
    /// Processors that the program could use.
    pub(crate) processors: Option<f64>,
    /// Share of the time in which threads were not running, if that is much.
    pub(crate) starved: Option<f64>,
    /// Share of the threads' time that probes took, estimated.
    pub(crate) probes: Option<f64>,
    /// It did not end well.
    pub(crate) is_failed: bool,
    /// Something is not on record.
    pub(crate) is_in_part: bool,
}

/// Thread time in seconds by parallel region, place and cause.
pub(crate) type Cells = BTreeMap<Cell, f64>;

/// Where thread time goes, and to what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    /// The outermost parallel region; `None`: outside.
    pub(crate) region: Option<SeriesPlace>,
    /// The construct in it.
    pub(crate) place: Option<SeriesPlace>,
    pub(crate) cause: SeriesCause,
}

/// A parallel region of one run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RegionCells {
    pub(crate) executions: u64,
    pub(crate) team: u32,
    pub(crate) wall_s: f64,
    pub(crate) is_nested: bool,
    /// All of `wall_s` times the run's threads.
    pub(crate) cells: Cells,
}

/// What of a run or profile is part of a series. `name`: what the user calls it.
pub fn measured(name: &str, summary: &Summary) -> Measured {
    let report = Report::new(summary);
    let threads = summary.parallel.iter().map(|p| p.team).max();
    let threads = threads.unwrap_or(1).clamp(1, 1 << 20) as u32;
    let by_place = overhead_by_place(summary);
    let places = places(&report);
    let mut regions = BTreeMap::new();
    for overhead in &report.overheads {
        let Some(place) = places.get(&overhead.region) else {
            continue;
        };
        let inside = by_place.get(&overhead.region);
        let inside = inside.into_iter().flatten().filter_map(|p| {
            let at = places.get(&p.region)?;
            Some((at, p.class, p.seconds))
        });
        let cells = region_cells(place, overhead, threads, inside);
        regions.insert(
            place.clone(),
            RegionCells {
                executions: overhead.executions,
                team: overhead.team as u32,
                wall_s: overhead.wall_s,
                is_nested: overhead.nested > 0,
                cells,
            },
        );
    }
    let available_s = report.available_s.unwrap_or(0.0);
    let exit = summary.runs.iter().filter_map(|r| r.exit);
    let events = summary.events.iter();
    Measured {
        name: name.to_owned(),
        program: summary.program.clone(),
        args: summary.args.clone(),
        host: summary.host.clone(),
        is_simulated: events
            .filter(|e| e.run.is_some())
            .any(|e| e.name.starts_with("sim-")),
        threads,
        wall_s: summary.duration_s,
        available_s,
        cells: program_cells(&regions, available_s, threads),
        regions,
        processors: summary.processors,
        starved: (report.running.as_ref()).and_then(|r| r.is_starved.then_some(r.not_running)),
        probes: report.probes.as_ref().map(|p| p.share),
        is_failed: exit.into_iter().any(|e| e != Exit::Code(0)),
        is_in_part: !summary.left_out.is_empty()
            || summary
                .runs
                .iter()
                .any(|r| r.recorded.is_some() || r.health.lost_records > 0),
    }
}

/// The report's regions by number.
fn places(report: &Report) -> BTreeMap<u32, SeriesPlace> {
    let places = report.regions.iter().map(|r| (r.id, place_of(r)));
    places.collect()
}

/// Where a region is, and what it is.
pub(crate) fn place_of(region: &Region) -> SeriesPlace {
    SeriesPlace {
        module: region.module.clone(),
        address: region.address,
        name: region.name.clone(),
        construct: region.construct,
        function: region.function.clone(),
        source: region.source.clone(),
        detail: region.detail.clone(),
    }
}

/// Divides a parallel region's thread time: with a team as large as the program's largest one, `threads`. `inside`: what of it is
/// known by place, in seconds; `None` as class: work.
fn region_cells<'a>(
    region: &SeriesPlace,
    overhead: &ParallelOverhead,
    threads: u32,
    inside: impl Iterator<Item = (&'a SeriesPlace, Option<Class>, f64)>,
) -> Cells {
    let mut sums: BTreeMap<Option<Class>, Vec<(&SeriesPlace, f64)>> = BTreeMap::new();
    for (place, class, seconds) in inside {
        sums.entry(class).or_default().push((place, seconds));
    }
    let mut cells = Cells::new();
    let mut put = |place: &SeriesPlace, cause: SeriesCause, seconds: f64| {
        let cell = Cell {
            region: Some(region.clone()),
            place: Some(place.clone()),
            cause,
        };
        *cells.entry(cell).or_default() += seconds;
    };
    // What is not known by place is the region's own: start-up, its end, what was left out.
    let mut divide = |class: Option<Class>, cause: SeriesCause, all: f64| {
        let known = sums.get(&class).map_or(&[][..], Vec::as_slice);
        let sum: f64 = known.iter().map(|(_, s)| s).sum();
        let scale = if sum > all { all / sum } else { 1.0 };
        for (place, seconds) in known {
            put(place, cause, seconds * scale);
        }
        put(region, cause, (all - sum * scale).max(0.0));
    };
    for class in Class::ALL {
        if let Some(seconds) = overhead.overhead.get(class) {
            divide(Some(class), class.into(), seconds);
        }
    }
    if let Some(work) = overhead.work_s {
        divide(None, SeriesCause::Work, work);
    }
    if overhead.unknown_s > 0.0 {
        put(region, SeriesCause::Unknown, overhead.unknown_s);
    }
    let unused = overhead.wall_s * f64::from(threads) - overhead.total_s;
    if unused != 0.0 {
        put(region, SeriesCause::Unused, unused);
    }
    cells
}

/// Divides a program's thread time; `None` if its parallel regions overlap in time.
fn program_cells(
    regions: &BTreeMap<SeriesPlace, RegionCells>,
    available_s: f64,
    threads: u32,
) -> Option<Cells> {
    let mut cells = Cells::new();
    let mut parallel_s = 0.0;
    for region in regions.values().filter(|r| !r.is_nested) {
        parallel_s += region.wall_s;
        for (cell, seconds) in &region.cells {
            *cells.entry(cell.clone()).or_default() += seconds;
        }
    }
    let wall_s = available_s / f64::from(threads);
    // Both are rounded, and read on clocks that differ a little.
    if parallel_s > wall_s * 1.001 + 1e-6 {
        return None;
    }
    let serial_s = wall_s - parallel_s;
    let outside = |cause| Cell {
        region: None,
        place: None,
        cause,
    };
    cells.insert(outside(SeriesCause::Serial), serial_s);
    let idle = serial_s * f64::from(threads - 1);
    cells.insert(outside(SeriesCause::SerialIdle), idle);
    Some(cells)
}
