//! Mean times of slow units and of fast ones, and what may have made units slow that isn't theirs.

use super::{ALIKE, MOST, Pair};
use crate::samples::units::UnitSum;
use std::cmp::Reverse;

pub(super) const NS: f64 = 1e-9;

/// Which units are the slowest tenth.
pub(super) fn slowest(units: &[UnitSum], time: impl Fn(&UnitSum) -> u64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by_key(|at| Reverse(time(&units[*at]))); // stable: which of equal ones doesn't matter
    let mut is_slow = vec![false; units.len()];
    for at in order.into_iter().take(units.len().div_ceil(10)) {
        is_slow[at] = true;
    }
    is_slow
}

/// Means of slow and of fast units.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Means {
    pub(super) slow: f64,
    pub(super) fast: f64,
}

impl Means {
    pub(super) fn seconds(self) -> Pair {
        Pair {
            slow_s: self.slow * NS,
            fast_s: self.fast * NS,
        }
    }

    pub(super) fn without(self, other: Means) -> Means {
        Means {
            slow: self.slow - other.slow,
            fast: self.fast - other.fast,
        }
    }

    /// Of what samples tell no more than there was.
    pub(super) fn at_most(self, pair: Pair) -> Pair {
        Pair {
            slow_s: pair.slow_s.min(self.slow * NS),
            fast_s: pair.fast_s.min(self.fast * NS),
        }
    }
}

pub(super) struct Both {
    pub(super) units: u64,
    pub(super) slow: u64,
    pub(super) own: Means,
    /// Without what others did with the processor.
    pub(super) time: Means,
    pub(super) iterations: Means,
    pub(super) instructions: Means,
    pub(super) asleep: Means,
    pub(super) interrupted: Means,
}

impl Both {
    pub(super) fn of(units: &[UnitSum], is_slow: &[bool]) -> Both {
        let mean = |value: fn(&UnitSum) -> u64| {
            let of = |wanted: bool| {
                let chosen = units.iter().zip(is_slow).filter(|(_, is)| **is == wanted);
                let (sum, n) = chosen.fold((0.0, 0.0), |(sum, n), (u, _)| {
                    (sum + value(u) as f64, n + 1.0)
                });
                sum / f64::max(n, 1.0)
            };
            Means {
                slow: of(true),
                fast: of(false),
            }
        };
        Both {
            units: is_slow.len() as u64,
            slow: is_slow.iter().filter(|is| **is).count() as u64,
            own: mean(|u| u.own_ns),
            time: mean(|u| u.own_ns.saturating_sub(u.interrupted_ns)),
            iterations: mean(|u| u.iterations),
            instructions: mean(|u| u.instructions),
            asleep: mean(|u| u.asleep_ns),
            interrupted: mean(|u| u.interrupted_ns),
        }
    }
}

/// What a sample costs at most, in nanoseconds: in a virtual machine up to 90 us were seen.
pub(super) const COST_NS: u64 = 100_000;

/// Whether units are among the slowest because they were looked at, which shows where units are short: a sample makes its unit longer. Then
/// those that are the slowest without that have other samples.
pub(super) fn is_by_samples(
    units: &[UnitSum],
    by_time: &[bool],
    excess: f64,
    period_s: f64,
) -> bool {
    let net = |u: &UnitSum| {
        let away_ns = u.interrupted_ns + u.seen * COST_NS;
        u.own_ns.saturating_sub(away_ns)
    };
    let [(with, _), (without, _)] =
        [by_time, &slowest(units, net)].map(|is_slow| seen(units, is_slow, true, period_s));
    with - without >= ALIKE * excess
}

/// Mean time in user code of slow units, or of fast ones, in nanoseconds, and its standard error: samples are of user code only.
pub(super) fn seen(units: &[UnitSum], is_slow: &[bool], wanted: bool, period_s: f64) -> (f64, f64) {
    let chosen = units.iter().zip(is_slow).filter(|(_, is)| **is == wanted);
    let (seen, n) = chosen.fold((0, 0), |(seen, n), (u, _)| (seen + u.seen, n + 1));
    let each = period_s / NS / f64::from(n.max(1));
    (seen as f64 * each, (seen.max(1) as f64).sqrt() * each)
}

/// Time with a processor but not in user code in nanoseconds, and the standard error of the difference.
pub(super) fn in_kernel(
    units: &[UnitSum],
    is_slow: &[bool],
    all: &Both,
    period_s: f64,
) -> (Means, f64) {
    let [slow, fast] = [true, false].map(|wanted| seen(units, is_slow, wanted, period_s));
    let rest = |own: f64, away: f64, user: f64| (own - away - user).max(0.0);
    let means = Means {
        slow: rest(all.time.slow, all.asleep.slow, slow.0),
        fast: rest(all.time.fast, all.asleep.fast, fast.0),
    };
    (means, slow.1.hypot(fast.1))
}

/// Whether the kernel explains nothing without the slowest unit: a hypervisor may have had one for long.
pub(super) fn is_of_one(units: &[UnitSum], is_slow: &[bool], period_s: f64) -> bool {
    let time = |u: &UnitSum| u.own_ns.saturating_sub(u.interrupted_ns);
    let longest = (0..units.len()).max_by_key(|at| time(&units[*at]));
    let others = units.iter().zip(is_slow).enumerate();
    let others = others.filter(|(at, _)| Some(*at) != longest);
    let (others, is_slow): (Vec<UnitSum>, Vec<bool>) = others.map(|(_, (u, is))| (*u, *is)).unzip();
    let all = Both::of(&others, &is_slow);
    let (kernel, _) = in_kernel(&others, &is_slow, &all, period_s);
    kernel.slow - kernel.fast < MOST * (all.time.slow - all.time.fast)
}
