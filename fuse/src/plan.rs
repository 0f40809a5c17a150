//! Event sets: which events are counted together, in how few runs.

mod overlap;
#[cfg(test)]
mod tests;
mod variation;

pub use overlap::{plan_bc, plan_joint};

use crate::evaluate::ENOUGH;
use crate::table::{EventColumn, XuTable};
use rayon::prelude::*;

/// Distributes events over the fewest sets that greedy first fit finds: each event, in the order given, goes to the
/// first set with a free slot that stays compatible with it ([Fuse] section 3). One run is needed per set. An event that
/// is not even compatible with itself alone is left out of every set; names given twice count once.
///
/// `slots`: counters that can be used at once. `compatible`: whether these events can be counted together; it is
/// asked with the set's events and the new one last.
pub fn plan_lgl(
    events: &[String],
    slots: usize,
    compatible: impl Fn(&[&str]) -> bool,
) -> Vec<Vec<String>> {
    let mut sets: Vec<Vec<&str>> = Vec::new();
    for event in events {
        if sets.iter().flatten().any(|e| e == event) {
            continue;
        }
        let fits = |set: &mut Vec<&str>| {
            if set.len() >= slots {
                return false;
            }
            let mut wanted = set.clone();
            wanted.push(event);
            compatible(&wanted)
        };
        match sets.iter_mut().position(fits) {
            Some(at) => sets[at].push(event),
            None if slots > 0 && compatible(&[event]) => sets.push(vec![event]),
            None => {}
        }
    }
    sets.iter()
        .map(|set| set.iter().map(|&e| e.to_owned()).collect())
        .collect()
}

/// Runs of the first event set, where so many are allowed.
const FIRST: usize = 5;

/// The sets with the first one several times, so that the most typical of its runs can be chosen. What labels don't fix of a
/// profile is as it was in one run, and that should not be an unusual one. If `most` runs are allowed, there are as many of the
/// first set as fit, from [`ENOUGH`] to five, or one. The repetitions come last, so that they are the first to be left out.
pub fn with_first_again(mut sets: Vec<Vec<String>>, most: usize) -> Vec<Vec<String>> {
    let again = (FIRST - 1).min(most.saturating_sub(sets.len()));
    if sets.len() > 1 && again + 1 >= ENOUGH {
        sets.extend(vec![sets[0].clone(); again]);
    }
    sets
}

/// Pearson's correlation coefficient of two events over the XUs that have both counts; 0 where one is constant.
pub fn correlation(a: &EventColumn, b: &EventColumn) -> f64 {
    let rows = || {
        (0..a.values.len().min(b.values.len()))
            .filter_map(|row| Some((a.get(row)? as f64, b.get(row)? as f64)))
    };
    let n = rows().count() as f64;
    let (sum_a, sum_b) = rows().fold((0.0, 0.0), |s, (x, y)| (s.0 + x, s.1 + y));
    let (mean_a, mean_b) = (sum_a / n, sum_b / n);
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in rows() {
        ab += (x - mean_a) * (y - mean_b);
        aa += (x - mean_a).powi(2);
        bb += (y - mean_b).powi(2);
    }
    if aa > 0.0 && bb > 0.0 {
        ab / (aa * bb).sqrt()
    } else {
        0.0
    }
}

/// The correlations of all events of a table, computed once.
#[derive(Debug, Default)]
pub struct Correlations {
    names: Vec<String>,
    values: Vec<f64>,
    /// Per event the share of its variance that labels don't fix.
    open: Vec<f64>,
}

impl Correlations {
    /// Of each event of a run or profile with each other.
    pub fn of(table: &XuTable) -> Correlations {
        let n = table.events.len();
        let values = (0..n * n)
            .into_par_iter()
            .map(|at| correlation(&table.events[at / n], &table.events[at % n]))
            .collect();
        Correlations {
            names: table.events.iter().map(|e| e.name.clone()).collect(),
            values,
            open: vec![1.0; n],
        }
    }

    /// Of these two, 0 if one is not known.
    pub fn get(&self, a: &str, b: &str) -> f64 {
        let at = |name: &str| self.names.iter().position(|n| n == name);
        match (at(a), at(b)) {
            (Some(a), Some(b)) => self.values[a * self.names.len() + b],
            _ => 0.0,
        }
    }

    /// The share of an event's variance that labels don't fix: 1 where that isn't known.
    pub fn open(&self, event: &str) -> f64 {
        let at = self.names.iter().position(|n| n == event);
        at.map_or(1.0, |at| self.open[at])
    }
}
