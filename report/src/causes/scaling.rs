//! Work and span, and predicted run times with other numbers of threads.

use crate::from_summary::NS;
use crate::from_summary::indexed::Indexed;
use crate::model::{Predicted, PredictedRegion, RegionScaling, Report, Scaling, Silent};
use ompfuse_fuse::span::{LowerBound, RegionAnalysis, TEAMS};

/// Less of the time in parallel regions says nothing of the program.
pub(super) const ENOUGH: f64 = 0.5;

/// `None`: nothing was looked at record by record, or the run's time isn't known.
pub(crate) fn scaling(report: &Report, summary: &Indexed<'_>, ids: &[u32]) -> Option<Scaling> {
    let analysis = summary.analysis.as_ref()?;
    let mut regions: Vec<(RegionScaling, &RegionAnalysis)> = (analysis.regions.iter())
        .filter(|r| r.executions > 0)
        .filter_map(|r| Some((region(summary, r, *ids.get(r.site? as usize)?), r)))
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
    let silent = regions.iter().find_map(|r| silent(r.1));
    let is_one_process = summary.processes.len() <= 1;
    let is_known = regions.iter().all(|r| !r.0.predicted.is_empty()) && silent.is_none();
    let is_told = is_one_process && is_known && seen >= ENOUGH;
    let predicted = match is_told {
        true => predictions(&regions, serial_s, scale),
        false => vec![],
    };
    let modelled: f64 = regions.iter().map(|r| r.1.modelled_ns as f64 * NS).sum();
    Some(Scaling {
        seen,
        threads: super::team(summary),
        work_s,
        span_s,
        parallelism: work_s / span_s.max(f64::MIN_POSITIVE),
        model_error: (!predicted.is_empty())
            .then(|| (serial_s + scale * modelled) / (serial_s + scale * seen_s).max(1e-9)),
        predicted,
        assumes_equal: regions.iter().any(|r| r.1.assumes_equal),
        silent,
        regions: regions.into_iter().map(|r| r.0).collect(),
    })
}

/// Code that each thread of a team executes may divide work by thread number from this share of a region's work on.
const EACH: f64 = 0.1;

/// Why nothing is predicted for a region.
fn silent(region: &RegionAnalysis) -> Option<Silent> {
    let has = |bound: LowerBound| region.lower_bound.contains(&bound);
    let each = region.each_ns as f64 * region.team as f64;
    match () {
        () if has(LowerBound::TaskDependences) => Some(Silent::TaskDependences),
        () if has(LowerBound::Ordered) => Some(Silent::Ordered),
        () if has(LowerBound::Locks) => Some(Silent::Locks),
        () if has(LowerBound::LeftOut) => Some(Silent::LeftOut),
        () if each >= EACH * region.work_ns as f64 && each > 0.0 => Some(Silent::EachThread),
        () => None,
    }
}

fn region(summary: &Indexed<'_>, of: &RegionAnalysis, id: u32) -> RegionScaling {
    let executions = of.site.map_or(0, |site| {
        summary.parallel_at(site).iter().map(|p| p.executions).sum()
    });
    let predicted = TEAMS.iter().zip(&of.predicted_ns);
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
        predicted: (predicted.filter(|_| silent(of).is_none()))
            .map(|(&threads, &ns)| PredictedRegion {
                threads,
                seconds: ns as f64 * NS,
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
        Predicted {
            threads,
            seconds,
            speedup: one / seconds.max(1e-12),
            limited_by,
            limited_share: match total > 0.0 {
                true => lost / total,
                false => 0.0,
            },
        }
    };
    TEAMS.iter().enumerate().map(at_threads).collect()
}
