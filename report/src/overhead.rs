//! Overhead classes per parallel region, after ompP (reference/ompp_report.md section 4).
//!
//! Every interval is charged to the innermost parallel region that it happened in. Beyond ompP: waiting in `taskwait` and
//! `taskgroup` is synchronization, creating tasks and fetching ranges is management; tasks executed while waiting are in
//! no wait, since intervals are exclusive.

use crate::build::parts;
use crate::model::{Class, Overhead, OverheadPart, ParallelOverhead};
use crate::units::seconds;
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use ompfuse_fuse::summary::{ParallelStat, RegionStat, Summary};
use std::collections::{BTreeMap, BTreeSet};

const NS: f64 = 1e-9;

/// `id_of`: a site's number in the report.
pub(crate) fn overheads(summary: &Summary, id_of: impl Fn(u32) -> u32) -> Vec<ParallelOverhead> {
    let mut list: Vec<ParallelOverhead> = summary
        .parallel
        .iter()
        .filter_map(|stat| {
            let site = stat.site?;
            let mut parts = Parts::default();
            for region in summary.regions.iter().filter(|r| r.parallel == Some(site)) {
                parts.add_region(summary, region);
            }
            let missing = parts.add_left_out(summary, site);
            Some(parts.finish(summary, stat, &missing, id_of(site)))
        })
        .collect();
    list.sort_by(|a, b| b.wall_s.total_cmp(&a.wall_s));
    list
}

/// Sources of overhead: nanoseconds and number by name and class.
#[derive(Default)]
struct Parts(BTreeMap<(Class, String), (u64, u64)>);

impl Parts {
    fn add(&mut self, class: Class, what: impl Into<String>, ns: u64, count: u64) {
        let part = self.0.entry((class, what.into())).or_default();
        part.0 += ns;
        part.1 += count;
    }

    fn add_region(&mut self, summary: &Summary, region: &RegionStat) {
        let Some(construct) = region.construct else {
            return;
        };
        let sums = Sums {
            count: region.count(),
            own: region.own_ns(),
            extent: Some(region.extent()),
        };
        self.add_sums(summary, (construct, region.site, region.parallel), sums);
    }

    /// Adds what was executed and not recorded, where that was in this parallel region only: its time is known.
    fn add_left_out(&mut self, summary: &Summary, parallel: u32) -> Missing {
        let mut missing = Missing {
            is_off: is_switched_off(summary),
            ..Missing::default()
        };
        for left_out in &summary.left_out {
            let same = |r: &&RegionStat| {
                (r.site, r.construct) == (Some(left_out.site), Some(left_out.construct))
            };
            let around: BTreeSet<Option<u32>> = (summary.regions.iter().filter(same))
                .map(|r| r.parallel)
                .collect();
            // Without a recorded one it may have been anywhere.
            let is_here = around.is_empty() || around.contains(&Some(parallel));
            if is_here && left_out.construct == Construct::Task {
                missing.tasks_ns += left_out.own_ns;
            }
            let place = (left_out.construct, Some(left_out.site), Some(parallel));
            let sums = Sums {
                count: left_out.count,
                own: left_out.own_ns,
                extent: None,
            };
            match (is_here, around.len()) {
                (true, 1) => self.add_sums(summary, place, sums),
                (true, _) => {
                    let mut parts = Parts::default();
                    parts.add_sums(summary, place, sums);
                    missing.elsewhere_ns += parts.0.values().map(|(ns, _)| ns).sum::<u64>();
                }
                (false, _) => {}
            }
        }
        missing
    }

    /// Adds intervals of a kind, at a site, in a parallel region.
    fn add_sums(
        &mut self,
        summary: &Summary,
        (construct, site, parallel): (Construct, Option<u32>, Option<u32>),
        Sums { count, own, extent }: Sums,
    ) {
        // A fork's own time is told by the region's executions: startup, shutdown, waiting at the region's end.
        let Some(class) = construct.overhead_class().filter(|_| !construct.is_fork()) else {
            return;
        };
        let name = construct.name();
        if construct.charges_to() == Charge::Entry {
            // How the time of those that were left out was divided is not known; most often it is waiting.
            let split = construct.split(own, extent.unwrap_or(own));
            self.add(class, name, split.wait, count);
            let exits = if extent.is_some() { count } else { 0 };
            let exit = format!("{name}-exit");
            return self.add(Class::Management, exit, split.runtime, exits);
        }
        match construct {
            Construct::ImplicitBarrier => {
                let ends = site.and_then(|s| summary.sites[s as usize].construct);
                let class = match ends {
                    Some(Construct::Single) => Class::LimitedParallelism,
                    Some(Construct::Sections) if too_few_sections(summary, site, parallel) => {
                        Class::LimitedParallelism
                    }
                    _ => class,
                };
                let what = match ends {
                    Some(Construct::ImplicitBarrier) | None => name.to_owned(),
                    Some(ends) => format!("{}-end", ends.name()),
                };
                self.add(class, what, own, count);
            }
            // One interval per loop and thread; its extent says how often.
            Construct::Dispatch => self.add(class, name, own, extent.unwrap_or(count)),
            _ => self.add(class, name, own, count),
        }
    }

    fn finish(
        mut self,
        summary: &Summary,
        stat: &ParallelStat,
        missing: &Missing,
        id: u32,
    ) -> ParallelOverhead {
        let complete = stat.measured == stat.executions;
        if complete {
            self.add(
                Class::Imbalance,
                "region-end",
                stat.imbalance_ns,
                stat.executions,
            );
            self.add(
                Class::Management,
                "startup",
                stat.startup_ns,
                stat.executions,
            );
            self.add(
                Class::Management,
                "shutdown",
                stat.shutdown_ns,
                stat.executions,
            );
        }
        let mut overhead = Overhead::default();
        let mut parts = Vec::new();
        for ((class, what), (ns, count)) in self.0 {
            let seconds = ns as f64 * NS;
            overhead.add(class, seconds);
            parts.push(OverheadPart {
                what,
                class,
                seconds,
                count,
            });
        }
        parts.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let total_s = stat.team_ns as f64 * NS;
        ParallelOverhead {
            region: id,
            address: stat.site.and_then(|s| summary.sites[s as usize].address),
            executions: stat.executions,
            nested: stat.nested,
            team: stat.team,
            wall_s: stat.wall_ns as f64 * NS,
            total_s,
            work_s: (complete && missing.all_is_known()).then(|| total_s - overhead.sum()),
            overhead,
            parts,
            incomplete: missing.told(stat),
            starved: starved(summary, stat.site),
        }
    }
}

/// The share of its work for which an outermost region's threads were not running, if it is much.
fn starved(summary: &Summary, site: Option<u32>) -> Option<f64> {
    let running = parts::running_in(summary, |s| Some(s) == site)?;
    running.is_starved.then_some(running.not_running)
}

/// Sums over intervals. `extent`: see [`ompfuse_fuse::summary::ThreadColumns::extent`]; `None`: not known.
struct Sums {
    count: u64,
    own: u64,
    extent: Option<u64>,
}

/// What is not known of a parallel region, since it is not on record.
#[derive(Default)]
struct Missing {
    /// Regions were switched off for a time: which ones, and where, is not known.
    is_off: bool,
    /// Nanoseconds of overhead that was left out here or in other parallel regions.
    elsewhere_ns: u64,
    /// Nanoseconds of tasks that were left out, here or elsewhere.
    tasks_ns: u64,
}

impl Missing {
    fn all_is_known(&self) -> bool {
        !self.is_off && self.elsewhere_ns == 0
    }

    /// In words; `None` if nothing is missing.
    fn told(&self, stat: &ParallelStat) -> Option<String> {
        let mut words = Vec::new();
        let ns = |ns: u64| seconds(ns as f64 * NS);
        if stat.measured != stat.executions {
            words.push(format!(
                "{} of {} executions lack a thread's part: waiting at the region's end, startup and shutdown are not known",
                stat.executions - stat.measured,
                stat.executions
            ));
        }
        if self.is_off {
            words.push(
                "regions were switched off meanwhile: what they waited is in no class, so work is not known".to_owned(),
            );
        }
        if self.elsewhere_ns > 0 {
            words.push(format!(
                "{} of waiting and management that were left out may have been here or elsewhere, so work is not known",
                ns(self.elsewhere_ns)
            ));
        }
        if self.tasks_ns > 0 {
            words.push(format!(
                "waiting at the region's end holds those of the tasks that were left out (in all {}) which were executed there",
                ns(self.tasks_ns)
            ));
        }
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// Whether more is not on record than what is known to have been left out, beyond rounding.
fn is_switched_off(summary: &Summary) -> bool {
    let left_out: u64 = summary.left_out.iter().map(|l| l.own_ns).sum();
    let unrecorded: f64 = (summary.accounts.iter())
        .filter(|a| a.unrecorded_ticks > 0)
        .map(|a| match (a.total_ns, a.total_ticks) {
            (Some(ns), Some(ticks)) => a.unrecorded_ticks as f64 * ns as f64 / ticks.max(1) as f64,
            _ => f64::INFINITY,
        })
        .sum();
    unrecorded > left_out as f64 * 1.001 + 1e3 * summary.accounts.len() as f64
}

/// ompP's rule: fewer sections were executed than threads came by.
fn too_few_sections(summary: &Summary, site: Option<u32>, parallel: Option<u32>) -> bool {
    let count = |construct: Construct| -> u64 {
        let recorded = (summary.regions.iter())
            .filter(|r| (r.site, r.parallel, r.construct) == (site, parallel, Some(construct)));
        let left_out =
            (summary.left_out.iter()).filter(|l| (Some(l.site), l.construct) == (site, construct));
        recorded.map(RegionStat::count).sum::<u64>() + left_out.map(|l| l.count).sum::<u64>()
    };
    count(Construct::Section) < count(Construct::ImplicitBarrier)
}
