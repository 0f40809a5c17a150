//! Student's distribution.

use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};
use std::collections::HashMap;

/// Probability that the absolute value is at least `|t|`, by chance. `df`: degrees of freedom, above 0.
pub fn two_sided(t: f64, df: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, df) {
        Ok(student) if t.is_finite() => (2.0 * student.sf(t.abs())).min(1.0),
        _ => 0.0,
    }
}

/// Quantiles, each computed once: a comparison of thousands of regions needs the same few again and again.
#[derive(Debug, Default)]
pub struct Quantiles {
    known: HashMap<(u64, u64), f64>,
}

impl Quantiles {
    /// The value that is exceeded with the probability `tail`, below 0.5.
    pub fn upper(&mut self, tail: f64, df: f64) -> f64 {
        let key = (tail.to_bits(), df.to_bits());
        *self.known.entry(key).or_insert_with(|| upper(tail, df))
    }
}

/// By Newton's method on the logarithm of the probability, which is exact far out in the tail; the crate's own inverse is not.
fn upper(tail: f64, df: f64) -> f64 {
    let Ok(student) = StudentsT::new(0.0, 1.0, df) else {
        return f64::INFINITY;
    };
    let (mut low, mut high, mut t) = (0.0, f64::INFINITY, 1.0);
    for _ in 0..100 {
        let (above, density) = (student.sf(t), student.pdf(t));
        if above > tail {
            low = t;
        } else {
            high = t;
        }
        let mut next = t + (above.ln() - tail.ln()) * above / density;
        if !(low..=high).contains(&next) {
            next = if high.is_finite() {
                (low + high) / 2.0
            } else {
                2.0 * t
            };
        }
        if (next - t).abs() <= 1e-13 * t {
            break;
        }
        t = next;
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the table in Fisher and Yates, "Statistical Tables for Biological, Agricultural and Medical Research" (1963), table III.
    #[test]
    fn values_are_those_of_the_printed_table() {
        let mut quantiles = Quantiles::default();
        for (two_sides, df, wanted) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 8.0, 2.306),
            (0.01, 8.0, 3.355),
            (0.001, 8.0, 5.041),
            (0.001, 2.0, 31.598),
            (0.05, 18.0, 2.101),
            (0.2, 120.0, 1.289),
        ] {
            let found = quantiles.upper(two_sides / 2.0, df);
            assert!((found - wanted).abs() < 1.5e-3, "{two_sides} {df}: {found}");
            let back = two_sided(-found, df);
            assert!((back / two_sides - 1.0).abs() < 1e-6, "{back}");
        }
        assert_eq!(two_sided(f64::INFINITY, 3.0), 0.0);
    }
}
