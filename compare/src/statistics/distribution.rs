//! How far apart the times of units are.

use crate::side::{Quantity, Sample, SideRegion};

/// Points in which a mixture of several regions' units is compared.
const POINTS: usize = 64;

/// The earth mover's distance between the times of units, over A's mean; `None` if a side has none.
pub(super) fn distance(a: &[&SideRegion], b: &[&SideRegion]) -> Option<f64> {
    let (a, b) = (Mixture::of(a)?, Mixture::of(b)?);
    let at = |point: usize| (point as f64 + 0.5) / POINTS as f64;
    let mean = (0..POINTS).map(|point| a.quantile(at(point))).sum::<f64>();
    let moved = (0..POINTS).map(|point| (a.quantile(at(point)) - b.quantile(at(point))).abs());
    (mean > 0.0).then(|| moved.sum::<f64>() / mean)
}

/// Times of units with their weights, the shortest first.
struct Mixture {
    /// Upper end in the ranks from 0 to 1, and time there. Between two of them it is a straight line.
    steps: Vec<(f64, f64)>,
}

impl Mixture {
    fn of(regions: &[&SideRegion]) -> Option<Mixture> {
        let known = regions.iter().filter(|r| r.quantiles.len() > 1);
        let mut points: Vec<(f64, f64)> = Vec::new();
        for region in known {
            let units = region
                .values
                .get(&Quantity::Units)
                .map_or(1.0, Sample::typical);
            let last = region.quantiles.len() - 1;
            // The first and the last stand for half a step each.
            let weight =
                |at: usize| if at == 0 || at == last { 0.5 } else { 1.0 } * units / last as f64;
            let of_region = region.quantiles.iter().enumerate();
            points.extend(of_region.map(|(at, &time)| (f64::from(time), weight(at))));
        }
        points.sort_by(|x, y| x.0.total_cmp(&y.0));
        let all: f64 = points.iter().map(|(_, weight)| weight).sum();
        if all <= 0.0 {
            return None;
        }
        let mut before = 0.0;
        let steps = points.into_iter().map(|(time, weight)| {
            let middle = (before + weight / 2.0) / all;
            before += weight;
            (middle, time)
        });
        Some(Mixture {
            steps: steps.collect(),
        })
    }

    fn quantile(&self, rank: f64) -> f64 {
        let above = self.steps.partition_point(|(at, _)| *at < rank);
        match (
            above.checked_sub(1).map(|at| self.steps[at]),
            self.steps.get(above),
        ) {
            (Some((low, short)), Some(&(high, long))) if high > low => {
                short + (long - short) * (rank - low) / (high - low)
            }
            (_, Some(&(_, time))) | (Some((_, time)), None) => time,
            (None, None) => 0.0,
        }
    }
}
