//! One run's thread time, divided into cells.

use crate::gather::own_s;
use ompfuse_account::model::series::{SeriesCause, SeriesPlace};
use ompfuse_account::model::{Account, Predicted};
use ompfuse_account::{Region, Report};
use ompfuse_format::run::Exit;
use ompfuse_fuse::Summary;
use ompfuse_fuse::span::Labelled;
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
    /// Wall-clock time of the program in seconds, without what recording takes around it; if known.
    pub wall_s: Option<f64>,
    /// Wall times of all processes together times threads, in seconds.
    pub available_s: f64,
    /// What the available thread time went to, all of it; `None` if that isn't known.
    pub(crate) cells: Option<Cells>,
    /// The parallel regions.
    pub(crate) regions: BTreeMap<SeriesPlace, RegionCells>,
    /// By place, its units.
    pub(crate) units: BTreeMap<SeriesPlace, Vec<Labelled>>,
    /// What the report says of other numbers of threads.
    pub(crate) predicted: Vec<Predicted>,
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

/// What of a run or profile is part of a series. `name`: what the user calls it; `labelled`: its units, as far as they are known.
pub fn measured(name: &str, summary: &Summary, labelled: &[Labelled]) -> Measured {
    let report = Report::new(summary);
    let threads = report.account.as_ref().map_or(1, |a| a.threads);
    let threads = threads.clamp(1, 1 << 20) as u32;
    let places = places(&report);
    let cells = report.account.as_ref().map(|a| cells(a, &places));
    let mut regions = BTreeMap::new();
    for overhead in &report.overheads {
        let Some(place) = places.get(&overhead.region) else {
            continue;
        };
        let of_region = cells.iter().flatten();
        let of_region = of_region.filter(|(cell, _)| cell.region.as_ref() == Some(place));
        regions.insert(
            place.clone(),
            RegionCells {
                executions: overhead.executions,
                team: overhead.team as u32,
                wall_s: overhead.wall_s,
                is_nested: overhead.nested > 0,
                cells: of_region.map(|(cell, s)| (cell.clone(), *s)).collect(),
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
        wall_s: (report.account.as_ref())
            .map(own_s)
            .filter(|&s| s > 0.0)
            .or(summary.duration_s),
        available_s,
        cells,
        regions,
        units: units(&report, summary, labelled),
        predicted: report.scaling.map_or(vec![], |s| s.predicted),
        processors: summary.processors,
        starved: (report.running.as_ref()).and_then(|r| r.is_starved.then_some(r.without_share())),
        probes: report.probes.as_ref().map(|p| p.share),
        is_failed: exit.into_iter().any(|e| e != Exit::Code(0)),
        is_in_part: !summary.left_out.is_empty()
            || summary
                .runs
                .iter()
                .any(|r| r.recorded.is_some() || r.health.lost_records > 0),
    }
}

/// Units by place.
fn units(
    report: &Report,
    summary: &Summary,
    labelled: &[Labelled],
) -> BTreeMap<SeriesPlace, Vec<Labelled>> {
    let place = |site: u32| {
        let site = summary.sites.get(site as usize)?;
        let is = |r: &&Region| (&r.name, r.address) == (&site.name, site.address);
        report.regions.iter().find(is).map(SeriesPlace::of)
    };
    let of_places = labelled.chunk_by(|a, b| a.site == b.site);
    of_places
        .filter_map(|units| Some((place(units[0].site)?, units.to_vec())))
        .collect()
}

/// The report's regions by number.
fn places(report: &Report) -> BTreeMap<u32, SeriesPlace> {
    let places = report.regions.iter().map(|r| (r.id, SeriesPlace::of(r)));
    places.collect()
}

/// Divides a program's available time.
fn cells(account: &Account, places: &BTreeMap<u32, SeriesPlace>) -> Cells {
    let mut cells = Cells::new();
    let place = |id: Option<u32>| id.and_then(|id| places.get(&id)).cloned();
    for state in &account.states {
        for part in &state.parts {
            let region = place(part.parallel);
            let cell = Cell {
                place: place(part.region).or_else(|| region.clone()),
                region,
                cause: state.state.into(),
            };
            *cells.entry(cell).or_default() += part.ns as f64 * 1e-9;
        }
    }
    cells
}
