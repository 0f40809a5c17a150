//! Which other schedule, or order, would make a loop's threads end together.

use super::{Found, schedule_of};
use crate::model::Better;
use ompfuse_fuse::span::LoopAnalysis;
use ompfuse_fuse::span::replay::Schedule;

/// A schedule that is not better than that is no better.
const BETTER: f64 = 0.95;
/// Among schedules as good as that, the simplest is told.
const AS_GOOD: f64 = 1.03;
/// Nanoseconds that a range should last, where it isn't one on record: else fetching it counts.
const LONG_NS: f64 = 20_000.0;

/// What says which thread executes an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Its number.
    Dealt,
    /// Who is free first, and the source says so.
    Asked,
    /// `OMP_SCHEDULE`, or what stands for it.
    Runtime,
}

fn order(found: &Found<'_>, stat: &LoopAnalysis) -> Order {
    let schedule = schedule_of(found, stat.site);
    let is = |kind: &str| schedule.as_deref().is_some_and(|s| s.starts_with(kind));
    match () {
        () if is("runtime") => Order::Runtime,
        () if is("dynamic") || is("guided") => Order::Asked,
        () => Order::Dealt,
    }
}

/// The best schedule of those replayed, if it is better than the recorded one.
pub(super) fn better(found: &Found<'_>, stat: &LoopAnalysis, threads: u64) -> Option<Better> {
    if stat.is_sections || stat.slowest_ns == 0 {
        return None;
    }
    let order = order(found, stat);
    if order == Order::Runtime && !is_of_variable(found, stat, threads) {
        return None;
    }
    // Iterations of a range are seldom equal where threads end at different times. But where the source leaves the order open, smaller
    // ranges for whoever is free are no worse, as long as fetching them costs nothing beside them.
    let iteration_ns = stat.units_ns as f64 / stat.iterations.max(1) as f64;
    let is_safe = |schedule: Schedule| match schedule {
        Schedule::Dynamic(chunk) => chunk as f64 * iteration_ns >= LONG_NS,
        _ => false,
    };
    let known = || {
        let candidates = stat.candidates.iter();
        candidates.filter(|c| !c.assumes_equal || order != Order::Dealt && is_safe(c.schedule))
    };
    let best = known().map(|c| c.ns).min()?;
    let good = known()
        .filter(|c| c.ns as f64 <= best as f64 * AS_GOOD)
        .max_by_key(|c| (!c.assumes_equal, simplicity(c.schedule, c.assumes_equal)))?;
    let of_now = good.ns as f64 / stat.slowest_ns as f64;
    (of_now <= BETTER).then_some(Better {
        schedule: good.schedule,
        of_now,
        assumes_equal: good.assumes_equal,
        by_variable: order == Order::Runtime,
    })
}

/// A loop's time if its longest unit began first, divided by its present time; `None`: that makes it no shorter, or order decides nothing.
pub(super) fn if_first(found: &Found<'_>, stat: &LoopAnalysis) -> Option<f64> {
    let of_now = stat.longest_first_ns as f64 / stat.slowest_ns.max(1) as f64;
    let can_move = order(found, stat) == Order::Asked && stat.largest.first > 0;
    (can_move && stat.longest_first_ns > 0 && of_now <= BETTER).then_some(of_now)
}

/// Whether `OMP_SCHEDULE` decides a loop's schedule: the program calls nothing that sets it, and the ranges are those that the variable asks
/// for, or that there are without it.
fn is_of_variable(found: &Found<'_>, stat: &LoopAnalysis, threads: u64) -> bool {
    let summary = found.summary;
    let mut called = summary.modules.iter().flat_map(|m| &m.entries);
    if called.any(|name| name.starts_with("omp_set_schedule")) {
        return false;
    }
    let variables = summary.environment.iter();
    let mut set = variables.filter(|(name, _)| name == "OMP_SCHEDULE");
    let set = set
        .next()
        .map(|(_, value)| value.trim().to_ascii_lowercase());
    let of_runtime = || match summary.is_libgomp() {
        true => "dynamic".to_owned(),
        false => "static".to_owned(),
    };
    let set = set.unwrap_or_else(of_runtime);
    // `monotonic:dynamic,4`
    let plain = set.rsplit(':').next().unwrap_or_default();
    let (kind, chunk) = plain.split_once(',').unwrap_or((plain, ""));
    let chunk = chunk.trim().parse::<u64>().ok();
    let in_chunks = |chunk: u64| {
        let least = stat.iterations.div_ceil(chunk.max(1));
        (least..=least.saturating_add(stat.executions)).contains(&stat.units)
    };
    match (kind.trim(), chunk) {
        ("static", None) => stat.units <= threads.saturating_mul(stat.executions),
        ("static", Some(chunk)) => in_chunks(chunk),
        ("dynamic", chunk) => in_chunks(chunk.unwrap_or(1)),
        ("guided", _) => stat.units > stat.executions,
        ("auto", _) => true,
        _ => false,
    }
}

/// Dynamic schedules adapt where iterations change; of those the one with the largest chunks costs least. Where iterations of a chunk may
/// differ, the smallest ones are safest.
fn simplicity(schedule: Schedule, assumes_equal: bool) -> (u8, u64) {
    match schedule {
        Schedule::Dynamic(chunk) if assumes_equal => (3, u64::MAX - chunk),
        Schedule::Dynamic(chunk) => (3, chunk),
        Schedule::Guided(_) => (2, 0),
        Schedule::StaticChunk(chunk) => (1, chunk),
        Schedule::Static => (0, 0),
    }
}
