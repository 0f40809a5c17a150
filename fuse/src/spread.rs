//! How evenly work is spread over threads.

/// The imbalance: `max / mean - 1` of the threads' work. 0 is even; 1 says that the busiest thread has twice the mean. 0 where
/// nobody works.
pub fn imbalance(work: &[u64]) -> f64 {
    let most = work.iter().copied().max().unwrap_or(0);
    let all: u64 = work.iter().sum();
    if all == 0 {
        return 0.0;
    }
    most as f64 * work.len() as f64 / all as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::imbalance;

    #[test]
    fn imbalance_is_the_excess_over_the_mean() {
        assert_eq!(imbalance(&[]), 0.0);
        assert_eq!(imbalance(&[0, 0]), 0.0);
        assert_eq!(imbalance(&[7, 7, 7]), 0.0);
        assert_eq!(imbalance(&[30, 10]), 0.5);
        assert_eq!(imbalance(&[0, 0, 9]), 2.0);
    }
}
