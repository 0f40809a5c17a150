//! Least squares for a few columns.

/// Relative size of the ridge.
const RIDGE: f64 = 1e-3;

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub(super) fn variance(values: &[f64]) -> f64 {
    let m = mean(values);
    values.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / values.len().max(1) as f64
}

/// A column at mean 0.
pub(super) fn centred(column: &[f64]) -> Vec<f64> {
    let m = mean(column);
    column.iter().map(|v| v - m).collect()
}

/// The sum of the squares of what this says of each of `n` rows.
pub(super) fn squares(n: usize, of_row: impl Fn(usize) -> f64) -> f64 {
    (0..n).map(|row| of_row(row).powi(2)).sum()
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
            let dot: f64 = x[i].iter().zip(&x[j]).map(|(p, q)| p * q).sum();
            a[i][j] = dot;
            a[j][i] = dot;
        }
        // Relative to the column: differences are small where labels fix the counts.
        a[i][i] += a[i][i] * RIDGE + n * 1e-6 + 1e-12;
        a[i][k] = x[i].iter().zip(y).map(|(p, q)| p * q).sum();
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

pub(super) fn predict(x: &[Vec<f64>], b: &[f64], row: usize) -> f64 {
    x.iter().zip(b).map(|(column, b)| column[row] * b).sum()
}
