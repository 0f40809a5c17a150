//! Builds that were recorded in turns on a machine that drifts.

use super::*;

/// The same with the times of single runs.
fn in_turns(times: &Times) -> Side {
    let mut side = of_times(times);
    let last = times.len() - 1;
    for (region, times) in side.regions.iter_mut().zip(times) {
        region.each = [Quantity::Time, Quantity::Work]
            .map(|quantity| (quantity, times.clone()))
            .into();
    }
    side.each = [(Quantity::Wall, times[last].clone())].into();
    side
}

/// Pairs of runs of both sides. The machine's speed wanders by up to a factor of 1.6 meanwhile, and each run has 0.5 % of noise beside.
/// `factor`: how much longer one loop takes on B.
fn drifting(chance: &mut Chance, turns: usize, factor: f64) -> [Times; 2] {
    let mut both: [Times; 2] = [vec![vec![]; 21], vec![vec![]; 21]];
    let phase = 6.3 * chance.even();
    for turn in 0..turns {
        let speed = 1.3 + 0.3 * (phase + turn as f64).sin();
        for (side, factor) in both.iter_mut().zip([1.0, factor]) {
            let mut all = 0.0;
            for (at, list) in side[..20].iter_mut().enumerate() {
                let own = if at == 12 { factor } else { 1.0 };
                let time = (at + 1) as f64 * own * speed * (0.005 * chance.normal()).exp();
                all += time;
                list.push(time);
            }
            side[20].push(all);
        }
    }
    both
}

/// Of 100 comparisons those that find the slow loop, with the change that they give on the mean; and those that find any other.
fn found(factor: f64, of: fn(&Times) -> Side) -> (usize, f64, usize) {
    let mut chance = Chance::new(11);
    let (mut right, mut sum, mut wrong) = (0, 0.0, 0);
    for _ in 0..100 {
        let [a, b] = drifting(&mut chance, 8, factor);
        let (a, b) = (of(&a), of(&b));
        let (_, pairs) = changes(&a, &b, &matched(&a, &b));
        let is_it = |p: &&Pair| p.a[0].function.as_deref() == Some("f12");
        let slow = pairs.iter().find(is_it).unwrap();
        right += usize::from(slow.is_changed());
        sum += slow.headline().and_then(|c| c.change).unwrap();
        wrong += usize::from(pairs.iter().any(|p| !is_it(&p) && p.is_changed()));
    }
    (right, sum / 100.0, wrong)
}

#[test]
fn what_both_runs_of_a_pair_have_is_no_noise() {
    // Over all runs times vary by a fifth: 3 % more in a loop are not seen then, and always by pairs.
    let (right, _, wrong) = found(1.03, of_times);
    assert_eq!((right, wrong), (0, 0));
    let (right, change, wrong) = found(1.03, in_turns);
    assert!(right >= 95, "{right} of 100");
    assert!((change - 0.03).abs() < 0.001, "{change}");
    assert!(wrong <= 4, "{wrong} of 100");
}

#[test]
fn equal_builds_in_turns_show_something_in_one_comparison_of_a_hundred() {
    let mut chance = Chance::new(5);
    let shown = (0..200).filter(|_| {
        let [a, b] = drifting(&mut chance, 6, 1.0);
        is_any_changed(&in_turns(&a), &in_turns(&b))
    });
    let shown = shown.count();
    // 2 on the mean; 7 or more in less than one case of a hundred.
    assert!(shown <= 6, "{shown} of 200");
}

#[test]
fn a_pair_is_compared_as_a_t_test_of_its_differences() {
    // The machine gets twice as slow meanwhile; B takes 10 % more each time, give or take 1 %.
    let a = [1.0, 1.2, 1.5, 1.7, 1.9, 2.0];
    let off = [0.01, -0.01, 0.0, 0.01, -0.01, 0.0];
    let times = a.iter().zip(off).map(|(a, off)| a * (0.1f64 + off).exp());
    let b: Vec<f64> = times.collect();
    let of = |times: &[f64]| {
        (
            Sample::of(times).unwrap(),
            Each::from([(Quantity::Wall, times.to_vec())]),
        )
    };
    let ((a, each_a), (b, each_b)) = (of(&a), of(&b));
    let found =
        compared(&Quantity::Wall, [&a, &b], false).by_pairs(&Quantity::Wall, [&each_a, &each_b]);
    let Compared::Noisy(noisy) = found else {
        panic!("{found:?}");
    };
    // By hand: a deviation of 0.00894, an error of 0.00365, and t = 2.571 at 95 % with 5 degrees of freedom.
    let interval = noisy.interval(0.95, &mut Quantiles::default()).unwrap();
    let low = (0.1 - 2.571 * 0.003651f64).exp_m1();
    assert!((interval.low - low).abs() < 1e-4, "{interval:?} {low}");
    assert!((noisy.change().unwrap() - 0.1f64.exp_m1()).abs() < 1e-9);
    // What is no time has no drift.
    let events = Quantity::Event("cycles".to_owned());
    let each = |each: &Each| Each::from([(events.clone(), each[&Quantity::Wall].clone())]);
    let plain = compared(&events, [&a, &b], false);
    assert_eq!(
        plain.by_pairs(&events, [&each(&each_a), &each(&each_b)]),
        plain
    );
}
