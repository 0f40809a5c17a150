//! Alignment of two sequences that keep their order (Needleman and Wunsch 1970), with how sure each pair is.

/// What leaving an element without a partner costs.
const GAP: f64 = 0.5;

/// A pair that the best alignment has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Aligned {
    /// Position in the first sequence.
    pub(super) a: usize,
    /// In the second one.
    pub(super) b: usize,
    /// How much better the best alignment is than the best one without this pair.
    pub(super) margin: f64,
}

/// The best alignment of `n` with `m` elements. `score`: of a pair; one at or below 0 is never made.
pub(super) fn align(n: usize, m: usize, score: impl Fn(usize, usize) -> f64) -> Vec<Aligned> {
    let scores: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..m).map(|j| score(i, j)).collect())
        .collect();
    // The best of the first i and j elements, and of those from i and j on.
    let mut front = vec![vec![0.0; m + 1]; n + 1];
    let mut back = front.clone();
    for i in 0..=n {
        for j in 0..=m {
            if (i, j) == (0, 0) {
                continue;
            }
            let mut best = f64::NEG_INFINITY;
            if i > 0 {
                best = best.max(front[i - 1][j] - GAP);
            }
            if j > 0 {
                best = best.max(front[i][j - 1] - GAP);
            }
            if i > 0 && j > 0 && scores[i - 1][j - 1] > 0.0 {
                best = best.max(front[i - 1][j - 1] + scores[i - 1][j - 1]);
            }
            front[i][j] = best;
        }
    }
    for i in (0..=n).rev() {
        for j in (0..=m).rev() {
            if (i, j) == (n, m) {
                continue;
            }
            let mut best = f64::NEG_INFINITY;
            if i < n {
                best = best.max(back[i + 1][j] - GAP);
            }
            if j < m {
                best = best.max(back[i][j + 1] - GAP);
            }
            if i < n && j < m && scores[i][j] > 0.0 {
                best = best.max(back[i + 1][j + 1] + scores[i][j]);
            }
            back[i][j] = best;
        }
    }
    let best = front[n][m];
    let through = |i: usize, j: usize| match scores[i][j] > 0.0 {
        true => front[i][j] + scores[i][j] + back[i + 1][j + 1],
        false => f64::NEG_INFINITY,
    };
    let mut pairs = vec![];
    for i in 0..n {
        let mut others: Vec<f64> = (0..m).map(|j| through(i, j)).collect();
        let Some(j) = (0..m).max_by(|&x, &y| others[x].total_cmp(&others[y])) else {
            continue;
        };
        if others[j] < best - 1e-9 {
            continue;
        }
        others[j] = f64::NEG_INFINITY;
        let alone = (0..=m).map(|j| front[i][j] - GAP + back[i + 1][j]);
        let second = others
            .into_iter()
            .chain(alone)
            .fold(f64::NEG_INFINITY, f64::max);
        pairs.push(Aligned {
            a: i,
            b: j,
            margin: best - second,
        });
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_is_aligned_and_what_could_be_elsewhere_has_no_margin() {
        let equal = |a: &[u32], b: &[u32]| {
            let (a, b) = (a.to_vec(), b.to_vec());
            align(
                a.len(),
                b.len(),
                |i, j| if a[i] == b[j] { 1.0 } else { -1.0 },
            )
        };
        let pairs: Vec<(usize, usize)> = equal(&[1, 2, 3], &[1, 3, 4])
            .iter()
            .map(|p| (p.a, p.b))
            .collect();
        assert_eq!(pairs, [(0, 0), (2, 1)]);
        let twins = equal(&[7, 7], &[7]);
        assert!(twins.iter().all(|p| p.margin < 1e-9), "{twins:?}");
        assert!(equal(&[7], &[7])[0].margin > 1.0);
        assert!(align(0, 3, |_, _| 1.0).is_empty());
    }
}
