//! How good a combined profile is, measured against complete runs: TMD, EPD and Correlation Error ([Fuse] section 4).

mod histogram;
mod interval;
mod rank;
pub mod transport;
mod typical;

pub use histogram::BINS;
pub use typical::{ENOUGH, Sample, scattered, typical};

use crate::table::{EventColumn, XuTable};
use histogram::{Histogram, Scaled};
pub use interval::{Interval, Intervals, RESAMPLES};
use ompfuse_progress::Progress;
use rank::Ranked;
use rayon::prelude::*;
use serde::Serialize;
use transport::Transport;

/// Distances below this are taken for it, in bins: events that are equal in every run have a calibration of 0.
pub const FLOOR: f64 = 1e-3;

/// One pair of events.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairDistance {
    /// One event.
    pub x: String,
    /// The other.
    pub y: String,
    /// Median over the references of the earth mover's distance to the target, in bins.
    pub uncalibrated: f64,
    /// Median of the distances between references, in bins.
    pub calibration: f64,
    /// TMD: the one divided by the other, both at least [`FLOOR`].
    pub tmd: f64,
}

/// A profile's evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Geometric mean of the TMDs over all event pairs; about 1 for a fresh complete run.
    pub epd: f64,
    /// Mean over the pairs of |rho of the target - mean rho of the references|.
    pub correlation_error: f64,
    /// The pairs, in the order of the events.
    pub pairs: Vec<PairDistance>,
    /// What they are made of, pair by pair.
    #[serde(skip)]
    measured: Vec<Measured>,
}

/// Distances that [`References::new`], [`References::evaluate`] and [`References::spread`] take together, with so many references
/// and events.
fn distances(references: usize, events: usize) -> usize {
    let between = |n: usize| n * n.saturating_sub(1) / 2;
    let own = between(references) + references;
    let of_spread = references * (between(references.max(1) - 1) + references.max(1) - 1);
    let each = own + if references >= 3 { of_spread } else { 0 };
    between(events) * each
}

/// What the evaluation of a profile is compared with: complete runs, by the counts of the events that all have.
#[derive(Debug)]
pub struct References<'p> {
    names: Vec<String>,
    /// Per run, per event.
    counts: Vec<Counts>,
    prepared: Prepared<'p>,
    incomplete: usize,
    /// Of one distance.
    progress: Progress<'p>,
}

/// What can't be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// Too few references.
    #[error(
        "{0} reference given, at least two are needed: the distance between references is the unit"
    )]
    References(usize),
    /// Too few events in common.
    #[error("the profile and the references have {0} events in common; at least two are needed")]
    Events(usize),
    /// A table without XUs.
    #[error("{0} has no execution unit with a count for every event")]
    Empty(String),
}

/// Median; of the middle two their mean.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}

/// The counts of the common events, a vector per event; XUs without some count are left out.
fn complete(table: &XuTable, names: &[&str]) -> (Vec<Vec<u64>>, usize) {
    let columns: Vec<&EventColumn> = names.iter().filter_map(|n| table.event(n)).collect();
    let is_complete = |row: &usize| columns.iter().all(|c| c.get(*row).is_some());
    let rows: Vec<usize> = (0..table.len()).filter(is_complete).collect();
    let values = columns
        .par_iter()
        .map(|c| rows.iter().map(|&row| c.values[row]).collect())
        .collect();
    (values, table.len() - rows.len())
}

/// Two of so many things each, in order: 0 and 1, 0 and 2, ..., 1 and 2, ...
fn pairs_of(things: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..things).flat_map(move |a| (a + 1..things).map(move |b| (a, b)))
}

/// The smallest and the largest count of each event in any of the runs.
fn bounds(runs: &[&Counts], events: usize) -> Vec<(u64, u64)> {
    let of_event = |event: usize| {
        let all = || runs.iter().flat_map(|run| &run[event]).copied();
        (all().min().unwrap_or(0), all().max().unwrap_or(0))
    };
    (0..events).into_par_iter().map(of_event).collect()
}

/// The tables' counts: per table, per event.
type Counts = Vec<Vec<u64>>;

impl<'p> References<'p> {
    /// Complete runs of one program; the events that are evaluated are those that `target` has too.
    ///
    /// # Errors
    /// [`EvaluationError`] says what is missing.
    pub fn new(runs: &[&XuTable], target: &XuTable) -> Result<References<'p>, EvaluationError> {
        References::with_progress(runs, target, Progress::default())
    }

    /// As [`References::new`], for somebody who waits: for this, one [`References::evaluate`] and one [`References::spread`].
    ///
    /// # Errors
    /// [`EvaluationError`] says what is missing.
    pub fn with_progress(
        runs: &[&XuTable],
        target: &XuTable,
        progress: Progress<'p>,
    ) -> Result<References<'p>, EvaluationError> {
        if runs.len() < 2 {
            return Err(EvaluationError::References(runs.len()));
        }
        let tables = || runs.iter().chain([&target]);
        let names: Vec<&str> = runs[0]
            .events
            .iter()
            .map(|e| e.name.as_str())
            .filter(|n| tables().all(|t| t.event(n).is_some()))
            .collect();
        if names.len() < 2 {
            return Err(EvaluationError::Events(names.len()));
        }
        let (mut counts, mut incomplete) = (vec![], 0);
        for (n, run) in (1..).zip(runs) {
            let (values, left_out) = complete(run, &names);
            if values[0].is_empty() {
                return Err(EvaluationError::Empty(format!("reference {n}")));
            }
            counts.push(values);
            incomplete += left_out;
        }
        let all = distances(runs.len(), names.len());
        let progress = progress.part(1.0 / all as f64);
        Ok(References {
            names: names.into_iter().map(str::to_owned).collect(),
            prepared: Prepared::new(&counts.iter().collect::<Vec<_>>(), progress),
            counts,
            incomplete,
            progress,
        })
    }

    /// XUs of the references that are left out, since not all events were counted for them.
    pub fn incomplete(&self) -> usize {
        self.incomplete
    }

    /// Evaluates a profile, the one that was given to [`References::new`] or another with the same events. Also says how
    /// many of its XUs are left out, since not all events were counted for them.
    ///
    /// # Errors
    /// [`EvaluationError::Events`] and [`EvaluationError::Empty`].
    pub fn evaluate(&self, target: &XuTable) -> Result<(Evaluation, usize), EvaluationError> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let has = |n: &&&str| target.event(n).is_some();
        let common = names.iter().filter(has).count();
        if common < names.len() {
            return Err(EvaluationError::Events(common));
        }
        let (values, left_out) = complete(target, &names);
        if values[0].is_empty() {
            return Err(EvaluationError::Empty("the profile".to_owned()));
        }
        Ok((self.prepared.evaluate(&values, &names), left_out))
    }

    /// The distribution of two events as shares of the XUs, in the bins of the evaluation (one more on each side): of a profile,
    /// and of each reference. Rows are bins of `x`.
    ///
    /// # Errors
    /// [`EvaluationError::Events`] if one of them is missing.
    pub fn distributions(
        &self,
        target: &XuTable,
        x: &str,
        y: &str,
    ) -> Result<Vec<Vec<Vec<f64>>>, EvaluationError> {
        let at = |name: &str| self.names.iter().position(|n| n == name);
        let (Some(x), Some(y)) = (at(x), at(y)) else {
            return Err(EvaluationError::Events(0));
        };
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let (values, _) = complete(target, &names);
        let grid = |table: &Counts| {
            let of = |e: usize| Scaled::new(&table[e], self.prepared.bounds[e]);
            Histogram::shares(&of(x), &of(y))
        };
        Ok(std::iter::once(&values)
            .chain(&self.counts)
            .map(grid)
            .collect())
    }

    /// How sure the two numbers are that [`References::evaluate`] gave; nothing with fewer than three runs.
    pub fn intervals(&self, evaluation: &Evaluation) -> Option<Intervals> {
        interval::intervals(&self.prepared.pairs, &evaluation.measured)
    }

    /// The evaluation of each run against the others: differences within their spread mean nothing. Nothing with fewer than
    /// three runs.
    pub fn spread(&self) -> Vec<Evaluation> {
        if self.counts.len() < 3 {
            return vec![];
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        (0..self.counts.len())
            .map(|at| {
                let mut others: Vec<&Counts> = self.counts.iter().collect();
                let fresh = others.remove(at);
                let prepared = Prepared::new(&others, self.progress);
                prepared.evaluate(fresh, &names)
            })
            .collect()
    }
}

/// References, prepared: bounds, positions, ranks, and per pair of events the histograms and the calibration.
#[derive(Debug)]
struct Prepared<'p> {
    bounds: Vec<(u64, u64)>,
    pairs: Vec<PreparedPair>,
    /// Of one distance.
    progress: Progress<'p>,
}

#[derive(Debug)]
struct PreparedPair {
    x: usize,
    y: usize,
    histograms: Vec<Histogram>,
    /// The distances between the references: 0 and 1, 0 and 2, ..., 1 and 2, ...
    between: Vec<f64>,
    /// Their correlations.
    rho: Vec<f64>,
}

impl<'p> Prepared<'p> {
    fn new(references: &[&Counts], progress: Progress<'p>) -> Prepared<'p> {
        let events = references.first().map_or(0, |r| r.len());
        let bounds = bounds(references, events);
        let scaled: Vec<_> = references.iter().map(|r| scale(r, &bounds)).collect();
        let ranked: Vec<_> = references.iter().map(|r| rank(r)).collect();
        let pairs: Vec<(usize, usize)> = pairs_of(events).collect();
        let pairs = pairs
            .into_par_iter()
            .map_init(Transport::default, |transport, (x, y)| {
                let histograms: Vec<Histogram> = scaled
                    .iter()
                    .map(|r| Histogram::new(&r[x], &r[y]))
                    .collect();
                let between: Vec<f64> = pairs_of(histograms.len())
                    .map(|(a, b)| histograms[a].distance(&histograms[b], transport))
                    .collect();
                progress.advance(between.len() as f64);
                PreparedPair {
                    x,
                    y,
                    between,
                    rho: ranked.iter().map(|r| r[x].correlation(&r[y])).collect(),
                    histograms,
                }
            })
            .collect();
        Prepared {
            bounds,
            pairs,
            progress,
        }
    }

    fn evaluate(&self, target: &Counts, names: &[&str]) -> Evaluation {
        let (scaled, ranked) = (scale(target, &self.bounds), rank(target));
        let measured: Vec<Measured> = self
            .pairs
            .par_iter()
            .map_init(Transport::default, |transport, pair| {
                let (x, y) = (pair.x, pair.y);
                let of_target = Histogram::new(&scaled[x], &scaled[y]);
                let to_references: Vec<f64> = pair
                    .histograms
                    .iter()
                    .map(|r| of_target.distance(r, transport))
                    .collect();
                self.progress.advance(to_references.len() as f64);
                Measured {
                    to_references,
                    rho: ranked[x].correlation(&ranked[y]),
                }
            })
            .collect();
        let distances = self.pairs.iter().zip(&measured).map(|(pair, measured)| {
            let uncalibrated = median(&mut measured.to_references.clone());
            let calibration = median(&mut pair.between.clone());
            PairDistance {
                x: names[pair.x].to_owned(),
                y: names[pair.y].to_owned(),
                uncalibrated,
                calibration,
                tmd: tmd(uncalibrated, calibration),
            }
        });
        let distances: Vec<PairDistance> = distances.collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let errors = self.pairs.iter().zip(&measured);
        let errors: Vec<f64> = errors.map(|(p, m)| (m.rho - mean(&p.rho)).abs()).collect();
        let logarithms: Vec<f64> = distances.iter().map(|p| p.tmd.ln()).collect();
        Evaluation {
            epd: mean(&logarithms).exp(),
            correlation_error: mean(&errors),
            pairs: distances,
            measured,
        }
    }
}

/// A profile and the references, in one pair of events.
#[derive(Debug, Clone, PartialEq)]
struct Measured {
    to_references: Vec<f64>,
    rho: f64,
}

fn tmd(uncalibrated: f64, calibration: f64) -> f64 {
    uncalibrated.max(FLOOR) / calibration.max(FLOOR)
}

fn scale(table: &Counts, bounds: &[(u64, u64)]) -> Vec<Scaled> {
    let columns = table.par_iter().zip(bounds);
    columns
        .map(|(values, &bounds)| Scaled::new(values, bounds))
        .collect()
}

fn rank(table: &Counts) -> Vec<Ranked> {
    table.par_iter().map(|values| Ranked::new(values)).collect()
}

#[cfg(test)]
mod tests;
