//! Spearman's rank correlation ([Fuse] section 4.4).

/// Ranks of the values, those of equal ones averaged; times 2, so that they are whole numbers.
fn double_ranks(values: &[u64]) -> Vec<u64> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_unstable_by_key(|&i| values[i as usize]);
    let mut ranks = vec![0; values.len()];
    let mut begin = 0;
    for group in order.chunk_by(|&a, &b| values[a as usize] == values[b as usize]) {
        let end = begin + group.len();
        for &i in group {
            ranks[i as usize] = (begin + 1 + end) as u64;
        }
        begin = end;
    }
    ranks
}

/// A column's ranks as deviations from their mean, divided by their norm: the correlation of two columns is the sum of
/// products.
#[derive(Debug)]
pub(super) struct Ranked {
    /// Empty if the column is constant.
    deviations: Vec<f64>,
}

impl Ranked {
    pub(super) fn new(values: &[u64]) -> Ranked {
        let mean = (values.len() + 1) as f64; // of the doubled ranks
        let mut deviations: Vec<f64> = double_ranks(values)
            .iter()
            .map(|&r| r as f64 - mean)
            .collect();
        let norm = deviations.iter().map(|d| d * d).sum::<f64>().sqrt();
        if norm > 0.0 {
            deviations.iter_mut().for_each(|d| *d /= norm);
        } else {
            deviations.clear();
        }
        Ranked { deviations }
    }

    /// Spearman's rho; 0 if a column is constant.
    pub(super) fn correlation(&self, other: &Ranked) -> f64 {
        self.deviations
            .iter()
            .zip(&other.deviations)
            .map(|(a, b)| a * b)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_the_average_rank() {
        assert_eq!(double_ranks(&[5, 1, 5, 9]), [5, 2, 5, 8]);
    }

    #[test]
    fn correlations_by_hand() {
        let rho = |a: &[u64], b: &[u64]| Ranked::new(a).correlation(&Ranked::new(b));
        assert!((rho(&[1, 2, 3, 4], &[1, 2, 4, 3]) - 0.8).abs() < 1e-12);
        assert!((rho(&[1, 2, 3, 4], &[40, 30, 20, 10]) + 1.0).abs() < 1e-12);
        assert_eq!(rho(&[1, 2, 3, 4], &[5, 5, 5, 5]), 0.0);
        assert_eq!(rho(&[], &[]), 0.0);
    }
}
