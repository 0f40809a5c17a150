//! Regions by their callers: one place in a library may serve many, and only they tell which is which in another build.
//!
//! A part of a row is what one chain of callers led to. The chain is that of the innermost fork around it. Chains are of names, so
//! several calls in one function are one.

use super::kinds::kind;
use super::rows::{Row, Rows, with_inside};
use super::{MeasuredRegion, file_name};
use ompfuse_account::model::key::Caller;
use ompfuse_format::Construct;
use ompfuse_format::site::HexAddress;
use ompfuse_fuse::names::is_beginning;
use ompfuse_fuse::names::{origin, readable};
use ompfuse_fuse::run::Contexts;
use ompfuse_fuse::summary::{PathKind, PathStat, RegionStat, Summary};
use ompfuse_patterns::is_runtime_library;
use std::collections::{BTreeSet, HashMap};

/// The parts of rows, in the order of their first paths.
#[derive(Debug, Default)]
pub(super) struct Parts {
    rows: Vec<Row>,
    /// For each part its row, and the part that it is in.
    of: Vec<(usize, Option<usize>)>,
    at: HashMap<(usize, u32), usize>,
}

/// The fork that a path is in, and who called that.
#[derive(Debug, Clone, Copy)]
struct Fork {
    /// Position of its row.
    row: usize,
    /// Position of its chain; `None`: not known.
    chain: Option<u32>,
    site: u32,
}

/// The parts of all rows whose callers are known. Too many paths are summed up without callers: then there are none.
pub(super) fn parts(rows: &Rows, summary: &Summary) -> Parts {
    let mut parts = Parts::default();
    if summary.paths_folded {
        return parts;
    }
    let mut chains = Chains::default();
    let mut forks: Vec<Option<Fork>> = vec![];
    // Rows that are in part executed where no caller is known.
    let mut unknown = BTreeSet::new();
    for path in &summary.paths {
        let around = path
            .parent
            .and_then(|p| forks.get(p as usize).copied().flatten());
        let own = fork(path, rows, summary).map(|(row, site)| Fork {
            row,
            chain: chains.of(&summary.contexts, path.context),
            site,
        });
        let fork = own.or(around);
        forks.push(fork);
        let parent = around.and_then(|f| parts.at.get(&(f.row, f.chain?)).copied());
        // The fork's own part comes before what is in it.
        let whole = own.and_then(|f| Some(parts.part(rows, f.row, f.chain?, &chains, parent)));
        let inside = fork.and_then(|f| parts.at.get(&(f.row, f.chain?)).copied());
        for stat in &path.kinds {
            let Some(site) = path.site else { continue };
            let begins = summary.sites[site as usize].construct;
            let stat = region_stat(stat, path, fork);
            let Some(construct) = stat.construct else {
                continue;
            };
            let Some(kind) = kind(construct, begins) else {
                // Waits and services belong to the parallel region.
                if let Some(part) = inside {
                    parts.rows[part].sums.own_ns += stat.own_ns();
                }
                continue;
            };
            let Some(row) = rows.at(site, kind) else {
                continue;
            };
            let is_fork = own.is_some_and(|f| f.row == row);
            let part = match (is_fork, fork.and_then(|f| f.chain)) {
                (true, _) => whole,
                (false, Some(chain)) => Some(parts.part(rows, row, chain, &chains, inside)),
                (false, None) => None,
            };
            match part {
                Some(part) => parts.rows[part].add(&stat, construct, kind, summary),
                None => drop(unknown.insert(row)),
            }
        }
        if let (Some(part), Some(executions)) = (whole, &path.executions) {
            let workers = &executions.workers;
            parts.rows[part].sums.own_ns += workers.ns.iter().sum::<u64>();
            parts.rows[part].team.extend(&workers.thread);
        }
    }
    parts.without(&unknown)
}

/// The row and site of a path's parallel (or teams) region, if it is one.
fn fork(path: &PathStat, rows: &Rows, summary: &Summary) -> Option<(usize, u32)> {
    let site = path.site?;
    let construct = summary.sites[site as usize].construct;
    if path.executions.is_none() && !construct.is_some_and(Construct::is_fork) {
        return None;
    }
    let row = rows.at(site, Construct::Parallel);
    Some((row.or_else(|| rows.at(site, Construct::Teams))?, site))
}

/// Sums on a path as those of a region.
fn region_stat(kind: &PathKind, path: &PathStat, fork: Option<Fork>) -> RegionStat {
    let sum = |counts: &Vec<Option<u64>>| match counts.is_empty() {
        true => None,
        false => counts.iter().copied().sum(),
    };
    RegionStat {
        site: path.site,
        construct: Some(kind.construct),
        parallel: fork.map(|f| f.site),
        instances: kind.instances,
        threads: kind.threads.clone(),
        counts: kind.counts.iter().map(sum).collect(),
        distribution: None,
    }
}

impl Parts {
    /// The part of a row that a chain led to. `inside`: the part that it is in.
    fn part(
        &mut self,
        rows: &Rows,
        row: usize,
        chain: u32,
        chains: &Chains,
        inside: Option<usize>,
    ) -> usize {
        let next = self.rows.len();
        let at = *self.at.entry((row, chain)).or_insert(next);
        if at == next {
            self.rows
                .push(rows.rows[row].part(&chains.list[chain as usize]));
            self.of.push((row, inside));
        }
        at
    }

    fn without(mut self, unknown: &BTreeSet<usize>) -> Parts {
        for (part, (row, _)) in self.rows.iter_mut().zip(&self.of) {
            if unknown.contains(row) {
                part.key = None;
            }
        }
        self
    }

    /// As values. A parent is a position among the regions with the parts behind them. `regions`: number of regions.
    pub(super) fn finished(self, events: &[String], regions: usize) -> Vec<MeasuredRegion> {
        let mut next = regions..;
        let place = self
            .rows
            .iter()
            .map(|r| r.key.as_ref().and_then(|_| next.next()));
        let place: Vec<Option<usize>> = place.collect();
        let teams: Vec<BTreeSet<u32>> = self.rows.iter().map(|r| r.team.clone()).collect();
        let inside: Vec<Option<usize>> = self.of.iter().map(|(_, inside)| *inside).collect();
        let whole = with_inside(&self.rows, &inside);
        let mut list = vec![];
        for ((mut row, inside), whole) in self.rows.into_iter().zip(inside).zip(&whole) {
            if row.key.is_some() {
                row.sum_threads(inside.map(|p| &teams[p]), whole);
                list.push(row.finished(events, inside.and_then(|p| place[p])));
            }
        }
        list
    }
}

/// Chains of callers, each there once.
#[derive(Debug, Default)]
struct Chains {
    list: Vec<Vec<Caller>>,
    numbers: HashMap<Vec<Caller>, u32>,
    of_context: HashMap<u32, u32>,
}

impl Chains {
    /// The number of a context's chain; `None` if the context is not known.
    fn of(&mut self, contexts: &Contexts, context: u32) -> Option<u32> {
        if context == 0 {
            return None;
        }
        if let Some(&known) = self.of_context.get(&context) {
            return Some(known);
        }
        let chain = chain(contexts, context);
        let next = self.list.len() as u32;
        let number = *self.numbers.entry(chain.clone()).or_insert(next);
        if number == next {
            self.list.push(chain);
        }
        self.of_context.insert(context, number);
        Some(number)
    }
}

/// The callers of a context from outside inwards. A nested region's chain begins in the outlined function around it, since which
/// thread forks it is chance. Empty if no function has a name.
fn chain(contexts: &Contexts, context: u32) -> Vec<Caller> {
    let mut chain: Vec<Caller> = vec![];
    let mut is_inside = false;
    for frame in contexts.frames_of(context) {
        let object = frame.object.and_then(|o| contexts.objects.get(o as usize));
        let module = object.map_or("", |o| file_name(&o.path));
        if is_runtime_library(module) {
            match is_inside {
                true => break,
                false => continue,
            }
        }
        is_inside = true;
        let function = frame.name.function.as_deref();
        // Code that was made at run time is elsewhere each time.
        if module.is_empty() || is_beginning(function, module) {
            continue;
        }
        let name = function.map(|f| readable(origin(&readable(f))).into_owned());
        chain.push(Caller {
            module: module.to_owned(),
            address: name.is_none().then_some(HexAddress(frame.address)),
            function: name,
            is_shared: false,
        });
    }
    chain.reverse();
    if chain.iter().all(|c| c.function.is_none()) {
        return vec![];
    }
    // Which of its places a program without symbols calls a library from says nothing.
    let own = chain.last().map(|c| c.module.clone());
    let is_outside = |c: &&Caller| c.function.is_none() && Some(&c.module) != own.as_ref();
    let unnamed = chain.iter().take_while(is_outside).count();
    chain.drain(..unnamed);
    chain.dedup();
    chain
}
