//! Many runs of one program compared: with several numbers of threads.
//!
//! A run's available thread time (own time times threads) is divided into cells: a place, and what the time went to. Whatever makes
//! a run with more threads need more thread time than perfect scaling would is then the growth of some cells, and all cells'
//! growths add up to the whole loss. After ompP's scalability graph, which stacks work and classes of overhead.

pub mod cells;
mod inflation;
mod points;
#[cfg(test)]
mod tests;

pub use cells::{Measured, measured};

use ompfuse_account::model::series::{
    Loss, SERIES_VERSION, Scaling, Series, SeriesNote, SeriesPlace, SeriesPoint,
};
use points::{notes, points, regions};
use std::collections::BTreeMap;

/// Why runs are no series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// There is no run.
    #[error("there is no run")]
    Empty,
    /// All runs had the same number of threads.
    #[error(
        "all runs had teams of {0} threads; a series needs two numbers of threads (OMP_NUM_THREADS has no effect where the program \
         sets the number itself)"
    )]
    OneNumber(u32),
    /// A simulator has no times.
    #[error("{0} was simulated and has no times; record it without --simulate")]
    Simulated(String),
    /// A run without a duration, as tables of other recorders.
    #[error("{0} does not say how long the program took; name run folders or profiles of ompfuse")]
    NoTime(String),
}

/// Runs of one program as a series over the numbers of their threads. Runs with the same number are repetitions.
///
/// # Errors
/// [`SeriesError`] if there aren't two numbers of threads, or there are no times.
pub fn over_threads(runs: &[Measured], scaling: Scaling) -> Result<Series, SeriesError> {
    let first = runs.first().ok_or(SeriesError::Empty)?;
    if let Some(run) = runs.iter().find(|r| r.is_simulated) {
        return Err(SeriesError::Simulated(run.name.clone()));
    }
    if let Some(run) = runs.iter().find(|r| r.wall_s.is_none_or(|s| s <= 0.0)) {
        return Err(SeriesError::NoTime(run.name.clone()));
    }
    let mut by_threads: BTreeMap<u32, Vec<&Measured>> = BTreeMap::new();
    for run in runs {
        by_threads.entry(run.threads).or_default().push(run);
    }
    if by_threads.len() < 2 {
        return Err(SeriesError::OneNumber(first.threads));
    }
    let points = points(&by_threads, scaling);
    let regions = regions(&by_threads, scaling);
    // The least time for the work of one thread.
    let fastest = (points.iter()).max_by(|a, b| a.speedup.total_cmp(&b.speedup));
    let pays_off = pays_off(&points);
    let mut notes = notes(&by_threads, scaling);
    let nested = regions.iter().filter(|r| r.is_nested).count() as u32;
    notes.extend((nested > 0).then_some(SeriesNote::Nested { regions: nested }));
    Ok(Series {
        version: SERIES_VERSION,
        program: first.program.clone(),
        args: first.args.clone(),
        scaling,
        fastest: fastest.map_or(first.threads, |p| p.threads),
        pays_off_until: pays_off.filter(|&n| points.last().is_some_and(|p| p.threads > n)),
        limit: points.last().and_then(limit),
        points,
        regions,
        notes,
    })
}

/// More threads pay off that make a program faster by this share, or by this share of the threads added where these are less than as many
/// again.
const PAYS_OFF: f64 = 0.2;

/// The largest number of threads that pays off.
fn pays_off(points: &[SeriesPoint]) -> Option<u32> {
    let (mut last, others) = points.split_first()?;
    for point in others {
        let added = f64::from(point.threads) / f64::from(last.threads) - 1.0;
        if point.speedup >= last.speedup * (1.0 + PAYS_OFF * added.min(1.0)) {
            last = point;
        }
    }
    Some(last.threads)
}

/// The largest loss of the parallel region, or of the code outside of all, that loses most.
fn limit(point: &SeriesPoint) -> Option<Loss> {
    let mut sums: Vec<(&Option<SeriesPlace>, f64)> = vec![];
    for loss in &point.losses {
        match sums.iter_mut().find(|(region, _)| **region == loss.region) {
            Some((_, sum)) => *sum += loss.seconds,
            None => sums.push((&loss.region, loss.seconds)),
        }
    }
    let (region, sum) = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let largest = point.losses.iter().find(|loss| loss.region == *region);
    largest.filter(|_| sum > 0.0).cloned()
}
