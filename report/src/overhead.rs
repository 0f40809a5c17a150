//! Overhead classes per parallel region, after ompP (reference/ompp_report.md section 4).
//!
//! Every interval is charged to the innermost parallel region that it happened in. Beyond ompP: waiting in `taskwait` and
//! `taskgroup` is synchronization, creating tasks and fetching ranges is management; tasks executed while waiting are in
//! no wait, since intervals are exclusive.

use crate::model::{Class, Overhead, OverheadPart, ParallelOverhead};
use ompfuse_format::Construct;
use ompfuse_fuse::summary::{ParallelStat, RegionStat, Summary};
use std::collections::BTreeMap;

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
            Some(parts.finish(summary, stat, id_of(site)))
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
        let name = construct.name();
        let own = region.own_ns();
        match construct {
            Construct::Barrier | Construct::Taskwait | Construct::Taskgroup | Construct::Flush => {
                self.add(Class::Synchronization, name, own, region.count())
            }
            c if c.is_exclusive() => {
                let enter = region.extent().min(own);
                self.add(Class::Synchronization, name, enter, region.count());
                self.add(
                    Class::Management,
                    format!("{name}-exit"),
                    own - enter,
                    region.count(),
                );
            }
            Construct::ImplicitBarrier => {
                let ends = region
                    .site
                    .and_then(|s| summary.sites[s as usize].construct);
                let class = match ends {
                    Some(Construct::Single) => Class::LimitedParallelism,
                    Some(Construct::Sections) if too_few_sections(summary, region) => {
                        Class::LimitedParallelism
                    }
                    _ => Class::Imbalance,
                };
                let what = match ends {
                    Some(Construct::ImplicitBarrier) | None => name.to_owned(),
                    Some(ends) => format!("{}-end", ends.name()),
                };
                self.add(class, what, own, region.count());
            }
            Construct::TaskCreate | Construct::Taskloop | Construct::Reduction => {
                self.add(Class::Management, name, own, region.count())
            }
            // One interval per loop and thread; its extent says how often.
            Construct::Dispatch => self.add(Class::Management, name, own, region.extent()),
            _ => {}
        }
    }

    fn finish(mut self, summary: &Summary, stat: &ParallelStat, id: u32) -> ParallelOverhead {
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
            work_s: complete.then(|| total_s - overhead.sum()),
            overhead,
            parts,
            incomplete: (!complete).then(|| {
                format!(
                    "{} of {} executions lack a thread's part: waiting at the region's end, startup and shutdown are not known",
                    stat.executions - stat.measured,
                    stat.executions
                )
            }),
        }
    }
}

/// ompP's rule: fewer sections were executed than threads came by.
fn too_few_sections(summary: &Summary, barrier: &RegionStat) -> bool {
    let count = |construct: Construct| -> u64 {
        let same = |r: &&RegionStat| {
            r.site == barrier.site
                && r.parallel == barrier.parallel
                && r.construct == Some(construct)
        };
        summary
            .regions
            .iter()
            .filter(same)
            .map(RegionStat::count)
            .sum()
    };
    count(Construct::Section) < barrier.count()
}
