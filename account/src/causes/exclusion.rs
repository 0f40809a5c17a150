//! Waiting for what one thread at a time may be in: who holds it, and where threads wait.
//!
//! Several places may enter one mutex. The place that holds it is what the others wait for, wherever they wait.

use super::{Found, OfRegion, units};
use crate::from_summary::mutex_of;
use crate::model::{Cause, LossKind};
use ompfuse_format::Construct;
use ompfuse_fuse::run::{LockPlace, LockStat};
use ompfuse_fuse::summary::RegionStat;
use std::collections::BTreeSet;

/// What parts are called that hand a construct over which one thread at a time is in.
pub(super) const EXIT: &str = "-exit";

/// From this share of the waits for a turn on, what is in the `ordered` block is what is waited for.
const IN_BLOCK: f64 = 0.5;

/// Inside an atomic statement there are a few instructions: what takes longer, in seconds, is other code.
const STATEMENT_S: f64 = 10e-6;

/// Units that are so much longer than the others hold turns up.
const SLOW: f64 = 1.5;

/// Whether a part is waiting to enter something, or leaving it.
pub(super) fn is_exclusion(what: &str) -> bool {
    let name = what.strip_suffix(EXIT).unwrap_or(what);
    Construct::ALL
        .iter()
        .any(|c| c.is_exclusive() && c.name() == name)
}

/// Waiting to enter what one thread at a time may be in, and leaving it.
pub(super) fn add(found: &mut Found<'_>, of: &OfRegion<'_>) {
    for (site, (seconds, _)) in of.by_site(is_exclusion) {
        let cause = site.map_or(Cause::Unknown, |site| entering(found, of, site));
        found.add(LossKind::Exclusion, of.region, seconds, cause);
    }
}

/// What threads wait for that enter the construct at a place.
pub(super) fn entering(found: &Found<'_>, of: &OfRegion<'_>, site: u32) -> Cause {
    let stats = stats(found, of, site);
    let is = |construct| stats.iter().any(|r| r.construct == Some(construct));
    if is(Construct::Ordered) {
        return in_order(found, of, site, &stats);
    }
    if let Some(of_reduction) = reduction(found, of, site) {
        return joining(found, of, of_reduction);
    }
    let mutex = Mutex::entered_at(found, of, site);
    let at = mutex.holder();
    let here = self::stats(found, of, at);
    let held_s = mutex_of(&here).and_then(|m| m.held_s);
    let wall_s = of.wall_s();
    Cause::Held {
        at: found.id(at),
        held_s,
        of_wall: held_s
            .filter(|_| wall_s > 0.0 && mutex.is_one)
            .map(|held_s| held_s / wall_s),
        entries: entries(&here),
        waits_at: mutex.most_waits(of, at).map(|site| found.id(site)),
        is_holder: mutex.is_one || mutex.sites.len() == 1,
    }
}

fn entries(stats: &[&RegionStat]) -> u64 {
    stats.iter().map(|r| r.count()).sum()
}

/// Entries at a place in a parallel region.
fn stats<'a>(found: &Found<'a>, of: &OfRegion<'_>, site: u32) -> Vec<&'a RegionStat> {
    let stats = found.summary.at_site(site).iter().copied();
    stats
        .filter(|r| r.parallel == of.site && r.construct.is_some_and(Construct::is_exclusive))
        .collect()
}

/// Places in a region that enter one mutex, or several ones.
struct Mutex {
    /// With the time for which threads are in it there, in seconds, if known.
    sites: Vec<(u32, Option<f64>)>,
    /// It is known to be one only.
    is_one: bool,
}

impl Mutex {
    fn entered_at(found: &Found<'_>, of: &OfRegion<'_>, site: u32) -> Mutex {
        let locks = &found.summary.locks;
        let is_named = |l: &&LockStat| l.place != LockPlace::Unknown;
        let mut sites = BTreeSet::from([site]);
        loop {
            let before = sites.len();
            let same = locks.iter().filter(is_named);
            let same = same.filter(|l| l.sites.iter().any(|s| sites.contains(s)));
            let more: Vec<u32> = same.flat_map(|l| l.sites.iter().copied()).collect();
            sites.extend(more);
            if sites.len() == before {
                break;
            }
        }
        let mut entered: Vec<&LockStat> = (locks.iter())
            .filter(|l| l.sites.iter().any(|s| sites.contains(s)))
            .collect();
        let are_known = entered.iter().all(|l| l.place != LockPlace::Unknown);
        entered.sort_unstable_by_key(|l| l.process);
        let one_each = entered.windows(2).all(|w| w[0].process != w[1].process);
        let kind = |site: u32| {
            let stats = stats(found, of, site);
            stats.first().and_then(|r| r.construct)
        };
        if locks.is_empty() {
            // Only sums are on record: any place with such a construct may enter the same one.
            let here = kind(site);
            let others = of
                .site
                .map_or(&[][..], |site| found.summary.in_parallel(site));
            let others = others.iter().filter(|r| r.construct == here);
            sites.extend(others.filter_map(|r| r.site));
        }
        let is_one = match kind(site) {
            Some(Construct::Lock) => !entered.is_empty() && are_known && one_each,
            Some(Construct::Critical) if !entered.is_empty() => are_known && one_each,
            _ => sites.len() == 1,
        };
        let held_s = |site: u32| mutex_of(&stats(found, of, site)).and_then(|m| m.held_s);
        let sites = sites.into_iter();
        let here = sites.filter(|&s| s == site || !stats(found, of, s).is_empty());
        let mut mutex = Mutex {
            sites: here.map(|s| (s, held_s(s))).collect(),
            is_one,
        };
        if !is_one || mutex.sites.iter().any(|s| s.1.is_none()) {
            // Of several places nobody knows which one holds it.
            let held_elsewhere = mutex.sites.len() > 1;
            mutex.is_one &= !held_elsewhere;
            mutex.sites.sort_by_key(|s| s.0 != site);
            mutex.sites.iter_mut().for_each(|s| s.1 = None);
        }
        mutex
    }

    /// The place that holds it longest, or else that was asked for.
    fn holder(&self) -> u32 {
        let held = |s: &&(u32, Option<f64>)| s.1.unwrap_or(0.0);
        let known = self.sites.iter().filter(|s| s.1.is_some());
        let longest = known.max_by(|a, b| held(a).total_cmp(&held(b)));
        longest.or(self.sites.first()).map_or(0, |s| s.0)
    }

    /// The place where threads wait most, if that is another one.
    fn most_waits(&self, of: &OfRegion<'_>, holder: u32) -> Option<u32> {
        if !self.is_one {
            return None;
        }
        let waits = of.by_site(is_exclusion);
        let wait = |site: u32| {
            let of_site = waits.iter().find(|(at, _)| *at == Some(site));
            of_site.map_or(0.0, |(_, (seconds, _))| *seconds)
        };
        let sites = self.sites.iter().map(|s| s.0);
        let most = sites.max_by(|a, b| wait(*a).total_cmp(&wait(*b)))?;
        (most != holder && wait(most) > wait(holder)).then_some(most)
    }
}

/// Why iterations wait for their turn.
fn in_order(found: &Found<'_>, of: &OfRegion<'_>, site: u32, stats: &[&RegionStat]) -> Cause {
    let turns = of.analysed.map_or(&[][..], |a| &a.turns);
    // A doacross loop has no block: an iteration waits for whatever the one before it does until it lets it go on.
    let is_block = mutex_of(stats).is_some_and(|m| m.held_s.is_some_and(|s| s > 0.0));
    let turns = turns
        .iter()
        .find(|t| t.site == site && t.ns > 0 && is_block);
    let in_block = turns.map(|t| t.inside_ns as f64 / t.ns as f64);
    let slow = turns.filter(|t| (t.inside_ns as f64) < IN_BLOCK * t.ns as f64);
    let slow = slow.and_then(|t| {
        let around = of.analysed?.loops.iter();
        let around = around.clone().find(|l| Some(l.site) == t.of_loop)?;
        units::slowest(found, around, (of.team(), SLOW)).map(Box::new)
    });
    Cause::InOrder {
        at: found.id(site),
        entries: entries(stats),
        in_block,
        slow,
    }
}

/// The loop or other construct whose reduction a compiler's join at a place belongs to; the place itself, if there is none on record.
fn reduction(found: &Found<'_>, of: &OfRegion<'_>, site: u32) -> Option<u32> {
    let stats = stats(found, of, site);
    let is = |construct| stats.iter().any(|r| r.construct == Some(construct));
    let place = |site: u32| found.summary.sites.get(site as usize);
    let line = |site: u32| place(site).and_then(|p| p.source.as_ref());
    let inside = of
        .site
        .map_or(&[][..], |site| found.summary.in_parallel(site));
    let shared = inside.iter();
    let shared = shared.filter(|r| r.construct.is_some_and(Construct::is_divided));
    let mut shared: Vec<u32> = shared.filter_map(|r| r.site).collect();
    shared.sort_unstable();
    shared.dedup();
    let has_line = |other: &u32| line(site).is_some() && line(*other) == line(site);
    let around = { shared.iter().copied() }.chain(of.site).find(has_line);
    // An atomic statement has a line of its own; gcc's join has the loop's, or its code is longer than any statement's.
    if is(Construct::Atomic) {
        let each_s = mutex_of(&stats).and_then(|m| Some(m.held_s? / m.entries.max(1) as f64));
        let is_code = each_s.is_some_and(|s| s >= STATEMENT_S);
        let only = match shared[..] {
            [one] => Some(one),
            _ => of.site,
        };
        return around.or(only.filter(|_| is_code));
    }
    // A name of no source.
    let name = place(site).and_then(|p| p.detail.as_deref());
    let is_compilers = is(Construct::Critical) && name.is_some_and(|name| name.starts_with('.'));
    (is(Construct::Reduction) || is_compilers).then(|| around.unwrap_or(site))
}

/// A reduction's parts are joined one after the other.
fn joining(found: &Found<'_>, of: &OfRegion<'_>, of_reduction: u32) -> Cause {
    let inside = of
        .site
        .map_or(&[][..], |site| found.summary.in_parallel(site));
    let sites: BTreeSet<u32> = inside.iter().filter_map(|r| r.site).collect();
    let joins = sites.into_iter();
    let joins = joins.filter(|&s| reduction(found, of, s) == Some(of_reduction));
    let stats: Vec<&RegionStat> = joins.flat_map(|s| stats(found, of, s)).collect();
    let mutex = mutex_of(&stats);
    Cause::Reduction {
        at: found.id(of_reduction),
        joins: mutex.map_or_else(|| entries(&stats), |m| m.entries),
        held_s: mutex.and_then(|m| m.held_s),
    }
}
