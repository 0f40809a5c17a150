//! The regions of several ranks: those at one place of one module are one.

use crate::model::ranks::{RegionRank, RegionRanks, among};
use crate::model::sum::add;
use crate::model::{Region, Spread};
use ompfuse_format::Construct;
use std::collections::{BTreeSet, HashMap};

/// Ranks that a region's list has. Of more these are the ones with the most work, and the one with the least.
const MOST_RANKS: usize = 256;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    module: Option<String>,
    name: String,
    construct: Option<Construct>,
    combined_with: Option<Construct>,
}

/// Regions by place; their numbers count from 1 in the order of their coming.
#[derive(Debug, Default)]
pub(super) struct Regions {
    list: Vec<Region>,
    ranks: Vec<Vec<RegionRank>>,
    /// Sum of each rank's slowest thread, and of each rank's mean.
    threads: Vec<[f64; 2]>,
    /// The lowest rank of each.
    lowest: Vec<u32>,
    known: HashMap<Key, usize>,
    /// Lists have all ranks.
    has_all_ranks: bool,
}

/// From numbers of one report to those of another.
pub(super) type Numbers = HashMap<u32, u32>;

impl Regions {
    /// With all ranks in each region's list.
    pub(super) fn of_all_ranks() -> Regions {
        Regions {
            has_all_ranks: true,
            ..Regions::default()
        }
    }

    /// Takes in a report's regions, and tells their numbers. `rank`: the lowest that it is of; of a region's ranks the lowest one says what
    /// can't be added.
    pub(super) fn add(&mut self, rank: u32, regions: Vec<Region>) -> Numbers {
        let mut numbers = Numbers::new();
        for mut region in regions {
            let key = Key {
                module: region.module.clone(),
                name: region.name.clone(),
                construct: region.construct,
                combined_with: region.combined_with,
            };
            let ranks = region.ranks.take();
            let id = region.id;
            let at = match self.known.get(&key) {
                Some(&at) => {
                    let sum = &mut self.list[at];
                    if rank < self.lowest[at] {
                        self.lowest[at] = rank;
                        region.id = sum.id;
                        std::mem::swap(sum, &mut region);
                    }
                    sum.spread = spread(&sum.spread, &region.spread);
                    add(sum, &region);
                    at
                }
                None => {
                    self.known.insert(key, self.list.len());
                    region.id = self.list.len() as u32 + 1;
                    self.list.push(region);
                    self.ranks.push(vec![]);
                    self.threads.push([0.0; 2]);
                    self.lowest.push(rank);
                    self.list.len() - 1
                }
            };
            if let Some(ranks) = ranks {
                let RegionRanks {
                    imbalance_among_ranks: _, // of all, later
                    imbalance_among_threads,
                    per_rank,
                } = ranks;
                let of_rank = |r: &RegionRank| r.work_s / f64::from(r.threads.max(1));
                let mean: f64 = per_rank.iter().map(of_rank).sum();
                self.threads[at][0] += mean * (1.0 + imbalance_among_threads);
                self.threads[at][1] += mean;
                self.ranks[at].extend(per_rank);
            }
            numbers.insert(id, at as u32 + 1);
        }
        numbers
    }

    /// The regions in the report's order, and their numbers there. `thread_s`: the time that they are shares of. `all`: every rank.
    pub(super) fn finish(self, thread_s: f64, all: &BTreeSet<u32>) -> (Vec<Region>, Numbers) {
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        let key = |at: usize| {
            let region: &Region = &self.list[at];
            (
                &region.module,
                region.address,
                &region.name,
                region.construct,
                region.combined_with,
            )
        };
        order.sort_by(|&a, &b| key(a).cmp(&key(b)));
        let numbers: Numbers = (1..)
            .zip(&order)
            .map(|(id, &at)| (at as u32 + 1, id))
            .collect();
        let both = self.ranks.into_iter().zip(self.threads);
        let most = if self.has_all_ranks {
            usize::MAX
        } else {
            MOST_RANKS
        };
        let mut list: Vec<Region> = (self.list.into_iter().zip(both))
            .map(|(mut region, (ranks, threads))| {
                region.id = numbers[&region.id];
                region.share = if thread_s > 0.0 {
                    region.time_s / thread_s
                } else {
                    0.0
                };
                region.ranks =
                    (!ranks.is_empty()).then(|| of_ranks(ranks, threads, all.len(), most));
                region
            })
            .collect();
        list.sort_by(|a, b| b.time_s.total_cmp(&a.time_s).then(a.id.cmp(&b.id)));
        (list, numbers)
    }
}

fn of_ranks(
    mut ranks: Vec<RegionRank>,
    [slowest, mean]: [f64; 2],
    all: usize,
    most: usize,
) -> RegionRanks {
    let imbalance_among_ranks = among(ranks.iter().map(|r| r.work_s), all);
    if ranks.len() > most {
        ranks.sort_by(|a, b| b.work_s.total_cmp(&a.work_s).then(a.rank.cmp(&b.rank)));
        let least = ranks.pop();
        ranks.truncate(most - 1);
        ranks.extend(least);
    }
    ranks.sort_by_key(|r| r.rank);
    RegionRanks {
        imbalance_among_ranks,
        imbalance_among_threads: if mean > 0.0 {
            slowest / mean - 1.0
        } else {
            0.0
        },
        per_rank: ranks,
    }
}

fn spread(a: &Spread, b: &Spread) -> Spread {
    let Spread {
        threads,
        min_s,
        mean_s,
        max_s,
        imbalance: _, // follows from the others
    } = *b;
    let sum = |threads: u32, mean_s: f64| mean_s * f64::from(threads);
    let sum_s = sum(a.threads, a.mean_s) + sum(threads, mean_s);
    let threads = a.threads + threads;
    let mean_s = sum_s / f64::from(threads.max(1));
    Spread::new(threads, a.min_s.min(min_s), mean_s, a.max_s.max(max_s))
}
