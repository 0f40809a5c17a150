//! Overhead classes per parallel region, after ompP (docs/reference/classes.md).
//!
//! Every interval is charged to the innermost parallel region that it happened in. Beyond ompP: waiting in `taskwait` and
//! `taskgroup` is synchronization, creating tasks and fetching ranges is management; tasks executed while waiting are in
//! no wait, since intervals are exclusive.

use super::NS;
use super::classes::{Kind, Sums, has_block, rows, too_few_in_all};
use crate::from_summary::indexed::Indexed;
use crate::model::{Class, Incomplete, Overhead, OverheadPart, ParallelOverhead};
use ompfuse_format::Construct;
use ompfuse_format::construct::{AroundPart, WaitsFor};
use ompfuse_fuse::run::{LeftOut, Within};
use ompfuse_fuse::summary::{ParallelStat, RegionStat, Summary};
use std::collections::BTreeMap;

/// `processes_s`: the processes' wall times together. `id_of`: a site's number in the report.
pub(super) fn overheads(
    summary: &Indexed<'_>,
    processes_s: Option<f64>,
    id_of: impl Fn(u32) -> u32,
) -> Vec<ParallelOverhead> {
    let is_off = is_switched_off(summary);
    let mut list: Vec<ParallelOverhead> = summary
        .parallel
        .iter()
        .filter_map(|stat| {
            let site = stat.site?;
            let mut parts = Parts::default();
            for region in summary.in_parallel(site) {
                parts.add_region(summary, region);
            }
            let mut missing = parts.add_left_out(summary, site);
            missing.is_off = is_off;
            // Executions may overlap in a process: in other regions, or on several root threads.
            let share = processes_s.map(|s| stat.wall_ns as f64 * NS / s);
            let of_run = share.filter(|&share| stat.nested == 0 && share <= 1.0);
            let overhead = parts.finish(summary, stat, missing, id_of(site));
            Some(ParallelOverhead { of_run, ..overhead })
        })
        .collect();
    list.sort_by(|a, b| b.wall_s.total_cmp(&a.wall_s));
    list
}

/// By site and kind of interval the share of own times that is of a class of overhead.
pub(crate) fn class_shares(summary: &Summary, class: Class) -> BTreeMap<(u32, Construct), f64> {
    let summary = &Indexed::new(summary);
    let mut sums: BTreeMap<(u32, Construct), (u64, u64)> = BTreeMap::new();
    for region in &summary.regions {
        let Some(key) = region.site.zip(region.construct) else {
            continue;
        };
        let sum = sums.entry(key).or_default();
        sum.1 += region.own_ns();
        if region.parallel.is_none() {
            continue;
        }
        let mut parts = Parts::default();
        parts.add_region(summary, region);
        let of_class = parts.0.iter().filter(|((c, _), _)| *c == class);
        sum.0 += of_class.map(|(_, (ns, _))| ns).sum::<u64>();
    }
    let share = |(of_class, all): (u64, u64)| of_class as f64 / all.max(1) as f64;
    let shares = sums.into_iter().map(|(key, sum)| (key, share(sum)));
    shares.filter(|(_, share)| *share > 0.0).collect()
}

/// Sources of overhead: nanoseconds and number by name and class.
#[derive(Default)]
pub(super) struct Parts(BTreeMap<(Class, String), (u64, u64)>);

impl Parts {
    /// Class and name of each, with nanoseconds and number.
    pub(super) fn into_list(self) -> impl Iterator<Item = ((Class, String), (u64, u64))> {
        self.0.into_iter()
    }

    /// All of them, in nanoseconds.
    pub(super) fn sum(&self) -> u64 {
        self.0.values().map(|(ns, _)| ns).sum()
    }

    /// Adds what was executed in a parallel region and not recorded.
    pub(super) fn add_unrecorded(
        &mut self,
        summary: &Indexed<'_>,
        left_out: &LeftOut,
        parallel: Option<u32>,
    ) {
        let place = (left_out.construct, Some(left_out.site), parallel);
        let sums = Sums {
            thread: None,
            count: left_out.count,
            own: left_out.own_ns,
            extent: None,
        };
        if let Some(kind) = Kind::new(summary, place) {
            self.add_sums(&kind, &sums);
        }
    }

    fn add(&mut self, class: Class, what: impl Into<String>, ns: u64, count: u64) {
        let part = self.0.entry((class, what.into())).or_default();
        part.0 += ns;
        part.1 += count;
    }

    pub(super) fn add_region(&mut self, summary: &Indexed<'_>, region: &RegionStat) {
        let Some(construct) = region.construct else {
            return;
        };
        let place = (construct, region.site, region.parallel);
        let Some(kind) = Kind::new(summary, place) else {
            return;
        };
        rows(&region.threads).for_each(|sums| self.add_sums(&kind, &sums));
    }

    fn add_sums(&mut self, kind: &Kind, sums: &Sums) {
        for part in kind.divide(sums) {
            self.add(part.class, part.what, part.ns, part.count);
        }
    }

    /// Adds what was executed in this parallel region and not recorded: its time is known.
    fn add_left_out(&mut self, summary: &Indexed<'_>, parallel: u32) -> Missing {
        let mut missing = Missing::default();
        // What a region without an end had left out is told as that of all others of its site.
        let is_whole = is_whole(summary, parallel);
        for left_out in &summary.left_out {
            let sums = Sums {
                thread: None,
                count: left_out.count,
                own: left_out.own_ns,
                extent: None,
            };
            match left_out.within {
                Within::Part(p) | Within::Behind(p) if p != parallel => {}
                Within::Part(_) | Within::Behind(_) if is_whole => {
                    let place = (left_out.construct, Some(left_out.site), Some(parallel));
                    if let Some(kind) = Kind::new(summary, place) {
                        self.add_sums(&kind, &sums);
                    }
                }
                Within::Outside => {}
                Within::Part(_) | Within::Behind(_) | Within::Unknown => {
                    missing.unplaced_ns += left_out.own_ns;
                }
            }
        }
        missing
    }

    fn finish(
        mut self,
        summary: &Indexed<'_>,
        stat: &ParallelStat,
        mut missing: Missing,
        id: u32,
    ) -> ParallelOverhead {
        missing.executions = stat.executions - stat.measured;
        missing.is_behind = stat.left_behind_ns > 0;
        if missing.region_end_is_known() {
            self.add_region_end(summary, stat);
        }
        let total_ns = stat.team_ns;
        missing.is_too_much = !self.fit(total_ns);
        if missing.is_too_much {
            self.0.clear();
        }
        let overhead_ns: u64 = self.0.values().map(|(ns, _)| ns).sum();
        let rest_s = (total_ns - overhead_ns) as f64 * NS;
        let is_known = missing.work_is_known();
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
        ParallelOverhead {
            region: id,
            address: stat.site.and_then(|s| summary.sites[s as usize].address),
            executions: stat.executions,
            nested: stat.nested,
            team: stat.team,
            wall_s: stat.wall_ns as f64 * NS,
            of_run: None,
            total_s: total_ns as f64 * NS,
            work_s: is_known.then_some(rest_s),
            unknown_s: if is_known { 0.0 } else { rest_s },
            overhead,
            of_program: None,
            parts,
            incomplete_because: missing.listed(stat),
        }
    }

    /// Adds what threads wait and manage around their parts.
    pub(super) fn add_region_end(&mut self, summary: &Indexed<'_>, stat: &ParallelStat) {
        let count = stat.executions;
        let mut add = |part: AroundPart, name: &str, ns: u64| {
            self.add(part.overhead_class(), name, ns, count);
        };
        let end = AroundPart::End(match too_few_in_all(summary, stat) {
            true => WaitsFor::FewSections,
            false => WaitsFor::Others,
        });
        add(AroundPart::Startup, "startup", stat.startup_ns);
        if stat.left_behind_ns == 0 {
            let limited = match has_block(summary, stat.site) {
                true => stat.limited_ns,
                false => 0,
            };
            if limited > 0 {
                add(AroundPart::End(WaitsFor::OneThread), "region-end", limited);
            }
            add(end, "region-end", stat.imbalance_ns - limited);
            add(AroundPart::Shutdown, "shutdown", stat.shutdown_ns);
        } else {
            // When the last task ended isn't known: it may have been left out.
            let all = stat.imbalance_ns + stat.shutdown_ns;
            add(end, "region-end", all.saturating_sub(stat.left_behind_ns));
        }
    }

    /// Whether all parts together are no more than the region's time. Where that is by rounding only, the largest is made smaller.
    fn fit(&mut self, total_ns: u64) -> bool {
        let sum: u64 = self.0.values().map(|(ns, _)| ns).sum();
        let count: u64 = self.0.values().map(|(_, count)| count).sum();
        let excess = sum.saturating_sub(total_ns);
        // Intervals and spans are rounded to nanoseconds, each for itself.
        if excess > ROUNDED + 2 * count {
            return false;
        }
        match self.0.values_mut().max_by_key(|(ns, _)| *ns) {
            Some((ns, _)) if *ns >= excess => *ns -= excess,
            _ => return excess == 0,
        }
        true
    }
}

/// Nanoseconds that rounding may make of a few intervals.
const ROUNDED: u64 = 1000;

/// What is not known of a parallel region, since it is not on record.
#[derive(Default)]
struct Missing {
    /// Executions that lack a thread's part.
    executions: u64,
    /// Regions were switched off for a time: which ones, and where, is not known.
    is_off: bool,
    /// Nanoseconds that were left out, here or elsewhere.
    unplaced_ns: u64,
    /// Something was left out at the region's end.
    is_behind: bool,
    /// The sums are larger than the region's time.
    is_too_much: bool,
}

impl Missing {
    fn region_end_is_known(&self) -> bool {
        self.executions == 0 && self.unplaced_ns == 0
    }

    fn work_is_known(&self) -> bool {
        self.region_end_is_known() && !self.is_off && !self.is_too_much
    }

    /// All that is missing.
    fn listed(&self, stat: &ParallelStat) -> Vec<Incomplete> {
        let parts = (self.executions > 0).then_some(Incomplete::MissingParts {
            executions: self.executions,
            of: stat.executions,
        });
        let unplaced = (self.unplaced_ns > 0).then_some(Incomplete::Unplaced {
            seconds: self.unplaced_ns as f64 * NS,
        });
        let is_behind = self.is_behind && self.region_end_is_known();
        [
            parts,
            self.is_off.then_some(Incomplete::SwitchedOff),
            unplaced,
            is_behind.then_some(Incomplete::ShutdownIncluded),
            self.is_too_much.then_some(Incomplete::TooLong),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Whether every execution of a parallel region is on record: none was cut short by the program's end.
fn is_whole(summary: &Indexed<'_>, parallel: u32) -> bool {
    let ended = (summary.runs.first()).is_some_and(|r| r.processes.iter().all(|p| p.ended));
    let is_stray =
        |r: &RegionStat| r.construct.is_some_and(Construct::is_part) && r.parallel.is_none();
    ended && !summary.at_site(parallel).iter().any(|r| is_stray(r))
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
