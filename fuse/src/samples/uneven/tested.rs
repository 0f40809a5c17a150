//! Whether slow units have more samples somewhere than fast ones, beyond chance.

use super::Pair;
use crate::samples::units::{SiteUnits, UnitSample};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::{BTreeMap, HashMap};

/// Of a hundred regions in which nothing differs one may be told.
const LEVEL: f64 = 0.01;

/// Samples of some units.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) units: u64,
    pub(super) n: u64,
}

/// How many samples units have.
pub(super) struct Totals<'s> {
    is_slow: &'s [bool],
    /// Samples by unit.
    of_unit: HashMap<u32, u64>,
    pub(super) slow: Side,
    pub(super) fast: Side,
}

impl<'s> Totals<'s> {
    pub(super) fn of(site: &SiteUnits, is_slow: &'s [bool]) -> Totals<'s> {
        let mut totals = Totals {
            is_slow,
            of_unit: HashMap::new(),
            slow: Side::default(),
            fast: Side::default(),
        };
        for is in is_slow {
            totals.side(*is).units += 1;
        }
        for sample in &site.samples {
            *totals.of_unit.entry(sample.unit).or_default() += 1;
            let is = is_slow[sample.unit as usize];
            totals.side(is).n += 1;
        }
        totals
    }

    fn side(&mut self, is_slow: bool) -> &mut Side {
        match is_slow {
            true => &mut self.slow,
            false => &mut self.fast,
        }
    }
}

/// A place's, or a function's, part in the difference.
pub(super) struct Tested {
    pub(super) key: u32,
    pub(super) time: Pair,
    /// Its part of what slow units take longer.
    pub(super) explains: f64,
    /// By how much its share in slow units may be above that in fast ones.
    pub(super) at_most: f64,
    /// It is not by chance, whatever else was looked at.
    pub(super) is_certain: bool,
    p: f64,
}

/// Tests each key whether slow units have more samples in it than its share in fast units lets expect. Keys with too few samples in slow
/// units can't explain anything.
pub(super) fn differences(
    site: &SiteUnits,
    totals: &Totals<'_>,
    period_s: f64,
    keys: impl Fn(&UnitSample) -> Vec<u32>,
) -> Vec<Tested> {
    let mut counts: BTreeMap<u32, HashMap<u32, u64>> = BTreeMap::new();
    for sample in &site.samples {
        for key in keys(sample) {
            *counts
                .entry(key)
                .or_default()
                .entry(sample.unit)
                .or_default() += 1;
        }
    }
    let (slow, fast) = (totals.slow.n as f64, totals.fast.n as f64);
    let excess = slow / totals.slow.units as f64 - fast / totals.fast.units as f64;
    let mut tested: Vec<Tested> = vec![];
    for (key, of_unit) in counts {
        let sum = |wanted: bool| {
            let chosen = of_unit
                .iter()
                .filter(|(u, _)| totals.is_slow[**u as usize] == wanted);
            chosen.map(|(_, n)| *n).sum::<u64>() as f64
        };
        let (in_slow, in_fast) = (sum(true), sum(false));
        let shares = [in_slow / slow, in_fast / fast];
        // Deviations by unit: what a unit has more than its side's share of its samples.
        let scatter = |wanted: bool| {
            let share = if wanted { shares[0] } else { shares[1] };
            let units = totals.of_unit.iter();
            let units = units.filter(|(u, _)| totals.is_slow[**u as usize] == wanted);
            let square = |(unit, n): (&u32, &u64)| {
                let here = of_unit.get(unit).copied().unwrap_or(0) as f64;
                (here - share * *n as f64).powi(2)
            };
            units.map(square).sum::<f64>()
        };
        let pooled = (in_slow + in_fast) / (slow + fast);
        // At least what samples scatter by themselves.
        let variance = |scatter: f64, n: f64| (scatter / (n * n)).max(pooled * (1.0 - pooled) / n);
        let error = (variance(scatter(true), slow) + variance(scatter(false), fast)).sqrt();
        let difference = shares[0] - shares[1];
        let looked_at = totals
            .of_unit
            .keys()
            .filter(|u| totals.is_slow[**u as usize])
            .count();
        let means = Pair {
            slow_s: in_slow / totals.slow.units as f64 * period_s,
            fast_s: in_fast / totals.fast.units as f64 * period_s,
        };
        tested.push(Tested {
            key,
            time: means,
            explains: (means.slow_s - means.fast_s) / period_s / excess,
            at_most: difference + 2.0 * error,
            is_certain: false,
            p: above(difference / error, looked_at.saturating_sub(1) as f64),
        });
    }
    holm(&mut tested);
    tested
}

/// Probability of at least this value by chance.
fn above(t: f64, df: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, df) {
        Ok(student) if t.is_finite() => student.sf(t),
        _ => 1.0,
    }
}

/// Which of several tests hold, all together (Holm, Scandinavian Journal of Statistics 6, 1979).
fn holm(tested: &mut [Tested]) {
    tested.sort_by(|a, b| a.p.total_cmp(&b.p));
    let all = tested.len();
    for (rank, one) in tested.iter_mut().enumerate() {
        if one.p > LEVEL / (all - rank) as f64 {
            break;
        }
        one.is_certain = true;
    }
}
