//! What is told of the regions: the rows of the table, and what a row's details are made of.

use super::shares::class_id;
use super::terms;
use crate::units::{SiteUnits, Units};
use crate::view::lines::Merged;
use crate::words::{self, called_from, property};
use ompfuse_account::model::{Class, Loss, ParallelOverhead, Property, Region, Report};
use ompfuse_account::units::count;
use ompfuse_format::construct::Construct;
use std::collections::BTreeMap;

/// Losses with a smaller share are none worth telling.
const LEAST: f64 = 5e-4;

/// A row of the table.
pub(in crate::view) struct Row<'a> {
    pub(in crate::view) region: &'a Region,
    /// Of a parallel region.
    pub(in crate::view) overhead: Option<&'a ParallelOverhead>,
    /// What it stands for.
    pub(in crate::view) sites: Vec<&'a Region>,
    pub(in crate::view) callers: Vec<Caller>,
    /// The line in Python that leads to it.
    pub(in crate::view) python: Option<String>,
    pub(in crate::view) worst: Option<Worst>,
    pub(in crate::view) units: Option<SiteUnits>,
}

/// Where a region was called from, or what it is inside of.
pub(in crate::view) struct Caller {
    pub(in crate::view) text: String,
    pub(in crate::view) executions: u64,
    pub(in crate::view) exclusive_s: f64,
    pub(in crate::view) inclusive_s: f64,
}

/// What costs most.
pub(in crate::view) struct Worst {
    /// Its name in style sheets.
    pub(in crate::view) class: &'static str,
    pub(in crate::view) name: &'static str,
    /// Of the region's time (parallel regions), or of the available time.
    pub(in crate::view) share: f64,
}

/// The rows, those with the most time first.
pub(in crate::view) fn rows<'a>(
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
            python: words::python_caller(
                &merged.report.contexts,
                &merged.report.call_paths,
                region.id,
            ),
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
    pub(in crate::view) fn efficiency(&self) -> Option<f64> {
        match self.overhead {
            Some(o) => o.work_s.filter(|_| o.total_s > 0.0).map(|w| w / o.total_s),
            None => {
                let (region, has_work) = (self.region, self.region.work_s > 0.0);
                (has_work && region.time_s > 0.0).then(|| region.work_s / region.time_s)
            }
        }
    }

    /// What half of the units take at most, in seconds.
    pub(in crate::view) fn median_s(&self) -> Option<f64> {
        let (min, max) = (self.region.xu_min_s?, self.region.xu_max_s?);
        let known = self.units.as_ref().and_then(|u| u.histogram.percentile(50));
        let middle = match (known, &self.region.distribution) {
            (Some(ns), _) => ns * 1e-9,
            (None, Some(of)) => (of.time_s.p50.from + of.time_s.p50.to?) / 2.0,
            (None, None) => return None,
        };
        Some(middle.clamp(min, max))
    }

    /// See [`imbalance`].
    pub(in crate::view) fn imbalance(&self) -> Option<f64> {
        imbalance(self.region)
    }

    /// What is missing or doubtful in the region's numbers.
    pub(in crate::view) fn notes(&self) -> Vec<String> {
        let region = self.region;
        let mut notes = vec![];
        notes.extend(region.doubt_kind.map(|d| words::doubted(region, d)));
        notes.extend(region.in_part.iter().map(|p| words::in_part(region, p)));
        if let Some(overhead) = self.overhead {
            notes.extend(words::incomplete(&overhead.incomplete_because));
        }
        if let Some(cancelled) = region.cancelled.filter(|n| *n > 0) {
            notes.push(format!(
                "{} executions found it cancelled",
                count(cancelled)
            ));
        }
        notes
    }

    /// Losses that are in the region, or that it is the place of.
    pub(in crate::view) fn losses<'r>(&self, report: &'r Report) -> Vec<&'r Loss> {
        let is_here = |id: &u32| self.sites.iter().any(|s| s.id == *id);
        let here = |l: &&Loss| {
            l.region.as_ref().is_some_and(is_here)
                || words::cause_place(&l.cause).as_ref().is_some_and(is_here)
        };
        report.losses.iter().filter(here).collect()
    }
}

/// How unevenly threads work in a region; `None`: that tells nothing.
pub(in crate::view) fn imbalance(region: &Region) -> Option<f64> {
    // What one thread executes by its nature is not uneven.
    let is_one = region.construct.is_some_and(Construct::is_block);
    let is_shared = region.spread.threads > 1 && region.work_s > 0.0 && !is_one;
    is_shared.then_some(region.spread.imbalance)
}

/// The class that a region's own time belongs to, where it is more than work.
pub(in crate::view) fn class_of(region: &Region) -> &'static str {
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
pub(in crate::view) fn callers(report: &Report) -> BTreeMap<u32, Vec<Caller>> {
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
