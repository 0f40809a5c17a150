//! Time stamp counter readings to nanoseconds since the run's begin.

use ompfuse_format::run::ClockPair;

/// How one process's ticks become nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clock {
    tsc: u64,
    ns: i64,
    ns_per_tick: f64,
}

/// Where a clock's rate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateSource {
    /// Two clock readings.
    Measured,
    /// Two readings at the begin, or the duration of the run.
    Estimated,
    /// Nothing: one tick counts as one nanosecond.
    Unknown,
}

/// Nanoseconds per tick between two readings; `None` if they are not in order.
pub(crate) fn rate(begin: ClockPair, end: ClockPair) -> Option<f64> {
    let ticks = end.tsc.checked_sub(begin.tsc).filter(|&t| t > 0)?;
    let ns = end.ns.checked_sub(begin.ns).filter(|&n| n > 0)?;
    Some(ns as f64 / ticks as f64)
}

/// What two readings at a process's begin must lie apart, in nanoseconds: a reading is exact to some tens of them.
const START_NS: u64 = 20_000;

/// Nanoseconds per tick by a reading at the begin and one soon after it: right to some tenths of a percent; `None` if they lie too close, or
/// are not in order.
pub fn rate_at_start(begin: ClockPair, soon: ClockPair) -> Option<f64> {
    rate(begin, soon).filter(|_| soon.ns - begin.ns >= START_NS)
}

impl Clock {
    /// `begin`: reading at the process's begin; `run_begin_ns`: the run's. `measured`: the rate, if two readings of
    /// this process (or of another on the same machine) give one. Otherwise that `at_start` ([`rate_at_start`]), or
    /// `duration_s`, from the begin to the last tick that was seen.
    pub(crate) fn new(
        begin: ClockPair,
        run_begin_ns: u64,
        measured: Option<f64>,
        at_start: Option<f64>,
        last_tsc: u64,
        duration_s: f64,
    ) -> (Clock, RateSource) {
        let estimated = || {
            let ticks = last_tsc.checked_sub(begin.tsc).filter(|&t| t > 0)?;
            (duration_s > 0.0 && duration_s.is_finite()).then(|| duration_s * 1e9 / ticks as f64)
        };
        let (ns_per_tick, source) = match (measured, at_start.or_else(estimated)) {
            (Some(rate), _) => (rate, RateSource::Measured),
            (None, Some(rate)) => (rate, RateSource::Estimated),
            (None, None) => (1.0, RateSource::Unknown),
        };
        let ns = begin.ns.wrapping_sub(run_begin_ns) as i64;
        (
            Clock {
                tsc: begin.tsc,
                ns,
                ns_per_tick,
            },
            source,
        )
    }

    /// Nanoseconds since the run's begin at a reading.
    pub(crate) fn at(&self, tsc: u64) -> i64 {
        let ticks = tsc.wrapping_sub(self.tsc) as i64;
        self.ns
            .saturating_add(rounded(ticks as f64 * self.ns_per_tick))
    }

    /// Length in nanoseconds.
    pub(crate) fn length(&self, ticks: u64) -> u64 {
        let ns = ticks as f64 * self.ns_per_tick;
        if ns < LARGE {
            return rounded(ns).max(0) as u64;
        }
        ns.round() as u64
    }
}

/// Below this a signed number is large enough.
const LARGE: f64 = (1u64 << 62) as f64;

/// As `round() as i64`, which is a call of a function for every processor that has no instruction for it.
#[inline]
fn rounded(number: f64) -> i64 {
    let whole = number as i64;
    let rest = number - whole as f64;
    whole.saturating_add(i64::from(rest >= 0.5) - i64::from(rest <= -0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_readings_give_the_rate() {
        let (begin, end) = (
            ClockPair { tsc: 1000, ns: 50 },
            ClockPair {
                tsc: 4000,
                ns: 1050,
            },
        );
        let (clock, source) = Clock::new(begin, 40, rate(begin, end), Some(7.0), 0, 9.0);
        assert_eq!(source, RateSource::Measured);
        assert_eq!(
            (clock.at(1000), clock.at(4000), clock.at(700)),
            (10, 1010, -90)
        );
        assert_eq!(clock.length(300), 100);
    }

    #[test]
    fn two_readings_at_the_begin_come_before_the_duration() {
        let at = |tsc, ns| ClockPair { tsc, ns };
        let begin = at(1000, 0);
        assert_eq!(rate_at_start(begin, at(1500, START_NS - 1)), None);
        let rate = rate_at_start(begin, at(1000 + START_NS / 2, START_NS));
        assert_eq!(rate, Some(2.0));
        let (clock, source) = Clock::new(begin, 0, None, rate, 3000, 1.0);
        assert_eq!((source, clock.length(7)), (RateSource::Estimated, 14));
    }

    #[test]
    fn numbers_are_rounded_as_ever() {
        let below = 0.499_999_999_999_999_94;
        let large = [4.5e15, 9.2e18, 1e300, f64::INFINITY, f64::NAN];
        let numbers = [0.0, below, 0.5, 1.5, 2.5, 2.499, 1e9 + 0.5].into_iter();
        for number in numbers.chain(large).flat_map(|n| [n, -n]) {
            assert_eq!(rounded(number), number.round() as i64, "{number}");
        }
    }

    #[test]
    fn without_a_second_reading_the_duration_serves() {
        let begin = ClockPair { tsc: 1000, ns: 0 };
        assert_eq!(rate(begin, begin), None);
        let (clock, source) = Clock::new(begin, 0, None, None, 3000, 1e-6);
        assert_eq!((source, clock.at(3000)), (RateSource::Estimated, 1000));
        let (clock, source) = Clock::new(begin, 0, None, None, 0, 1.0);
        assert_eq!((source, clock.length(7)), (RateSource::Unknown, 7));
    }
}
