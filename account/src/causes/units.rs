//! Why a loop's threads, or those of sections, end at different times.

mod advice;

use super::Found;
use crate::from_summary::NS;
use crate::model::Cause;
use ompfuse_format::Detail;
use ompfuse_fuse::span::LoopAnalysis;

/// A unit that is so many times as long as the others, for each iteration, is an uneven one.
const UNEVEN: f64 = 3.0;
/// One that is so much of the slowest thread's time makes it the slowest.
const MOST: f64 = 0.5;

/// Of a loop or sections in a team of so many threads. `is_alone`: there are no units of others between the barriers around it, whose
/// threads another schedule might make wait.
pub(super) fn cause(found: &Found<'_>, stat: &LoopAnalysis, threads: u64, is_alone: bool) -> Cause {
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
    let is_most = stat.longest.ns as f64 >= MOST * stat.slowest_ns as f64;
    if is_most
        && (!has_one_each || stat.is_sections)
        && let Some(uneven) = slowest(found, stat, (threads, UNEVEN))
    {
        return uneven;
    }
    let mean = stat.units_ns as f64 / threads.max(1) as f64;
    // What two loops take together is no ratio of one.
    let detail = found.summary.sites.get(stat.site as usize);
    let detail = detail.and_then(|site| site.detail.as_deref());
    let is_shared = detail.is_some_and(|d| Detail(d).is_shared());
    Cause::UnevenDistribution {
        at,
        schedule: schedule_of(found, stat.site),
        slowest_times_mean: (!is_shared).then(|| stat.slowest_ns as f64 / mean.max(1.0)),
        better: advice::better(found, stat, threads).filter(|_| is_alone && !is_shared),
    }
}

/// The slowest units of a loop, if they take so many times the others' mean.
pub(super) fn slowest(
    found: &Found<'_>,
    stat: &LoopAnalysis,
    (threads, times): (u64, f64),
) -> Option<Cause> {
    let is_slow =
        |c: &Cause| matches!(c, Cause::UnevenUnits { times_mean, .. } if *times_mean >= times);
    uneven(found, stat, threads).filter(is_slow)
}

/// What the longest units of the executions have more of than all others, in the mean; `None`: there are no others that took any time.
fn uneven(found: &Found<'_>, stat: &LoopAnalysis, threads: u64) -> Option<Cause> {
    let misses = (found.summary.analysis.as_ref()).and_then(|a| a.misses.clone());
    let (longest, largest) = (stat.longest, stat.largest);
    let of_longest = longest.iterations as f64;
    let all_iterations = match stat.is_sections {
        true => stat.units as f64,
        false => stat.iterations as f64,
    };
    let times = |all: u64, longest: u64| {
        let others = all.saturating_sub(longest) as f64 / (all_iterations - of_longest).max(1.0);
        (others > 0.0).then(|| longest as f64 / of_longest.max(1.0) / others)
    };
    let counted = |which: usize| {
        let (all, one) = (stat.counts[which]?, longest.counts[which]?);
        times(all, one)
    };
    let executions = stat.executions.max(1);
    let is_usual = largest.ns as f64 >= MOST * longest.ns as f64;
    Some(Cause::UnevenUnits {
        at: found.id(stat.site),
        is_sections: stat.is_sections,
        first: is_usual.then_some(largest.first),
        iterations: match is_usual {
            true => largest.iterations,
            false => longest.iterations.div_ceil(executions),
        },
        unit_s: longest.ns as f64 * NS / executions as f64,
        times_mean: times(stat.units_ns, longest.ns)?,
        instructions_times_mean: counted(0),
        misses_times_mean: counted(1),
        misses_event: counted(1).and(misses),
        // Of one iteration there are no smaller ranges.
        better: (largest.iterations > 1)
            .then(|| advice::better(found, stat, threads))
            .flatten(),
        if_first: advice::if_first(found, stat),
    })
}

/// What is known of a place's schedule, as `static` or `dynamic,8`.
fn schedule_of(found: &Found<'_>, site: u32) -> Option<String> {
    let detail = found.summary.sites.get(site as usize)?.detail.as_deref()?;
    Detail(detail).schedule_told()
}
