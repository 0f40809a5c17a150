//! How a loop's ranges come of the number of threads: by its schedule's name where that says it, else by the ranges themselves.
//!
//! The source doesn't say it where the schedule is `runtime` or `auto`, and for `guided` it is the runtime library's. So a rule is believed
//! that makes exactly the ranges that are on record.

use super::Unit;
use crate::span::replay::{Guided, Schedule};

/// What another number of threads would make of a loop's ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::span) enum Division {
    /// What the schedule says: those of dynamic ones stay, static ones are dealt anew.
    Kept,
    /// Ranges that become smaller, by this rule.
    Shrinking(Shrinking),
    /// It is not known.
    Unknown,
}

/// See [`Division`]. With a least number of iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::span) enum Shrinking {
    /// `guided`.
    Guided(Guided, u64),
    /// libomp's `auto`: after as many ranges as there were, so much is left as that power of 1 - 1 / 2n for n threads
    /// (`kmp_sch_guided_analytical_chunked`), until the least range is not smaller any more.
    Analytical(u64),
}

/// Longer lists of ranges are not made.
const MOST_RANGES: usize = 1 << 20;

impl Shrinking {
    /// The ranges of a loop, in iterations; `None`: too many.
    pub(super) fn ranges(self, iterations: u64, threads: u32) -> Option<Vec<u64>> {
        let threads = u64::from(threads.max(1));
        let mut ranges = vec![];
        let mut left = iterations;
        while left > 0 {
            let next = match self {
                Shrinking::Guided(rule, least) => rule.next(left, threads, least),
                Shrinking::Analytical(least) => {
                    analytical(iterations, left, ranges.len(), threads, least)
                }
            };
            let next = next.clamp(1, left);
            ranges.push(next);
            left -= next;
            if ranges.len() > MOST_RANGES {
                return None;
            }
        }
        Some(ranges)
    }
}

/// Iterations of the next range after so many.
fn analytical(iterations: u64, left: u64, ranges: usize, threads: u64, least: u64) -> u64 {
    let least = least.max(1);
    let base = 1.0 - 0.5 / threads as f64;
    let after = |n: usize| (iterations as f64 * base.powi(n as i32)).ceil() as u64;
    // From the first range on whose share of all is so small, ranges are the least.
    let target = (2.0 * least as f64 + 1.0) * threads as f64 / iterations.max(1) as f64;
    match base.powi(ranges as i32) <= target {
        true => least,
        false => left.saturating_sub(after(ranges + 1)),
    }
}

/// The schedule and division of a loop by what its ranges are. `units`: in the order of iterations; `named`: what the source says.
pub(super) fn division(named: Schedule, units: &[Unit], team: u32) -> (Schedule, Division) {
    if units.is_empty() {
        return (named, Division::Kept);
    }
    let ranges: Vec<u64> = units.iter().map(|u| u.iterations).collect();
    let iterations = ranges.iter().fold(0, |sum, n| u64::saturating_add(sum, *n));
    let least = ranges[..ranges.len().saturating_sub(1)].iter().min();
    let least = least.copied().unwrap_or(1);
    if !named.is_guided() {
        // A thread on its own may be given all at once, whatever its schedule is.
        if is_blocks(units, iterations, team) {
            return (Schedule::Static, Division::Kept);
        }
        let is_equal = ranges.iter().take(ranges.len() - 1).all(|&n| n == least)
            && ranges.last().is_some_and(|&n| n <= least);
        if is_equal && ranges.len() > 1 {
            return match is_in_turn(units, team) {
                true => (Schedule::StaticChunk(least), Division::Kept),
                false => (Schedule::Dynamic(least), Division::Kept),
            };
        }
    }
    let named_least = match named {
        Schedule::Guided(least) => least,
        _ => 1,
    };
    for least in [named_least, 1, least] {
        let rules = [
            Shrinking::Guided(Guided::Libgomp, least),
            Shrinking::Guided(Guided::Libomp, least),
            Shrinking::Analytical(least),
        ];
        let made = |rule: &Shrinking| rule.ranges(iterations, team).as_ref() == Some(&ranges);
        if let Some(rule) = rules.into_iter().find(made) {
            return (Schedule::Guided(least), Division::Shrinking(rule));
        }
    }
    (named, Division::Unknown)
}

/// Whether each thread has the block that `static` gives it.
fn is_blocks(units: &[Unit], iterations: u64, team: u32) -> bool {
    let team = u64::from(team.max(1));
    let (each, more) = (iterations / team, iterations % team);
    let mut members = 0..team;
    let is_block = |u: &Unit| {
        let member = members.next();
        let size = |t: u64| each + u64::from(t < more);
        member.is_some_and(|t| u64::from(u.member) == t && u.iterations == size(t))
    };
    units.iter().all(is_block)
}

/// Whether threads have had ranges in turn, several times: nobody is free first that regularly.
fn is_in_turn(units: &[Unit], team: u32) -> bool {
    let in_turn = |(at, unit): (u32, &Unit)| unit.member == at % team.max(1);
    units.len() > 2 * team as usize && (0..).zip(units).all(in_turn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::nodes::NONE;

    fn units(ranges: &[u64], members: &[u32]) -> Vec<Unit> {
        let mut first = 0;
        let unit = |(&iterations, &member): (&u64, &u32)| {
            first += iterations as i64;
            Unit {
                first: first - iterations as i64,
                iterations,
                ticks: iterations,
                rec: first as u32,
                strand: NONE,
                member,
            }
        };
        ranges.iter().zip(members).map(unit).collect()
    }

    /// 20 iterations for two threads, worked out by hand.
    #[test]
    fn ranges_shrink_as_each_library_makes_them() {
        let ranges = |rule: Shrinking| rule.ranges(20, 2);
        assert_eq!(
            ranges(Shrinking::Guided(Guided::Libgomp, 1)),
            Some(vec![10, 5, 3, 1, 1])
        );
        assert_eq!(
            ranges(Shrinking::Guided(Guided::Libgomp, 4)),
            Some(vec![10, 5, 4, 1])
        );
        assert_eq!(
            ranges(Shrinking::Guided(Guided::Libomp, 1)),
            Some(vec![5, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1])
        );
    }

    #[test]
    fn a_rule_is_believed_that_makes_the_ranges_on_record() {
        let runtime = Schedule::Dynamic(1);
        let of = |ranges: &[u64], members: &[u32]| division(runtime, &units(ranges, members), 2);
        assert_eq!(of(&[8, 7], &[0, 1]), (Schedule::Static, Division::Kept));
        assert_eq!(
            of(&[3, 3, 3, 2], &[1, 0, 1, 0]),
            (Schedule::Dynamic(3), Division::Kept)
        );
        assert_eq!(
            of(&[2, 2, 2, 2, 2, 1], &[0, 1, 0, 1, 0, 1]),
            (Schedule::StaticChunk(2), Division::Kept)
        );
        let guided = Shrinking::Guided(Guided::Libgomp, 1);
        assert_eq!(
            of(&[10, 5, 3, 1, 1], &[0, 1, 0, 1, 0]),
            (Schedule::Guided(1), Division::Shrinking(guided))
        );
        assert_eq!(of(&[12, 4, 4], &[0, 1, 1]).1, Division::Unknown);
    }
}
