//! Two-event histograms and their distance ([Fuse] section 4.3).

use super::transport::{Mass, Transport};

/// Inner bins per event ([Fuse]: 10).
pub const BINS: usize = 10;
/// With the outer bins.
const ALL: usize = BINS + 2;

/// The counts of one event in one table, in units of bins.
#[derive(Debug)]
pub(super) struct Scaled {
    /// Bin: 0 below the bounds, 1 to `BINS` inside, `BINS + 1` above.
    bin: Vec<u8>,
    /// Position in units of bins, 0 at the lower bound.
    position: Vec<f64>,
}

impl Scaled {
    /// `bounds`: smallest and largest count of the event in all reference tables.
    pub(super) fn new(values: &[u64], (low, high): (u64, u64)) -> Scaled {
        let width = if high > low {
            (high - low) as f64 / BINS as f64
        } else {
            1.0
        };
        let position = |v: u64| {
            let difference = v.abs_diff(low) as f64 / width;
            if v < low { -difference } else { difference }
        };
        let bin = |v: u64| match v {
            _ if v < low => 0,
            _ if v > high => BINS as u8 + 1,
            _ => (position(v).floor() as u8).min(BINS as u8 - 1) + 1,
        };
        Scaled {
            bin: values.iter().map(|&v| bin(v)).collect(),
            position: values.iter().map(|&v| position(v)).collect(),
        }
    }
}

/// The occupied bins of two events: how many XUs, and their mean position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Histogram {
    masses: Vec<Mass>,
}

impl Histogram {
    pub(super) fn new(x: &Scaled, y: &Scaled) -> Histogram {
        let mut cells = [(0u64, 0.0, 0.0); ALL * ALL];
        let columns = x
            .bin
            .iter()
            .zip(&y.bin)
            .zip(x.position.iter().zip(&y.position));
        for ((&bin_x, &bin_y), (&x, &y)) in columns {
            let cell = &mut cells[usize::from(bin_x) * ALL + usize::from(bin_y)];
            cell.0 += 1;
            cell.1 += x;
            cell.2 += y;
        }
        let occupied = (0..).zip(cells).filter(|(_, cell)| cell.0 > 0);
        let mass = |(bin, (amount, x, y)): (u16, (u64, f64, f64))| Mass {
            bin,
            x: x / amount as f64,
            y: y / amount as f64,
            amount,
        };
        Histogram {
            masses: occupied.map(mass).collect(),
        }
    }

    /// The share of the XUs in each bin, rows by `x`.
    pub(super) fn shares(x: &Scaled, y: &Scaled) -> Vec<Vec<f64>> {
        let mut cells = vec![vec![0.0; ALL]; ALL];
        let one = (x.bin.len().max(1) as f64).recip();
        for (&x, &y) in x.bin.iter().zip(&y.bin) {
            cells[usize::from(x)][usize::from(y)] += one;
        }
        cells
    }

    /// The earth mover's distance in bins: the mean distance that the share of an XU moves.
    pub(super) fn distance(&self, other: &Histogram, transport: &mut Transport) -> f64 {
        if self == other {
            return 0.0;
        }
        let total = |masses: &[Mass]| masses.iter().map(|m| m.amount).sum::<u64>();
        let (ours, theirs) = (total(&self.masses), total(&other.masses));
        if ours == 0 || theirs == 0 {
            return 0.0;
        }
        // Shares of both sides as whole numbers.
        let shares = |masses: &[Mass], factor: u64| -> Vec<Mass> {
            let share = |m: &Mass| Mass {
                amount: m.amount * factor,
                ..*m
            };
            masses.iter().map(share).collect()
        };
        let (supply, demand) = (shares(&self.masses, theirs), shares(&other.masses, ours));
        transport.minimum_cost(&supply, &demand) / (ours as f64 * theirs as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(points: &[(u64, u64)], bounds: (u64, u64)) -> Histogram {
        let column = |f: fn(&(u64, u64)) -> u64| {
            Scaled::new(&points.iter().map(f).collect::<Vec<_>>(), bounds)
        };
        Histogram::new(&column(|p| p.0), &column(|p| p.1))
    }

    fn distance(a: &Histogram, b: &Histogram) -> f64 {
        a.distance(b, &mut Transport::default())
    }

    #[test]
    fn counts_outside_the_bounds_have_bins_of_their_own() {
        let h = histogram(&[(10, 10), (20, 20), (5, 30), (30, 20), (10, 10)], (10, 20));
        let count: Vec<u64> = h.masses.iter().map(|m| m.amount).collect();
        assert_eq!(count, [1, 2, 1, 1]);
        let expected = [(-5.0, 20.0), (0.0, 0.0), (10.0, 10.0), (20.0, 10.0)];
        let location: Vec<_> = h.masses.iter().map(|m| (m.x, m.y)).collect();
        assert_eq!(location, expected);
    }

    #[test]
    fn moving_a_quarter_by_one_bin() {
        let a = histogram(&[(0, 0), (0, 40), (40, 0), (40, 40)], (0, 100));
        let b = histogram(&[(0, 0), (0, 40), (40, 0), (50, 40)], (0, 100));
        assert!((distance(&a, &b) - 0.25).abs() < 1e-12);
        // The shares count, not the numbers.
        let twice = histogram(
            &[
                (0, 0),
                (0, 40),
                (40, 0),
                (40, 40),
                (0, 0),
                (0, 40),
                (40, 0),
                (40, 40),
            ],
            (0, 100),
        );
        assert_eq!(distance(&a, &twice), 0.0);
        assert_eq!(distance(&a, &histogram(&[], (0, 100))), 0.0);
    }

    #[test]
    fn an_event_that_is_constant_in_the_references() {
        let a = histogram(&[(7, 7)], (7, 7));
        let b = histogram(&[(8, 7)], (7, 7));
        assert_eq!(distance(&a, &b), 1.0);
    }
}
