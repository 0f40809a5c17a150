//! Sums of regions: of several places, or of several ranks.

use super::{InPart, Mutex, Region, RegionThread, Times, Transfer};

/// Adds what another region has to one that takes its numbers in. Spread and identity stay, and of ranks' numbers those of the first.
pub(crate) fn add(to: &mut Region, from: &Region) {
    let total = |region: &Region| Some(region.xu_mean_s? * region.xus as f64);
    let xu_s = both(total(to), total(from), |a, b| a + b);
    to.executions += from.executions;
    to.xus += from.xus;
    to.iterations = match (to.iterations, from.iterations) {
        (Some(a), Some(b)) => Some(a + b),
        (one, other) => one.or(other),
    };
    to.iterations_max = to.iterations_max.max(from.iterations_max);
    to.xu_mean_s = xu_s.filter(|_| to.xus > 0).map(|s| s / to.xus as f64);
    to.xu_min_s = both(to.xu_min_s, from.xu_min_s, f64::min);
    to.xu_max_s = both(to.xu_max_s, from.xu_max_s, f64::max);
    to.wall_s = both(to.wall_s, from.wall_s, |a, b| a + b);
    to.time_s += from.time_s;
    to.share += from.share;
    to.of_available += from.of_available;
    to.work_s += from.work_s;
    to.wait_s += from.wait_s;
    to.runtime_s += from.runtime_s;
    to.doubt_kind = to.doubt_kind.or(from.doubt_kind);
    to.probes_estimated_s = both(to.probes_estimated_s, from.probes_estimated_s, |a, b| a + b);
    let share = |probes: f64| (probes / to.time_s).min(1.0);
    to.probes_share = to.probes_estimated_s.filter(|_| to.time_s > 0.0).map(share);
    for part in &from.in_part {
        match to.in_part.iter_mut().find(|p| p.kind == part.kind) {
            Some(known) => add_part(known, part),
            None => to.in_part.push(part.clone()),
        }
    }
    for thread in &from.per_thread {
        let name = |t: &RegionThread| (t.process, t.mpi_rank, t.thread);
        let same = |t: &&mut RegionThread| name(t) == name(thread);
        match to.per_thread.iter_mut().find(same) {
            Some(known) => {
                known.mutex = mutex(known.mutex, thread.mutex);
                known.times = sum_of(known.times, thread.times);
                // One copy may be inside of another one.
                known.inclusive_s = None;
                known
                    .events
                    .retain(|name, _| thread.events.contains_key(name));
                for (name, count) in &mut known.events {
                    let other = thread.events[name];
                    let exclusive = count.exclusive.zip(other.exclusive);
                    count.exclusive = exclusive.map(|(a, b)| a + b);
                    count.inclusive = None;
                }
                known.transfer = Transfer::sum(known.transfer.iter().chain(&thread.transfer));
                known.xus += thread.xus;
                known.work_s += thread.work_s;
                known.wait_s += thread.wait_s;
                known.runtime_s += thread.runtime_s;
            }
            None => to.per_thread.push(thread.clone()),
        }
    }
    to.per_thread
        .sort_by_key(|t| (t.mpi_rank, t.process, t.thread));
    to.ranks = to.ranks.take().or_else(|| from.ranks.clone());
    to.mutex = mutex(to.mutex, from.mutex);
    to.transfer = Transfer::sum(to.transfer.iter().chain(&from.transfer));
    to.times = sum_of(to.times, from.times);
    to.inclusive_s = None;
    to.distribution = None; // percentiles of several don't add up
    to.cancelled = match (to.cancelled, from.cancelled) {
        (Some(a), Some(b)) => Some(a + b),
        (one, other) => one.or(other),
    };
    // What is not known of a part is not known of the whole.
    to.events.retain(|name, _| from.events.contains_key(name));
    for (name, count) in &mut to.events {
        *count += from.events.get(name).copied().unwrap_or(0);
    }
}

fn sum_of(a: Option<Times>, b: Option<Times>) -> Option<Times> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.plus(&b)),
        (one, other) => one.or(other),
    }
}

fn mutex(a: Option<Mutex>, b: Option<Mutex>) -> Option<Mutex> {
    let (Some(a), Some(b)) = (a, b) else {
        return a.or(b);
    };
    // Where one of them has no release on record, that of all is not known.
    let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    Some(Mutex {
        entries: a.entries + b.entries,
        enter_s: a.enter_s + b.enter_s,
        held_s: sum(a.held_s, b.held_s),
        exit_s: sum(a.exit_s, b.exit_s),
    })
}

fn add_part(to: &mut InPart, from: &InPart) {
    to.recorded += from.recorded;
    to.executed += from.executed;
    to.one_in = to.one_in.max(from.one_in);
    to.throttled |= from.throttled;
    to.left_out_s += from.left_out_s;
    to.shorter_than_s = both(to.shorter_than_s, from.shorter_than_s, f64::max);
}

/// What both have, by `how`; else what one has.
pub(crate) fn both(a: Option<f64>, b: Option<f64>, how: fn(f64, f64) -> f64) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(how(a, b)),
        (one, other) => one.or(other),
    }
}
