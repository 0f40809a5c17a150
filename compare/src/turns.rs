//! Sides whose runs were recorded in turns: what slows the machine down for a while is in both runs of a pair.

use super::side::Side;

/// How many pairs of runs two sides have; `None` if it is not certain that they were recorded in turns, on one host: as many runs on
/// each side, and both of a pair began before either of the next one.
pub(crate) fn pairs(a: &Side, b: &Side) -> Option<u32> {
    let is_one_host = a.origin.host_hash == b.origin.host_hash;
    let (a, b) = (&a.begun, &b.begun);
    let last = |n: usize| a[n].max(b[n]);
    let first = |n: usize| a[n].min(b[n]);
    let is_it = is_one_host && a.len() == b.len() && a.len() > 1;
    let is_it = is_it && (1..a.len()).all(|n| last(n - 1) < first(n));
    // A run beside itself is no pair.
    let is_it = is_it && a.iter().zip(b).all(|(a, b)| a != b);
    is_it.then_some(a.len() as u32)
}

/// Leaves out what single runs measured.
pub(super) fn forget(side: &mut Side) {
    side.each.clear();
    side.begun.clear();
    for region in side.regions.iter_mut().chain(&mut side.parts) {
        region.each.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::side;

    #[test]
    fn runs_that_alternate_are_pairs() {
        let begun = |times: &[f64]| Side {
            begun: times.to_vec(),
            ..side(times.len() as u32, &[], vec![])
        };
        let pairs = |a: &[f64], b: &[f64]| pairs(&begun(a), &begun(b));
        assert_eq!(pairs(&[1.0, 4.0, 5.0], &[2.0, 3.0, 6.0]), Some(3));
        // One after the other, twice A in the middle, one more on a side, one pair.
        assert_eq!(pairs(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), None);
        assert_eq!(pairs(&[1.0, 3.0, 4.0], &[2.0, 5.0, 6.0]), None);
        assert_eq!(pairs(&[1.0, 4.0, 5.0], &[2.0, 3.0]), None);
        assert_eq!(pairs(&[1.0], &[2.0]), None);
        assert_eq!(pairs(&[1.0, 2.0], &[1.0, 2.0]), None);
        let mut elsewhere = begun(&[2.0, 3.0]);
        elsewhere.origin.host_hash = "other".to_owned();
        assert_eq!(super::pairs(&begun(&[1.0, 4.0]), &elsewhere), None);
    }
}
