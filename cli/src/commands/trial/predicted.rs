//! What the recorded units predict for a variant, to be seen beside what is measured.
//!
//! A loop's units are dealt out again: by a replay where the analysis has one with that schedule, else by what fetching costs, or with
//! iterations of a range taken to last equally long. Smaller teams are the report's own predictions.

use crate::select::means_region;
use crate::select::set::Set;
use ompfuse_account::trying::{self, Proposal};
use ompfuse_account::{Region, Report};
use ompfuse_format::Construct;
use ompfuse_format::detail::{Detail, Kind};
use ompfuse_format::site::{Parameter, SCHEDULES};
use ompfuse_fuse::span::replay::Schedule;
use ompfuse_fuse::span::{LoopAnalysis, RegionAnalysis};
use ompfuse_fuse::summary::Summary;

/// Each thread has so many ranges where only fetching them counts.
const MANY: f64 = 8.0;

/// A recorded run: its report, and its loops.
pub(super) struct Recorded {
    pub(super) report: Report,
    /// What it makes worth trying.
    pub(super) proposals: Vec<Proposal>,
    loops: Vec<Loop>,
}

/// A loop's executions, all together.
struct Loop {
    /// `id` of its region.
    region: u32,
    team: f64,
    analysis: LoopAnalysis,
    /// All executions, by those that were looked at.
    scale: f64,
    /// What fetching a range costs without a probe, in nanoseconds.
    fetch_ns: f64,
}

impl Recorded {
    pub(super) fn new(summary: &Summary) -> Recorded {
        let report = Report::new(summary);
        let regions = summary.analysis.iter().flat_map(|a| &a.regions);
        let of_region = |r: &RegionAnalysis| -> Vec<Loop> {
            let loops = r.loops.iter().filter(|l| !l.is_sections);
            let found = loops.filter_map(|analysis| {
                let site = summary.sites.get(analysis.site as usize)?;
                let is_it = |of: &&Region| {
                    of.address.is_some()
                        && of.address == site.address
                        && of.module.as_deref().unwrap_or_default() == site.module
                        && of.xus > 0
                };
                let region = report.regions.iter().find(is_it)?;
                let probes = region.probes_estimated_s? / region.xus as f64;
                let fetch = analysis.fetch_ns.unwrap_or(0) as f64 - 1e9 * probes;
                Some(Loop {
                    region: region.id,
                    team: r.team.max(1) as f64,
                    scale: region.xus as f64 / analysis.units.max(1) as f64,
                    fetch_ns: fetch.max(0.0),
                    analysis: analysis.clone(),
                })
            });
            found.collect()
        };
        Recorded {
            loops: regions.flat_map(of_region).collect(),
            proposals: trying::proposals(&report, summary),
            report,
        }
    }

    /// The change of the program's time, as a share of what the recorded run took; `None`: one of the settings has no prediction.
    pub(super) fn change(&self, sets: &[Set]) -> Option<f64> {
        let whole = self.report.lifetime_s.filter(|&s| s > 0.0)?;
        let each = sets.iter().map(|set| self.seconds(set));
        let all: Option<f64> = each.sum();
        // Whatever is done, the work is left.
        let least = self
            .report
            .scaling
            .as_ref()
            .map_or(0.0, |s| s.work_s / s.threads.max(1) as f64);
        all.map(|seconds| (seconds / whole).max(least.min(whole) / whole - 1.0))
    }

    /// The change in seconds.
    fn seconds(&self, set: &Set) -> Option<f64> {
        let is_meant = |r: &&Region| means_region(&set.regions, &self.report, r);
        let regions: Vec<&Region> = self.report.regions.iter().filter(is_meant).collect();
        let value = |parameter| set.values.get(&parameter).copied();
        let others = [Parameter::Grainsize, Parameter::NumTasks].map(value);
        if others.iter().any(Option::is_some) {
            return None;
        }
        let mut known = vec![];
        if let Some(threads) = value(Parameter::Threads) {
            let forks = regions
                .iter()
                .filter(|r| r.construct.is_some_and(Construct::is_fork));
            known.extend(forks.map(|r| self.of_team(r.id, threads)));
        }
        if let Some(chunk) = value(Parameter::Chunk) {
            let guided = SCHEDULES.iter().find(|s| s.0 == "guided").map(|s| s.1);
            let is_guided = |r: &Region| match value(Parameter::Schedule) {
                Some(schedule) => Some(schedule) == guided,
                None => r
                    .detail
                    .as_deref()
                    .is_some_and(|d| Detail(d).kind() == Some(Kind::Guided)),
            };
            for region in regions {
                let schedule = match is_guided(region) {
                    true => Schedule::Guided(chunk.into()),
                    false => Schedule::Dynamic(chunk.into()),
                };
                let loops = self.loops.iter().filter(|l| l.region == region.id);
                known.extend(loops.map(|l| l.seconds(schedule)));
            }
        }
        match known.is_empty() {
            true => None,
            false => known.into_iter().sum(),
        }
    }

    /// A region with another team.
    fn of_team(&self, region: u32, threads: u32) -> Option<f64> {
        let scaling = self.report.scaling.as_ref()?;
        let region = scaling.regions.iter().find(|r| r.region == region)?;
        let predicted = region.predicted.iter().find(|p| p.threads == threads)?;
        let scale = region.of_executions as f64 / region.executions.max(1) as f64;
        Some(scale * (predicted.seconds - region.wall_s))
    }
}

impl Loop {
    /// The change of its time under another schedule, in seconds.
    fn seconds(&self, schedule: Schedule) -> Option<f64> {
        let of = &self.analysis;
        let fetched = |ranges: f64| ranges * self.fetch_ns / self.team;
        let (units, iterations) = (of.units as f64, of.iterations as f64);
        let now = of.slowest_ns as f64 + fetched(units);
        let replayed = of.candidates.iter().find(|c| c.schedule == schedule);
        let then = match (schedule, replayed) {
            (Schedule::Dynamic(chunk), Some(replayed)) => {
                // The replay has fetches with probes.
                let ranges = iterations / chunk as f64;
                let probes = of.fetch_ns.unwrap_or(0) as f64 - self.fetch_ns;
                replayed.ns as f64 - ranges * probes / self.team
            }
            (Schedule::Dynamic(chunk), None) => {
                let executions = of.executions.max(1) as f64;
                let chunk = chunk as f64;
                let each = iterations / executions;
                let ranges = (each / chunk).ceil();
                match units * chunk > iterations {
                    true if ranges >= MANY * self.team => {
                        of.slowest_ns as f64 + fetched(ranges * executions)
                    }
                    true => return None,
                    false => {
                        let range = of.units_ns as f64 / iterations.max(1.0) * chunk.min(each);
                        let rounds = (ranges / self.team).ceil();
                        executions * rounds * (range + self.fetch_ns)
                    }
                }
            }
            (_, Some(replayed)) => replayed.ns as f64,
            (_, None) => return None,
        };
        Some(self.scale * (then - now) / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_loop(units: u64, iterations: u64, units_ns: u64, slowest_ns: u64) -> Loop {
        Loop {
            region: 1,
            team: 2.0,
            scale: 1.0,
            fetch_ns: 100.0,
            analysis: LoopAnalysis {
                executions: 1,
                units,
                iterations,
                units_ns,
                slowest_ns,
                fetch_ns: Some(150),
                ..LoopAnalysis::default()
            },
        }
    }

    #[test]
    fn larger_chunks_save_fetches_and_smaller_ones_share_work() {
        // 1,000 ranges of one iteration, 100 ns each to fetch: with 10 each thread saves 450 fetches.
        let short = of_loop(1000, 1000, 1_000_000, 500_000);
        let change = short.seconds(Schedule::Dynamic(10)).unwrap();
        assert!((change + 45e-6).abs() < 1e-12, "{change}");
        assert_eq!(short.seconds(Schedule::Dynamic(500)), None);
        // One range of all: halves take half of it.
        let coarse = of_loop(1, 1000, 1_000_000, 1_000_000);
        let change = coarse.seconds(Schedule::Dynamic(500)).unwrap();
        assert!((change + 0.5e-3 - 50e-9).abs() < 1e-12, "{change}");
        assert_eq!(coarse.seconds(Schedule::Guided(1)), None);
    }
}
