//! Why a loop's threads, or those of sections, end at different times.

mod advice;

use super::Found;
use crate::from_summary::NS;
use crate::model::Cause;
use ompfuse_fuse::span::LoopAnalysis;

/// A unit that is so many times as long as the others, for each iteration, is an uneven one.
const UNEVEN: f64 = 3.0;
/// One that is so much of the slowest thread's time makes it the slowest.
const MOST: f64 = 0.5;

/// Of a loop or sections in a team of so many threads.
pub(super) fn cause(found: &Found<'_>, stat: &LoopAnalysis, threads: u64) -> Cause {
    let at = found.id(stat.site);
    let executions = stat.executions.max(1) as f64;
    if 2 * stat.with_few_units > stat.executions {
        return Cause::FewUnits {
            at,
            is_sections: stat.is_sections,
            units: stat.units as f64 / executions,
            iterations: stat.iterations as f64 / executions,
            threads,
        };
    }
    // With a range for each thread the longest range is the thread's share.
    let has_one_each = stat.units <= threads * stat.executions;
    let is_most = stat.longest_ns as f64 >= MOST * stat.slowest_ns as f64;
    if is_most && (!has_one_each || stat.is_sections) {
        let uneven = uneven(found, stat, threads);
        if matches!(uneven, Cause::UnevenUnits { times_mean, .. } if times_mean >= UNEVEN) {
            return uneven;
        }
    }
    let mean = stat.units_ns as f64 / threads.max(1) as f64;
    Cause::UnevenDistribution {
        at,
        schedule: schedule_of(found, stat.site),
        slowest_times_mean: stat.slowest_ns as f64 / mean.max(1.0),
        better: advice::better(found, stat, threads),
    }
}

fn uneven(found: &Found<'_>, stat: &LoopAnalysis, threads: u64) -> Cause {
    let misses = (found.summary.analysis.as_ref()).and_then(|a| a.misses.clone());
    let largest = stat.largest;
    let each = |all: f64, of_all: f64, one: f64, of_one: f64| {
        let others = (all - one).max(0.0) / (of_all - of_one).max(1.0);
        one / of_one.max(1.0) / others.max(f64::MIN_POSITIVE)
    };
    let of_one = largest.iterations as f64;
    let all_iterations = match stat.is_sections {
        true => stat.units as f64,
        false => stat.iterations as f64,
    };
    // Others: all units of the place but for the longest of each execution.
    let of_longest = of_one * stat.executions as f64;
    let times = {
        let others = (stat.units_ns.saturating_sub(stat.longest_ns)) as f64;
        let others = others / (all_iterations - of_longest).max(1.0);
        largest.ns as f64 / of_one.max(1.0) / others.max(f64::MIN_POSITIVE)
    };
    let counted = |which: usize| {
        let (all, one) = (stat.counts[which]?, largest.counts[which]?);
        (all > one).then(|| each(all as f64, all_iterations, one as f64, of_one))
    };
    Cause::UnevenUnits {
        at: found.id(stat.site),
        is_sections: stat.is_sections,
        first: largest.first,
        iterations: largest.iterations,
        unit_s: largest.ns as f64 * NS,
        times_mean: times,
        instructions_times_mean: counted(0),
        misses_times_mean: counted(1),
        misses_event: counted(1).and(misses),
        // Of one iteration there are no smaller ranges.
        better: (largest.iterations > 1)
            .then(|| advice::better(found, stat, threads))
            .flatten(),
        if_first: advice::if_first(found, stat),
    }
}

/// What is known of a place's schedule, as `static` or `dynamic,8`.
fn schedule_of(found: &Found<'_>, site: u32) -> Option<String> {
    let detail = found.summary.sites.get(site as usize)?.detail.as_deref()?;
    crate::compare::gather::rows::schedule(detail)
}
