//! The first basis.

use super::LANES;

/// What is needed only until the tree stands.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Arcs of the basis: source, sink (counted from the sources' end), flow.
    pub(super) arcs: Vec<(u16, u16, u64)>,
    /// Infinite where a sink has nothing left to take.
    closed: Vec<f32>,
    open: Vec<u16>,
    /// Neighbours of each node and the flow between them, by `begin`.
    pub(super) neighbours: Vec<(u16, u64)>,
    pub(super) begin: Vec<u16>,
    pub(super) stack: Vec<u16>,
}

/// Sources take turns; each gives what it can to the nearest sink that still takes something. Each arc uses up either a source
/// or a sink (the amounts are such that only the last one uses up both), so the arcs are a spanning tree. `left`: amounts of the
/// sources, then of the sinks.
pub(super) fn row_minimum(
    distances: &[f32],
    left: &mut [u64],
    stride: usize,
    scratch: &mut Scratch,
) {
    let Scratch {
        arcs, closed, open, ..
    } = scratch;
    let sources = distances.len() / stride;
    let sinks = left.len() - sources;
    arcs.clear();
    closed.clear();
    closed.resize(sinks, 0.0);
    closed.resize(stride, f32::INFINITY);
    open.clear();
    open.extend(0..sources as u16);
    while !open.is_empty() {
        open.retain(|&number| {
            let source = usize::from(number);
            let sink = nearest(&distances[source * stride..][..stride], closed);
            let flow = left[source].min(left[sources + sink]);
            arcs.push((number, (sources + sink) as u16, flow));
            left[source] -= flow;
            left[sources + sink] -= flow;
            if left[sources + sink] == 0 {
                closed[sink] = f32::INFINITY;
            }
            left[source] > 0
        });
    }
    debug_assert_eq!(arcs.len(), sources + sinks - 1);
}

fn nearest(row: &[f32], closed: &[f32]) -> usize {
    let mut least = [f32::INFINITY; LANES];
    for (row, closed) in row.chunks_exact(LANES).zip(closed.chunks_exact(LANES)) {
        for lane in 0..LANES {
            let distance = row[lane] + closed[lane];
            least[lane] = if distance < least[lane] {
                distance
            } else {
                least[lane]
            };
        }
    }
    let least = least.into_iter().fold(f32::INFINITY, f32::min);
    let mut distances = row.iter().zip(closed).map(|(d, c)| d + c);
    distances.position(|d| d == least).unwrap_or(0)
}
