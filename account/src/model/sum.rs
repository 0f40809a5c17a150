//! Sums of regions: of several places, or of several ranks.

use super::{InPart, Mutex, PathCount, Region, RegionThread, Times, Transfer};

/// Adds what another region has to one that takes its numbers in. Spread and identity stay, and of ranks' numbers those of the first.
pub fn add(to: &mut Region, from: &Region) {
    let Region {
        // What tells the construct stays.
        id: _,
        address: _,
        name: _,
        module: _,
        file: _,
        construct: _,
        combined_with: _,
        function: _,
        function_demangled: _,
        source: _,
        detail: _,
        doubt_kind,
        executions,
        xus,
        iterations,
        iterations_max,
        in_part,
        wall_s,
        time_s,
        share,
        of_available,
        work_s,
        wait_s,
        runtime_s,
        probes_estimated_s,
        probes_share,
        xu_mean_s: _,
        xu_min_s,
        xu_max_s,
        spread: _,
        // One copy may be inside of another one.
        inclusive_s: _,
        times,
        per_thread,
        ranks,
        events,
        mutex: of_mutex,
        transfer,
        cancelled,
        distribution: _, // percentiles of several don't add up
    } = from;
    let total = |region: &Region| Some(region.xu_mean_s? * region.xus as f64);
    let xu_s = both(total(to), total(from), |a, b| a + b);
    to.doubt_kind = to.doubt_kind.or(*doubt_kind);
    to.executions += executions;
    to.xus += xus;
    to.iterations = counted(to.iterations, *iterations);
    to.iterations_max = to.iterations_max.max(*iterations_max);
    in_part
        .iter()
        .for_each(|part| add_part(&mut to.in_part, part));
    to.wall_s = both(to.wall_s, *wall_s, |a, b| a + b);
    to.time_s += time_s;
    to.share += share;
    to.of_available += of_available;
    to.work_s += work_s;
    to.wait_s += wait_s;
    to.runtime_s += runtime_s;
    to.probes_estimated_s = both(to.probes_estimated_s, *probes_estimated_s, |a, b| a + b);
    to.probes_share = both(to.probes_share, *probes_share, |a, b| a + b);
    to.xu_mean_s = xu_s.filter(|_| to.xus > 0).map(|s| s / to.xus as f64);
    to.xu_min_s = both(to.xu_min_s, *xu_min_s, f64::min);
    to.xu_max_s = both(to.xu_max_s, *xu_max_s, f64::max);
    to.inclusive_s = None;
    to.times = sum_of(to.times, *times);
    for thread in per_thread {
        let name = |t: &RegionThread| (t.process, t.mpi_rank, t.thread);
        let same = |t: &&mut RegionThread| name(t) == name(thread);
        match to.per_thread.iter_mut().find(same) {
            Some(known) => add_thread(known, thread),
            None => to.per_thread.push(thread.clone()),
        }
    }
    to.per_thread
        .sort_by_key(|t| (t.mpi_rank, t.process, t.thread));
    to.ranks = to.ranks.take().or_else(|| ranks.clone());
    // What is not known of a part is not known of the whole.
    to.events.retain(|name, _| events.contains_key(name));
    for (name, count) in &mut to.events {
        *count += events.get(name).copied().unwrap_or(0);
    }
    to.mutex = mutex(to.mutex, *of_mutex);
    to.transfer = Transfer::sum(to.transfer.iter().chain(transfer));
    to.cancelled = counted(to.cancelled, *cancelled);
    to.distribution = None;
}

fn add_thread(to: &mut RegionThread, from: &RegionThread) {
    let RegionThread {
        process: _,
        mpi_rank: _,
        thread: _,
        in_place_of,
        thread_name,
        xus,
        work_s,
        wait_s,
        runtime_s,
        inclusive_s: _,
        times,
        events,
        mutex: of_mutex,
        transfer,
    } = from;
    to.in_place_of = to.in_place_of.or(*in_place_of);
    to.thread_name = to.thread_name.take().or_else(|| thread_name.clone());
    to.xus += xus;
    to.work_s += work_s;
    to.wait_s += wait_s;
    to.runtime_s += runtime_s;
    to.inclusive_s = None;
    to.times = sum_of(to.times, *times);
    to.events.retain(|name, _| events.contains_key(name));
    for (name, count) in &mut to.events {
        let PathCount {
            exclusive,
            inclusive: _,
        } = events[name];
        let exclusive = count.exclusive.zip(exclusive);
        count.exclusive = exclusive.map(|(a, b)| a + b);
        count.inclusive = None;
    }
    to.mutex = mutex(to.mutex, *of_mutex);
    to.transfer = Transfer::sum(to.transfer.iter().chain(transfer));
}

/// What both have; else what one has.
fn counted(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (one, other) => one.or(other),
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
    let Mutex {
        entries,
        enter_s,
        held_s,
        exit_s,
    } = b;
    // Where one of them has no release on record, that of all is not known.
    let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    Some(Mutex {
        entries: a.entries + entries,
        enter_s: a.enter_s + enter_s,
        held_s: sum(a.held_s, held_s),
        exit_s: sum(a.exit_s, exit_s),
    })
}

fn add_part(all: &mut Vec<InPart>, from: &InPart) {
    let InPart {
        kind,
        recorded,
        executed,
        one_in,
        throttled,
        left_out_s,
        shorter_than_s,
    } = from;
    let Some(to) = all.iter_mut().find(|p| p.kind == *kind) else {
        all.push(from.clone());
        return all.sort_by_key(|p| p.kind);
    };
    to.recorded += recorded;
    to.executed += executed;
    to.one_in = to.one_in.max(*one_in);
    to.throttled |= throttled;
    to.left_out_s += left_out_s;
    to.shorter_than_s = both(to.shorter_than_s, *shorter_than_s, f64::max);
}

/// What both have, by `how`; else what one has.
pub fn both(a: Option<f64>, b: Option<f64>, how: fn(f64, f64) -> f64) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(how(a, b)),
        (one, other) => one.or(other),
    }
}
