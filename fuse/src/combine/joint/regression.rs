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

/// The sum of the products of two columns.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    let (a, b) = (&a[..n], &b[..n]);
    sum(n, |row| a[row] * b[row])
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

/// The coefficients of a ridge regression of `y` on `x` (columns), all of mean 0.
pub(super) fn ridge(x: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let k = x.len();
    let n = y.len() as f64;
    let mut a = vec![vec![0.0; k + 1]; k];
    for i in 0..k {
        for j in i..k {
            let product = dot(&x[i], &x[j]);
            a[i][j] = product;
            a[j][i] = product;
        }
        // Relative to the column: differences are small where labels fix the counts.
        a[i][i] += a[i][i] * RIDGE + n * 1e-6 + 1e-12;
        a[i][k] = dot(&x[i], y);
    }
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
