//! Calls through registers and variables. Two or three bytes leave no room for another call; what is changed instead is
//! the instruction that makes the address: it makes that of a *relay*, which tells by the return address which of its
//! sites a call came from. Nothing moves, and the return address stays in the original function.
//!
//! That is right if the address is called and nothing else: it must not be compared, stored where others find it, or
//! handed on. [`track`] follows it on all paths.

mod places;
mod step;
mod track;

use super::Module;
use super::calls;
use super::cfg::Body;
use super::draft::Draft;
use super::flow::dataflow::Flow;
use super::graph::walk;
use super::image::Kind;
use crate::model::{LinkVa, Read, Target};
use places::ELSEWHERE;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use track::{Made, Tracks};

/// Bytes of an instruction that reads a table.
const MOST_READ: u64 = 5;

/// Sites that a relay serves, and the instructions that make the address which they call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relayed {
    pub target: Target,
    /// Addresses of the instructions, ascending.
    pub loads: Vec<u64>,
    /// The instructions that read it from a table, ascending.
    pub reads: Vec<Read>,
    /// Drafts.
    pub members: Vec<usize>,
}

impl Relayed {
    /// Addresses of all instructions that are changed.
    pub(crate) fn changed(&self) -> impl Iterator<Item = u64> {
        let reads = self.reads.iter().map(|r| r.at.0);
        self.loads.iter().copied().chain(reads)
    }
}

/// Gives the calls of a function that go through registers or variables their probes, where that can be done.
pub(crate) fn place<'f>(
    module: &Module<'_>,
    body: &Body,
    flow: impl FnOnce() -> &'f Flow,
    drafts: &mut [Draft],
) -> Vec<Relayed> {
    let wanted: FxHashMap<u64, usize> = (0..drafts.len())
        .filter(|&d| drafts[d].reason.as_deref() == Some(calls::THROUGH))
        .map(|d| (drafts[d].address, d))
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    if let Some(trouble) = body.trouble {
        for d in wanted.into_values() {
            drafts[d].skip(because(trouble));
        }
        return Vec::new();
    }
    let tracks = Tracks::follow(module, body, flow());
    let mut sites: Vec<u64> = wanted.keys().copied().collect();
    sites.sort_unstable();
    let mut out = Vec::new();
    let mut done: FxHashSet<u64> = FxHashSet::default();
    for site in sites {
        if done.contains(&site) {
            continue;
        }
        let group = Group::around(site, &tracks);
        done.extend(&group.calls);
        let members = group.calls.iter().filter_map(|c| wanted.get(c).copied());
        let mut members: Vec<usize> = members.collect();
        members.sort_unstable_by_key(|&d| drafts[d].address);
        match group.target(module, &tracks, &wanted) {
            Ok(target) => {
                for &d in &members {
                    calls::relay(body, target, &mut drafts[d]);
                }
                let loads = group.loads.iter().map(|&n| tracks.loads[n].at);
                let mut loads: Vec<u64> = loads.collect();
                loads.sort_unstable();
                let tables = group.loads.iter().map(|&n| &tracks.loads[n].reads);
                let reads: BTreeSet<Read> = tables.flatten().copied().collect();
                out.push(Relayed {
                    target,
                    loads,
                    reads: reads.into_iter().collect(),
                    members,
                });
            }
            Err(why) => {
                for d in members {
                    drafts[d].skip(because(why));
                }
            }
        }
    }
    out
}

fn because(why: &str) -> String {
    format!("{}: {why}", calls::THROUGH)
}

/// Calls that have the instructions in common which make the address, directly or by way of others.
struct Group {
    calls: BTreeSet<u64>,
    loads: BTreeSet<usize>,
}

impl Group {
    fn around(site: u64, tracks: &Tracks) -> Group {
        let made = |call: u64| {
            let all = tracks.calls.get(&call).into_iter().flatten().copied();
            all.filter(|&n| n != ELSEWHERE)
        };
        let calls = |load: usize| tracks.loads[load].calls.iter().copied();
        let others = |load: usize| calls(load).flat_map(made);
        let loads = walk(tracks.loads.len(), made(site), others, |_| true);
        let loads: BTreeSet<usize> = loads.iter().collect();
        let calls = loads.iter().flat_map(|&load| calls(load)).chain([site]);
        Group {
            calls: calls.collect(),
            loads,
        }
    }

    /// What all of them call, or why the instructions can't be changed.
    fn target(
        &self,
        module: &Module<'_>,
        tracks: &Tracks,
        wanted: &FxHashMap<u64, usize>,
    ) -> Result<Target, &'static str> {
        let from_elsewhere = |c: &u64| tracks.calls.get(c).is_none_or(|t| t.contains(&ELSEWHERE));
        if self.loads.is_empty() || self.calls.iter().any(from_elsewhere) {
            return Err("no single instruction makes the address");
        }
        if self.loads.iter().any(|&n| tracks.loads[n].escapes) {
            return Err("the address may be used for more than calls");
        }
        if self.calls.iter().any(|c| !wanted.contains_key(c)) {
            return Err("what else is called so isn't known");
        }
        let mut targets = self.calls.iter().map(|c| tracks.constants.get(c).copied());
        let called = targets.next().flatten();
        if targets.any(|t| t != called) {
            return Err("the address isn't always the same");
        }
        let mut target = None;
        for load in self.loads.iter().map(|&n| &tracks.loads[n]) {
            let this = match (load.made, called) {
                (Made::Number(_), None) if load.table.is_some() => {
                    Target::Slot(LinkVa(load.table.unwrap_or_default()))
                }
                (Made::Slot(slot), _) => Target::Slot(LinkVa(slot)),
                (Made::Address(va), Some(called)) if va == called => Target::Direct(LinkVa(va)),
                // A number that isn't relative to anything is no address where the file may be loaded anywhere.
                (Made::Number(n), Some(called))
                    if load.table.is_none()
                        && (n != called || module.image.kind == Kind::Executable) =>
                {
                    Target::Direct(LinkVa(called))
                }
                _ => return Err("the address isn't always the same"),
            };
            if target.is_some_and(|t| t != this) {
                return Err("the address isn't always the same");
            }
            target = Some(this);
            let reads = load.reads.iter().map(|r| r.at.0..r.at.0 + MOST_READ);
            let mut changed = reads.chain(std::iter::once(load.at..load.end));
            if changed.any(|code| module.dynamic.writes_in(&code)) {
                return Err("the address is relocated");
            }
        }
        let calls: Vec<u64> = self.calls.iter().copied().collect();
        let tails = calls.iter().filter(|c| tracks.tails.contains(c)).count();
        if tails > 1 {
            return Err("several jumps lead through it");
        }
        target.ok_or("no single instruction makes the address")
    }
}
