//! A summary whose parts are found by place: with thousands of regions nobody may look at all of them for each.

use ompfuse_fuse::run::LeftOut;
use ompfuse_fuse::summary::{ParallelStat, RegionStat, Summary};
use std::ops::Deref;

/// See the module's description.
pub(crate) struct Indexed<'s> {
    summary: &'s Summary,
    at_site: Vec<Vec<&'s RegionStat>>,
    in_parallel: Vec<Vec<&'s RegionStat>>,
    parallel_at: Vec<Vec<&'s ParallelStat>>,
    left_out_at: Vec<Vec<&'s LeftOut>>,
}

impl<'s> Indexed<'s> {
    pub(crate) fn new(summary: &'s Summary) -> Indexed<'s> {
        let sites = summary.sites.len();
        Indexed {
            summary,
            at_site: by_site(sites, &summary.regions, |r| r.site),
            in_parallel: by_site(sites, &summary.regions, |r| r.parallel),
            parallel_at: by_site(sites, &summary.parallel, |p| p.site),
            left_out_at: by_site(sites, &summary.left_out, |l| Some(l.site)),
        }
    }

    /// The summary itself, for as long as it lives.
    pub(crate) fn whole(&self) -> &'s Summary {
        self.summary
    }

    /// What happened at a site.
    pub(crate) fn at_site(&self, site: u32) -> &[&'s RegionStat] {
        found(&self.at_site, site)
    }

    /// What happened in the parallel region at a site, innermost.
    pub(crate) fn in_parallel(&self, site: u32) -> &[&'s RegionStat] {
        found(&self.in_parallel, site)
    }

    /// Executions of the parallel region at a site.
    pub(crate) fn parallel_at(&self, site: u32) -> &[&'s ParallelStat] {
        found(&self.parallel_at, site)
    }

    /// What was not recorded at a site.
    pub(crate) fn left_out_at(&self, site: u32) -> &[&'s LeftOut] {
        found(&self.left_out_at, site)
    }
}

impl Deref for Indexed<'_> {
    type Target = Summary;

    fn deref(&self) -> &Summary {
        self.summary
    }
}

fn by_site<T>(sites: usize, all: &[T], site: impl Fn(&T) -> Option<u32>) -> Vec<Vec<&T>> {
    let mut found = vec![vec![]; sites];
    for one in all {
        let at = site(one).and_then(|at| found.get_mut(at as usize));
        if let Some(at) = at {
            at.push(one);
        }
    }
    found
}

fn found<T>(index: &[Vec<T>], site: u32) -> &[T] {
    index.get(site as usize).map_or(&[], Vec::as_slice)
}
