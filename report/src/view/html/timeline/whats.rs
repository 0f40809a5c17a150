//! What spans are: a class, a region and a name, each combination once.

use super::super::Keys;
use crate::words;
use ompfuse_account::model::{Class, ParallelOverhead, Report};
use ompfuse_format::Construct;
use ompfuse_format::construct::OverheadClass;
use ompfuse_fuse::names::readable;
use ompfuse_fuse::run::timeline::{Doing, Kind, Lane, Span, Timeline};
use ompfuse_fuse::table::Site;
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

/// What a span is, before a report is at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct What {
    doing: Doing,
    kind: Kind,
    construct: Construct,
    site: Option<u32>,
    /// The parallel region that judges of a wait.
    region: Option<u32>,
}

/// Each combination once, and its time. Numbers are handed out as combinations are met.
#[derive(Debug, Default)]
pub(super) struct Whats {
    list: Vec<(What, u64)>,
    index: FxHashMap<What, u16>,
    last: Option<(What, u16)>,
}

/// A report of what was drawn, and how its page names regions.
pub(super) struct Told<'r> {
    pub(super) report: &'r Report,
    pub(super) keys: &'r Keys,
    pub(super) sites: &'r [Site],
}

impl Whats {
    /// The number of what a span is.
    pub(super) fn of(&mut self, timeline: &Timeline<'_>, lane: &Lane, span: &Span<'_>) -> u16 {
        let doing = span.doing(lane.is_root);
        let is_lost = matches!(doing, Doing::Lost(_));
        let region = match (span.kind, span.construct) {
            (Kind::End, _) => span.site,
            (Kind::Interval, c) if is_lost && c.is_barrier() => timeline.region_of(lane, span),
            _ => None,
        };
        let what = What {
            doing,
            kind: span.kind,
            construct: span.construct,
            site: span.site,
            region,
        };
        match self.last {
            Some((last, number)) if last == what => number,
            _ => {
                let number = self.number(what);
                self.last = Some((what, number));
                number
            }
        }
    }

    /// Adds what was met elsewhere. Gives the numbers that it has here.
    pub(super) fn absorb(&mut self, met: &Whats) -> Vec<u16> {
        let add = |&(what, ns): &(What, u64)| {
            let number = self.number(what);
            self.took(number, ns);
            number
        };
        met.list.iter().map(add).collect()
    }

    fn number(&mut self, what: What) -> u16 {
        let list = &mut self.list;
        *self.index.entry(what).or_insert_with(|| {
            list.push((what, 0));
            // More than 65,536 combinations of site and kind are beyond what a page can tell apart.
            u16::try_from(list.len() - 1).unwrap_or(u16::MAX)
        })
    }

    /// So much of its time was met.
    pub(super) fn took(&mut self, what: u16, ns: u64) {
        self.list[what as usize].1 += ns;
    }

    /// Nanoseconds of each.
    pub(super) fn times(&self) -> impl Iterator<Item = u64> {
        self.list.iter().map(|(_, ns)| *ns)
    }

    /// Whether it is time that is not drawn.
    pub(super) fn is_idle(&self, what: u16) -> bool {
        self.list[what as usize].0.doing == Doing::Idle
    }

    /// The class of each.
    pub(super) fn classes(&self, told: &Told<'_>) -> Vec<u8> {
        let judge = Judge::new(told);
        let class = |(what, _): &(What, u64)| match what.doing {
            Doing::Work => 0,
            Doing::Serial => 1,
            Doing::Idle => IDLE,
            Doing::Lost(class) => match judge.class(what, told.sites).unwrap_or(class) {
                Class::Synchronization => 2,
                Class::Imbalance => 3,
                Class::LimitedParallelism => 4,
                Class::Management => 5,
            },
        };
        self.list.iter().map(class).collect()
    }

    /// Sites by their time, the longest first.
    fn order(&self) -> Vec<u32> {
        let mut sums: HashMap<u32, u64> = HashMap::new();
        for (what, ns) in &self.list {
            if let Some(site) = what.site {
                *sums.entry(site).or_default() += ns;
            }
        }
        let mut order: Vec<(u64, u32)> = sums.into_iter().map(|(site, ns)| (ns, site)).collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        order.into_iter().map(|(_, site)| site).collect()
    }

    /// The regions, and what spans are: class, region, name.
    pub(super) fn finish(
        &self,
        classes: &[u8],
        told: &Told<'_>,
    ) -> (Vec<Region>, Vec<(u8, i32, String)>) {
        let order = self.order();
        let number: HashMap<u32, i32> = (order.iter().copied()).zip(0..).collect();
        let region = |&site: &u32| {
            let site = &told.sites[site as usize];
            let (module, name) = site.key();
            let function = site.function.as_deref();
            Region {
                key: told.keys.of_site(module, name).map(str::to_owned),
                place: words::place(site.source.as_ref(), function, &site.name),
                function: function.map(|f| readable(f).into_owned()),
            }
        };
        let regions = order.iter().map(region).collect();
        let what = |((what, _), &class): (&(What, u64), &u8)| {
            let region = what.site.and_then(|site| number.get(&site).copied());
            (class, region.unwrap_or(-1), name(what))
        };
        (regions, self.list.iter().zip(classes).map(what).collect())
    }
}

/// The classes that the report has found for waits: those of most of their time.
struct Judge<'r> {
    /// By site of a parallel region: the class of its sources of overhead.
    overheads: HashMap<u32, &'r ParallelOverhead>,
}

impl<'r> Judge<'r> {
    fn new(told: &Told<'r>) -> Judge<'r> {
        let report = told.report;
        let by_id: HashMap<u32, &ParallelOverhead> =
            report.overheads.iter().map(|o| (o.region, o)).collect();
        let known = report.regions.iter().filter_map(|region| {
            let module = region.module.as_deref().unwrap_or_default();
            Some(((module, region.name.as_str()), *by_id.get(&region.id)?))
        });
        let known: HashMap<(&str, &str), &ParallelOverhead> = known.collect();
        let sites = (0..).zip(told.sites);
        let overheads = sites.filter_map(|(at, site)| Some((at, *known.get(&site.key())?)));
        Judge {
            overheads: overheads.collect(),
        }
    }

    /// The class of waits like this one.
    fn class(&self, what: &What, sites: &[Site]) -> Option<OverheadClass> {
        let names: &[&str] = match (what.kind, what.construct) {
            (Kind::End, _) => &["region-end"],
            (Kind::Interval, Construct::Barrier) => &["barrier", "master-end"],
            (Kind::Interval, Construct::ImplicitBarrier) => {
                match sites.get(what.site? as usize)?.construct? {
                    Construct::Single => &["single-end"],
                    Construct::Sections => &["sections-end"],
                    _ => return None,
                }
            }
            _ => return None,
        };
        let parts = self.overheads.get(&what.region?)?.parts.iter();
        let parts = parts.filter(|part| names.contains(&part.what.as_str()));
        let most = parts.max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
        Some(most.class)
    }
}

fn name(what: &What) -> String {
    let construct = what.construct.name().replace('-', " ");
    match (what.kind, what.construct) {
        (Kind::Interval, Construct::Program) => "program".to_owned(),
        (Kind::Interval, c) if c.is_part() => "thread's part".to_owned(),
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
