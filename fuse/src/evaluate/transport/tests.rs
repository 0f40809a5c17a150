use super::*;
use proptest::prelude::*;

/// Successive shortest paths by Bellman and Ford on the residual graph: slow, and nothing like the simplex method. Nothing stays
/// where it is unasked.
fn by_shortest_paths(supply: &[Mass], demand: &[Mass]) -> f64 {
    const NONE: usize = usize::MAX;
    let (n, m) = (supply.len(), demand.len());
    let cost: Vec<f64> = supply
        .iter()
        .flat_map(|a| demand.iter().map(|b| f64::hypot(a.x - b.x, a.y - b.y)))
        .collect();
    let slack = 1e-13 * cost.iter().copied().fold(0.0, f64::max);
    let mut left: Vec<u64> = supply.iter().map(|a| a.amount).collect();
    let mut wanted: Vec<u64> = demand.iter().map(|b| b.amount).collect();
    let mut flow = vec![0u64; n * m];
    loop {
        let mut distance = vec![f64::INFINITY; n + m];
        let mut from = vec![NONE; n + m];
        (0..n)
            .filter(|&i| left[i] > 0)
            .for_each(|i| distance[i] = 0.0);
        if distance.iter().all(|d| d.is_infinite()) {
            return flow.iter().zip(cost).map(|(&f, c)| f as f64 * c).sum();
        }
        for _ in 0..n + m {
            let mut changed = false;
            for i in 0..n {
                for j in 0..m {
                    let c = cost[i * m + j];
                    if distance[i] + c < distance[n + j] - slack {
                        (distance[n + j], from[n + j]) = (distance[i] + c, i);
                        changed = true;
                    }
                    if flow[i * m + j] > 0 && distance[n + j] - c < distance[i] - slack {
                        (distance[i], from[i]) = (distance[n + j] - c, n + j);
                        changed = true;
                    }
                }
            }
            if !changed {
                break;
            }
        }
        let sink = (0..m)
            .filter(|&j| wanted[j] > 0)
            .min_by(|&a, &b| distance[n + a].total_cmp(&distance[n + b]))
            .unwrap();
        let mut path = vec![n + sink];
        while from[path[path.len() - 1]] != NONE {
            path.push(from[path[path.len() - 1]]);
            assert!(path.len() <= n + m, "a cycle");
        }
        path.reverse();
        let mut amount = left[path[0]].min(wanted[sink]);
        for step in path.windows(2).filter(|s| s[0] >= n) {
            amount = amount.min(flow[step[1] * m + step[0] - n]);
        }
        for step in path.windows(2) {
            if step[0] < n {
                flow[step[0] * m + step[1] - n] += amount;
            } else {
                flow[step[1] * m + step[0] - n] -= amount;
            }
        }
        left[path[0]] -= amount;
        wanted[sink] -= amount;
    }
}

fn masses(list: &[(u16, f64, f64, u64)]) -> Vec<Mass> {
    list.iter()
        .map(|&(bin, x, y, amount)| Mass { bin, x, y, amount })
        .collect()
}

/// Makes the sums equal: shares of both sides as whole numbers.
fn shares(a: &mut [Mass], b: &mut [Mass]) {
    let total = |side: &[Mass]| side.iter().map(|m| m.amount).sum::<u64>();
    let (all_a, all_b) = (total(a), total(b));
    a.iter_mut().for_each(|m| m.amount *= all_b);
    b.iter_mut().for_each(|m| m.amount *= all_a);
}

fn check(transport: &mut Transport, a: &[Mass], b: &[Mass]) -> Result<(), TestCaseError> {
    let total = a.iter().map(|m| m.amount).sum::<u64>().max(1) as f64;
    let (found, expected) = (
        transport.minimum_cost(a, b) / total,
        by_shortest_paths(a, b) / total,
    );
    prop_assert!(
        (found - expected).abs() <= 1e-9 * expected.max(1.0), // the aim; with a place 10^9 away both methods round
        "{found} {expected}"
    );
    Ok(())
}

#[test]
fn small_ones_by_hand() {
    let cost = |a: &[_], b: &[_]| Transport::default().minimum_cost(&masses(a), &masses(b));
    assert_eq!(cost(&[], &[]), 0.0);
    assert_eq!(cost(&[(0, 0.0, 0.0, 3)], &[(0, 0.0, 2.5, 3)]), 7.5);
    // Equal bins at equal places, and at others.
    let (a, b) = ([(4, 1.0, 1.0, 3)], [(4, 1.0, 1.0, 3)]);
    assert_eq!(cost(&a, &b), 0.0);
    let a = [(0, 0.0, 0.0, 4), (1, 1.0, 0.0, 2)];
    let b = [(0, 0.0, 0.0, 1), (1, 1.0, 0.0, 5)];
    assert_eq!(cost(&a, &b), 3.0);
    // The near one is taken by who has no other.
    let a = [(0, 0.0, 0.0, 1), (1, 3.0, 0.0, 1)];
    let b = [(2, 4.0, 0.0, 1), (3, -9.0, 0.0, 1)];
    assert_eq!(cost(&a, &b), 10.0);
}

#[test]
fn amounts_that_are_too_large_to_be_perturbed() {
    let big = u64::MAX / 4;
    let a = masses(&[(0, 0.0, 0.0, big), (1, 1.0, 0.0, big)]);
    let b = masses(&[(0, 0.0, 1.0, big), (1, 1.0, 2.0, big - 5), (2, 7.0, 7.0, 5)]);
    let found = Transport::default().minimum_cost(&a, &b);
    assert!((found / big as f64 - 3.0).abs() < 1e-12, "{found}");
}

#[test]
#[should_panic(expected = "as much supply as demand")]
fn sums_that_differ() {
    Transport::default().minimum_cost(&masses(&[(0, 0.0, 0.0, 1)]), &[]);
}

/// Two histograms of 10 x 10 bins, all occupied, at the bins' corners or anywhere in them.
#[test]
fn full_histograms() {
    let mut random = crate::testing::programs::Random::new(5);
    let mut transport = Transport::default();
    for round in 0..12 {
        let is_grid = round % 3 == 0;
        let mut side = || -> Vec<Mass> {
            let mut mass = |bin: u16| {
                let mut offset = || if is_grid { 0.0 } else { random.share() };
                let (x, y) = (
                    f64::from(bin / 10) + offset(),
                    f64::from(bin % 10) + offset(),
                );
                let amount = 1 + random.next() % [1, 10, 100_000][round % 3];
                Mass { bin, x, y, amount }
            };
            (0..100).map(&mut mass).collect()
        };
        let (mut a, mut b) = (side(), side());
        shares(&mut a, &mut b);
        check(&mut transport, &a, &b).unwrap();
    }
}

/// What is moved farther than to the neighbours: all of one side is at the left, all of the other at the right or above.
#[test]
fn far_from_where_it_is_wanted() {
    let mut random = crate::testing::programs::Random::new(11);
    let mut transport = Transport::default();
    for (bins, turned) in [(100, false), (100, true), (144, false), (144, true)] {
        let side = (bins as f64).sqrt() as u16;
        let mut masses = |is_low: bool| -> Vec<Mass> {
            let of = |bin: u16| if turned { bin % side } else { bin / side };
            let all = (0..bins).filter(|&bin| (of(bin) < side / 2) == is_low);
            let mut mass = |bin: u16| Mass {
                bin,
                x: f64::from(bin / side) + random.share(),
                y: f64::from(bin % side) + random.share(),
                amount: 1 + random.next() % 1000,
            };
            all.map(&mut mass).collect()
        };
        let (mut a, mut b) = (masses(true), masses(false));
        shares(&mut a, &mut b);
        check(&mut transport, &a, &b).unwrap();
    }
}

/// As many bins as there are, and one of them so far away that whole numbers don't tell the others' places apart.
#[test]
fn most_bins_and_far_outliers() {
    let mut random = crate::testing::programs::Random::new(13);
    let mut transport = Transport::default();
    for far in [1.0, 30.0, 3e3, 1e6] {
        let mut masses = || -> Vec<Mass> {
            let mut mass = |bin: u16| {
                let is_far = bin / 12 == 11 && bin % 12 > 8;
                Mass {
                    bin,
                    x: f64::from(bin / 12) + random.share() + if is_far { far } else { 0.0 },
                    y: f64::from(bin % 12) + random.share(),
                    amount: 1 + random.next() % 1000,
                }
            };
            (0..144).map(&mut mass).collect()
        };
        let (mut a, mut b) = (masses(), masses());
        shares(&mut a, &mut b);
        check(&mut transport, &a, &b).unwrap();
    }
}

#[test]
#[should_panic(expected = "too many bins")]
fn more_bins_than_there_are() {
    let masses: Vec<Mass> = (0..151)
        .map(|bin| Mass {
            bin,
            x: 0.0,
            y: f64::from(bin),
            amount: 1,
        })
        .collect();
    Transport::default().minimum_cost(&masses, &masses);
}

proptest! {
    #[test]
    fn another_method_finds_the_same_cost(
        points in proptest::collection::vec((0u8..12, 0u8..12, 1u64..20), 2..40), split in 1usize..39,
        far in prop_oneof![Just(1.0), Just(1e9), Just(1e-9)], shift in prop_oneof![Just(0.0), Just(0.37)],
    ) {
        let split = split.min(points.len() - 1);
        let side = |points: &[(u8, u8, u64)], shift: f64| {
            let mut bins = std::collections::BTreeMap::new();
            for &(x, y, amount) in points {
                *bins.entry(u16::from(x) * 12 + u16::from(y)).or_insert(0) += amount;
            }
            bins.into_iter()
                .map(|(bin, amount)| {
                    let (x, y) = (f64::from(bin / 12), f64::from(bin % 12));
                    // Counts outside the bounds can be far away.
                    let x = if x == 11.0 { x * far } else { x };
                    Mass { bin, x: x + shift * y, y, amount }
                })
                .collect::<Vec<_>>()
        };
        let (mut a, mut b) = (side(&points[..split], 0.0), side(&points[split..], shift));
        shares(&mut a, &mut b);
        check(&mut Transport::default(), &a, &b)?;
    }
}
