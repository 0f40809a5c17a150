//! A job's ranks as one side: what each of them leaves, and the sum.

use super::rows::{self, key};
use super::sums::Sums;
use super::{Measured, MeasuredRegion, finished, interfaces, origin};
use crate::side::{Interface, Origin, Unseen, hash};
use ompfuse_account::Report;
use ompfuse_account::from_summary::region_ids;
use ompfuse_account::model::key::RegionKey;
use ompfuse_account::model::{ModuleInfo, Region};
use ompfuse_format::Construct;
use ompfuse_fuse::Site;
use ompfuse_fuse::summary::Summary;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What a rank leaves for comparisons. Its regions are those of its report, by `id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankRows {
    origin: Origin,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    interfaces: BTreeMap<String, Interface>,
    /// Names of the counted events, as `counts` of rows have them.
    events: Vec<String>,
    rows: Vec<RankRow>,
    /// There was no room for some rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RankRow {
    kind: Construct,
    /// The `id`s of its places in the rank's report.
    regions: Vec<u32>,
    /// Position of the parallel region around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<usize>,
    #[serde(flatten)]
    sums: Sums,
}

impl RankRows {
    /// Of a rank's run. `report`: the report of `summary`.
    pub fn new(summary: &Summary, report: &Report) -> RankRows {
        let found = rows::rows(summary, report);
        let events = found.events.clone();
        let ids = region_ids(summary);
        let row = |(row, parent): (rows::Row, Option<usize>)| RankRow {
            kind: row.key.as_ref().map_or(Construct::Program, |k| k.construct),
            regions: row.sites.iter().map(|&site| ids[site as usize]).collect(),
            parent,
            sums: row.sums,
        };
        RankRows {
            origin: origin("", summary, report),
            interfaces: interfaces(summary),
            events,
            rows: rows::summed(found).into_iter().map(row).collect(),
            is_cut: false,
        }
    }

    /// With rows of these regions only.
    pub(crate) fn cut(&self, kept: &[Region]) -> RankRows {
        let kept: HashSet<u32> = kept.iter().map(|r| r.id).collect();
        let mut place = vec![None; self.rows.len()];
        let mut rows = vec![];
        for (at, row) in self.rows.iter().enumerate() {
            if row.regions.iter().all(|id| kept.contains(id)) {
                place[at] = Some(rows.len());
                rows.push(row.clone());
            }
        }
        for row in &mut rows {
            row.parent = row.parent.and_then(|parent| place[parent]);
        }
        RankRows {
            is_cut: self.is_cut || rows.len() < self.rows.len(),
            rows,
            ..self.clone()
        }
    }
}

/// What tells a row apart in all ranks: its key without the addresses, if a line does, and the instance of a template.
type Place = (RegionKey, Option<String>);

/// A row of several ranks.
#[derive(Debug)]
struct Row {
    key: RegionKey,
    parent: Option<Place>,
    sums: Sums,
    /// The ranks that have it, of those whose summaries lack rows.
    of_cut: u32,
}

/// Ranks of a job, added up.
#[derive(Debug, Default)]
pub struct Ranks {
    origin: Option<Origin>,
    interfaces: BTreeMap<String, Interface>,
    events: Vec<String>,
    rows: HashMap<Place, Row>,
    hosts: BTreeSet<String>,
    /// Ranks whose summaries lack rows.
    cut: u32,
    damage: Vec<String>,
}

/// Damages that are told one by one.
const MOST_DAMAGES: usize = 20;

impl Ranks {
    /// Adds a rank's rows. `name`: what it is called. `report`: its own.
    pub fn add(&mut self, name: &str, rank: RankRows, report: &Report) {
        for damage in &rank.origin.damage {
            self.add_damage(format!("{name}: {damage}"));
        }
        self.hosts.insert(rank.origin.host.clone());
        self.interfaces.extend(rank.interfaces);
        self.cut += u32::from(rank.is_cut);
        // What is not known of one rank is not known of all.
        if self.origin.is_none() {
            self.events.clone_from(&rank.events);
        }
        let places: HashMap<u32, &Region> = report.regions.iter().map(|r| (r.id, r)).collect();
        let keys: Vec<Option<(Place, RegionKey)>> = (rank.rows.iter())
            .map(|row| whole_key(row, &places, &report.modules))
            .collect();
        for (row, found) in rank.rows.iter().zip(&keys) {
            let Some((place, key)) = found else { continue };
            let mut sums = row.sums.clone();
            for counts in [&mut sums.counts, &mut sums.unit_counts] {
                *counts = arranged(counts, &rank.events, &self.events);
            }
            let parent = row.parent.and_then(|at| keys.get(at)?.as_ref());
            let parent = parent.map(|(place, _)| place.clone());
            match self.rows.get_mut(place) {
                Some(known) => {
                    known.sums.add(&sums);
                    known.key.addresses.extend(&key.addresses);
                    known.key.addresses.sort_unstable();
                    known.key.addresses.dedup();
                    known.parent = known.parent.take().or(parent);
                    known.of_cut += u32::from(rank.is_cut);
                }
                None => {
                    let new = Row {
                        key: key.clone(),
                        parent,
                        sums,
                        of_cut: u32::from(rank.is_cut),
                    };
                    self.rows.insert(place.clone(), new);
                }
            }
        }
        match &mut self.origin {
            Some(all) => add(all, rank.origin),
            None => self.origin = Some(rank.origin),
        }
    }

    /// Notes what is missing or can't be read.
    pub fn add_damage(&mut self, damage: String) {
        self.damage.push(damage);
    }

    /// Regions that are not compared: the summary of some rank had no room for them.
    pub fn left_out(&self) -> usize {
        let rows = self.rows.values();
        rows.filter(|row| row.of_cut != self.cut).count()
    }

    /// What is compared of the job; `None`: it has no rank. `name`: what the user calls it. `report`: that of the job.
    pub fn finish(self, name: &str, report: &Report) -> Option<Measured> {
        let mut origin = self.origin?;
        name.clone_into(&mut origin.name);
        if self.hosts.len() > 1 {
            let all: Vec<&str> = self.hosts.iter().map(String::as_str).collect();
            origin.host_hash = hash(&all.join("\0"));
            origin.host = format!("{} hosts", all.len());
        }
        origin.probes = report.probes.as_ref().map(|p| p.share);
        let (known, more) = self.damage.split_at(self.damage.len().min(MOST_DAMAGES));
        origin.damage = known.to_vec();
        if !more.is_empty() {
            let more = format!("and of {} more ranks", more.len());
            origin.damage.push(more);
        }
        // The sum of a row that a rank had no room for would be too small.
        let all = self.rows.len();
        let is_whole = |row: &Row| row.of_cut == self.cut;
        let mut rows: Vec<(Place, Row)> = self.rows.into_iter().collect();
        rows.retain(|(_, row)| is_whole(row));
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        origin.left_out = (all - rows.len()) as u64;
        origin.in_part |= self.cut > 0;
        let position: HashMap<&Place, usize> =
            rows.iter().map(|(place, _)| place).zip(0..).collect();
        let parents: Vec<Option<usize>> = (rows.iter())
            .map(|(_, row)| position.get(row.parent.as_ref()?).copied())
            .collect();
        let is_known: Vec<bool> = (self.events.iter())
            .map(|event| origin.events.contains_key(event))
            .collect();
        let regions: Vec<MeasuredRegion> = (rows.into_iter().zip(parents))
            .map(|((_, row), parent)| {
                let sums = row.sums.of_known(&is_known);
                sums.finished(row.key, &self.events, parent)
            })
            .collect();
        let is_whole = self.cut == 0;
        Some(finished(
            origin,
            self.interfaces,
            report,
            regions,
            vec![],
            is_whole,
        ))
    }
}

/// The key of a row, from the regions of its rank's report.
fn whole_key(
    row: &RankRow,
    places: &HashMap<u32, &Region>,
    modules: &[ModuleInfo],
) -> Option<(Place, RegionKey)> {
    let regions: Vec<&Region> = row
        .regions
        .iter()
        .filter_map(|id| places.get(id).copied())
        .collect();
    let first = regions.first()?;
    let site = Site {
        name: first.name.clone(),
        module: first.module.clone().unwrap_or_default(),
        id: None,
        address: first.address,
        construct: first.construct,
        function: first.function.clone(),
        source: first.source.clone(),
        detail: first.detail.clone(),
    };
    let is_it = |m: &&ModuleInfo| m.build_id.as_ref().unwrap_or(&m.path) == &site.module;
    let module = modules.iter().find(is_it).map(|m| &*m.path);
    let (mut whole, instance) = key(&site, module, row.kind);
    let mut place = whole.clone();
    if whole.line.is_some() {
        place.addresses.clear();
    }
    whole.addresses = regions.iter().filter_map(|r| r.address).collect();
    whole.addresses.sort_unstable();
    whole.addresses.dedup();
    Some(((place, instance), whole))
}

/// Counts of some events in the order of others.
fn arranged(counts: &[Option<u64>], from: &[String], to: &[String]) -> Vec<Option<u64>> {
    let count = |event| counts.get(from.iter().position(|e| e == event)?).copied();
    to.iter().map(|event| count(event).flatten()).collect()
}

/// Adds where another rank's numbers come from.
fn add(all: &mut Origin, rank: Origin) {
    let Origin {
        // Of the job, or the same of all.
        name: _,
        program: _,
        args: _,
        args_hash: _,
        host_hash: _,
        host: _,
        runs: _,
        machine: _,
        commit: _,
        // Taken from elsewhere.
        probes: _,
        damage: _,
        left_out: _,
        threads,
        team,
        processors,
        events,
        simulated,
        is_steady: _, // ranks wait for each other
        in_part,
        starved,
        modules,
        unseen,
        started,
        pace,
    } = rank;
    let most = |a: Option<f64>, b: Option<f64>| if b > a { b } else { a };
    all.threads += threads;
    all.is_steady = false;
    all.team = all.team.max(team);
    // How many of these are the same is not known.
    all.processors = all.processors.filter(|_| all.processors == processors);
    all.events.retain(|event, _| events.contains_key(event));
    all.simulated |= simulated;
    all.pace = all.pace.zip(pace).map(|(a, b)| a.with(b));
    all.in_part |= in_part;
    all.starved = most(all.starved, starved);
    all.modules.extend(modules);
    for Unseen { module, lost } in unseen {
        match all.unseen.iter_mut().find(|u| u.module == module) {
            Some(known) => known.lost = known.lost.max(lost),
            None => all.unseen.push(Unseen { module, lost }),
        }
    }
    all.unseen.sort_by(|a, b| a.module.cmp(&b.module));
    all.started = match (all.started, started) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    };
}
