//! The first basis.

use super::near::{NEVER, Near, Row, WINDOW, cheapest, scaled};
use super::tree::Tree;

/// What a sink's distance from others weighs; found by trying.
const WEIGHT: f32 = 1.15;
/// Low bits of a source's place in the order, which say which one it is.
const NUMBER: u32 = 255;

/// What is needed only until the tree stands.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Sources, those from which everything is far first.
    order: Vec<u32>,
    /// What is taken off the costs of arcs to each sink; closed ones are those that have nothing left to take.
    to: Vec<i32>,
}

/// Where amounts are: their mean place, and the mean square of the distance from it.
struct Cloud {
    x: f32,
    y: f32,
    variance: f32,
}

impl Cloud {
    fn of(places: impl Iterator<Item = (f32, f32)>, amounts: &[u64]) -> Cloud {
        let (mut total, mut sum_x, mut sum_y, mut squares) = (0.0, 0.0, 0.0, 0.0);
        for ((x, y), &amount) in places.zip(amounts) {
            let amount = amount as f32;
            total += amount;
            sum_x += amount * x;
            sum_y += amount * y;
            squares += amount * (x * x + y * y);
        }
        let (x, y) = (sum_x / total, sum_y / total);
        Cloud {
            x,
            y,
            variance: (squares / total - x * x - y * y).max(0.0),
        }
    }

    /// How far it is from a place, nearly (the root of the mean square).
    fn distance(&self, (x, y): (f32, f32)) -> f32 {
        let (dx, dy) = (x - self.x, y - self.y);
        (dx * dx + dy * dy + self.variance).sqrt()
    }
}

/// Sources from which everything is far come first; each gives what it has to the sinks that are near it and far from others
/// (after Russell, 1969). Each arc uses up either a source or a sink (the amounts are such that only the last one uses up both), so the
/// arcs are a spanning tree. `left`: amounts of the sinks, then of the sources.
pub(super) fn from_afar<const W: usize>(
    near: &Near,
    left: &mut [u64],
    scratch: &mut Scratch,
    tree: &mut Tree<W>,
) {
    let Scratch { order, to } = scratch;
    let (wanted, left) = left.split_at_mut(near.sinks().len());
    let (sources, sinks) = (
        Cloud::of(near.sources(), left),
        Cloud::of(near.sinks(), wanted),
    );
    order.clear();
    // Numbers from 0 on are in the order of their bits.
    let place = |(number, at)| sinks.distance(at).to_bits() & !NUMBER | number;
    order.extend((0..).zip(near.sources()).map(place));
    order.sort_unstable_by(|a, b| b.cmp(a));
    to.clear();
    to.extend(near.sinks().map(|at| scaled(WEIGHT * sources.distance(at))));
    to.resize(near.padded(), -NEVER);
    for number in &*order {
        let source = (number & NUMBER) as usize;
        let (begin, row) = near.row(source);
        while left[source] > 0 {
            let window: &Row = to[begin..][..WINDOW].try_into().expect("a window");
            let (value, lane) = cheapest(row, window);
            let mut sink = begin + lane;
            if value > NEVER / 2 {
                // Nothing near is left.
                let value = |&sink: &usize| near.cost(source, sink) - to[sink];
                sink = (0..wanted.len()).min_by_key(value).expect("sinks");
            }
            let flow = left[source].min(wanted[sink]);
            left[source] -= flow;
            wanted[sink] -= flow;
            if wanted[sink] == 0 {
                to[sink] = -NEVER;
            }
            let is_source = left[source] == 0;
            tree.hang(source, sink, is_source, flow, near.cost(source, sink));
        }
    }
    tree.stand();
}
