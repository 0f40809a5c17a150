//! Least squares for a few columns.

/// Relative size of the ridge.
const RIDGE: f64 = 1e-3;

/// Sums that are made side by side, as a processor adds several numbers at once. Always in the same order.
const LANES: usize = 8;

/// The sum of what this says of each of `n` rows.
fn sum(n: usize, of_row: impl Fn(usize) -> f64) -> f64 {
    let mut sums = [0.0; LANES];
    for at in 0..n / LANES {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum += of_row(at * LANES + lane);
        }
    }
    let rest: f64 = (n / LANES * LANES..n).map(&of_row).sum();
    sums.iter().sum::<f64>() + rest
}

pub(super) fn mean(values: &[f64]) -> f64 {
    sum(values.len(), |row| values[row]) / values.len().max(1) as f64
}

pub(super) fn variance(values: &[f64]) -> f64 {
    let m = mean(values);
    squares(values.len(), |row| values[row] - m) / values.len().max(1) as f64
}

/// Brings a column to mean 0.
pub(super) fn centre(column: &mut [f64]) {
    let m = mean(column);
    column.iter_mut().for_each(|v| *v -= m);
}

/// The sum of the squares of what this says of each of `n` rows.
pub(super) fn squares(n: usize, of_row: impl Fn(usize) -> f64) -> f64 {
    sum(n, |row| {
        let value = of_row(row);
        value * value
    })
}

/// Brings columns to mean 0 and variance 1 of `reference`; `None` if that is constant.
pub(super) fn standardized(reference: &[f64], columns: [&[f64]; 2]) -> Option<[Vec<f64>; 2]> {
    let (m, v) = (mean(reference), variance(reference));
    if v <= 0.0 {
        return None;
    }
    let s = v.sqrt().recip();
    Some(columns.map(|c| c.iter().map(|x| (x - m) * s).collect()))
}

/// Rows whose products are summed up together: of all columns they fit into the first or second cache.
const TILE: usize = 256;

/// The sums that regressions of one column on others are made of.
pub(super) struct Normal {
    /// Products of the columns, made larger on the diagonal; the last one is what is to be told.
    sums: Vec<Vec<f64>>,
}

impl Normal {
    /// Of `y` on `x` (columns), all of mean 0.
    pub(super) fn of(x: &[Vec<f64>], y: &[f64]) -> Normal {
        let (k, n) = (x.len(), y.len());
        let columns: Vec<&[f64]> = x.iter().map(|c| &c[..n]).chain([y]).collect();
        let pairs: Vec<[usize; 2]> = (0..k).flat_map(|i| (i..=k).map(move |j| [i, j])).collect();
        // Each sum has the order of those that [`sum`] makes.
        let mut lanes = vec![[0.0; LANES]; pairs.len()];
        let whole = n / LANES * LANES;
        for begin in (0..whole).step_by(TILE) {
            let tile = begin..whole.min(begin + TILE);
            for (sums, &[i, j]) in lanes.iter_mut().zip(&pairs) {
                let a = columns[i][tile.clone()].chunks_exact(LANES);
                let b = columns[j][tile.clone()].chunks_exact(LANES);
                let mut own = *sums;
                for (a, b) in a.zip(b) {
                    for lane in 0..LANES {
                        own[lane] += a[lane] * b[lane];
                    }
                }
                *sums = own;
            }
        }
        let mut sums = vec![vec![0.0; k + 1]; k];
        for (of_lanes, [i, j]) in lanes.into_iter().zip(pairs) {
            let rest: f64 = (whole..n)
                .map(|row| columns[i][row] * columns[j][row])
                .sum();
            let product = of_lanes.iter().sum::<f64>() + rest;
            sums[i][j] = product;
            if j < k {
                sums[j][i] = product;
            }
        }
        // Relative to the column: differences are small where labels fix the counts.
        for (i, row) in sums.iter_mut().enumerate() {
            row[i] += row[i] * RIDGE + n as f64 * 1e-6 + 1e-12;
        }
        Normal { sums }
    }

    /// The coefficients of a ridge regression on the first columns.
    pub(super) fn solve(&self, columns: usize) -> Vec<f64> {
        let k = columns;
        let row = |row: &Vec<f64>| row[..k].iter().chain(row.last()).copied().collect();
        let mut a: Vec<Vec<f64>> = self.sums[..k].iter().map(row).collect();
        // Gauss; the matrix is positive definite.
        for i in 0..k {
            let (above, below) = a.split_at_mut(i + 1);
            let pivot = &above[i];
            for row in below {
                let f = row[i] / pivot[i];
                row[i..=k]
                    .iter_mut()
                    .zip(&pivot[i..=k])
                    .for_each(|(x, p)| *x -= f * p);
            }
        }
        let mut b = vec![0.0; k];
        for i in (0..k).rev() {
            let known: f64 = (i + 1..k).map(|c| a[i][c] * b[c]).sum();
            b[i] = (a[i][k] - known) / a[i][i];
        }
        b
    }
}

/// The coefficients of a ridge regression of `y` on `x` (columns), all of mean 0.
pub(super) fn ridge(x: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    Normal::of(x, y).solve(x.len())
}

/// What a regression says of every row.
pub(super) fn predictions(x: &[Vec<f64>], b: &[f64], n: usize) -> Vec<f64> {
    let mut all = vec![0.0; n];
    for (column, b) in x.iter().zip(b) {
        all.iter_mut().zip(column).for_each(|(p, v)| *p += v * b);
    }
    all
}

pub(super) fn predict(x: &[Vec<f64>], b: &[f64], row: usize) -> f64 {
    x.iter().zip(b).map(|(column, b)| column[row] * b).sum()
}
