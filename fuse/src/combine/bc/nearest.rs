//! The next grid by the smallest distance between the two sides.
//!
//! Distances are Euclidean, in units of the present grid's cells. Both searches sort one side along an axis and, from each
//! point of the other side, look outwards until the distance along the axis alone is too large.

use super::grid::Columns;
use rayon::prelude::*;

/// A side's points, one after the other, `dimensions` coordinates each.
struct Points {
    dimensions: usize,
    coordinates: Vec<f64>,
}

impl Points {
    fn len(&self) -> usize {
        self.coordinates.len() / self.dimensions
    }

    fn get(&self, at: usize) -> &[f64] {
        &self.coordinates[at * self.dimensions..][..self.dimensions]
    }
}

fn distance_squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// The axis with the most different coordinates, which separates points best.
fn widest_axis(points: &Points) -> usize {
    let different = |axis: usize| {
        let mut values: Vec<f64> = (0..points.len()).map(|at| points.get(at)[axis]).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        values.len()
    };
    (0..points.dimensions)
        .max_by_key(|&axis| different(axis))
        .unwrap_or(0)
}

/// One side sorted along an axis, to be searched from the other side's points.
struct Sweep<'a> {
    points: &'a Points,
    axis: usize,
    order: Vec<u32>,
    along: Vec<f64>,
}

impl<'a> Sweep<'a> {
    fn new(points: &'a Points) -> Sweep<'a> {
        let axis = widest_axis(points);
        let mut order: Vec<u32> = (0..points.len() as u32).collect();
        let at = |&i: &u32| points.get(i as usize)[axis];
        order.par_sort_unstable_by(|a, b| at(a).total_cmp(&at(b)));
        let along = order.iter().map(at).collect();
        Sweep {
            points,
            axis,
            order,
            along,
        }
    }

    /// Calls `visit(point's number, squared distance)` for candidates, nearest along the axis first on each side, until the
    /// squared distance along the axis exceeds what `visit` returned last.
    fn around(&self, from: &[f64], mut limit: f64, mut visit: impl FnMut(usize, f64) -> f64) {
        let x = from[self.axis];
        let middle = self.along.partition_point(|&a| a < x);
        for at in middle..self.along.len() {
            if (self.along[at] - x).powi(2) > limit {
                break;
            }
            let point = self.order[at] as usize;
            limit = visit(point, distance_squared(from, self.points.get(point)));
        }
        for at in (0..middle).rev() {
            if (self.along[at] - x).powi(2) > limit {
                break;
            }
            let point = self.order[at] as usize;
            limit = visit(point, distance_squared(from, self.points.get(point)));
        }
    }

    /// The smallest squared distance from any of `from`.
    fn smallest(&self, from: &Points) -> f64 {
        // Chunks, so that each starts with a good bound after its first point.
        let chunk = 1024;
        (0..from.len().div_ceil(chunk))
            .into_par_iter()
            .map(|c| {
                let mut best = f64::INFINITY;
                for at in c * chunk..((c + 1) * chunk).min(from.len()) {
                    self.around(from.get(at), best, |_, d| {
                        best = best.min(d);
                        best
                    });
                }
                best
            })
            .reduce(|| f64::INFINITY, f64::min)
    }
}

/// Positions of XUs in units of cells.
fn positions(varying: &[&Columns], d: u64, rows: &[u32], is_prev: bool) -> Points {
    let mut coordinates = Vec::with_capacity(rows.len() * varying.len());
    for &row in rows {
        for column in varying {
            let side = if is_prev { &column.prev } else { &column.cur };
            let unit = d as f64 / column.range as f64;
            coordinates.push((side[row as usize] - column.low) as f64 * unit);
        }
    }
    Points {
        dimensions: varying.len(),
        coordinates,
    }
}

/// `d' = floor(d / (1 + smallest distance))`, between 1 and `d - 1`.
fn coarser(d: u64, smallest: f64) -> u64 {
    ((d as f64 / (1.0 + smallest)).floor() as u64)
        .min(d - 1)
        .max(1)
}

/// `nn`: over all pairs of XUs that are left.
pub(super) fn next_of_all(varying: &[&Columns], d: u64, prev: &[u32], cur: &[u32]) -> u64 {
    let (prev, cur) = (
        positions(varying, d, prev, true),
        positions(varying, d, cur, false),
    );
    coarser(d, Sweep::new(&cur).smallest(&prev).sqrt())
}

/// Occupied cells of a side with their XUs, as positions in `rows`.
struct Occupied {
    cells: Points,
    members: Vec<Vec<u32>>,
}

fn occupied(varying: &[&Columns], d: u64, rows: &[u32], is_prev: bool) -> Occupied {
    let cell_of = |&row: &u32| -> Vec<u64> {
        let value = |c: &&Columns| (if is_prev { &c.prev } else { &c.cur })[row as usize];
        varying.iter().map(|c| c.cell(value(c), d)).collect()
    };
    let mut by_cell: Vec<(Vec<u64>, u32)> = rows
        .iter()
        .enumerate()
        .map(|(at, row)| (cell_of(row), at as u32))
        .collect();
    by_cell.par_sort_unstable();
    let mut coordinates = vec![];
    let mut members: Vec<Vec<u32>> = vec![];
    for group in by_cell.chunk_by(|a, b| a.0 == b.0) {
        coordinates.extend(group[0].0.iter().map(|&c| c as f64));
        members.push(group.iter().map(|(_, at)| *at).collect());
    }
    Occupied {
        cells: Points {
            dimensions: varying.len(),
            coordinates,
        },
        members,
    }
}

/// `paper`: over the XUs in those pairs of cells that are nearest to each other.
pub(super) fn next_of_nearest_cells(
    varying: &[&Columns],
    d: u64,
    prev: &[u32],
    cur: &[u32],
) -> u64 {
    let (ours, theirs) = (
        occupied(varying, d, prev, true),
        occupied(varying, d, cur, false),
    );
    let (prev, cur) = (
        positions(varying, d, prev, true),
        positions(varying, d, cur, false),
    );
    let sweep = Sweep::new(&theirs.cells);
    // Distances of cells are square roots of whole numbers: the margin covers rounding, not other cells.
    let limit = (sweep.smallest(&ours.cells).sqrt() * (1.0 + 1e-12)).powi(2);
    let smallest = (0..ours.members.len())
        .into_par_iter()
        .with_min_len(256)
        .map(|at| {
            let mut best = f64::INFINITY;
            sweep.around(ours.cells.get(at), limit, |their, distance| {
                if distance <= limit {
                    for &p in &ours.members[at] {
                        for &c in &theirs.members[their] {
                            let d = distance_squared(prev.get(p as usize), cur.get(c as usize));
                            best = best.min(d);
                        }
                    }
                }
                limit
            });
            best
        })
        .reduce(|| f64::INFINITY, f64::min);
    coarser(d, smallest.sqrt())
}
