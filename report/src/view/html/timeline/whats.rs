//! What spans are: a class, a region and a name, each combination once.

use super::super::Keys;
use crate::model::{Class, ParallelOverhead, Report};
use crate::words;
use ompfuse_format::Construct;
use ompfuse_format::construct::OverheadClass;
use ompfuse_fuse::names::readable;
use ompfuse_fuse::run::timeline::{Doing, Kind, Lane, Span, Timeline};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::HashMap;

/// A class of time.
#[derive(Debug)]
pub(super) struct Named {
    /// The page's name of its colour.
    pub(super) colour: &'static str,
    pub(super) name: &'static str,
}

const fn named(colour: &'static str, name: &'static str) -> Named {
    Named { colour, name }
}

/// In the order that they are stacked in.
pub(super) const CLASSES: [Named; 7] = [
    named("work", "Work"),
    named("serial", "Serial code"),
    named("sync", "Synchronization"),
    named("imbalance", "Imbalance"),
    named("limited", "Limited parallelism"),
    named("manage", "Management"),
    named("idle", "Idle"),
];

/// The class of workers' time outside of all regions: it is not drawn.
pub(super) const IDLE: u8 = 6;

/// A region as the scripts know it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Region {
    /// As in the page's address; `None`: the page has no such region.
    key: Option<String>,
    place: String,
    function: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct What {
    class: u8,
    kind: Kind,
    construct: Construct,
    site: Option<u32>,
}

/// See the module. Numbers are handed out as combinations are met.
#[derive(Clone)]
pub(super) struct Whats<'t> {
    timeline: &'t Timeline<'t>,
    keys: &'t Keys,
    list: Vec<(What, u64)>,
    index: FxHashMap<What, u16>,
    /// By site of a parallel region: the class of its sources of overhead.
    overheads: HashMap<u32, &'t ParallelOverhead>,
    /// Sites by their time, the longest first.
    order: Vec<u32>,
}

impl<'t> Whats<'t> {
    pub(super) fn new(timeline: &'t Timeline<'t>, report: &'t Report, keys: &'t Keys) -> Self {
        let by_id: HashMap<u32, &ParallelOverhead> =
            report.overheads.iter().map(|o| (o.region, o)).collect();
        let known = report.regions.iter().filter_map(|region| {
            let module = region.module.as_deref().unwrap_or_default();
            Some(((module, region.name.as_str()), *by_id.get(&region.id)?))
        });
        let known: HashMap<(&str, &str), &ParallelOverhead> = known.collect();
        let sites = (0..).zip(timeline.sites());
        let overheads = sites.filter_map(|(at, site)| Some((at, *known.get(&site.key())?)));
        Whats {
            timeline,
            keys,
            list: vec![],
            index: FxHashMap::default(),
            overheads: overheads.collect(),
            order: vec![],
        }
    }

    /// The number of what a span is.
    pub(super) fn of(&mut self, lane: &Lane, span: &Span<'_>) -> u16 {
        self.number(What {
            class: self.class(lane, span),
            kind: span.kind,
            construct: span.construct,
            site: span.site,
        })
    }

    /// Adds what was met elsewhere, in its order.
    pub(super) fn absorb(&mut self, met: Whats<'_>) {
        for (what, ns) in met.list {
            let number = self.number(what);
            self.took(number, ns);
        }
    }

    fn number(&mut self, what: What) -> u16 {
        let list = &mut self.list;
        *self.index.entry(what).or_insert_with(|| {
            list.push((what, 0));
            // More than 65,536 combinations of site and kind are beyond what a page can tell apart.
            u16::try_from(list.len() - 1).unwrap_or(u16::MAX)
        })
    }

    pub(super) fn class_of(&self, what: u16) -> u8 {
        self.list[what as usize].0.class
    }

    /// So much of its time was met.
    pub(super) fn took(&mut self, what: u16, ns: u64) {
        self.list[what as usize].1 += ns;
    }

    fn class(&self, lane: &Lane, span: &Span<'_>) -> u8 {
        match span.doing(lane.is_root) {
            Doing::Work => 0,
            Doing::Serial => 1,
            Doing::Idle => IDLE,
            Doing::Lost(class) => match self.judged(lane, span).unwrap_or(class) {
                Class::Synchronization => 2,
                Class::Imbalance => 3,
                Class::LimitedParallelism => 4,
                Class::Management => 5,
            },
        }
    }

    /// The class that the report has found for waits like this one: that of most of their time.
    fn judged(&self, lane: &Lane, span: &Span<'_>) -> Option<OverheadClass> {
        let (region, names): (u32, &[&str]) = match (span.kind, span.construct) {
            (Kind::End, _) => (span.site?, &["region-end"]),
            (Kind::Interval, Construct::Barrier) => (
                self.timeline.region_of(lane, span)?,
                &["barrier", "master-end"],
            ),
            (Kind::Interval, Construct::ImplicitBarrier) => {
                let site = self.timeline.sites().get(span.site? as usize)?;
                let name: &[&str] = match site.construct? {
                    Construct::Single => &["single-end"],
                    Construct::Sections => &["sections-end"],
                    _ => return None,
                };
                (self.timeline.region_of(lane, span)?, name)
            }
            _ => return None,
        };
        let parts = self.overheads.get(&region)?.parts.iter();
        let parts = parts.filter(|part| names.contains(&part.what.as_str()));
        let most = parts.max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
        Some(most.class)
    }

    /// Orders regions by their time.
    pub(super) fn arrange(&mut self) {
        let mut sums: HashMap<u32, u64> = HashMap::new();
        for (what, ns) in &self.list {
            if let Some(site) = what.site {
                *sums.entry(site).or_default() += ns;
            }
        }
        let mut order: Vec<(u64, u32)> = sums.into_iter().map(|(site, ns)| (ns, site)).collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        self.order = order.into_iter().map(|(_, site)| site).collect();
    }

    /// The regions, and what spans are: class, region, name.
    pub(super) fn finish(self) -> (Vec<Region>, Vec<(u8, i32, String)>) {
        let number: HashMap<u32, i32> = (self.order.iter().copied()).zip(0..).collect();
        let region = |&site: &u32| {
            let site = &self.timeline.sites()[site as usize];
            let (module, name) = site.key();
            let function = site.function.as_deref();
            Region {
                key: self.keys.of_site(module, name).map(str::to_owned),
                place: words::place(site.source.as_ref(), function, &site.name),
                function: function.map(|f| readable(f).into_owned()),
            }
        };
        let regions = self.order.iter().map(region).collect();
        let what = |(what, _): &(What, u64)| {
            let region = what.site.and_then(|site| number.get(&site).copied());
            (what.class, region.unwrap_or(-1), name(what))
        };
        (regions, self.list.iter().map(what).collect())
    }
}

fn name(what: &What) -> String {
    let construct = what.construct.name().replace('-', " ");
    match (what.kind, what.construct) {
        (Kind::Interval, Construct::Program) => "program".to_owned(),
        (Kind::Interval, Construct::ImplicitTask | Construct::Team) => "thread's part".to_owned(),
        (Kind::Interval, Construct::Dispatch) => "fetching ranges".to_owned(),
        (Kind::Interval, Construct::TaskCreate) => "creating a task".to_owned(),
        (Kind::Interval, _) => construct,
        (Kind::Enter, _) => format!("{construct}, entering"),
        (Kind::Exit, _) => format!("{construct}, leaving"),
        (Kind::Startup, _) => format!("{construct}, starting"),
        (Kind::End, _) => format!("{construct}, waiting at its end"),
        (Kind::Shutdown, _) => format!("{construct}, ending"),
    }
}
