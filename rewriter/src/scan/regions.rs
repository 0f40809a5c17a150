//! Which sites belong to one construct: ends and parts are linked with their begin.

use super::cfg::Body;
use super::draft::Draft;
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::site::Edge;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Constructs that are open at some point of a function, outermost first.
type Open = Vec<usize>;

/// Links the runtime calls of a function, `drafts[own]`. Returns loops' ends and parts without begin: they belong to the
/// call that hands the function over, if one does ([`belongs_to`]).
pub(crate) fn link(body: &Body, own: Range<usize>, drafts: &mut [Draft]) -> Vec<usize> {
    link_tasks(own.clone(), drafts);
    let mut by_block: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for d in own.clone() {
        if let Some(block) = body.block_at(drafts[d].address) {
            by_block.entry(block).or_default().push(d);
        }
    }
    for list in by_block.values_mut() {
        list.sort_by_key(|&d| drafts[d].address);
    }
    let is_part = |d: usize| matches!(drafts[d].edge, Edge::End | Edge::Next);
    if own.clone().any(is_part) {
        follow_paths(body, &by_block, drafts);
    }
    let mut order: Vec<usize> = own.collect();
    order.sort_by_key(|&d| drafts[d].address);
    let mut combined = Vec::new();
    for (i, &d) in order.iter().enumerate() {
        if drafts[d].region.is_some() || !matches!(drafts[d].edge, Edge::End | Edge::Next) {
            continue;
        }
        let before = order[..i]
            .iter()
            .rev()
            .copied()
            .find(|&b| begins(&drafts[b], &drafts[d]));
        drafts[d].region = before;
        if before.is_none() && matches!(drafts[d].construct, Construct::Loop | Construct::Sections)
        {
            combined.push(d);
        }
    }
    for &d in &order {
        inherit(d, drafts);
    }
    combined
}

/// Makes a draft a part of the construct that begins at another.
pub(crate) fn belongs_to(part: usize, begin: usize, drafts: &mut [Draft]) {
    drafts[part].region = Some(begin);
    inherit(part, drafts);
}

/// A task's parts belong to the call that allocates it; the pattern of a taskloop's tasks belongs to the taskloop.
fn link_tasks(own: Range<usize>, drafts: &mut [Draft]) {
    let allocations: FxHashMap<u64, usize> = own
        .clone()
        .filter(|&d| {
            drafts[d]
                .record
                .is_some_and(|r| r.probe == Some(Probe::TaskAlloc))
        })
        .map(|d| (drafts[d].address, d))
        .collect();
    for d in own {
        let allocation = drafts[d]
            .argument_of
            .and_then(|call| allocations.get(&call))
            .copied();
        let is_taskloop = drafts[d]
            .record
            .is_some_and(|r| r.probe == Some(Probe::TaskloopPattern));
        match allocation {
            Some(allocation) if is_taskloop => {
                drafts[allocation].construct = Construct::Taskloop;
                drafts[allocation].region = Some(d);
                drafts[d].outlined = drafts[allocation].outlined;
                if drafts[d].action.is_none() {
                    drafts[allocation].skip("the taskloop that uses the task has no probe");
                }
            }
            Some(_) => drafts[d].region = allocation,
            // An allocation that its taskloop has claimed keeps it.
            None => {}
        }
    }
}

/// Whether `begin` may be the begin of what `part` ends or continues.
fn begins(begin: &Draft, part: &Draft) -> bool {
    let (Some(b), Some(p)) = (begin.record, part.record) else {
        return false;
    };
    begin.edge == Edge::Begin && b.construct == p.construct && b.probe != Some(Probe::TaskAlloc)
}

/// Follows every path once, with the constructs that are open on it.
fn follow_paths(body: &Body, by_block: &FxHashMap<usize, Vec<usize>>, drafts: &mut [Draft]) {
    let mut seen = vec![false; body.blocks.len()];
    let mut work: Vec<(usize, Open)> = body.roots.iter().rev().map(|&r| (r, Open::new())).collect();
    while let Some((block, mut open)) = work.pop() {
        if std::mem::replace(&mut seen[block], true) {
            continue;
        }
        for &d in by_block.get(&block).into_iter().flatten() {
            match drafts[d].edge {
                Edge::Begin => open.push(d),
                Edge::Next | Edge::End => {
                    let at = open.iter().rposition(|&b| begins(&drafts[b], &drafts[d]));
                    if let Some(at) = at {
                        drafts[d].region.get_or_insert(open[at]);
                        if drafts[d].edge == Edge::End {
                            open.remove(at);
                        }
                    }
                }
                Edge::Encloses => {}
            }
        }
        let next = &body.blocks[block];
        for &to in next.pads.iter().chain(next.succs.iter().rev()) {
            if !seen[to] {
                work.push((to, open.clone()));
            }
        }
    }
}

/// Parts of a loop that is no `for` in the source, and what they lack.
fn inherit(d: usize, drafts: &mut [Draft]) {
    let Some(region) = drafts[d].region else {
        return;
    };
    let begin = (drafts[region].construct, drafts[region].detail.clone());
    let draft = &mut drafts[d];
    if draft.construct == Construct::Loop {
        if matches!(begin.0, Construct::Sections | Construct::Distribute) {
            draft.construct = begin.0;
        }
        if draft.detail.is_none() {
            draft.detail = begin.1;
        }
    }
}
