//! How fast this machine computes at the moment: the time of a computation that is always the same.
//!
//! It tells of clocks that were throttled and of other processors under the same name. What other programs leave of the machine it does
//! not: the shortest of several attempts counts.

use std::hint::black_box;
use std::time::Instant;

/// Steps of an attempt: some 0.2 ms.
const STEPS: u64 = 100_000;

/// Attempts.
const ATTEMPTS: u32 = 10;

/// The time of an attempt in seconds.
pub(crate) fn pace_s() -> f64 {
    let attempt = |seed: u32| {
        let begin = Instant::now();
        black_box(computed(black_box(u64::from(seed))));
        begin.elapsed().as_secs_f64()
    };
    (0..ATTEMPTS).map(attempt).fold(f64::INFINITY, f64::min)
}

/// Each step needs the one before, so that nothing but the processor's clock decides.
fn computed(seed: u64) -> u64 {
    (0..STEPS).fold(seed, |value, step| {
        (value ^ (value >> 29))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(step)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_time_of_something_that_depends_on_all_steps() {
        assert!(pace_s() > 0.0 && pace_s() < 1.0);
        assert_ne!(computed(1), computed(2));
    }
}
