//! A compiler's copies of one place of the source are one place: what is known of them is added up before causes are looked for.
//!
//! A place is a line and a construct. The copy with the most time stands for all.

use crate::model::{Account, ParallelOverhead, Report, StatePart};
use ompfuse_fuse::Summary;
use ompfuse_fuse::span::{Analysis, RegionAnalysis};
use std::collections::{BTreeMap, HashMap};

/// Which sites are copies.
pub(super) struct Lines {
    /// By site the one that stands for it.
    of_site: Vec<u32>,
    /// The report's numbers of sites.
    ids: Vec<u32>,
    /// The sites of these.
    sites: HashMap<u32, u32>,
}

/// A parallel region's executions, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Executions {
    pub(super) executions: u64,
    pub(super) team: u64,
    pub(super) wall_s: f64,
    pub(super) total_s: f64,
}

impl Executions {
    fn add(&mut self, more: &ParallelOverhead) {
        self.executions += more.executions;
        self.team = self.team.max(more.team);
        self.wall_s += more.wall_s;
        self.total_s += more.total_s;
    }
}

impl Lines {
    /// `ids`: the report's numbers of sites.
    pub(super) fn new(report: &Report, ids: &[u32]) -> Lines {
        let sites: HashMap<u32, u32> = ids.iter().copied().zip(0..).collect();
        let mut of_site: Vec<u32> = (0..ids.len() as u32).collect();
        let mut largest = HashMap::new();
        let placed = report.regions.iter().filter(|r| r.source.is_some());
        let mut placed: Vec<_> = placed.collect();
        placed.sort_by(|a, b| b.time_s.total_cmp(&a.time_s).then(a.id.cmp(&b.id)));
        for region in placed {
            if let Some(&site) = sites.get(&region.id) {
                let key = (&region.source, region.construct);
                of_site[site as usize] = *largest.entry(key).or_insert(site);
            }
        }
        Lines {
            of_site,
            ids: ids.to_vec(),
            sites,
        }
    }

    /// The site that stands for a site's line.
    fn line(&self, site: u32) -> u32 {
        self.of_site.get(site as usize).copied().unwrap_or(site)
    }

    /// The site that stands for the line of a region of the report.
    pub(super) fn site(&self, id: u32) -> Option<u32> {
        self.sites.get(&id).map(|&site| self.line(site))
    }

    /// A site's number in the report.
    pub(super) fn id(&self, site: u32) -> u32 {
        self.ids.get(site as usize).copied().unwrap_or(0)
    }

    fn line_id(&self, id: u32) -> u32 {
        self.site(id).map_or(id, |site| self.id(site))
    }

    /// The sites of a line.
    pub(super) fn copies(&self, site: u32) -> impl Iterator<Item = u32> {
        let copies = (0..).zip(&self.of_site).filter(move |(_, of)| **of == site);
        copies.map(|(site, _)| site)
    }

    /// A summary in which copies are one site, as far as causes are looked for in it. `None`: there are no copies.
    pub(super) fn summary(&self, summary: &Summary) -> Option<Summary> {
        if (0..).zip(&self.of_site).all(|(site, of)| site == *of) {
            return None;
        }
        let mut joined = Summary {
            paths: vec![],
            ..summary.clone()
        };
        let line = |site: &mut u32| *site = self.line(*site);
        for region in &mut joined.regions {
            region.site.iter_mut().for_each(line);
            region.parallel.iter_mut().for_each(line);
        }
        let parallel = joined.parallel.iter_mut();
        parallel.flat_map(|p| &mut p.site).for_each(line);
        joined.left_out.iter_mut().for_each(|l| line(&mut l.site));
        joined.messages.iter_mut().for_each(|m| line(&mut m.site));
        for lock in &mut joined.locks {
            lock.sites.iter_mut().for_each(line);
            lock.sites.sort_unstable();
            lock.sites.dedup();
        }
        joined.analysis = joined.analysis.map(|a| self.analysis(a));
        Some(joined)
    }

    fn analysis(&self, analysis: Analysis) -> Analysis {
        let mut regions: BTreeMap<Option<u32>, RegionAnalysis> = BTreeMap::new();
        for region in analysis.regions {
            let region = region.placed(|site| Some(self.line(site)));
            regions.entry(region.site).or_default().absorb(region);
        }
        Analysis {
            regions: regions.into_values().collect(),
            ..analysis
        }
    }

    /// An account in which copies are one place.
    pub(super) fn account(&self, account: &Account) -> Account {
        let mut joined = account.clone();
        for state in &mut joined.states {
            let mut parts: BTreeMap<_, StatePart> = BTreeMap::new();
            for part in std::mem::take(&mut state.parts) {
                let StatePart {
                    region,
                    parallel,
                    what,
                    ns,
                    count,
                } = part;
                let line = |id: Option<u32>| id.map(|id| self.line_id(id));
                let (region, parallel) = (line(region), line(parallel));
                let of_line = parts
                    .entry((region, parallel, what.clone()))
                    .or_insert_with(|| StatePart {
                        region,
                        parallel,
                        what,
                        ns: 0,
                        count: 0,
                    });
                of_line.ns += ns;
                of_line.count += count;
            }
            state.parts = parts.into_values().collect();
            state.parts.sort_by_key(|p| std::cmp::Reverse(p.ns));
        }
        joined
    }

    /// Executions of parallel regions, by number in the report.
    pub(super) fn executions(&self, report: &Report) -> HashMap<u32, Executions> {
        let mut sums: HashMap<u32, Executions> = HashMap::new();
        for overhead in &report.overheads {
            let of_line = sums.entry(self.line_id(overhead.region)).or_default();
            of_line.add(overhead);
        }
        sums
    }
}
