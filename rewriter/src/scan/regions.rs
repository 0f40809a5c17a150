//! Which sites belong to one construct: ends and parts are linked with their begin.

use super::cfg::Body;
use super::draft::Draft;
use crate::model::Action;
use ompfuse_format::Construct;
use ompfuse_format::abi::{MANY_ARGUMENTS, MOST_ARGUMENTS, Probe};
use ompfuse_format::site::Edge;
use ompfuse_patterns::Entry;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What is known at some point of a path.
#[derive(Debug, Clone, Default)]
struct Path {
    /// Constructs that are open, outermost first.
    open: Vec<usize>,
    /// The construct that ended last, if none has begun since.
    closed: Option<usize>,
}

/// Links the runtime calls of a function, `drafts[own]`. Returns loops' ends and parts without begin: they belong to the
/// call that hands the function over, if one does ([`belongs_to`]).
pub(crate) fn link(body: &Body, own: Range<usize>, drafts: &mut [Draft]) -> Vec<usize> {
    link_tasks(own.clone(), drafts);
    count_dimensions(own.clone(), drafts);
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
        // The end of a loop that the program divides itself: gcc's call that prepared its reductions or scans.
        let before = before.or_else(|| {
            let mut earlier = order[..i].iter().rev().copied();
            earlier.find(|&b| prepares(&drafts[b]) && drafts[d].is_loops_end())
        });
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
            .rare()
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

/// The waits of GOMP's doacross loops have as many arguments as the loop has dimensions; handing on more does no harm.
fn count_dimensions(own: Range<usize>, drafts: &mut [Draft]) {
    let loops = own.clone().filter(|&d| drafts[d].is_doacross());
    let known: Option<Vec<u64>> = loops.map(|d| drafts[d].rare().dimensions).collect();
    let most = known.and_then(|k| k.into_iter().max());
    for d in own {
        let is_wait = drafts[d].record.is_some_and(|r| r.variadic);
        if let (true, Some(Action::Call { probe, .. })) = (is_wait, &mut drafts[d].action) {
            match most.and_then(|n| u8::try_from(n).ok()) {
                Some(n) if n <= USUAL_ARGUMENTS => probe.nargs = n,
                Some(n) if n <= MOST_ARGUMENTS => {
                    (probe.nargs, probe.param) = (MANY_ARGUMENTS, n.into());
                }
                _ => drafts[d].skip("the number of its arguments is not known"),
            }
        }
    }
}

/// Most arguments that any call's probe hands on.
const USUAL_ARGUMENTS: u8 = 12;

/// Whether `begin` may be the begin of what `part` ends or continues.
fn begins(begin: &Draft, part: &Draft) -> bool {
    let (Some(b), Some(p)) = (begin.record, part.record) else {
        return false;
    };
    let kind = |entry: &Entry| match (entry.probe, entry.construct) {
        // The call that ends a reduction is its barrier.
        (Some(Probe::ReduceEnd), _) => Construct::Reduction,
        // One call ends loops and distribute loops.
        (_, Construct::Distribute) => Construct::Loop,
        (_, construct) => construct,
    };
    begin.edge == Edge::Begin && kind(b) == kind(p) && b.probe != Some(Probe::TaskAlloc)
}

/// Whether it is gcc's call that prepares a loop's reductions or scans, where the program divides the iterations itself.
fn prepares(draft: &Draft) -> bool {
    let probe = draft.record.and_then(|e| e.probe);
    probe == Some(Probe::LoopStart) && draft.edge == Edge::Encloses
}

/// The construct that a barrier ends.
fn ended(barrier: &Draft, path: &Path, drafts: &[Draft]) -> Option<usize> {
    let construct = barrier.ends?;
    let is_it = |&d: &usize| drafts[d].construct == construct;
    // Loops that are fetched range by range end without a call.
    path.closed
        .filter(is_it)
        .or_else(|| path.open.last().copied().filter(is_it))
}

/// Follows every path once, with the constructs that are open on it.
fn follow_paths(body: &Body, by_block: &FxHashMap<usize, Vec<usize>>, drafts: &mut [Draft]) {
    let mut seen = vec![false; body.blocks.len()];
    let start = |&root: &usize| (root, Path::default());
    let mut work: Vec<(usize, Path)> = body.roots.iter().rev().map(start).collect();
    while let Some((block, mut path)) = work.pop() {
        if std::mem::replace(&mut seen[block], true) {
            continue;
        }
        for &d in by_block.get(&block).into_iter().flatten() {
            match drafts[d].edge {
                Edge::Begin => {
                    path.open.push(d);
                    path.closed = None;
                }
                Edge::Next | Edge::End => {
                    let begun = |&b: &usize| begins(&drafts[b], &drafts[d]);
                    if let Some(at) = path.open.iter().rposition(begun) {
                        drafts[d].region.get_or_insert(path.open[at]);
                        if drafts[d].edge == Edge::End {
                            path.closed = Some(path.open.remove(at));
                        }
                    }
                }
                Edge::Encloses if drafts[d].region.is_none() => {
                    drafts[d].region = ended(&drafts[d], &path, drafts);
                }
                Edge::Encloses => {}
            }
        }
        let next = &body.blocks[block];
        let all = next.pads.iter().chain(next.succs.iter().rev());
        let mut new = all.copied().filter(|&to| !seen[to]);
        // The last one goes on with the path itself.
        let Some(mut last) = new.next() else { continue };
        for to in new {
            work.push((std::mem::replace(&mut last, to), path.clone()));
        }
        work.push((last, path));
    }
}

/// What parts don't say themselves: the construct of a loop that is no `for` in the source, its schedule, and the name of a
/// critical section.
fn inherit(d: usize, drafts: &mut [Draft]) {
    let Some(region) = drafts[d].region else {
        return;
    };
    let construct = drafts[region].construct;
    let takes = match drafts[d].construct {
        Construct::Loop => true,
        Construct::Critical => drafts[d].edge == Edge::End,
        _ => false,
    };
    let detail = (takes && drafts[d].detail.is_none())
        .then(|| drafts[region].detail.clone())
        .flatten();
    let draft = &mut drafts[d];
    let renamed = matches!(construct, Construct::Sections | Construct::Distribute);
    if draft.construct == Construct::Loop && renamed {
        draft.construct = construct;
    }
    draft.detail = detail.or(draft.detail.take());
}
