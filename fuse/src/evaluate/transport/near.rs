//! Costs as whole numbers, of arcs from a source to the sinks around it.
//!
//! Sinks are in the order of their bins, so those of a few rows of the histogram around a source are a window of them, and most
//! of what is moved ends there. Arcs that lead farther are measured when somebody asks.

use super::Mass;

/// Costs that are computed together; windows begin at multiples of it.
pub(super) const LANES: usize = 16;
/// Sinks in a window.
pub(super) const WINDOW: usize = 64;
/// Low bits of a cost, which say where in its window it stands: so the smallest says where it is.
const MARK: u32 = WINDOW.trailing_zeros();
/// Whole numbers in one of distance. All places are within 2, in both directions.
const UNITS: f32 = (1 << 20) as f32;
/// Above every cost, and what potentials are kept below where costs have to be above them.
pub(super) const NEVER: i32 = 1 << 29;
/// Beyond all places; its square is a number yet.
const FAR: f32 = 1e18;

/// Costs to the sinks of a window, each with its place there in the low bits.
pub(super) type Row = [i32; WINDOW];

/// Places in single precision, and costs.
#[derive(Debug, Default)]
pub(super) struct Near {
    sinks: usize,
    /// Sinks' places, padded.
    x: Vec<f32>,
    y: Vec<f32>,
    /// Sources' places.
    from: Vec<(f32, f32)>,
    /// Where each source's window begins, and its costs.
    begin: Vec<u16>,
    rows: Vec<Row>,
}

/// A distance as a cost.
#[inline]
fn whole(distance: f32) -> i32 {
    /// Between this and twice as much numbers are whole: adding it rounds.
    const SHIFT: f32 = (1 << 23) as f32;
    const MOST: f32 = (1 << 22) as f32;
    let units = distance * UNITS;
    let units = if units < MOST { units } else { MOST };
    ((units + SHIFT).to_bits() as i32 - SHIFT.to_bits() as i32) << MARK
}

/// The same for what is no cost of an arc but is compared with them.
#[inline]
pub(super) fn scaled(distance: f32) -> i32 {
    ((distance * UNITS) as i32) << MARK
}

/// What rounding makes at most of a reduced cost of 0, the sum of costs along a cycle of so many nodes. A cost is off by less than
/// 1.2 units: half a unit, two coordinates on both sides, three operations. A few units more for those outside the window, where
/// squares are compared.
pub(super) fn error_of(nodes: usize) -> i32 {
    (nodes as i32 * 3 / 2 + 8) << MARK
}

/// A cost without its mark, and the mark.
#[inline]
pub(super) fn unmarked(cost: i32) -> (i32, usize) {
    let mark = WINDOW as i32 - 1;
    (cost & !mark, (cost & mark) as usize)
}

/// The least of the costs less the potentials, and where it is.
#[inline]
pub(super) fn cheapest(row: &Row, potentials: &Row) -> (i32, usize) {
    let mut lanes = [i32::MAX; LANES];
    let chunks = row.chunks_exact(LANES).zip(potentials.chunks_exact(LANES));
    for (row, potentials) in chunks {
        for lane in 0..LANES {
            lanes[lane] = lanes[lane].min(row[lane].wrapping_sub(potentials[lane]));
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = lanes[lane].min(lanes[lane + half]);
        }
        half /= 2;
    }
    unmarked(lanes[0])
}

impl Near {
    /// Takes over the places, from the smallest coordinates on.
    pub(super) fn measure(&mut self, supply: &[Mass], demand: &[Mass], (x, y): (f64, f64)) {
        let place = |m: &Mass| ((m.x - x) as f32, (m.y - y) as f32);
        self.sinks = demand.len();
        let padded = self.sinks.next_multiple_of(LANES).max(WINDOW);
        self.x.clear();
        self.y.clear();
        self.x.extend(demand.iter().map(|m| place(m).0));
        self.y.extend(demand.iter().map(|m| place(m).1));
        self.x.resize(padded, FAR);
        self.y.resize(padded, 0.0);
        self.from.clear();
        self.from.extend(supply.iter().map(place));
        self.begin.clear();
        self.rows.clear();
        let mut rank = 0;
        for (source, &(x, y)) in supply.iter().zip(&self.from) {
            while rank < self.sinks && demand[rank].bin < source.bin {
                rank += 1;
            }
            let begin = (rank.saturating_sub(WINDOW / 2) + LANES / 2) / LANES * LANES;
            let begin = begin.min(padded - WINDOW);
            let mut row = [0; WINDOW];
            let window = begin..begin + WINDOW;
            let to = self.x[window.clone()].iter().zip(&self.y[window]);
            for ((cost, (to_x, to_y)), lane) in row.iter_mut().zip(to).zip(0..) {
                let (dx, dy) = (to_x - x, to_y - y);
                *cost = whole((dx * dx + dy * dy).sqrt()) + lane;
            }
            self.begin.push(begin as u16);
            self.rows.push(row);
        }
    }

    /// Number of sinks with their padding.
    pub(super) fn padded(&self) -> usize {
        self.x.len()
    }

    /// A source's window: where it begins, and its costs.
    #[inline]
    pub(super) fn row(&self, source: usize) -> (usize, &Row) {
        (usize::from(self.begin[source]), &self.rows[source])
    }

    /// The cost of any arc.
    #[inline]
    pub(super) fn cost(&self, source: usize, sink: usize) -> i32 {
        let (x, y) = self.from[source];
        let (dx, dy) = (self.x[sink] - x, self.y[sink] - y);
        whole((dx * dx + dy * dy).sqrt())
    }

    /// Places of the sources.
    pub(super) fn sources(&self) -> impl ExactSizeIterator<Item = (f32, f32)> {
        self.from.iter().copied()
    }

    /// Places of the sinks.
    pub(super) fn sinks(&self) -> impl ExactSizeIterator<Item = (f32, f32)> {
        let places = self.x.iter().copied().zip(self.y.iter().copied());
        places.take(self.sinks)
    }

    /// Number of arcs from a source, all sinks considered, whose reduced cost is below `open`. `own`: its potential.
    pub(super) fn open(&self, source: usize, own: i32, open: i32, potentials: &[i32]) -> i32 {
        let mut counts = [0; LANES];
        let (begin, row) = self.row(source);
        let limit = open.wrapping_sub(own);
        let window = potentials[begin..][..WINDOW].chunks_exact(LANES);
        for (row, potentials) in row.chunks_exact(LANES).zip(window) {
            for lane in 0..LANES {
                let cost = row[lane].wrapping_sub(potentials[lane]);
                counts[lane] += i32::from(cost < limit);
            }
        }
        let (x, y) = self.from[source];
        let unit = (UNITS * WINDOW as f32).recip();
        for outside in [0..begin, begin + WINDOW..self.x.len()] {
            let to_x = self.x[outside.clone()].chunks_exact(LANES);
            let to_y = self.y[outside.clone()].chunks_exact(LANES);
            let potentials = potentials[outside].chunks_exact(LANES);
            for ((to_x, to_y), potentials) in to_x.zip(to_y).zip(potentials) {
                for lane in 0..LANES {
                    let (dx, dy) = (to_x[lane] - x, to_y[lane] - y);
                    // Squares, as roots take long.
                    let limit = potentials[lane].wrapping_add(limit) as f32 * unit;
                    let limit = if limit > 0.0 { limit } else { 0.0 };
                    counts[lane] += i32::from(dx * dx + dy * dy < limit * limit);
                }
            }
        }
        counts.iter().sum()
    }
}
