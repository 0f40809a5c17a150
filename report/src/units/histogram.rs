//! Histograms of times: sixteen buckets for each power of two.

/// Buckets of a power of two.
const STEPS: u64 = 16;

/// Numbers by size, within 7 %.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// How many, by bucket.
    buckets: Vec<u64>,
    count: u64,
}

/// The bucket of a number.
fn bucket(number: u64) -> u32 {
    if number < STEPS {
        return number as u32;
    }
    let shift = number.ilog2() - STEPS.ilog2();
    (shift + 1) * STEPS as u32 + ((number >> shift) % STEPS) as u32
}

/// The least number of a bucket.
fn least(bucket: u32) -> u64 {
    let (power, step) = (u64::from(bucket) / STEPS, u64::from(bucket) % STEPS);
    match power {
        0 => step,
        power => (STEPS + step) << (power - 1),
    }
}

impl Histogram {
    pub(super) fn add(&mut self, number: u64) {
        let at = bucket(number) as usize;
        if self.buckets.len() <= at {
            self.buckets.resize(at + 1, 0);
        }
        self.buckets[at] += 1;
        self.count += 1;
    }

    pub(super) fn merge(&mut self, other: &Histogram) {
        let Histogram { buckets, count } = other;
        let most = self.buckets.len().max(buckets.len());
        self.buckets.resize(most, 0);
        for (all, count) in self.buckets.iter_mut().zip(buckets) {
            *all += count;
        }
        self.count += count;
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The buckets that are not empty: least number, the one behind the largest, how many.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let met = (0..).zip(&self.buckets).filter(|(_, count)| **count > 0);
        met.map(|(b, &count)| (least(b), least(b + 1), count))
    }

    /// What so many in a hundred are at most: the middle of the bucket. `None`: it is empty.
    pub fn percentile(&self, percent: u64) -> Option<f64> {
        let wanted = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
        let mut below = 0;
        let found = self.buckets().find(|(_, _, count)| {
            below += u128::from(*count);
            below >= wanted
        });
        found.map(|(from, to, _)| (from + to - 1) as f64 / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_its_bucket() {
        let mut numbers: Vec<u64> = (0..2000).collect();
        numbers.extend((4..63).flat_map(|p| [(1 << p) - 1, 1 << p, (1 << p) + 1]));
        for number in numbers {
            let at = bucket(number);
            assert!(least(at) <= number && number < least(at + 1), "{number}");
            assert!(least(at + 1) - least(at) <= 1 + number / 15, "{number}");
        }
    }

    #[test]
    fn percentiles_are_the_middles_of_buckets() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50), None);
        for number in [1, 1, 2, 3, 1000] {
            histogram.add(number);
        }
        assert_eq!(histogram.percentile(50), Some(2.0));
        assert_eq!(histogram.percentile(60), Some(2.0));
        let top = histogram.percentile(100).unwrap();
        assert!((top / 1000.0 - 1.0).abs() < 0.04, "{top}");
        assert_eq!(histogram.count(), 5);
    }
}
