//! One run whose event sets took turns: instances of the same region that were counted with different sets are put together.
//!
//! Two XUs go together if their constructs are nested in the same way, at the same places of the program, and if they are
//! the same iterations of a loop or the same section. Each must be the k-th such XU of its event set, in the order of the
//! labels. So a row is not one execution but as many as there are sets. Every count is one that was counted, and the run
//! of an event in the profile is the event set that it comes from.

use super::Profile;
use crate::combine::{Combined, INSTANCES, LglJoin};
use crate::label::{LabelHash, LabelId, Labels};
use crate::run::{NONE, NodeTable, Run};
use crate::summary::{Matching, RunSummary, Summary};
use crate::table::{XuTable, gather};
use ompfuse_format::Construct;
use std::collections::HashMap;
use std::sync::Arc;

/// Combines the event sets of a run. `name`: what the user calls it. A run with one set is a profile as it is.
pub fn combine_instances(name: &str, run: Run) -> Profile {
    let mut sets: Vec<u8> = run.xu_set.iter().flatten().copied().collect();
    sets.sort_unstable();
    sets.dedup();
    let mut summary = Summary::of_run(name, &run);
    if sets.len() < 2 {
        return Profile::of_run(name, run);
    }
    let shapes = shapes(&run);
    let mut rows_of: Vec<Vec<u32>> = Vec::new();
    let mut join: Option<LglJoin> = None;
    let mut runs = Vec::new();
    for &set in &sets {
        let rows = (0..run.xus.len() as u32).filter(|&r| run.xu_set[r as usize] == Some(set));
        let rows: Vec<u32> = rows.collect();
        let table = of_set(&run.xus, &rows, &shapes);
        let counted = |e: &&crate::run::EventInfo| table.event(&e.name).is_some();
        runs.push(RunSummary {
            name: format!("{name}, event set {set}"),
            events: run.events.iter().filter(counted).cloned().collect(),
            xus: rows.len() as u64,
            ..summary.runs[0].clone()
        });
        match &mut join {
            None => join = Some(LglJoin::new(table)),
            Some(join) => join.add(table),
        }
        rows_of.push(rows);
    }
    let combined = join.map(LglJoin::finish);
    let Some(Combined {
        mut table,
        origins,
        sources,
        unmatched,
        ..
    }) = combined
    else {
        return Profile::of_run(name, run);
    };
    // Everything but the counts is the first set's.
    let first = gather(&rows_of[0], &sources[0]);
    table.label = gather(&run.xus.label, &first);
    table.labels = Arc::clone(&run.xus.labels);
    for event in &mut summary.events {
        let column = table.events.iter().position(|e| e.name == event.name);
        event.run = column.map(|c| origins[c]);
    }
    summary.runs = runs;
    summary.matching = Some(Matching {
        strategy: INSTANCES.to_owned(),
        matched: table.len() as u64,
        unmatched,
    });
    Profile {
        xus: table,
        origins,
        sources: None,
        summary,
    }
}

/// The XUs of one set, with its events only, and labelled by what they are matched by.
fn of_set(xus: &XuTable, rows: &[u32], shapes: &[Option<u64>]) -> XuTable {
    let mut table = xus.gather(rows);
    table.events.retain_mut(|event| {
        let Some(present) = &event.present else {
            return true;
        };
        let is_counted = present.contains(&true);
        if !present.contains(&false) {
            event.present = None;
        }
        is_counted
    });
    let mut labels = Labels::default();
    let mut label = vec![LabelId::NONE; rows.len()];
    let mut ordinals: HashMap<u64, u64> = HashMap::new();
    for at in xus.labels.depth_first(&table.label) {
        let Some(shape) = shapes[rows[at as usize] as usize] else {
            continue;
        };
        let ordinal = ordinals.entry(shape).or_default();
        *ordinal += 1;
        label[at as usize] = labels.push(LabelId::NONE, &[shape, *ordinal]);
    }
    (table.label, table.labels) = (label, Arc::new(labels));
    table
}

/// For each XU what it has in common with others of other instances; `None` without a label.
fn shapes(run: &Run) -> Vec<Option<u64>> {
    let nodes = node_shapes(&run.nodes);
    let xus = &run.xus;
    let shape = |row: usize| {
        if !xus.label[row].is_some() {
            return None;
        }
        let around = nodes.get(run.xu_parent[row] as usize).copied().unwrap_or(0);
        let construct = xus.construct[row];
        let is_range = construct.is_some_and(Construct::is_share);
        let first = if is_range || xus.iterations[row] > 0 {
            xus.first[row] as u64
        } else {
            0
        };
        let process = xus.processes.get(xus.process[row] as usize);
        let parts = [
            around,
            u64::from(xus.site[row]),
            construct.map_or(0, |c| c as u64),
            first,
            process.map_or(0, |p| u64::from(p.ordinal)),
        ];
        Some(mix(&parts))
    };
    (0..xus.len()).map(shape).collect()
}

/// For each node how its construct is nested, and where they are.
fn node_shapes(nodes: &NodeTable) -> Vec<u64> {
    let mut shapes: Vec<Option<u64>> = vec![None; nodes.len()];
    let mut path = Vec::new();
    for start in 0..nodes.len() {
        let mut at = start;
        // A chain that comes back to itself is as broken as one that ends.
        while shapes[at].is_none() {
            shapes[at] = Some(0);
            path.push(at);
            match nodes.parent[at] {
                NONE => break,
                parent => at = parent as usize,
            }
        }
        while let Some(at) = path.pop() {
            let around = match nodes.parent[at] {
                NONE => 0,
                parent => shapes[parent as usize].unwrap_or(0),
            };
            let own = [
                around,
                u64::from(nodes.site[at]),
                nodes.construct[at] as u64,
            ];
            shapes[at] = Some(mix(&own));
        }
    }
    shapes.into_iter().map(Option::unwrap_or_default).collect()
}

fn mix(parts: &[u64]) -> u64 {
    let hash = parts.iter().fold(LabelHash(0), |h, &part| h.extend(part));
    hash.0 as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::listing;

    #[test]
    fn one_set_is_a_profile_as_it_is() {
        let run = || listing(&["cycles"], false).read();
        assert_eq!(combine_instances("r", run()), Profile::of_run("r", run()));
    }

    #[test]
    fn instances_of_two_sets_make_one_row() {
        let mut run = listing(&["cycles", "instructions"], false).read();
        // Of each kind every second one, in the order of the labels, was counted with the other set.
        let order = run.xus.labels.depth_first(&run.xus.label);
        let mut seen: HashMap<Option<u64>, usize> = HashMap::new();
        let shapes = shapes(&run);
        for &row in &order {
            let nth = seen.entry(shapes[row as usize]).or_default();
            run.xu_set[row as usize] = Some((*nth % 2) as u8);
            *nth += 1;
        }
        for (number, event) in run.xus.events.iter_mut().enumerate() {
            let here = |set: &Option<u8>| *set == Some(number as u8);
            event.present = Some(run.xu_set.iter().map(here).collect());
        }
        let expected: usize = seen.values().map(|n| n / 2).sum();
        let left_over: usize = seen.values().map(|n| n % 2).sum();
        assert!(expected > 0, "{seen:?}");
        let labels: Vec<_> = (0..run.xus.len())
            .map(|r| run.xus.label_text(r, 99))
            .collect();
        let profile = combine_instances("r", run);
        assert_eq!(profile.xus.len(), expected);
        assert_eq!(profile.origins, [0, 1]);
        assert!(profile.xus.events.iter().all(|e| e.present.is_none()));
        assert!((0..expected).all(|r| labels.contains(&profile.xus.label_text(r, 99))));
        let names: Vec<_> = profile
            .summary
            .runs
            .iter()
            .map(|r| r.name.as_str())
            .collect();
        assert_eq!(names, ["r, event set 0", "r, event set 1"]);
        let runs: Vec<_> = profile.summary.events.iter().map(|e| e.run).collect();
        assert_eq!(runs, [Some(0), Some(1)]);
        let matching = profile.summary.matching.unwrap();
        let unmatched: u64 = matching.unmatched.iter().map(|u| u.count).sum();
        assert_eq!(
            (matching.matched, unmatched),
            (expected as u64, left_over as u64)
        );
    }
}
