//! Pairs of XUs that behave alike, in n log n: both sides are halved at the same rank, along the axis where they extend
//! furthest, until one is left.

/// Where halves are worth a thread of their own.
const PARALLEL: usize = 1 << 13;

/// A side's points, as columns.
pub(super) type Axes = [Vec<f32>];

/// One-to-one pairs of `prev` and `cur` (positions in the columns of `ours` and `theirs`), as many as the smaller side has.
pub(super) fn halved(
    ours: &Axes,
    theirs: &Axes,
    prev: &mut [u32],
    cur: &mut [u32],
) -> Vec<(u32, u32)> {
    let (n, m) = (prev.len(), cur.len());
    if n == 0 || m == 0 {
        return vec![];
    }
    if n == 1 && m == 1 || ours.is_empty() {
        return prev.iter().copied().zip(cur.iter().copied()).collect();
    }
    let axis = (0..ours.len())
        .max_by(|&a, &b| spread(&theirs[a], cur).total_cmp(&spread(&theirs[b], cur)))
        .unwrap_or(0);
    // The smaller side's half, and the same share of the other.
    let (half, half_cur) = if n <= m {
        (n / 2, (m * (n / 2)).div_ceil(n))
    } else {
        ((n * (m / 2)).div_ceil(m), m / 2)
    };
    cut(&ours[axis], prev, half);
    cut(&theirs[axis], cur, half_cur);
    if half == 0 && half_cur == 0 {
        // One against several: the middle one stands for them.
        let middle = n.max(m) / 2;
        return if n <= m {
            cut(&theirs[axis], cur, middle);
            vec![(prev[0], cur[middle])]
        } else {
            cut(&ours[axis], prev, middle);
            vec![(prev[middle], cur[0])]
        };
    }
    let (prev_low, prev_high) = prev.split_at_mut(half);
    let (cur_low, cur_high) = cur.split_at_mut(half_cur);
    let (mut low, high) = if n.max(m) > PARALLEL {
        rayon::join(
            || halved(ours, theirs, prev_low, cur_low),
            || halved(ours, theirs, prev_high, cur_high),
        )
    } else {
        (
            halved(ours, theirs, prev_low, cur_low),
            halved(ours, theirs, prev_high, cur_high),
        )
    };
    low.extend(high);
    low
}

/// Brings the `at` smallest to the front; equal ones by their positions.
fn cut(axis: &[f32], rows: &mut [u32], at: usize) {
    if at < rows.len() {
        rows.select_nth_unstable_by(at, |&a, &b| {
            let order = axis[a as usize].total_cmp(&axis[b as usize]);
            order.then(a.cmp(&b))
        });
    }
}

/// How far points extend along an axis; a sample of them is enough.
fn spread(axis: &[f32], rows: &[u32]) -> f32 {
    let step = (rows.len() / 256).max(1);
    let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0f32);
    for &row in rows.iter().step_by(step) {
        let x = axis[row as usize];
        sum += x;
        squares += x * x;
        n += 1.0;
    }
    squares / n - (sum / n).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::slice::from_ref;

    #[test]
    fn equal_points_find_each_other() {
        let points: Vec<f32> = (0..100).map(|i| (i * 37 % 100) as f32).collect();
        let other: Vec<f32> = (0..100).map(|i| (i * 61 % 100) as f32).collect();
        let (mut prev, mut cur): (Vec<u32>, Vec<u32>) = ((0..100).collect(), (0..100).collect());
        let pairs = halved(from_ref(&points), from_ref(&other), &mut prev, &mut cur);
        assert_eq!(pairs.len(), 100);
        assert!(
            pairs
                .iter()
                .all(|&(p, c)| points[p as usize] == other[c as usize])
        );
    }

    proptest! {
        #[test]
        fn pairs_are_one_to_one(ours in proptest::collection::vec(0u8..9, 0..60), theirs in proptest::collection::vec(0u8..9, 0..60)) {
            let axis = |side: &[u8]| side.iter().map(|&v| f32::from(v)).collect::<Vec<f32>>();
            let mut prev: Vec<u32> = (0..ours.len() as u32).collect();
            let mut cur: Vec<u32> = (0..theirs.len() as u32).collect();
            let pairs = halved(&[axis(&ours)], &[axis(&theirs)], &mut prev, &mut cur);
            prop_assert_eq!(pairs.len(), ours.len().min(theirs.len()));
            let different = |side: fn(&(u32, u32)) -> u32| {
                let mut rows: Vec<u32> = pairs.iter().map(side).collect();
                rows.sort_unstable();
                rows.dedup();
                rows.len()
            };
            prop_assert_eq!((different(|p| p.0), different(|p| p.1)), (pairs.len(), pairs.len()));
        }
    }
}
