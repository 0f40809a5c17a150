//! Whether two sides do the same, whatever their regions are called and wherever they are.
//!
//! Each region has a construct, a number of executions and of iterations. Programs that execute the same have the same of these, but a
//! region that is executed once is in every program: a number tells as much as its logarithm.

use super::side::{Quantity, Side, SideRegion};
use ompfuse_format::Construct;
use std::collections::BTreeMap;

/// Two sides of which this share is alike are of one program.
pub const ALIKE: f64 = 0.5;

/// Bits that counts must tell to be a sign of their own: a loop of 1000 iterations has them.
pub(super) const TELLING: f64 = 9.9;

/// What a region does: its construct, executions and iterations (0 without any); `None`: runs differ, or nothing is known.
pub(super) type Counts = (Construct, u64, u64);

pub(super) fn counts(region: &SideRegion) -> Option<Counts> {
    let executions = region.constant(&Quantity::Executions)?;
    let iterations = match region.values.get(&Quantity::Iterations) {
        Some(_) => region.constant(&Quantity::Iterations)?,
        None => 0.0,
    };
    Some((region.key.construct, executions as u64, iterations as u64))
}

/// How much counts tell, in bits.
pub(super) fn bits((_, executions, iterations): Counts) -> f64 {
    let of = |n: u64| (n.max(1) as f64).log2();
    of(executions) + of(iterations)
}

/// Which share of what the counts of a side tell is on the other side too, from 0 to 1: the smaller one of both sides.
pub(super) fn alike(a: &Side, b: &Side) -> f64 {
    let all = |side: &Side| -> BTreeMap<Counts, u32> {
        let mut all = BTreeMap::new();
        // Compilers decide on waits.
        let regions = side.regions.iter().filter(|r| !r.is_wait());
        for counts in regions.filter_map(counts) {
            *all.entry(counts).or_default() += 1;
        }
        all
    };
    let (a, b) = (all(a), all(b));
    let told = |all: &BTreeMap<Counts, u32>, times: &dyn Fn(Counts, u32) -> u32| -> f64 {
        let of = |(&counts, &n)| f64::from(times(counts, n)) * bits(counts);
        all.iter().map(of).sum()
    };
    let both = told(&a, &|counts, n| n.min(b.get(&counts).copied().unwrap_or(0)));
    let most = told(&a, &|_, n| n).max(told(&b, &|_, n| n));
    if most > 0.0 { both / most } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{region, side};

    #[test]
    fn large_numbers_tell_more_than_small_ones() {
        let of = |regions: &[(f64, f64)]| {
            let regions = regions.iter().map(|&(executions, iterations)| {
                let values = [
                    (Quantity::Executions, &[executions][..]),
                    (Quantity::Iterations, &[iterations]),
                ];
                region("", 0.1, &values)
            });
            side(1, &[], regions.collect())
        };
        let one = of(&[(5.0, 20_000.0), (5.0, 15_005.0), (1.0, 2.0)]);
        assert!((alike(&one, &one) - 1.0).abs() < 1e-9);
        let fused = of(&[(5.0, 15_005.0), (5.0, 20_000.0)]);
        assert!(alike(&one, &fused) > 0.9 && alike(&fused, &one) > 0.9);
        let other = of(&[(1.0, 9.0), (1.0, 2.0), (3.0, 15_005.0)]);
        assert!(alike(&one, &other) < 0.1, "{}", alike(&one, &other));
        // Nothing that is executed more than once tells nothing.
        let once = of(&[(1.0, 1.0)]);
        assert_eq!(alike(&once, &once), 0.0);
    }
}
