//! Why time is lost: each large loss with its cause, from what is recorded.
//!
//! Seconds are those of the classes of overhead ([`ParallelOverhead`](crate::model::ParallelOverhead)); causes come of single records
//! ([`ompfuse_fuse::span`]). What these don't tell has the cause [`Cause::Unknown`].

mod managing;
mod scaling;
mod units;
mod waiting;

pub(crate) use scaling::scaling;

use crate::from_summary::NS;
use crate::from_summary::indexed::Indexed;
use crate::model::{Cause, Loss, LossKind, ParallelOverhead, Report, Scaling};
use ompfuse_fuse::span::RegionAnalysis;

/// Smaller shares of the available time are no loss worth telling.
const LEAST_SHARE: f64 = 0.005;

/// The losses, largest first. `report`: all else of it; `ids`: the sites' numbers in it.
pub(crate) fn losses(
    report: &Report,
    scaling: Option<&Scaling>,
    summary: &Indexed<'_>,
    ids: &[u32],
) -> Vec<Loss> {
    let Some(available_s) = report.available_s.filter(|&s| s > 0.0) else {
        return vec![];
    };
    let mut found = Found {
        report,
        summary,
        ids,
        losses: vec![],
    };
    found.serial(scaling);
    for stat in summary.parallel.iter() {
        let Some(site) = stat.site else { continue };
        let id = found.id(site);
        let Some(overhead) = report.overheads.iter().find(|o| o.region == id) else {
            continue;
        };
        let analysis = summary.analysis.as_ref();
        let analysed = analysis.and_then(|a| a.regions.iter().find(|r| r.site == Some(site)));
        let of = OfRegion {
            site,
            overhead,
            analysed,
        };
        waiting::add(&mut found, &of);
        managing::add(&mut found, &of);
    }
    found.starvation();
    let mut losses = found.losses;
    for loss in &mut losses {
        loss.share = loss.seconds / available_s;
    }
    losses.retain(|l| l.share >= LEAST_SHARE);
    losses.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    losses
}

/// A parallel region.
struct OfRegion<'a> {
    /// Its site.
    site: u32,
    overhead: &'a ParallelOverhead,
    analysed: Option<&'a RegionAnalysis>,
}

/// Losses on the way.
struct Found<'a> {
    report: &'a Report,
    summary: &'a Indexed<'a>,
    ids: &'a [u32],
    losses: Vec<Loss>,
}

impl Found<'_> {
    fn id(&self, site: u32) -> u32 {
        self.ids.get(site as usize).copied().unwrap_or(0)
    }

    fn add(&mut self, loss: LossKind, of: Option<&OfRegion<'_>>, seconds: f64, cause: Cause) {
        if seconds > 0.0 {
            self.losses.push(Loss {
                loss,
                region: of.map(|o| o.overhead.region),
                seconds,
                share: 0.0,
                cause,
                starved: of.and_then(|o| o.overhead.starved),
            });
        }
    }

    /// Threads that wait outside of parallel regions while one works.
    fn serial(&mut self, scaling: Option<&Scaling>) {
        let report = self.report;
        let team = self.summary.parallel.iter().map(|p| p.team).max();
        let (Some(parallel_s), Some(available_s)) = (report.parallel_s, report.available_s) else {
            return;
        };
        let threads = team.unwrap_or(1).max(1) as f64;
        // Processes together: each has a serial part of its own.
        let wall_s = (available_s / threads - parallel_s).max(0.0);
        let of_work = scaling
            .filter(|s| s.seen >= scaling::ENOUGH && s.work_s > 0.0)
            .map(|s| (wall_s / s.work_s).min(1.0));
        let cause = Cause::SerialPart { wall_s, of_work };
        self.add(LossKind::Serial, None, wall_s * (threads - 1.0), cause);
    }

    /// Threads that have no processor while they should work.
    fn starvation(&mut self) {
        if let Some(running) = self.report.running.as_ref().filter(|r| r.is_starved) {
            let cause = Cause::NoProcessor {
                threads: running.threads,
                processors: running.processors,
            };
            self.add(LossKind::Starvation, None, running.not_running_s, cause);
        }
    }

    /// Mean own time of the units of a kind at a place, in seconds, and their number.
    fn mean(&self, site: u32, is: fn(ompfuse_format::Construct) -> bool) -> Option<(f64, u64)> {
        let stats = self.summary.at_site(site).iter();
        let stats = stats.filter(|r| r.construct.is_some_and(is));
        let (own, count) = stats.fold((0, 0), |(own, count), r| {
            (own + r.own_ns(), count + r.count())
        });
        (count > 0).then(|| (own as f64 * NS / count as f64, count))
    }
}
