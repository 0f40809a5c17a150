//! What is compared how, with values that can be checked by hand.

use super::super::*;
use super::{matched, region, side};
use ompfuse_account::paired::LEAST;

#[test]
fn as_many_runs_as_are_needed_see_it() {
    // A deviation of 1 % and a change of 1 %: 2 (2.576 + 0.842)^2 = 23.4 by the normal distribution's quantiles at 1 % (Lehr's rule of
    // thumb has 16 at 5 %), and Student's makes that 25.
    let logs = [-1.0, 1.0, -1.0, 1.0, 0.0, 0.0].map(|x: f64| x * 0.01 * (5.0f64 / 4.0).sqrt());
    let a: Vec<f64> = logs.iter().map(|l| l.exp()).collect();
    let b: Vec<f64> = logs.iter().map(|l| (l + 0.01).exp()).collect();
    let (a, b) = (
        side(6, &[(Quantity::Wall, &a)], vec![]),
        side(6, &[(Quantity::Wall, &b)], vec![]),
    );
    let (total, _) = changes(&a, &b, &[]);
    assert_eq!(total[0].runs_needed, Some(25), "{total:?}");
    assert!((total[0].change.unwrap() - 0.01f64.exp_m1()).abs() < 1e-12);
    // By hand: t = 0.01 / (0.01 * sqrt(2 / 6)) = 1.732 with 10 degrees of freedom; 0.114 in tables of Student's distribution.
    assert!((total[0].p.unwrap() - 0.1139).abs() < 1e-4, "{total:?}");
    let interval = total[0].interval.unwrap();
    let reach = 2.2281 * 0.01 / 3.0f64.sqrt();
    assert!((interval.low - (0.01 - reach).exp_m1()).abs() < 1e-5);
    assert!((interval.high - (0.01 + reach).exp_m1()).abs() < 1e-5);
}

fn one(quantity: Quantity, a: &[f64], b: &[f64]) -> Change {
    let a = side(a.len() as u32, &[(quantity.clone(), a)], vec![]);
    let b = side(b.len() as u32, &[(quantity, b)], vec![]);
    changes(&a, &b, &[]).0.remove(0)
}

#[test]
fn constants_need_no_test_and_one_run_tells_no_noise() {
    let units = |a: &[f64], b: &[f64]| one(Quantity::Units, a, b);
    let equal = units(&[7.0], &[7.0]);
    assert_eq!((equal.finding, equal.change), (Finding::Equal, Some(0.0)));
    let changed = units(&[8.0, 8.0], &[12.0, 12.0]);
    assert_eq!(
        (changed.finding, changed.change),
        (Finding::Changed, Some(0.5))
    );
    assert_eq!((changed.p, changed.interval), (None, None));
    for (a, b) in [
        (&[8.0][..], &[12.0][..]),
        (&[8.0], &[12.0, 12.1]),
        (&[8.0, 8.1], &[9.0]),
    ] {
        assert_eq!(units(a, b).finding, Finding::NoiseUnknown, "{a:?} {b:?}");
    }
    let varies = units(&[8.0, 8.0, 8.0], &[12.0, 12.1, 12.2]);
    assert_eq!(varies.finding, Finding::Changed);
    let from_zero = one(Quantity::Wall, &[0.0, 0.0, 0.0], &[1.0, 1.1, 1.2]);
    assert_eq!((from_zero.change, from_zero.interval), (None, None));
    assert_eq!(from_zero.finding, Finding::Changed);
    // The same sum in another order.
    let rounded = one(Quantity::Time, &[0.3, 0.3], &[0.1 + 0.2, 0.1 + 0.2]);
    assert_eq!(rounded.finding, Finding::Equal);
    // Certain, and too small for anyone.
    let tiny = one(
        Quantity::Wall,
        &[1.0, 1.000_001, 1.000_002],
        &[1.0005, 1.000_501, 1.000_502],
    );
    assert!(tiny.p.unwrap() < 1e-6, "{tiny:?}");
    assert_eq!(
        tiny.finding,
        Finding::NotSeen {
            could_see: Some(LEAST)
        }
    );
}

#[test]
fn shares_change_in_points() {
    let share = one(
        Quantity::Imbalance,
        &[0.10, 0.11, 0.12],
        &[0.30, 0.31, 0.32],
    );
    assert!((share.change.unwrap() - 0.2).abs() < 1e-3, "{share:?}");
    let interval = share.interval.unwrap();
    assert!(interval.low > 0.15 && interval.high < 0.25, "{interval:?}");
}

#[test]
fn details_are_tested_below_what_changed() {
    let slow = [1.50, 1.51, 1.52];
    let fast = [1.00, 1.01, 1.02];
    let of = |time: &[f64], work: &[f64], name, share| {
        region(
            name,
            share,
            &[(Quantity::Time, time), (Quantity::Work, work)],
        )
    };
    let a = side(
        3,
        &[],
        vec![
            of(&fast, &fast, "slower", 0.5),
            of(&fast, &fast, "same", 0.5),
            of(&fast, &fast, "small", 0.005),
        ],
    );
    let b = side(
        3,
        &[],
        vec![
            of(&slow, &slow, "slower", 0.5),
            of(&fast, &slow, "same", 0.5),
            of(&slow, &slow, "small", 0.005),
        ],
    );
    let (_, pairs) = changes(&a, &b, &matched(&a, &b));
    let findings = |name: &str| {
        let pair = pairs
            .iter()
            .find(|p| p.a[0].function.as_deref() == Some(name))
            .unwrap();
        (
            pair.changes[0].finding,
            pair.changes[1].finding,
            pair.is_tested,
        )
    };
    let changed = Finding::Changed;
    assert_eq!(findings("slower"), (changed, changed, true));
    assert!(matches!(
        findings("same"),
        (Finding::NotSeen { .. }, Finding::NotTested, true)
    ));
    assert_eq!(
        findings("small"),
        (Finding::NotTested, Finding::NotTested, false)
    );
}

#[test]
fn several_regions_are_one_sum() {
    let first = [
        (Quantity::Time, &[1.0, 1.1, 1.2][..]),
        (Quantity::Units, &[10.0, 10.0, 10.0]),
        (Quantity::MaxUnit, &[0.5, 0.5, 0.5]),
        (Quantity::MeanUnit, &[0.1, 0.1, 0.1]),
        (Quantity::Iterations, &[5.0, 5.0, 5.0]),
    ];
    let second = [
        (Quantity::Time, &[3.0, 3.1, 3.2][..]),
        (Quantity::Units, &[30.0, 30.0]),
        (Quantity::MaxUnit, &[0.7, 0.7, 0.7]),
        (Quantity::MeanUnit, &[0.3, 0.3, 0.3]),
    ];
    let (first, second) = (region("f", 0.2, &first), region("f", 0.3, &second));
    let [sums, _] = both(&[&first, &second], &[&first]);
    assert_eq!(sums[&Quantity::Units], Sample::Same(2, 40.0));
    assert_eq!(sums[&Quantity::MaxUnit], Sample::Same(3, 0.7));
    assert!((sums[&Quantity::MeanUnit].typical() - 0.25).abs() < 1e-12);
    assert!(!sums.contains_key(&Quantity::Iterations));
    let Sample::Log(3, mean, deviation) = sums[&Quantity::Time] else {
        panic!("{sums:?}");
    };
    // Both are slow in the same run: 4.0, 4.2, 4.4.
    assert!((mean.exp() / 4.2 - 1.0).abs() < 2e-3, "{mean}");
    assert!((deviation / (0.2 / 4.2) - 1.0).abs() < 2e-2, "{deviation}");
}

#[test]
fn distributions_are_as_far_apart_as_their_units_move() {
    let with = |quantiles: &[f32]| SideRegion {
        quantiles: quantiles.to_vec(),
        ..region("f", 1.0, &[(Quantity::Units, &[10.0])])
    };
    let distance = |a: &[&SideRegion], b: &[&SideRegion]| distribution::distance(a, b).unwrap();
    let (even, later) = (with(&[1.0, 1.0, 1.0]), with(&[1.5, 1.5, 1.5]));
    assert_eq!(distance(&[&even], &[&even]), 0.0);
    assert!((distance(&[&even], &[&later]) - 0.5).abs() < 1e-6);
    assert!((distance(&[&even, &even], &[&even, &later]) - 0.25).abs() < 0.02);
    assert_eq!(distribution::distance(&[&even], &[&with(&[])]), None);
}
