//! A summary takes over another one's.

use crate::run::RegionParts;
use crate::summary::{EventOrigin, ModuleSummary, RegionStat, Summary};
use crate::table::Site;
use ompfuse_format::Construct;
use std::collections::{HashMap, HashSet};

/// What identifies a region's sums in every run.
type StatKey = (
    Option<(String, String)>,
    Option<Construct>,
    Option<(String, String)>,
);

fn stat_key(sites: &[Site], stat: &RegionStat) -> StatKey {
    let key = |site: Option<u32>| {
        let (module, name) = sites.get(site? as usize)?.key();
        Some((module.to_owned(), name.to_owned()))
    };
    (key(stat.site), stat.construct, key(stat.parallel))
}

impl Summary {
    /// Takes over what another input's summary has beyond this one: events and their totals per region, and its runs,
    /// which get numbers from `base`.
    pub(crate) fn absorb(&mut self, other: Summary, base: u16) {
        self.absorb_region_parts(&other, base);
        for module in &other.modules {
            let name = |m: &ModuleSummary| m.build_id.clone().unwrap_or_else(|| m.path.clone());
            let known = |m: &ModuleSummary| name(m) == name(module);
            if !self.modules.iter().any(known) {
                self.modules.push(module.clone());
            }
        }
        let mut new_events = vec![];
        for (at, event) in other.events.iter().enumerate() {
            let run = event.run.map(|run| run + base);
            match self.events.iter_mut().find(|e| e.name == event.name) {
                Some(known) if known.run.is_none() && run.is_some() => {
                    known.run = run;
                    new_events.push(at);
                }
                Some(_) => {}
                None => {
                    self.events.push(EventOrigin {
                        run,
                        ..event.clone()
                    });
                    new_events.push(at);
                }
            }
        }
        for stat in &mut self.regions {
            stat.counts.resize(self.events.len(), None);
        }
        let theirs: HashMap<StatKey, &RegionStat> = other
            .regions
            .iter()
            .map(|stat| (stat_key(&other.sites, stat), stat))
            .collect();
        let executed: HashSet<_> = theirs.keys().map(|(site, ..)| site.clone()).collect();
        for stat in &mut self.regions {
            let key = stat_key(&self.sites, stat);
            let their = theirs.get(&key);
            // Where the region was executed without an interval of this kind, there is nothing that the kind would have added.
            if their.is_none() && !executed.contains(&key.0) {
                continue;
            }
            for &at in &new_events {
                let name = &other.events[at].name;
                let column = self
                    .events
                    .iter()
                    .position(|e| e.name == *name)
                    .expect("entered above");
                stat.counts[column] = match their {
                    Some(their) => their.counts.get(at).copied().flatten(),
                    None => other.events[at].run.map(|_| 0),
                };
            }
        }
        let place = |event: &str| self.events.iter().position(|e| e.name == event);
        let new = new_events.iter();
        let new: Vec<(usize, usize)> = new
            .filter_map(|&at| Some((at, place(&other.events[at].name)?)))
            .collect();
        self.absorb_paths(&other, &new);
        self.runs.extend(other.runs);
    }

    /// The same of events that were counted per region and thread: their counts belong to the same thread of the same region.
    fn absorb_region_parts(&mut self, other: &Summary, base: u16) {
        let mut new_events = vec![];
        for (at, event) in other.region_events.iter().enumerate() {
            let run = event.run.map(|run| run + base);
            let known = self.region_events.iter().position(|e| e.name == event.name);
            match known.map(|column| (column, &mut self.region_events[column])) {
                Some((column, known)) if known.run.is_none() && run.is_some() => {
                    known.run = run;
                    new_events.push((at, column));
                }
                Some(_) => {}
                None => {
                    new_events.push((at, self.region_events.len()));
                    self.region_events.push(EventOrigin {
                        run,
                        ..event.clone()
                    });
                }
            }
        }
        let len = self.region_events.len();
        for parts in &mut self.region_parts {
            parts.counts.resize(len, None);
            parts.covered.resize(len, 0);
        }
        if new_events.is_empty() {
            return;
        }
        let mut theirs: HashMap<_, Option<&RegionParts>> = HashMap::new();
        for parts in &other.region_parts {
            // Of processes that can't be told apart nothing is known.
            let place = theirs.entry(other.parts_key(parts));
            place.and_modify(|p| *p = None).or_insert(Some(parts));
        }
        let keys: Vec<_> = (self.region_parts.iter())
            .map(|parts| self.parts_key(parts))
            .collect();
        for (parts, key) in self.region_parts.iter_mut().zip(keys) {
            let Some(Some(their)) = theirs.get(&key) else {
                continue;
            };
            for &(from, to) in &new_events {
                parts.counts[to] = their.counts.get(from).copied().flatten();
                parts.covered[to] = their.covered.get(from).copied().unwrap_or(0);
            }
        }
    }

    /// What identifies a region's thread in every run.
    fn parts_key(&self, parts: &RegionParts) -> (Option<(String, String)>, Option<u32>, u32) {
        let site = self.sites.get(parts.site as usize).map(Site::key);
        let site = site.map(|(module, name)| (module.to_owned(), name.to_owned()));
        let process = self.processes.get(usize::from(parts.process));
        (site, process.map(|p| p.ordinal), parts.member)
    }
}
