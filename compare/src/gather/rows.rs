//! The rows of a comparison: constructs of the source, without what a compiler adds.
//!
//! A combined construct has one call in gcc's code and two in clang's, so each place is taken apart by kind. Where and by which call
//! threads wait is the compiler's choice, so the time of waits belongs to the parallel region, by class. Barriers and `taskwait` of the
//! source have rows all the same, with nothing but how often threads come to them.

use super::kinds::{kind, wait};
use super::sums::{Sums, Workers, add_counts};
use super::{CLASSES, MeasuredRegion, Quantity, file_name};
use crate::functions::FunctionSamples;
use ompfuse_account::Report;
use ompfuse_account::from_summary::region_ids;
use ompfuse_account::from_summary::sampled::of_sites;
use ompfuse_account::model::key::{Caller, RegionKey};
use ompfuse_format::construct::Charge;
use ompfuse_format::site::{HexAddress, SHARED_CODE};
use ompfuse_format::{Construct, Detail};
use ompfuse_fuse::Site;
use ompfuse_fuse::names::{origin, readable};
use ompfuse_fuse::summary::{ModuleSummary, RegionStat, Summary};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Sums of one construct, at one place or at several that are copies of one another.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) key: Option<RegionKey>,
    /// Positions in [`Summary::sites`].
    pub(super) sites: Vec<u32>,
    /// Site of the parallel region around it.
    parent: Option<u32>,
    pub(super) places: Option<u64>,
    /// Work by thread.
    threads: BTreeMap<u32, u64>,
    pub(super) team: BTreeSet<u32>,
    pub(super) sums: Sums,
    /// What is known of single units.
    pub(super) of_units: BTreeMap<Quantity, f64>,
    pub(super) quantiles: Vec<f32>,
}

/// Rows by what they have in common, in the order of their first sites.
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    /// The row of a site's construct.
    at: HashMap<(u32, Construct), usize>,
    pub(super) events: Vec<String>,
}

impl Rows {
    /// The row of a construct at a site.
    pub(super) fn at(&self, site: u32, kind: Construct) -> Option<usize> {
        self.at.get(&(site, kind)).copied()
    }
}

/// All that is told of places by kind, copies of one line together.
pub(super) fn rows(summary: &Summary, report: &Report) -> Rows {
    let mut rows = Rows {
        rows: vec![],
        at: HashMap::new(),
        events: (summary.events.iter()).map(|e| e.name.clone()).collect(),
    };
    let mut known: HashMap<(RegionKey, Option<String>), usize> = HashMap::new();
    for stat in &summary.regions {
        let (Some(site), Some(construct)) = (stat.site, stat.construct) else {
            continue;
        };
        let at = &summary.sites[site as usize];
        let Some(kind) = kind(construct, at.construct).or_else(|| wait(construct)) else {
            continue;
        };
        let row = *rows.at.entry((site, kind)).or_insert_with(|| {
            let is_it = |m: &&ModuleSummary| m.build_id.as_ref().unwrap_or(&m.path) == &at.module;
            let module = summary.modules.iter().find(is_it);
            let (mut key, instance) = key(at, module.map(|m| &*m.path), kind);
            let is_known = key.line.is_some();
            let address = std::mem::take(&mut key.addresses);
            let at = rows.rows.len();
            // Without a line each place stays for itself.
            let row = match is_known {
                true => *known.entry((key.clone(), instance)).or_insert(at),
                false => at,
            };
            if row == at {
                rows.rows.push(Row {
                    key: Some(key),
                    ..Row::default()
                });
            }
            let row_of = &mut rows.rows[row];
            row_of.sites.push(site);
            if let Some(key) = &mut row_of.key {
                key.addresses.extend(address);
            }
            row
        });
        rows.rows[row].add(stat, construct, kind, summary);
    }
    waits(&mut rows, summary);
    workers(&mut rows, summary);
    overheads(&mut rows, summary, report);
    for left_out in &summary.left_out {
        let at = summary.sites.get(left_out.site as usize);
        let kind = kind(left_out.construct, at.and_then(|s| s.construct));
        let kind = kind.or_else(|| wait(left_out.construct));
        if let Some(row) = kind.and_then(|k| rows.at(left_out.site, k)) {
            rows.rows[row].sums.in_part = true;
        }
    }
    for row in &mut rows.rows {
        if let Some(key) = &mut row.key {
            key.addresses.sort_unstable();
            key.addresses.dedup();
        }
        row.sites.sort_unstable();
        let is_in = |site: u32| row.sites.binary_search(&site).is_ok();
        let sampled = summary.sampled.as_ref();
        row.sums.uncounted = sampled.and_then(|s| of_sites(s, is_in));
        row.sums.functions = sampled.and_then(|s| FunctionSamples::of(s, is_in));
    }
    rows
}

/// The identity of a construct at a site, and which instance of a template it is. `module`: the path of the site's module, if known.
pub(super) fn key(at: &Site, module: Option<&str>, kind: Construct) -> (RegionKey, Option<String>) {
    let name = at.function.as_deref().map(readable);
    // What Intel's compiler outlines has the whole name inside its own.
    let function = name.as_deref().map(|n| readable(origin(n)).into_owned());
    let is_user = kind == Construct::UserRegion;
    let detail = at.detail.as_deref().unwrap_or_default();
    let key = RegionKey {
        module: module.map_or(String::new(), |path| file_name(path).to_owned()),
        build: at.module.clone(),
        addresses: at.address.into_iter().collect::<Vec<HexAddress>>(),
        construct: kind,
        function: function.clone().filter(|f| is_name(f)),
        file: at.source.as_ref().map(|s| s.file.clone()),
        line: at.source.as_ref().map(|s| s.line),
        name: match kind {
            _ if is_user => Some(at.name.clone()),
            Construct::Critical if !detail.is_empty() => Some(detail.to_owned()),
            _ => None,
        },
        schedule: (kind.is_loop())
            .then(|| Detail(detail).schedule().map(str::to_owned))
            .flatten(),
        callers: vec![],
        is_part: false,
    };
    (key, function)
}

/// Whether that is a function's name, and not what a compiler calls all of its outlined functions.
fn is_name(function: &str) -> bool {
    !function.is_empty() && !function.starts_with(".omp_outlined") && !function.starts_with("0x")
}

impl Row {
    /// The part of it that these callers led to, with nothing in it yet.
    pub(super) fn part(&self, callers: &[Caller]) -> Row {
        let key = self.key.clone().map(|key| RegionKey {
            callers: callers.to_vec(),
            is_part: true,
            ..key
        });
        Row {
            key,
            sums: Sums {
                in_part: self.sums.in_part,
                ..Sums::default()
            },
            ..Row::default()
        }
    }

    pub(super) fn add(
        &mut self,
        stat: &RegionStat,
        construct: Construct,
        kind: Construct,
        summary: &Summary,
    ) {
        if wait(kind).is_some() {
            self.sums.executions += stat.instances;
            self.parent = self.parent.or(stat.parallel);
            return;
        }
        let columns = &stat.threads;
        for (row, &thread) in columns.thread.iter().enumerate() {
            let split = construct.split(columns.own_ns[row], columns.extent[row]);
            self.sums.work_ns += split.work;
            *self.threads.entry(thread).or_default() += split.work;
        }
        self.team.extend(&columns.thread);
        self.sums.own_ns += stat.own_ns();
        if construct.is_fork() {
            self.sums.wall_ns += stat.wall_ns();
        }
        let is_own = construct == kind;
        if is_own {
            self.sums.executions += stat.instances;
        }
        if construct.is_xu() {
            self.sums.units += stat.count();
            self.sums.units_ns += stat.own_ns();
            self.sums.max_ns = self
                .sums
                .max_ns
                .max(columns.max_ns.iter().copied().max().unwrap_or(0));
        }
        if construct == Construct::Range {
            self.sums.iterations += stat.extent();
        }
        if self.parent.is_none() && (is_own || !construct.is_fork()) {
            self.parent = stat
                .parallel
                .filter(|p| stat.site != Some(*p) || kind != Construct::Parallel);
        }
        let at = stat.site.map(|s| &summary.sites[s as usize]);
        if at.is_some_and(|s| s.detail.as_ref().is_some_and(|d| Detail(d).is_shared())) {
            self.sums.doubt = Some(SHARED_CODE.to_owned());
        }
        if construct.charges_to() == Charge::Work {
            add_counts(&mut self.sums.counts, &stat.counts);
        }
        if construct.is_xu() {
            add_counts(&mut self.sums.unit_counts, &stat.counts);
        }
    }
}

/// Adds the waits and services in a parallel region to its time.
fn waits(rows: &mut Rows, summary: &Summary) {
    for stat in &summary.regions {
        let Some(construct) = stat.construct else {
            continue;
        };
        let at = stat.site.and_then(|s| summary.sites[s as usize].construct);
        if kind(construct, at).is_some() {
            continue;
        }
        let row = stat.parallel.and_then(|p| {
            let of = |kind| rows.at(p, kind);
            of(Construct::Parallel).or_else(|| of(Construct::Teams))
        });
        if let Some(row) = row {
            rows.rows[row].sums.own_ns += stat.own_ns();
            if construct.is_barrier() {
                rows.rows[row].sums.barriers += stat.instances;
            }
        }
    }
}

/// Adds what workers wait between fork and join.
fn workers(rows: &mut Rows, summary: &Summary) {
    for stat in &summary.parallel {
        let row = stat.site.and_then(|s| rows.at(s, Construct::Parallel));
        if let Some(row) = row {
            rows.rows[row].sums.own_ns += stat.workers.ns.iter().sum::<u64>();
            rows.rows[row].team.extend(&stat.workers.thread);
        }
    }
}

/// Adds the classes of overhead of parallel regions.
fn overheads(rows: &mut Rows, summary: &Summary, report: &Report) {
    let ids = region_ids(summary);
    let sites: HashMap<u32, u32> = ids.into_iter().zip(0..).collect();
    for overhead in &report.overheads {
        let site = sites.get(&overhead.region);
        let Some(row) = site.and_then(|&s| rows.at(s, Construct::Parallel)) else {
            continue;
        };
        let (total_s, work_s) = &mut rows.rows[row].sums.team_s;
        let before = if *total_s > 0.0 { *work_s } else { Some(0.0) };
        *work_s = before.zip(overhead.work_s).map(|(a, b)| a + b);
        *total_s += overhead.total_s;
        for (class, quantity) in CLASSES {
            // A region without a construct of a class loses nothing to it. Unknown it is not: what has no probe is listed.
            let seconds = overhead.overhead.get(class).unwrap_or(0.0);
            *rows.rows[row].sums.classes.entry(quantity).or_default() += seconds;
        }
    }
}

/// The rows as values, each with its parent's position.
pub(super) fn finished(rows: Rows) -> Vec<MeasuredRegion> {
    let events = rows.events.clone();
    let all = summed(rows).into_iter();
    all.map(|(row, parent)| row.finished(&events, parent))
        .collect()
}

/// The rows with their sums by thread, each with its parent's position.
pub(super) fn summed(mut rows: Rows) -> Vec<(Row, Option<usize>)> {
    let parents: Vec<Option<usize>> = (rows.rows.iter().enumerate())
        .map(|(at, row)| {
            let of = |kind| row.parent.and_then(|p| rows.at(p, kind));
            let parent = of(Construct::Parallel).or_else(|| of(Construct::Teams));
            parent.filter(|&p| p != at)
        })
        .collect();
    let teams: Vec<BTreeSet<u32>> = rows.rows.iter().map(|r| r.team.clone()).collect();
    let whole = with_inside(&rows.rows, &parents);
    for ((row, parent), whole) in rows.rows.iter_mut().zip(&parents).zip(&whole) {
        row.sum_threads(parent.map(|p| &teams[p]), whole);
    }
    rows.rows.into_iter().zip(parents).collect()
}

impl Row {
    /// Sums up its threads, with those that the region around it had. `whole`: work by thread with all that is inside.
    pub(super) fn sum_threads(
        &mut self,
        around: Option<&BTreeSet<u32>>,
        whole: &BTreeMap<u32, u64>,
    ) {
        let team = around.into_iter().flatten().chain(&self.team);
        let all: BTreeSet<u32> = team.copied().collect();
        let of = |threads: &BTreeMap<u32, u64>| -> Workers {
            let work = |t| threads.get(t).copied().unwrap_or(0);
            all.iter().map(work).collect()
        };
        self.sums.own = of(&self.threads);
        self.sums.whole = of(whole);
    }

    /// As a value, once its threads are summed up.
    pub(super) fn finished(self, events: &[String], parent: Option<usize>) -> MeasuredRegion {
        let key = self
            .key
            .unwrap_or_else(|| unreachable!("every row has one"));
        let mut region = self.sums.finished(key, events, parent);
        region.places = self.places;
        region.values.extend(self.of_units);
        region.quantiles = self.quantiles;
        region
    }
}

/// Work by thread in each row and in all that is inside of it.
pub(super) fn with_inside(rows: &[Row], parents: &[Option<usize>]) -> Vec<BTreeMap<u32, u64>> {
    let mut whole: Vec<BTreeMap<u32, u64>> = rows.iter().map(|r| r.threads.clone()).collect();
    for (at, row) in rows.iter().enumerate() {
        let mut around = BTreeSet::from([at]);
        let mut next = parents[at];
        while let Some(parent) = next.filter(|&p| around.insert(p)) {
            for (&thread, &work) in &row.threads {
                *whole[parent].entry(thread).or_default() += work;
            }
            next = parents[parent];
        }
    }
    whole
}
