//! From runs to the points of a series.

use super::cells::{Cell, Cells, Measured, RegionCells};
use super::inflation::inflation;
use ompfuse_account::model::Predicted;
use ompfuse_account::model::series::{
    Loss, RegionPoint, Repeated, Scaling, SeriesCause, SeriesNote, SeriesPlace, SeriesPoint,
    SeriesRegion, Stack, Told,
};
use std::collections::{BTreeMap, BTreeSet};

/// Runs by number of threads.
type ByThreads<'r> = BTreeMap<u32, Vec<&'r Measured>>;

/// Losses that are less than this share of the available time are not listed.
const LISTED: f64 = 0.001;
/// Share of the threads' time from which on it is said what probes took.
const PROBES_SAID: f64 = 0.05;

/// How much more thread time a perfectly scaling program needs with more threads.
fn growth(scaling: Scaling, base: u32, threads: u32) -> f64 {
    match scaling {
        Scaling::Strong => 1.0,
        Scaling::Weak => f64::from(threads) / f64::from(base),
    }
}

/// Speed over that of the smallest number of threads: work per wall time.
fn speedup(scaling: Scaling, (base, base_s): (u32, f64), (threads, wall_s): (u32, f64)) -> f64 {
    growth(scaling, base, threads) * base_s / wall_s
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn repeated(values: &[f64]) -> Repeated {
    let mean_s = mean(values.iter().copied());
    let squares: f64 = values.iter().map(|v| (v - mean_s).powi(2)).sum();
    let degrees = values.len() as f64 - 1.0;
    Repeated {
        runs: values.len() as u32,
        mean_s,
        min_s: values.iter().copied().fold(f64::INFINITY, f64::min),
        max_s: values.iter().copied().fold(0.0, f64::max),
        deviation_s: (degrees > 0.0).then(|| (squares / degrees).sqrt()),
    }
}

/// The mean of several runs' cells; what a run doesn't have is nothing there. `None` if any run's are not known.
fn mean_cells<'c>(all: impl Iterator<Item = Option<&'c Cells>>) -> Option<Cells> {
    let all: Vec<&Cells> = all.collect::<Option<_>>()?;
    let mut mean = Cells::new();
    for (cell, seconds) in all.iter().copied().flatten() {
        *mean.entry(cell.clone()).or_default() += seconds / all.len() as f64;
    }
    Some(mean)
}

fn stack(cells: &Cells) -> Stack {
    let mut stack = Stack::default();
    for (cell, &seconds) in cells {
        stack.add(cell.cause, seconds);
    }
    stack
}

/// How much more each cell has than perfect scaling would, `growth` times that of the smallest number of threads; the largest first.
fn losses(base: &Cells, cells: &Cells, growth: f64) -> Vec<(Cell, f64, f64)> {
    let keys: BTreeSet<&Cell> = base.keys().chain(cells.keys()).collect();
    let of = |cells: &Cells, cell| cells.get(cell).copied().unwrap_or(0.0);
    let mut list: Vec<(Cell, f64, f64)> = keys
        .into_iter()
        .map(|cell| {
            let all = of(cells, cell);
            (cell.clone(), all - growth * of(base, cell), all)
        })
        .collect();
    list.sort_by(|a, b| b.1.total_cmp(&a.1));
    list
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

/// What runs with `from` threads say of another number, beside the own time that came. `None` if one of them says nothing.
fn told(fewest: &[&Measured], from: u32, threads: u32, measured_s: f64) -> Option<Told> {
    let of = |run: &&Measured| run.predicted.iter().find(|p| p.threads == threads).copied();
    let all: Vec<_> = fewest.iter().map(of).collect::<Option<_>>()?;
    let of = |value: &dyn Fn(&Predicted) -> f64| median(all.iter().map(value).collect());
    let seconds = of(&|p| p.seconds);
    Some(Told {
        from_threads: from,
        seconds,
        between_s: [of(&|p| p.between_s[0]), of(&|p| p.between_s[1])],
        of_measured: seconds / measured_s.max(f64::MIN_POSITIVE),
    })
}

/// The program with each number of threads.
pub(super) fn points(runs: &ByThreads<'_>, scaling: Scaling) -> Vec<SeriesPoint> {
    let mut points: Vec<SeriesPoint> = vec![];
    let mut base: Option<(u32, f64, f64, Option<Cells>)> = None;
    for (&threads, same) in runs {
        let walls: Vec<f64> = same.iter().filter_map(|r| r.wall_s).collect();
        let wall = repeated(&walls);
        let available_s = mean(same.iter().map(|r| r.available_s));
        let cells = mean_cells(same.iter().map(|r| r.cells.as_ref()));
        let (least, least_s, least_available_s, least_cells) =
            base.get_or_insert_with(|| (threads, wall.mean_s, available_s, cells.clone()));
        let growth = growth(scaling, *least, threads);
        let ideal_s = growth * *least_available_s;
        let speedup = speedup(scaling, (*least, *least_s), (threads, wall.mean_s));
        let relative = f64::from(threads) / f64::from(*least);
        let all = least_cells.as_ref().zip(cells.as_ref());
        let all = all.map_or_else(Vec::new, |(base, cells)| losses(base, cells, growth));
        let lost_s = available_s - ideal_s;
        let (listed, others): (Vec<_>, Vec<_>) =
            (all.into_iter()).partition(|(_, lost, _)| lost.abs() >= LISTED * available_s);
        let fewest = runs.values().next().map_or(&[][..], Vec::as_slice);
        let inflated = |cell: &Cell| match cell.cause {
            SeriesCause::Work if threads != *least => inflation(fewest, same, cell.place.as_ref()?),
            _ => None,
        };
        let loss = |(cell, seconds, all_s): (Cell, f64, f64)| Loss {
            inflation: inflated(&cell),
            times: inflated(&cell).map(|i| i.times),
            place: cell.place,
            region: cell.region,
            cause: cell.cause,
            seconds,
            all_s,
            share: (lost_s > 0.0).then(|| seconds / lost_s),
        };
        let before = points.last();
        let marginal_efficiency = before.map(|before| {
            let added = f64::from(threads - before.threads) / f64::from(*least);
            (speedup - before.speedup) / added
        });
        let stack = cells.as_ref().map(stack);
        points.push(SeriesPoint {
            threads,
            runs: same.iter().map(|r| r.name.clone()).collect(),
            wall,
            speedup,
            efficiency: speedup / relative,
            marginal_efficiency,
            available_s,
            ideal_s,
            work_per_thread_s: stack.map(|s| s.work_s / f64::from(threads)),
            stack,
            losses: listed.into_iter().map(loss).collect(),
            other_losses_s: others.iter().map(|(_, lost, _)| lost).sum(),
            processors: same.iter().filter_map(|r| r.processors).reduce(f64::min),
            told: match threads == *least || scaling == Scaling::Weak {
                true => None,
                false => told(fewest, *least, threads, available_s / f64::from(threads)),
            },
            starved: same.iter().filter_map(|r| r.starved).reduce(f64::max),
            probes_share: same.iter().filter_map(|r| r.probes).reduce(f64::max),
        });
    }
    points
}

/// Every parallel region with each number of threads.
pub(super) fn regions(runs: &ByThreads<'_>, scaling: Scaling) -> Vec<SeriesRegion> {
    let places = runs.values().flatten().flat_map(|r| r.regions.keys());
    let places: BTreeSet<&SeriesPlace> = places.collect();
    let mut regions: Vec<SeriesRegion> = places
        .into_iter()
        .map(|place| region(place, runs, scaling))
        .collect();
    let lost = |r: &SeriesRegion| r.lost_s.unwrap_or(f64::NEG_INFINITY);
    regions.sort_by(|a, b| {
        lost(b)
            .total_cmp(&lost(a))
            .then_with(|| a.place.cmp(&b.place))
    });
    regions
}

fn region(place: &SeriesPlace, runs: &ByThreads<'_>, scaling: Scaling) -> SeriesRegion {
    let (&least, &most) = (runs.keys().next().zip(runs.keys().last())).unwrap_or((&1, &1));
    let mut points: Vec<RegionPoint> = vec![];
    let mut of: BTreeMap<u32, Cells> = BTreeMap::new();
    let mut is_nested = false;
    for (&threads, same) in runs {
        let found: Vec<&RegionCells> = same.iter().filter_map(|r| r.regions.get(place)).collect();
        if found.is_empty() {
            continue;
        }
        is_nested |= found.iter().any(|r| r.is_nested);
        // A run in which it was not executed has spent no time in it.
        let nothing = Cells::new();
        let all = same
            .iter()
            .map(|r| r.regions.get(place).map_or(&nothing, |r| &r.cells));
        let cells = mean_cells(all.map(Some)).unwrap_or_default();
        let share = 1.0 / same.len() as f64;
        let wall_s = found.iter().map(|r| r.wall_s).sum::<f64>() * share;
        let base = points.first().filter(|p| p.threads == least);
        let base = base
            .map(|p| (least, p.wall_s))
            .or_else(|| (threads == least).then_some((least, wall_s)));
        let speedup = base.map(|base| speedup(scaling, base, (threads, wall_s)));
        points.push(RegionPoint {
            threads,
            executions: found.iter().map(|r| r.executions as f64).sum::<f64>() * share,
            team: found.iter().map(|r| r.team).max().unwrap_or(1),
            wall_s,
            speedup,
            efficiency: speedup.map(|s| s * f64::from(least) / f64::from(threads)),
            available_s: wall_s * f64::from(threads),
            stack: stack(&cells),
        });
        of.insert(threads, cells);
    }
    let both = of.get(&least).zip(of.get(&most));
    let lost = both.map(|(base, cells)| losses(base, cells, growth(scaling, least, most)));
    let by_cause = lost.as_ref().map(|lost| {
        let mut sums: BTreeMap<SeriesCause, f64> = BTreeMap::new();
        for (cell, seconds, _) in lost {
            *sums.entry(cell.cause).or_default() += seconds;
        }
        sums
    });
    let largest = by_cause.and_then(|sums| {
        let largest = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (largest.1 > 0.0).then_some(largest.0)
    });
    let lost_s = lost.map(|lost| lost.iter().map(|(_, seconds, _)| seconds).sum());
    SeriesRegion {
        place: place.clone(),
        is_nested,
        points,
        mostly: largest.filter(|_| lost_s.is_some_and(|s: f64| s > 0.0)),
        lost_s,
    }
}

/// What makes runs less than comparable.
pub(super) fn notes(runs: &ByThreads<'_>, scaling: Scaling) -> Vec<SeriesNote> {
    let mut notes = vec![];
    let too_few = runs.iter().find_map(|(&threads, same)| {
        let processors = same.iter().filter_map(|r| r.processors).reduce(f64::min)?;
        (f64::from(threads) > processors).then_some((threads, processors))
    });
    notes.extend(too_few.map(
        |(threads, processors)| SeriesNote::MoreThreadsThanProcessors {
            threads,
            processors,
        },
    ));
    let all = || runs.values().flatten();
    for run in all().filter(|r| r.is_failed) {
        notes.push(SeriesNote::Failed {
            run: run.name.clone(),
        });
    }
    for (&threads, same) in runs {
        let starved = same.iter().filter_map(|r| r.starved).reduce(f64::max);
        notes.extend(starved.map(|share| SeriesNote::Starved { threads, share }));
        let probes = same.iter().filter_map(|r| r.probes).reduce(f64::max);
        let probes = probes.filter(|&share| share >= PROBES_SAID);
        notes.extend(probes.map(|share| SeriesNote::Probes { threads, share }));
        let is_in_part = same.iter().any(|r| r.is_in_part);
        notes.extend(is_in_part.then_some(SeriesNote::InPart { threads }));
        let overlaps = same.iter().any(|r| r.cells.is_none());
        notes.extend(overlaps.then_some(SeriesNote::Overlapping { threads }));
    }
    let first = all().next();
    if scaling == Scaling::Strong && all().any(|r| first.is_some_and(|f| f.args != r.args)) {
        notes.push(SeriesNote::ArgumentsDiffer);
    }
    if all().any(|r| first.is_some_and(|f| f.host != r.host)) {
        notes.push(SeriesNote::HostsDiffer);
    }
    if runs.values().any(|same| same.len() < 2) {
        notes.push(SeriesNote::Single);
    }
    notes
}
