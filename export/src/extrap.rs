//! Extra-P's JSON lines: a measurement each, of a path, a metric and a number of threads. Extra-P makes models from them of how values grow.

use crate::calltree::{CallTree, Quantity, TIME};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};

/// A measurement as Extra-P reads it.
#[derive(Serialize)]
struct Measurement<'a> {
    params: &'a BTreeMap<&'static str, u64>,
    callpath: &'a str,
    metric: &'a str,
    value: f64,
}

/// What time with all that is inside is called.
const INCLUSIVE: &str = "inclusive time";

/// What profiles are told apart by: threads, and processes where their numbers differ.
pub fn parameters(trees: &[CallTree]) -> Vec<BTreeMap<&'static str, u64>> {
    let processes: BTreeSet<usize> = trees.iter().map(|t| t.processes.len()).collect();
    let threads: BTreeSet<u64> = trees.iter().map(|t| t.team).collect();
    let of = |tree: &CallTree| {
        let mut parameters = BTreeMap::new();
        if threads.len() > 1 || processes.len() < 2 {
            parameters.insert("threads", tree.team);
        }
        if processes.len() > 1 {
            parameters.insert("processes", tree.processes.len() as u64);
        }
        parameters
    };
    trees.iter().map(of).collect()
}

/// Writes profiles; several with the same parameters are repetitions. Values are of all threads together, times in seconds. A path that one
/// of them does not have was not executed: its values are 0. Metrics that one of them does not have are left out.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, trees: &[CallTree]) -> io::Result<()> {
    let mut paths: Vec<String> = vec![];
    let mut numbers: HashMap<String, usize> = HashMap::new();
    // For each profile the nodes by number of their path.
    let mut found: Vec<HashMap<usize, Vec<usize>>> = vec![];
    for tree in trees {
        let mut nodes: HashMap<usize, Vec<usize>> = HashMap::new();
        for (node, path) in names(tree).into_iter().enumerate() {
            let next = paths.len();
            let number = *numbers.entry(path.clone()).or_insert(next);
            if number == next {
                paths.push(path);
            }
            nodes.entry(number).or_default().push(node);
        }
        found.push(nodes);
    }
    let all_inclusive: Vec<Vec<u64>> = trees.iter().map(inclusive).collect();
    let Some(first) = trees.first() else {
        return Ok(());
    };
    let everywhere = |name: &&str| trees.iter().all(|tree| tree.metric(name).is_some());
    let metrics: Vec<&str> = first
        .metrics
        .iter()
        .map(|m| &*m.name)
        .filter(everywhere)
        .collect();
    let parameters = parameters(trees);
    for (number, callpath) in paths.iter().enumerate() {
        for metric in metrics.iter().copied().chain([INCLUSIVE]) {
            for (at, tree) in trees.iter().enumerate() {
                let nodes = found[at].get(&number).map_or(&[][..], Vec::as_slice);
                let known = tree.metric(metric);
                let values = nodes.iter().map(|&node| match known {
                    Some(metric) => tree.own(node, metric),
                    None => all_inclusive[at][node],
                });
                let sum = values.sum::<u64>() as f64;
                let value = match tree.metrics[known.unwrap_or(TIME)].quantity {
                    Quantity::Time => sum / 1e9,
                    Quantity::Visits | Quantity::Event => sum,
                };
                let params = &parameters[at];
                let measurement = Measurement {
                    params,
                    callpath,
                    metric,
                    value,
                };
                serde_json::to_writer(&mut *out, &measurement)?;
                out.write_all(b"\n")?;
            }
        }
    }
    Ok(())
}

/// Of each node its path. The names of frames have no arrow.
fn names(tree: &CallTree) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        let name = tree.frame(at).name.replace("->", "→");
        names.push(match node.parent {
            Some(parent) => format!("{}->{name}", names[parent]),
            None => name,
        });
    }
    names
}

/// Of each node the time of all threads, with what is below.
fn inclusive(tree: &CallTree) -> Vec<u64> {
    let mut all: Vec<u64> = (0..tree.nodes.len())
        .map(|node| tree.own(node, TIME))
        .collect();
    for at in (1..all.len()).rev() {
        if let Some(parent) = tree.nodes[at].parent {
            all[parent] += all[at];
        }
    }
    all
}
