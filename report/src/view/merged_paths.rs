//! Call paths of regions of which several are one row: copies of a construct, made by the compiler.

use crate::words::called_from;
use ompfuse_account::model::sum::both;
use ompfuse_account::model::{CallPath, CallPathThread, ContextCall, PathCount};
use std::collections::{BTreeMap, HashMap};

/// The paths with the rows' numbers. A row that is on the path already leads back to it, as a region does. Contexts that read alike are one,
/// as those of a function that calls itself.
pub(super) fn merged(
    paths: &[CallPath],
    number: &BTreeMap<u32, u32>,
    contexts: &[ContextCall],
) -> Vec<CallPath> {
    let mut first: HashMap<String, u32> = HashMap::new();
    let mut same: HashMap<u32, u32> = HashMap::new();
    for context in paths.iter().filter_map(|path| path.context) {
        if let Some(text) = called_from(contexts, context) {
            let first = *first.entry(text).or_insert(context);
            same.insert(context, first);
        }
    }
    let context_of = |path: &CallPath| {
        let context = path.context?;
        Some(same.get(&context).copied().unwrap_or(context))
    };
    let of = |path: &CallPath| path.region.map(|id| number.get(&id).copied().unwrap_or(id));
    let is_own = |path: &CallPath| of(path) == path.region && context_of(path) == path.context;
    let is_same = paths.iter().all(is_own);
    if is_same {
        return paths.to_vec();
    }
    let mut merged: Vec<CallPath> = vec![];
    let mut position: Vec<u32> = vec![];
    let mut known: HashMap<(u32, Option<u32>, Option<u32>), u32> = HashMap::new();
    for path in paths {
        let region = of(path);
        let parent = path.parent.map(|parent| position[parent as usize]);
        let above = |at: &u32| merged[*at as usize].parent;
        let mut around = std::iter::successors(parent, above);
        let same = |at: &u32| region.is_some() && merged[*at as usize].region == region;
        let found = around.find(same).or_else(|| {
            let key = (parent?, region, context_of(path));
            known.get(&key).copied()
        });
        let at = found.unwrap_or_else(|| {
            let at = merged.len() as u32;
            if let Some(parent) = parent {
                known.insert((parent, region, context_of(path)), at);
            }
            merged.push(CallPath::empty(parent, region, context_of(path)));
            at
        });
        position.push(at);
        add(&mut merged[at as usize], path);
    }
    let parents: Vec<Option<u32>> = merged.iter().map(|p| p.parent).collect();
    for (at, parent) in parents.iter().enumerate().rev() {
        merged[at].inclusive_s += merged[at].exclusive_s;
        if let Some(parent) = parent {
            merged[*parent as usize].inclusive_s += merged[at].inclusive_s;
        }
    }
    merged
}

/// Adds what a path has of its own. What it has with all that is below follows from that, for all threads together; single threads and
/// events are told of paths that are one alone.
fn add(to: &mut CallPath, from: &CallPath) {
    let CallPath {
        parent: _,
        region: _,
        context: _,
        executions,
        wall_s,
        exclusive_s,
        inclusive_s: _, // follows from what is below
        per_thread,
        events,
    } = from;
    let is_first = to.executions == 0 && to.per_thread.is_empty();
    to.executions += executions;
    to.exclusive_s += exclusive_s;
    to.wall_s = both(to.wall_s, *wall_s, |a, b| a + b);
    (to.per_thread, to.events) = match is_first {
        true => (per_thread.clone(), events.clone()),
        false => (
            Vec::<CallPathThread>::new(),
            BTreeMap::<String, PathCount>::new(),
        ),
    };
}
