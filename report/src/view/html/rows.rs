//! What is told of the regions: the rows of the table, and what a row's details are made of.

use super::shares::class_id;
use super::terms;
use crate::model::{Class, ParallelOverhead, Property, Region, Report};
use crate::units::{SiteUnits, Units};
use crate::view::lines::Merged;
use crate::words::{called_from, property};
use ompfuse_format::construct::Construct;
use std::collections::BTreeMap;

/// Losses with a smaller share are none worth telling.
const LEAST: f64 = 5e-4;

/// A row of the table.
pub(super) struct Row<'a> {
    pub(super) region: &'a Region,
    /// Of a parallel region.
    pub(super) overhead: Option<&'a ParallelOverhead>,
    /// What it stands for.
    pub(super) sites: Vec<&'a Region>,
    pub(super) callers: Vec<Caller>,
    pub(super) worst: Option<Worst>,
    pub(super) units: Option<SiteUnits>,
}

/// Where a region was called from, or what it is inside of.
pub(super) struct Caller {
    pub(super) text: String,
    pub(super) executions: u64,
    pub(super) exclusive_s: f64,
    pub(super) inclusive_s: f64,
}

/// What costs most.
pub(super) struct Worst {
    /// Its name in style sheets.
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    /// Of the region's time (parallel regions), or of the available time.
    pub(super) share: f64,
}

/// The rows, those with the most time first.
pub(super) fn rows<'a>(
    report: &'a Report,
    merged: &'a Merged,
    units: Option<&Units>,
) -> Vec<Row<'a>> {
    let mut sites: BTreeMap<u32, Vec<&Region>> = BTreeMap::new();
    for site in &report.regions {
        let row = merged.number.get(&site.id).copied().unwrap_or(site.id);
        sites.entry(row).or_default().push(site);
    }
    let mut callers = callers(&merged.report);
    let row = |region: &'a Region| {
        let sites = sites.remove(&region.id).unwrap_or_default();
        let overheads = merged.report.overheads.iter();
        let overhead = overheads.into_iter().find(|o| o.region == region.id);
        let named = sites.iter();
        let named = named.map(|s| (s.module.as_deref().unwrap_or_default(), s.name.as_str()));
        Row {
            units: units.and_then(|u| u.of(named)),
            callers: callers.remove(&region.id).unwrap_or_default(),
            worst: worst(region, overhead, &merged.report.properties),
            region,
            overhead,
            sites,
        }
    };
    merged.report.regions.iter().map(row).collect()
}

impl Row<'_> {
    /// Work as a share of the threads' time there; `None`: it is no place for work, or that isn't known.
    pub(super) fn efficiency(&self) -> Option<f64> {
        match self.overhead {
            Some(o) => o.work_s.filter(|_| o.total_s > 0.0).map(|w| w / o.total_s),
            None => {
                let (region, has_work) = (self.region, self.region.work_s > 0.0);
                (has_work && region.time_s > 0.0).then(|| region.work_s / region.time_s)
            }
        }
    }

    /// What half of the units take at most, in seconds.
    pub(super) fn median_s(&self) -> Option<f64> {
        let (min, max) = (self.region.xu_min_s?, self.region.xu_max_s?);
        let known = self.units.as_ref().and_then(|u| u.histogram.percentile(50));
        let middle = match (known, &self.region.distribution) {
            (Some(ns), _) => ns * 1e-9,
            (None, Some(of)) => (of.time_s.p50.from + of.time_s.p50.to?) / 2.0,
            (None, None) => return None,
        };
        Some(middle.clamp(min, max))
    }

    /// Whether threads that differ in it tell anything: several had their share of work.
    pub(super) fn imbalance(&self) -> Option<f64> {
        // What one thread executes by its nature is not uneven.
        let is_one = matches!(
            self.region.construct,
            Some(Construct::Single | Construct::Master)
        );
        let spread = &self.region.spread;
        (spread.threads > 1 && self.region.work_s > 0.0 && !is_one).then_some(spread.imbalance)
    }
}

/// The class that a region's own time belongs to, where it is more than work.
pub(super) fn class_of(region: &Region) -> &'static str {
    if region.work_s >= region.wait_s + region.runtime_s {
        return "work";
    }
    let class = region.construct.and_then(Construct::overhead_class);
    class_id(class.unwrap_or(Class::Management))
}

fn worst(
    region: &Region,
    overhead: Option<&ParallelOverhead>,
    properties: &[Property],
) -> Option<Worst> {
    if let Some(overhead) = overhead {
        let seconds = |class: &Class| overhead.overhead.get(*class).unwrap_or(0.0);
        let most = Class::ALL
            .into_iter()
            .max_by(|a, b| seconds(a).total_cmp(&seconds(b)))?;
        let share = seconds(&most) / overhead.total_s;
        return (share > 0.0).then(|| Worst {
            class: class_id(most),
            name: terms::class_name(most),
            share,
        });
    }
    let of = properties.iter().filter(|p| p.region == Some(region.id));
    let most = of.max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    let class = region.construct.and_then(Construct::overhead_class);
    let share = most.severity.filter(|s| *s >= LEAST)?;
    Some(Worst {
        class: class_id(class.unwrap_or(Class::Imbalance)),
        name: property::name(most.kind),
        share,
    })
}

/// By region where it was called from; where that isn't known, what it is inside of.
fn callers(report: &Report) -> BTreeMap<u32, Vec<Caller>> {
    let mut callers: BTreeMap<u32, Vec<Caller>> = BTreeMap::new();
    let places: BTreeMap<u32, String> = (report.regions.iter())
        .map(|r| (r.id, super::title(r)))
        .collect();
    for path in &report.call_paths {
        let Some(region) = path.region else { continue };
        let called = path.context.and_then(|c| called_from(&report.contexts, c));
        let inside = || {
            let parent = &report.call_paths[path.parent? as usize];
            let place = parent.region.and_then(|id| places.get(&id));
            Some(format!("inside {}", place?))
        };
        let text = called.or_else(inside);
        let text = text.unwrap_or_else(|| "outside of all regions".to_owned());
        let known = callers.entry(region).or_default();
        let same = known.iter_mut().find(|c| c.text == text);
        match same {
            Some(known) => {
                known.executions += path.executions;
                known.exclusive_s += path.exclusive_s;
                known.inclusive_s += path.inclusive_s;
            }
            None => known.push(Caller {
                text,
                executions: path.executions,
                exclusive_s: path.exclusive_s,
                inclusive_s: path.inclusive_s,
            }),
        }
    }
    for of in callers.values_mut() {
        of.sort_by(|a, b| b.inclusive_s.total_cmp(&a.inclusive_s));
    }
    callers
}
