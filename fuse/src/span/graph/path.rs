//! The critical path: what each step on it had waited for, from the end to the begin.

use super::simulate::Played;
use super::{Graph, Step};
use crate::run::nodes::NONE;
use crate::span::gather::Gathered;

/// Intervals on the path and how long, in the order of time. `played`: without limits.
pub(in crate::span) fn critical(
    gathered: &Gathered,
    graph: &Graph,
    played: &Played,
) -> Vec<(u32, u64)> {
    let mut path: Vec<(u32, u64)> = vec![];
    let Some(last) = graph.strands.get(played.last as usize) else {
        return path;
    };
    let (mut strand, mut at) = (played.last, last.end);
    let most = 2 * (graph.steps.len() + graph.strands.len());
    for _ in 0..most {
        if at == graph.strands[strand as usize].first {
            (strand, at) = played.begun[strand as usize];
            if strand == NONE {
                break;
            }
            continue;
        }
        at -= 1;
        let is_here = |inner: u32| played.begun[inner as usize] == (strand, at);
        match (graph.steps[at as usize], played.causes[at as usize]) {
            (Step::Code { ticks, rec }, _) => path.push((rec, ticks)),
            (Step::Inline { strand: inner } | Step::Block { strand: inner }, _) => {
                if is_here(inner) {
                    (strand, at) = (inner, graph.strands[inner as usize].end);
                }
            }
            (_, (NONE, NONE)) => {}
            // The longest unit of a loop, nothing but code.
            (_, (NONE, rec)) => path.push((rec, gathered.recs[rec as usize].len())),
            (_, from) => (strand, at) = from,
        }
    }
    path.reverse();
    path
}
