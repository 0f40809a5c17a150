//! One list of what was found in all functions.

use super::{Found, Whole};
use crate::model::Action;
use crate::scan::draft::Draft;
use crate::scan::{Module, regions};
use ompfuse_format::abi::Probe;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Puts the drafts of all functions into one list. What is in several functions is listed with the first.
pub(super) fn merge(module: &Module<'_>, found: Vec<Found>, orphans: Vec<Draft>) -> Whole {
    let mut drafts = orphans;
    drafts.reserve(found.iter().map(|f| f.drafts.len()).sum());
    let mut whole = Whole {
        drafts,
        windows: Vec::new(),
        relays: Vec::new(),
        atomics: FxHashMap::default(),
    };
    let mut claims: FxHashMap<usize, usize> = FxHashMap::default();
    for &part in found.iter().flat_map(|f| &f.parts) {
        *claims.entry(part).or_default() += 1;
    }
    // Sites in code that several functions have, by address.
    let mut shared: FxHashMap<u64, usize> = FxHashMap::default();
    let mut combined = Vec::new();
    for f in found {
        let common: Vec<Range<u64>> = f
            .parts
            .iter()
            .filter(|p| claims[p] > 1)
            .map(|&p| module.functions.get(p))
            .map(|f| f.start..f.end)
            .collect();
        let mut number = Vec::with_capacity(f.drafts.len());
        let mut next = whole.drafts.len();
        for d in &f.drafts {
            let is_common = common.iter().any(|r| r.contains(&d.address));
            let known = shared.get(&d.address).copied().filter(|_| is_common);
            number.push(known.unwrap_or(next));
            next += usize::from(known.is_none());
        }
        let listed = |i: &usize| number[*i] >= whole.drafts.len();
        for i in (0..number.len()).filter(listed) {
            let address = f.drafts[i].address;
            if common.iter().any(|r| r.contains(&address)) {
                shared.entry(address).or_insert(number[i]);
            }
        }
        let start = module.functions.get(f.job.function).start;
        whole.atomics.extend(f.atomics.map(|a| (start, a)));
        combined.extend(f.combined.into_iter().map(|d| (start, number[d])));
        let known = whole.drafts.len();
        for (i, mut d) in f.drafts.into_iter().enumerate() {
            if number[i] < known {
                continue;
            }
            d.region = d.region.map(|r| number[r]);
            if let Some(rare) = d.own_rare() {
                rare.implied_by.iter_mut().for_each(|i| *i = number[*i]);
                rare.follows.iter_mut().for_each(|i| *i = number[*i]);
                rare.begins = rare
                    .begins
                    .map(|(begin, share)| (number[begin], number[share]));
            }
            if let Some(Action::Inline(spec)) = &mut d.action
                && spec.probe == Probe::InlineLoopAgain
            {
                spec.param = number[spec.param as usize] as i64;
            }
            whole.drafts.push(d);
        }
        for mut relay in f.relays {
            let probed = |d: &usize| whole.drafts[*d].action.is_some();
            relay.members = relay.members.into_iter().map(|d| number[d]).collect();
            relay.members.retain(probed);
            if !relay.members.is_empty() {
                whole.relays.push(relay);
            }
        }
        for mut window in f.windows {
            window.members.iter_mut().for_each(|d| *d = number[*d]);
            whole.windows.push(window);
        }
    }
    whole.windows.sort_by_key(|w| w.range.start);
    whole.relays.sort_by_key(|r| r.loads.first().copied());
    let mut begins: FxHashMap<u64, usize> = FxHashMap::default();
    for (i, d) in whole.drafts.iter().enumerate() {
        if let Some(va) = d.outlined {
            begins.entry(va).or_insert(i);
        }
    }
    for (start, part) in combined {
        if let Some(&begin) = begins.get(&start) {
            regions::belongs_to(part, begin, &mut whole.drafts);
        }
    }
    whole
}
