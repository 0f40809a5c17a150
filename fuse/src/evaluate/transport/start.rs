//! The first basis.

use super::{LANES, least, least_of};

/// What a sink's distance from others weighs; found by trying.
const WEIGHT: f32 = 1.15;

/// What is needed only until the tree stands.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Arcs of the basis: source, sink (counted from the sources' end), flow.
    pub(super) arcs: Vec<(u16, u16, u64)>,
    /// Mean distance from each source, and to each sink, by amounts.
    pub(super) from: Vec<f32>,
    pub(super) to: Vec<f32>,
    /// Sources in the order of that.
    order: Vec<(u32, u16)>,
    /// Neighbours of each node and the flow between them, by `begin`.
    pub(super) neighbours: Vec<(u16, u64)>,
    pub(super) begin: Vec<u16>,
    pub(super) stack: Vec<u16>,
}

/// Sources from which everything is far come first; each gives what it has to the sinks that are near it and far from others
/// (after Russell, 1969). Each arc uses up either a source or a sink (the amounts are such that only the last one uses up both), so the
/// arcs are a spanning tree. `left`: amounts of the sources, then of the sinks.
pub(super) fn from_afar(distances: &[f32], left: &mut [u64], stride: usize, scratch: &mut Scratch) {
    let Scratch {
        arcs,
        from,
        to,
        order,
        ..
    } = scratch;
    let sources = from.len();
    let sinks = left.len() - sources;
    order.clear();
    order.extend((0..sources).map(|s| (from[s].to_bits(), s as u16)));
    // Numbers from 0 on are in the order of their bits.
    order.sort_unstable_by(|a, b| b.cmp(a));
    // What is taken off the distances; infinite where a sink has nothing left to take.
    to.iter_mut().for_each(|mean| *mean *= -WEIGHT);
    to[sinks..].fill(f32::INFINITY);
    arcs.clear();
    for &(_, number) in &*order {
        let source = usize::from(number);
        while left[source] > 0 {
            let sink = nearest(&distances[source * stride..][..stride], to);
            let flow = left[source].min(left[sources + sink]);
            arcs.push((number, (sources + sink) as u16, flow));
            left[source] -= flow;
            left[sources + sink] -= flow;
            if left[sources + sink] == 0 {
                to[sink] = f32::INFINITY;
            }
        }
    }
    debug_assert_eq!(arcs.len(), sources + sinks - 1);
}

fn nearest(row: &[f32], closed: &[f32]) -> usize {
    let chunks = || row.chunks_exact(LANES).zip(closed.chunks_exact(LANES));
    let mut lanes = [f32::INFINITY; LANES];
    for (row, closed) in chunks() {
        for lane in 0..LANES {
            lanes[lane] = least(lanes[lane], row[lane] + closed[lane]);
        }
    }
    let nearest = least_of(lanes);
    for (number, (row, closed)) in chunks().enumerate() {
        let is_it = |lane: usize| row[lane] + closed[lane] == nearest;
        if (0..LANES).fold(false, |any, lane| any | is_it(lane)) {
            return (0..LANES)
                .find(|&lane| is_it(lane))
                .map_or(0, |lane| number * LANES + lane);
        }
    }
    0
}
