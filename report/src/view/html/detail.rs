//! What opens when a region is selected: values for the script that draws it.

use super::rows::{Caller, Row};
use super::shares::class_id;
use super::{Context, source, title};
use crate::units::{SiteUnits, Unit};
use crate::words;
use ompfuse_account::model::sampled::LEAST as LEAST_SAMPLES;
use ompfuse_account::model::{
    Class, LargestUnit, Lock, Loss, ParallelOverhead, Region, RegionThread, SampledWork,
};
use ompfuse_format::Construct;
use serde_json::{Map, Value, json};

/// Units in all samples of a page together.
const SAMPLED: usize = 40_000;
/// Least of a region, where there are many.
const LEAST: usize = 60;
/// Hottest lines that are listed.
const HOT: usize = 12;
/// Calling contexts that are listed.
const CALLERS: usize = 20;
/// Places in machine code that are listed.
const SITES: usize = 12;
/// Threads that are kept apart; where there are more, those with the most time.
const THREADS: usize = 512;
/// Locks that are listed of a region.
const MOST_LOCKS: usize = 50;

/// Every region's values, by key.
pub(super) fn all(context: &Context<'_>) -> Value {
    let with_units = context.rows.iter().filter(|r| r.units.is_some()).count();
    let most = (SAMPLED / with_units.max(1)).clamp(LEAST, crate::units::SAMPLE);
    let mut all = Map::new();
    for row in &context.rows {
        if let Some(key) = context.keys.of(row.region.id) {
            all.insert(key.to_owned(), one(context, row, most));
        }
    }
    Value::Object(all)
}

/// Nanoseconds are as fine as clocks are; more digits only fill the page.
pub(super) fn short(seconds: f64) -> Value {
    let rounded = (seconds * 1e9).round() / 1e9;
    match rounded == rounded.trunc() && rounded.abs() < 1e15 {
        true => json!(rounded as i64),
        false => json!(rounded),
    }
}

fn maybe(seconds: Option<f64>) -> Value {
    seconds.map_or(Value::Null, short)
}

fn one(context: &Context<'_>, row: &Row<'_>, most: usize) -> Value {
    let region = row.region;
    let function = region.function_demangled.as_ref();
    let mut value = json!({
        "title": title(region),
        "function": function.or(region.function.as_ref()),
        "detail": region.detail,
        "file": region.source.as_ref().map(|s| &s.file),
        "line": region.source.as_ref().map(|s| s.line),
        "sites": row.sites.iter().take(SITES).map(|s| &s.name).collect::<Vec<_>>(),
        "time": short(region.time_s),
        "share": region.of_available,
        "work": short(region.work_s),
        "wait": short(region.wait_s),
        "runtime": short(region.runtime_s),
        "wall": maybe(region.wall_s),
        "inclusive": maybe(region.inclusive_s),
        "executions": region.executions,
        "units": region.xus,
        "iterations": region.iterations,
        "iterations_max": region.iterations_max,
        "efficiency": row.efficiency(),
        "min": maybe(region.xu_min_s),
        "mean": maybe(region.xu_mean_s),
        "median": maybe(row.median_s()),
        "max": maybe(region.xu_max_s),
        "imbalance": row.imbalance(),
        "threads": threads(region),
        "events": region.events,
        "callers": row.callers.iter().take(CALLERS).map(caller).collect::<Vec<_>>(),
        "notes": row.notes(),
    });
    let mut put = |name: &str, what: Value| value[name] = what;
    let page = context.page;
    if let Some(excerpt) = source::excerpt(region, &page.report.regions, &page.sources) {
        put("source", excerpt);
    }
    let sampled = sampled(context, row);
    if let Some(uneven) = sampled.as_ref().and_then(|s| slow(region, s)) {
        put("slow", uneven);
    }
    if let Some(hot) = sampled.as_ref().and_then(|s| hot(context, s)) {
        put("hot", hot);
    }
    let code = row.sites.iter().find_map(|s| {
        let site = (s.module.clone()?, s.name.clone());
        page.code.get(&site)
    });
    if let Some(lines) = code {
        put("code", json!(lines));
    }
    if let Some(overhead) = row.overhead {
        put("overhead", of_overhead(overhead));
    }
    let losses = losses(context, row);
    if !losses.is_empty() {
        put("losses", Value::from(losses));
    }
    if let Some(predicted) = predicted(context, row) {
        put("predicted", predicted);
    }
    if let Some(mutex) = of_mutex(region) {
        put("mutex", mutex);
    }
    let locks = locks(context, region);
    if !locks.is_empty() {
        put("locks", Value::from(locks));
    }
    if let Some(ranks) = &region.ranks {
        let one = |r: &ompfuse_account::model::RegionRank| {
            json!([
                r.rank,
                r.xus,
                short(r.work_s),
                short(r.wait_s),
                short(r.runtime_s)
            ])
        };
        put("ranks", ranks.per_rank.iter().map(one).collect());
    }
    match (&row.units, &region.distribution) {
        (Some(units), _) => put("sample", sample(units, most)),
        (None, Some(of)) => put(
            "sample",
            json!({ "longest": of.largest.iter().map(largest).collect::<Vec<_>>() }),
        ),
        (None, None) => {}
    }
    value
}

/// What samples tell of a row's regions.
fn sampled(context: &Context<'_>, row: &Row<'_>) -> Option<SampledWork> {
    let sampled = context.page.report.sampled.as_ref()?;
    let is_its = |region: Option<u32>| row.sites.iter().any(|s| Some(s.id) == region);
    let mut all = SampledWork::default();
    for one in sampled.regions.iter().filter(|one| is_its(one.region)) {
        all.absorb(one);
    }
    Some(all)
}

/// Its slow units against fast ones, by line; `None`: they are even.
fn slow(region: &Region, all: &SampledWork) -> Option<Value> {
    let uneven = all.uneven.as_ref()?;
    let noun = words::uneven::noun(region.construct?);
    let told = words::uneven::reason(uneven, noun);
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let lines = uneven.lines.iter().take(HOT).map(|l| {
        json!([
            format!("{}:{}", base(&l.file), l.line),
            short(l.time.slow_s),
            short(l.time.fast_s)
        ])
    });
    Some(json!({
        "noun": noun, "meant": words::uneven::meant(uneven), "told": told,
        "times": [short(uneven.slow_s), short(uneven.fast_s)],
        "lines": lines.collect::<Vec<_>>(),
    }))
}

/// The lines that samples of its work are in; `None`: none has enough of them.
fn hot(context: &Context<'_>, all: &SampledWork) -> Option<Value> {
    let page = context.page;
    let lines = all.lines.iter().filter(|l| l.samples >= LEAST_SAMPLES);
    let lines: Vec<Value> = lines
        .take(HOT)
        .map(|line| {
            json!([
                line.samples,
                line.place(),
                line.function,
                line.inlined_into,
                source::line(line, &page.sources)
            ])
        })
        .collect();
    (!lines.is_empty()).then(|| json!({ "work": all.work, "lines": lines }))
}

/// What threads waited at a critical section or lock, and held it.
fn of_mutex(region: &Region) -> Option<Value> {
    let mutex = region.mutex?;
    let one = |t: &RegionThread| {
        let m = t.mutex?;
        Some(json!([
            name(t),
            m.entries,
            short(m.enter_s),
            maybe(m.held_s),
            maybe(m.exit_s)
        ]))
    };
    let threads = region.per_thread.iter().filter_map(one);
    Some(json!({
        "entries": mutex.entries, "enter": short(mutex.enter_s),
        "held": maybe(mutex.held_s), "exit": maybe(mutex.exit_s),
        "threads": threads.collect::<Vec<_>>(),
    }))
}

/// The locks of a region.
fn locks(context: &Context<'_>, region: &Region) -> Vec<Value> {
    let all = context.merged.locks.iter();
    let of_region = all.filter(|lock| lock.regions.contains(&region.id));
    let one = |lock: &Lock| {
        json!([
            words::locks::lock(lock),
            lock.threads,
            lock.times.entries,
            short(lock.times.enter_s),
            maybe(lock.times.held_s),
            maybe(lock.times.exit_s)
        ])
    };
    of_region.take(MOST_LOCKS).map(one).collect()
}

/// What a thread is called: its number, behind the rank or process where there are several.
fn name(thread: &RegionThread) -> String {
    match thread.mpi_rank {
        Some(rank) => format!("rank {rank} · {}", thread.thread),
        None => thread.thread.to_string(),
    }
}

fn threads(region: &Region) -> Vec<Value> {
    let several = region.per_thread.windows(2).any(|t| {
        let process = |t: &RegionThread| (t.process, t.mpi_rank);
        process(&t[0]) != process(&t[1])
    });
    let name = |t: &RegionThread| match (several, t.mpi_rank, t.process) {
        (true, None, Some(process)) => format!("{process} · {}", t.thread),
        _ => name(t),
    };
    let name = |t: &RegionThread| match &t.thread_name {
        Some(own) => format!("{own} · {}", name(t)),
        None => name(t),
    };
    let mut all: Vec<&RegionThread> = region.per_thread.iter().collect();
    if all.len() > THREADS {
        let time = |t: &RegionThread| t.work_s + t.wait_s + t.runtime_s;
        all.sort_by(|a, b| time(b).total_cmp(&time(a)));
        all.truncate(THREADS);
        all.sort_by_key(|t| (t.mpi_rank, t.process, t.thread));
    }
    let one = |t: &&RegionThread| {
        json!([
            name(t),
            t.xus,
            short(t.work_s),
            short(t.wait_s),
            short(t.runtime_s)
        ])
    };
    all.iter().map(one).collect()
}

fn of_overhead(overhead: &ParallelOverhead) -> Value {
    let classes = Class::ALL.into_iter().filter_map(|class| {
        let seconds = overhead.overhead.get(class)?;
        Some(json!([
            class_id(class),
            super::terms::class_name(class),
            short(seconds)
        ]))
    });
    let parts = overhead.parts.iter().filter(|p| p.seconds > 0.0);
    let part = |p: &ompfuse_account::model::OverheadPart| {
        json!([p.what, class_id(p.class), short(p.seconds), p.count])
    };
    json!({
        "team": overhead.team,
        "total": short(overhead.total_s),
        "wall": short(overhead.wall_s),
        "work": maybe(overhead.work_s),
        "unknown": short(overhead.unknown_s),
        "classes": classes.collect::<Vec<_>>(),
        "parts": parts.map(part).collect::<Vec<_>>(),
    })
}

fn caller(caller: &Caller) -> Value {
    json!([
        caller.text,
        caller.executions,
        short(caller.exclusive_s),
        short(caller.inclusive_s)
    ])
}

/// Losses that are in the region, or that it is the place of.
fn losses(context: &Context<'_>, row: &Row<'_>) -> Vec<Value> {
    let report = context.page.report;
    let one = |l: &Loss| {
        json!([
            l.share,
            short(l.seconds),
            words::cause(report, l),
            words::remedy(report, l)
        ])
    };
    row.losses(report).into_iter().map(one).collect()
}

/// Predicted times on the clock with other numbers of threads; of a row for several sites nobody knows.
fn predicted(context: &Context<'_>, row: &Row<'_>) -> Option<Value> {
    let scaling = context.page.report.scaling.as_ref()?;
    let [site] = row.sites[..] else { return None };
    let of = scaling.regions.iter().find(|r| r.region == site.id)?;
    let one = |p: &ompfuse_account::model::PredictedRegion| json!([p.threads, short(p.seconds)]);
    (of.predicted.len() > 1).then(|| {
        json!({
            "times": of.predicted.iter().map(one).collect::<Vec<_>>(),
            "threads": scaling.threads,
            "wall": short(of.wall_s),
            "executions": of.executions,
            "of": of.of_executions,
            "parallelism": of.parallelism,
        })
    })
}

fn sample(units: &SiteUnits, most: usize) -> Value {
    let buckets = units.histogram.buckets();
    let kept: Vec<&Unit> = units.sample(most).collect();
    let events = kept.first().map_or(0, |u| u.counts.len());
    let counts = (0..events).map(|at| {
        let of = kept.iter().map(|u| u.counts.get(at).copied().flatten());
        of.collect::<Vec<_>>()
    });
    json!({
        "histogram": buckets.map(|(from, to, n)| json!([from, to, n])).collect::<Vec<_>>(),
        "count": units.histogram.count(),
        "own": kept.iter().map(|u| u.own_ns).collect::<Vec<_>>(),
        "first": kept.iter().map(|u| u.first).collect::<Vec<_>>(),
        "begin": kept.iter().map(|u| u.begin_ns).collect::<Vec<_>>(),
        "thread": kept.iter().map(|u| u.thread).collect::<Vec<_>>(),
        "rank": kept.iter().any(|u| u.rank.is_some()).then(|| kept.iter().map(|u| u.rank).collect::<Vec<_>>()),
        "counts": counts.collect::<Vec<_>>(),
        "longest": units.longest().into_iter().map(longest).collect::<Vec<_>>(),
    })
}

/// A row of the table of the longest units.
fn longest(unit: &Unit) -> Value {
    let last = unit
        .first
        .saturating_add_unsigned(unit.iterations.saturating_sub(1));
    let what = match unit.kind {
        Some(Construct::Range) if unit.iterations > 1 => {
            format!("iterations {}..{last}", unit.first)
        }
        Some(Construct::Range) => format!("iteration {}", unit.first),
        Some(Construct::Section) => format!("section {}", unit.first),
        Some(Construct::Task) => format!("task {}", unit.first),
        _ => String::new(),
    };
    let thread = match unit.rank {
        Some(rank) => format!("rank {rank} · {}", unit.thread),
        None => unit.thread.to_string(),
    };
    json!([
        what,
        unit.own_ns as f64 * 1e-9,
        thread,
        unit.label,
        unit.counts
    ])
}

/// The same, where only sums were recorded.
fn largest(unit: &LargestUnit) -> Value {
    json!([
        words::distribution::unit(unit),
        unit.time_s,
        "",
        format!("path {}", unit.path),
        []
    ])
}
