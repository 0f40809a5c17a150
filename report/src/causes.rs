//! Why time is lost: each large loss with its cause, from what is recorded.
//!
//! Seconds are those of the classes of overhead ([`ParallelOverhead`](crate::model::ParallelOverhead)); causes come of single records
//! ([`ompfuse_fuse::span`]). What these don't tell has the cause [`Cause::Unknown`].

mod communication;
mod managing;
mod scaling;
#[cfg(test)]
mod tests;
mod units;
mod waiting;

pub(crate) use scaling::scaling;

use crate::from_summary::NS;
use crate::from_summary::indexed::Indexed;
use crate::model::{Cause, Loss, LossKind, ParallelOverhead, Report, Scaling};
use ompfuse_fuse::span::RegionAnalysis;
use ompfuse_fuse::summary::RunSummary;

/// Smaller shares of the available time are no loss worth telling.
const LEAST_SHARE: f64 = 0.005;

/// The losses worth telling, largest first, and the seconds of all, at most `available_s`. `report`: all else of it; `ids`: the
/// sites' numbers in it.
pub(crate) fn losses(
    report: &Report,
    available_s: f64,
    scaling: Option<&Scaling>,
    summary: &Indexed<'_>,
    ids: &[u32],
) -> (Vec<Loss>, f64) {
    let mut found = Found {
        report,
        summary,
        ids,
        losses: vec![],
    };
    found.serial(scaling);
    communication::outside(&mut found);
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
        communication::inside(&mut found, &of);
    }
    found.starvation();
    let mut losses = found.losses;
    for loss in &mut losses {
        loss.share = loss.seconds / available_s;
    }
    // They have little in common: a thread without a processor lacks it for its work, not while it waits.
    let lost_s: f64 = losses.iter().map(|l| l.seconds).sum();
    losses.retain(|l| l.share >= LEAST_SHARE);
    losses.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    (losses, lost_s.min(available_s))
}

/// The time that shares of losses are of: that of the recorded processes, without what came before recording began (loading the
/// program), times the largest team. `None`: it isn't known.
pub(crate) fn available_s(report: &Report, summary: &Indexed<'_>) -> Option<f64> {
    let processes = summary.runs.first().and_then(RunSummary::processes_ns);
    let recorded = processes.map(|ns| ns as f64 * NS * team(summary) as f64);
    recorded.or(report.available_s).filter(|&s| s > 0.0)
}

/// Largest team, at least 1.
fn team(summary: &Indexed<'_>) -> u64 {
    let teams = summary.parallel.iter().map(|p| p.team);
    teams.max().unwrap_or(1).max(1)
}

/// Seconds on the clock in which one thread works outside of parallel regions, all processes together. `None`: not known.
fn serial_s(report: &Report, summary: &Indexed<'_>) -> Option<f64> {
    let wall_s = available_s(report, summary)? / team(summary) as f64;
    // Several root threads may work at once: no longer than there is no region.
    Some(
        report
            .serial
            .program_s
            .min((wall_s - report.parallel_s?).max(0.0)),
    )
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
        let Some(wall_s) = serial_s(self.report, self.summary) else {
            return;
        };
        let threads = team(self.summary) as f64;
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
