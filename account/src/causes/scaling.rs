//! Work and span, and predicted run times with other numbers of threads.

use crate::from_summary::NS;
use crate::from_summary::indexed::Indexed;
use crate::model::{OnPath, Predicted, PredictedRegion, RegionScaling, Report, Scaling, Silent};
use ompfuse_fuse::span::{LowerBound, RegionAnalysis, TEAMS};

/// Less of the time in parallel regions says nothing of the program.
pub(super) const ENOUGH: f64 = 0.5;

/// `None`: nothing was looked at record by record, or the run's time isn't known.
pub(crate) fn scaling(report: &Report, summary: &Indexed<'_>, ids: &[u32]) -> Option<Scaling> {
    let analysis = summary.analysis.as_ref()?;
    let mut regions: Vec<(RegionScaling, &RegionAnalysis)> = (analysis.regions.iter())
        .filter(|r| r.executions > 0)
        .filter_map(|r| Some((region(summary, r, *ids.get(r.site? as usize)?, ids), r)))
        .collect();
    if regions.is_empty() {
        return None;
    }
    regions.sort_by(|a, b| b.0.wall_s.total_cmp(&a.0.wall_s));
    // Nested regions' time is in that of those around them.
    let outermost: f64 = (summary.parallel.iter())
        .filter(|p| p.nested < p.executions)
        .map(|p| p.wall_ns as f64 * NS)
        .sum();
    let seen_s: f64 = regions.iter().map(|r| r.0.wall_s).sum();
    let seen = (seen_s / outermost.max(f64::MIN_POSITIVE)).min(1.0);
    let serial_s = super::serial_s(report.account.as_ref()?)?;
    // What was not looked at is taken to be as what was.
    let scale = 1.0 / seen.max(f64::MIN_POSITIVE);
    let sum = |of: &dyn Fn(&RegionScaling) -> f64| -> f64 {
        serial_s + scale * regions.iter().map(|r| of(&r.0)).sum::<f64>()
    };
    let (work_s, span_s) = (sum(&|r| r.work_s), sum(&|r| r.span_s));
    let modelled: f64 = regions.iter().map(|r| r.1.modelled_ns as f64 * NS).sum();
    let model_error = (serial_s + scale * modelled) / (serial_s + scale * seen_s).max(1e-9);
    let is_starved =
        (report.running.as_ref()).is_some_and(|r| r.without_share() > WITHOUT_PROCESSOR);
    let of_regions = regions.iter().find_map(|r| r.0.silent);
    let silent = match () {
        () if seen < ENOUGH || summary.processes.len() > 1 => Some(Silent::LeftOut),
        () if of_regions.is_some() => of_regions,
        () if super::has_own_threads(summary) => Some(Silent::OwnThreads),
        () if is_starved => Some(Silent::NoProcessor),
        () if !is_in_cache(summary) => Some(Silent::Memory),
        () if (model_error - 1.0).abs() > MODEL => Some(Silent::Model),
        () => None,
    };
    let predicted = match silent {
        None => predictions(&regions, serial_s, scale),
        Some(_) => vec![],
    };
    let (silent, predicted) = match is_enough(&predicted) {
        true => (None, predicted),
        false => (silent.or_else(|| Some(widest(&regions))), vec![]),
    };
    for (region, _) in &mut regions {
        // What isn't told of the program isn't told of a part of it.
        let is_told = |n: u32| predicted.iter().any(|p| p.threads == n);
        let told = region.predicted.iter().copied();
        region.predicted = told
            .filter(|p| is_told(p.threads) && is_narrow(p.seconds, p.between_s))
            .collect();
        region.silent = region.silent.or(silent);
    }
    let threads = super::team(summary);
    let is_more = |n: u32| u64::from(n) > threads;
    let lacks_more =
        TEAMS.iter().any(|&n| is_more(n)) && !predicted.iter().any(|p| is_more(p.threads));
    let silent_above = (silent.is_none() && lacks_more).then(|| widest(&regions));
    Some(Scaling {
        seen,
        threads,
        work_s,
        span_s,
        parallelism: work_s / span_s.max(f64::MIN_POSITIVE),
        model_error: (!predicted.is_empty()).then_some(model_error),
        predicted,
        assumes_equal: regions.iter().any(|r| r.1.assumes_equal),
        silent,
        silent_above,
        regions: regions.into_iter().map(|r| r.0).collect(),
    })
}

/// A model that is off by more for the run itself predicts nothing.
const MODEL: f64 = 0.15;
/// A prediction whose bounds are further from the likely time, relative to it, is not told.
const WIDE: f64 = 0.15;
/// Where threads were without a processor for a larger share of their work, units seem longer than they are.
const WITHOUT_PROCESSOR: f64 = 0.1;

/// Whether all memory that the program had in use fits the processor's cache. Where it doesn't, or isn't known, threads may share memory's
/// bandwidth, which one run doesn't tell.
fn is_in_cache(summary: &Indexed<'_>) -> bool {
    let processes = summary.runs.iter().flat_map(|r| &r.processes);
    let peak = (processes.map(|p| p.peak_bytes)).try_fold(0, |most, p| Some(most.max(p?)));
    peak.zip(summary.cache_bytes)
        .is_some_and(|(peak, cache)| peak <= cache)
}

/// Whether one thread is predicted, which speed-ups are relative to, and another number.
fn is_enough(predicted: &[Predicted]) -> bool {
    predicted.len() > 1 && predicted[0].threads == 1
}

/// Why bounds are too far apart.
fn widest(regions: &[(RegionScaling, &RegionAnalysis)]) -> Silent {
    if regions.iter().any(|r| r.1.by_number) {
        return Silent::ByThreads;
    }
    let each = |r: &RegionAnalysis| r.each_ns as f64 * r.team as f64;
    let all: f64 = regions.iter().map(|r| each(r.1)).sum();
    let work: f64 = regions.iter().map(|r| r.1.work_ns as f64).sum();
    match all >= EACH * work {
        true => Silent::EachThread,
        false => Silent::Uneven,
    }
}

/// Code that each thread of a team executes for itself, as a share of a region's work from which on it is a reason.
const EACH: f64 = 0.1;

/// Where creating tasks takes a larger share of a region's time, it is what threads do to each other that counts.
const CREATING: f64 = 0.05;
/// Nanoseconds of a task below which handing it to another thread takes as long.
const SMALL_TASK_NS: u64 = 10_000;
/// Nanoseconds of a range that threads fetch below which they wait for each other's fetching.
const SMALL_RANGE_NS: u64 = 2_000;
/// Nanoseconds of a loop or region below which starting its threads and waiting for all of them takes as long.
const SHORT_NS: u64 = 100_000;

/// Whether a region's time depends on what threads do to hand its units out, and to start and end together: how long that takes with another
/// number of them is not on record.
fn are_small(region: &RegionAnalysis) -> bool {
    let is_most = |ns: u64| ns > region.work_ns / 2;
    let tasks = region.creating_ns as f64 > CREATING * region.wall_ns as f64
        || is_most(region.tasks_ns)
            && region.tasks_ns < SMALL_TASK_NS.saturating_mul(region.task_count);
    let fetched = region
        .loops
        .iter()
        .filter(|l| l.fetch_ns.is_some() && l.units_ns < SMALL_RANGE_NS.saturating_mul(l.units));
    let in_ranges: u64 = fetched.map(|l| l.units_ns).sum();
    let ends = region.loops.iter().map(|l| l.executions);
    let ends = ends.fold(region.executions, u64::saturating_add);
    tasks || is_most(in_ranges) || region.wall_ns < SHORT_NS.saturating_mul(ends)
}

/// Why nothing is predicted for a region.
fn silent(region: &RegionAnalysis) -> Option<Silent> {
    let has = |bound: LowerBound| region.lower_bound.contains(&bound);
    match () {
        () if has(LowerBound::TaskDependences) => Some(Silent::TaskDependences),
        () if has(LowerBound::Exclusions) => Some(Silent::Exclusions),
        () if has(LowerBound::Detached) => Some(Silent::Detached),
        () if has(LowerBound::LeftOut) => Some(Silent::LeftOut),
        () if are_small(region) => Some(Silent::SmallUnits),
        () if region.predicted_ns.is_empty() => Some(Silent::Shape),
        () => None,
    }
}

fn region(summary: &Indexed<'_>, of: &RegionAnalysis, id: u32, ids: &[u32]) -> RegionScaling {
    let executions = of.site.map_or(0, |site| {
        summary.parallel_at(site).iter().map(|p| p.executions).sum()
    });
    let between = |at: usize| of.predicted_between_ns.get(at).copied();
    let predicted = TEAMS.iter().zip(&of.predicted_ns).enumerate();
    let path_s = of.path.iter().map(|p| p.ns).sum::<u64>() as f64 * NS;
    RegionScaling {
        region: id,
        executions: of.executions,
        of_executions: executions,
        wall_s: of.wall_ns as f64 * NS,
        work_s: of.work_ns as f64 * NS,
        span_s: of.span_ns as f64 * NS,
        span_equal_s: of.span_equal_ns as f64 * NS,
        parallelism: (of.span_ns > 0).then(|| of.work_ns as f64 / of.span_ns as f64),
        lower_bound_because: of.lower_bound.clone(),
        path: (of.path.iter())
            .filter_map(|p| {
                let seconds = p.ns as f64 * NS;
                Some(OnPath {
                    at: *ids.get(p.site as usize)?,
                    seconds,
                    share: seconds / path_s.max(f64::MIN_POSITIVE),
                    units: p.units,
                })
            })
            .collect(),
        silent: silent(of),
        predicted: (predicted.filter(|_| silent(of).is_none()))
            .map(|(at, (&threads, &ns))| PredictedRegion {
                threads,
                seconds: ns as f64 * NS,
                between_s: between(at).unwrap_or([ns, ns]).map(|ns| ns as f64 * NS),
            })
            .collect(),
    }
}

fn predictions(
    regions: &[(RegionScaling, &RegionAnalysis)],
    serial_s: f64,
    scale: f64,
) -> Vec<Predicted> {
    let time = |at: usize| -> f64 {
        let of_regions = regions.iter().map(|r| r.0.predicted[at].seconds);
        serial_s + scale * of_regions.sum::<f64>()
    };
    let one = time(0);
    let at_threads = |(at, &threads): (usize, &u32)| {
        let seconds = time(at);
        let share = 1.0 - 1.0 / f64::from(threads);
        // What is lost against a program that is `threads` times as fast.
        let lost = |r: &RegionScaling| {
            let ideal = r.predicted[0].seconds / f64::from(threads);
            scale * (r.predicted[at].seconds - ideal).max(0.0)
        };
        let of_regions = regions.iter().map(|r| (Some(r.0.region), lost(&r.0)));
        let all = of_regions.chain([(None, serial_s * share)]);
        let all: Vec<(Option<u32>, f64)> = all.collect();
        let total: f64 = all.iter().map(|a| a.1).sum();
        let most = all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let (limited_by, lost) = most.unwrap_or((None, 0.0));
        let bound = |side: usize| {
            let of_regions = regions.iter().map(|r| r.0.predicted[at].between_s[side]);
            serial_s + scale * of_regions.sum::<f64>()
        };
        Predicted {
            threads,
            seconds,
            between_s: [bound(0), bound(1)],
            speedup: one / seconds.max(1e-12),
            limited_by,
            limited_share: match total > 0.0 {
                true => lost / total,
                false => 0.0,
            },
        }
    };
    let all = TEAMS.iter().enumerate().map(at_threads);
    all.filter(|p| is_narrow(p.seconds, p.between_s)).collect()
}

/// Whether a prediction is right wherever between its bounds the time is.
fn is_narrow(seconds: f64, [low, high]: [f64; 2]) -> bool {
    high <= (1.0 + WIDE) * seconds && low >= (1.0 - WIDE) * seconds
}
