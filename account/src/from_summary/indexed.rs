//! A summary whose parts are found by place: with thousands of regions nobody may look at all of them for each.

use ompfuse_format::Construct;
use ompfuse_fuse::run::{LeftOut, ThreadAccount};
use ompfuse_fuse::summary::{ParallelStat, RegionStat, Summary};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// See the module's description.
pub(crate) struct Indexed<'s> {
    summary: &'s Summary,
    at_site: Vec<Vec<&'s RegionStat>>,
    in_parallel: Vec<Vec<&'s RegionStat>>,
    parallel_at: Vec<Vec<&'s ParallelStat>>,
    left_out_at: Vec<Vec<&'s LeftOut>>,
    places: Vec<u32>,
    exited_inside: BTreeSet<u16>,
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
            exited_inside: exited_inside(summary),
            places: places(&(summary.accounts.iter().map(lived)).collect::<Vec<Lived>>()),
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

    /// The first of the threads that lived one after another, of which this one is: OpenMP libraries may make new threads for each team,
    /// and these take the places of those that have ended.
    pub(crate) fn place(&self, thread: u32) -> u32 {
        self.places.get(thread as usize).copied().unwrap_or(thread)
    }

    /// Whether a process has exited inside of a parallel region: which time is of that, and of how many threads, isn't on record.
    pub(crate) fn has_exited_inside(&self, process: u16) -> bool {
        self.exited_inside.contains(&process)
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

/// Processes that exited in an orderly way, and have parts of regions that had not ended.
fn exited_inside(summary: &Summary) -> BTreeSet<u16> {
    let outside = summary.regions.iter().filter(|r| r.parallel.is_none());
    let parts = outside.filter(|r| r.construct.is_some_and(Construct::is_part));
    let threads = parts.flat_map(|r| &r.threads.thread);
    let of = |&thread: &u32| Some(summary.accounts.get(thread as usize)?.process);
    let has_ended = |p: &u16| summary.own.get(*p as usize).is_some_and(|own| own.ended);
    threads.filter_map(of).filter(has_ended).collect()
}

/// Process, begin and end of a thread's records; `None`: it had no end.
type Lived = (u16, i64, Option<i64>);

fn lived(account: &ThreadAccount) -> Lived {
    (account.process, account.begin_ns, account.end_ns)
}

/// By thread the first one in its place. Of the places that are free when a thread begins it takes the one whose thread ended last.
fn places(threads: &[Lived]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..threads.len()).collect();
    order.sort_by_key(|&at| (threads[at].0, threads[at].1, at));
    let mut places: Vec<u32> = (0..threads.len() as u32).collect();
    // By process and time of their end the places that are free.
    let mut free: BTreeMap<(u16, i64), Vec<u32>> = BTreeMap::new();
    for at in order {
        let (process, begin_ns, end_ns) = threads[at];
        let earlier = (process, i64::MIN)..=(process, begin_ns);
        if let Some((&key, ended)) = free.range_mut(earlier).next_back() {
            places[at] = ended.pop().unwrap_or(at as u32);
            if ended.is_empty() {
                free.remove(&key);
            }
        }
        if let Some(end_ns) = end_ns {
            free.entry((process, end_ns)).or_default().push(places[at]);
        }
    }
    places
}

fn found<T>(index: &[Vec<T>], site: u32) -> &[T] {
    index.get(site as usize).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn threads_take_the_places_of_those_that_have_ended() {
        // Two are there all the time, and two teams make a thread each, again and again.
        let threads = [
            (0, 0, Some(100)),
            (0, 1, Some(100)),
            (0, 10, Some(20)),
            (0, 11, Some(22)),
            (0, 30, Some(40)),
            (0, 31, None),
            (0, 50, Some(60)),
            (1, 50, Some(60)),
        ];
        assert_eq!(places(&threads), [0, 1, 2, 3, 3, 2, 3, 7]);
    }

    #[test]
    fn threads_at_once_have_a_place_each() {
        let threads = [
            (0, 0, Some(9)),
            (0, 3, Some(9)),
            (0, 8, Some(9)),
            (0, 9, None),
        ];
        assert_eq!(places(&threads), [0, 1, 2, 2]);
    }
}
