//! A summary takes over another one's.

use crate::run::RegionParts;
use crate::summary::{EventOrigin, Matching, ModuleSummary, RegionStat, Summary};
use crate::table::Site;
use ompfuse_format::Construct;
use ompfuse_format::site::Uncounted;
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
    /// Takes over what another input's summary has beyond this one: events and their totals per region, what it knows of modules, and its
    /// runs, which get numbers from `base`. Times, threads and places are this one's.
    pub(crate) fn absorb(&mut self, other: Summary, base: u16) {
        self.absorb_modules(&other);
        self.absorb_region_parts(&other, base);
        let new_events = self.absorb_events(&other, base);
        self.absorb_counts(&other, &new_events);
        self.absorb_paths(&other, &new_events);
        let Summary {
            // Of the run that times are from.
            program: _,
            args: _,
            host: _,
            cpus: _,
            kernel: _,
            processor: _,
            cache_bytes: _,
            environment: _,
            threads: _,
            duration_s: _,
            parallel_ns: _,
            sites: _,
            parallel: _,
            contexts: _,
            paths_folded: _,
            processes: _,
            accounts: _,
            left_out: _,
            locks: _,
            messages: _,
            meetings: _,
            processors: _,
            limit: _,
            stolen_s: _,
            others_s: _,
            own: _,
            analysis: _,
            sampled: _,
            // Taken over above.
            modules: _,
            events: _,
            regions: _,
            paths: _,
            region_events: _,
            region_parts: _,
            runs,
            matching,
        } = other;
        self.runs.extend(runs);
        if let Some(Matching {
            strategy,
            matched,
            unmatched,
        }) = matching
        {
            let all = self.matching.get_or_insert(Matching {
                strategy,
                matched,
                unmatched: vec![],
            });
            let unmatched = unmatched.into_iter().map(|u| u.of_runs(|run| run + base));
            all.unmatched.extend(unmatched);
        }
    }

    /// What runs know of modules together: of the same one, which functions can't count.
    fn absorb_modules(&mut self, other: &Summary) {
        for module in &other.modules {
            let known = self.modules.iter().position(|m| m.key() == module.key());
            let Some(known) = known else {
                self.modules.push(module.clone());
                continue;
            };
            let ModuleSummary {
                // Of the file.
                path: _,
                build_id: _,
                runtimes: _,
                entries: _,
                // Of the run that times are from.
                patched: _,
                skipped: _,
                coverage: _,
                uncounted,
            } = module;
            for function in uncounted {
                let sites = (function.sites.iter())
                    .filter_map(|&site| self.site_like(other, module.key(), site));
                let mut sites: Vec<u32> = sites.collect();
                sites.sort_unstable();
                let all = &mut self.modules[known].uncounted;
                if all
                    .iter()
                    .all(|u| u.name != function.name || u.address != function.address)
                {
                    all.push(Uncounted {
                        sites,
                        ..function.clone()
                    });
                }
            }
            let all = &mut self.modules[known].uncounted;
            all.sort_by_key(|u| u.address);
        }
    }

    /// The number that the scan of this one's module gave to a place of another one's.
    fn site_like(&self, other: &Summary, module: &str, site: u32) -> Option<u32> {
        let is_it = |s: &&Site| s.module == module && s.id == Some(site);
        let key = other.sites.iter().find(is_it)?.key();
        self.sites.iter().find(|s| s.key() == key)?.id
    }

    /// Takes over events that only the other one counted, and tells their positions in both.
    fn absorb_events(&mut self, other: &Summary, base: u16) -> Vec<(usize, usize)> {
        absorb_events(&mut self.events, &other.events, base)
    }

    fn absorb_counts(&mut self, other: &Summary, new_events: &[(usize, usize)]) {
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
            for &(at, column) in new_events {
                stat.counts[column] = match their {
                    Some(their) => their.counts.get(at).copied().flatten(),
                    None => other.events[at].run.map(|_| 0),
                };
            }
        }
    }

    /// The same of events that were counted per region and thread: their counts belong to the same thread of the same region.
    fn absorb_region_parts(&mut self, other: &Summary, base: u16) {
        let new_events = absorb_events(&mut self.region_events, &other.region_events, base);
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

/// Adds events that only another input counted, whose runs get numbers from `base`; returns their positions there and here.
fn absorb_events(
    ours: &mut Vec<EventOrigin>,
    theirs: &[EventOrigin],
    base: u16,
) -> Vec<(usize, usize)> {
    let mut new = vec![];
    for (at, event) in theirs.iter().enumerate() {
        let event = EventOrigin {
            run: event.run.map(|run| run + base),
            ..event.clone()
        };
        match ours.iter().position(|e| e.name == event.name) {
            Some(known) if ours[known].run.is_none() && event.run.is_some() => {
                ours[known] = event;
                new.push((at, known));
            }
            Some(_) => {}
            None => {
                new.push((at, ours.len()));
                ours.push(event);
            }
        }
    }
    new
}
