//! Builds that are equal, and builds that differ by a known factor, under noise of several kinds.

mod rules;
mod turns;

use super::*;
use crate::diff::{Basis, Confidence};
use crate::testing::{region, side};

/// Numbers by chance, the same in each test: xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators").
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// From 0 to 1, without both.
    fn even(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        (bits as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Normal, with mean 0 and deviation 1 (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.even().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.even()).cos()
    }

    fn exponential(&mut self) -> f64 {
        -self.even().ln()
    }
}

pub(crate) fn matched<'a>(a: &'a Side, b: &'a Side) -> Vec<Matched<'a>> {
    let pair = |(a, b): (&'a SideRegion, &'a SideRegion)| Matched {
        a: vec![a],
        b: vec![b],
        basis: Basis::Function,
        confidence: Confidence::High,
        is_group: false,
    };
    a.regions.iter().zip(&b.regions).map(pair).collect()
}

fn is_any_changed(a: &Side, b: &Side) -> bool {
    let (total, pairs) = changes(a, b, &matched(a, b));
    let is_changed = |list: &[Change]| list.iter().any(|c| c.finding == Finding::Changed);
    is_changed(&total) || pairs.iter().any(|p| is_changed(&p.changes))
}

/// Times of regions in runs: first by region, then by run; the last one is the program's.
type Times = Vec<Vec<f64>>;

fn of_times(times: &Times) -> Side {
    let runs = times[0].len() as u32;
    let last = times.len() - 1;
    let region = |(at, times): (usize, &Vec<f64>)| {
        let details = [
            (Quantity::Time, &times[..]),
            (Quantity::Work, &times[..]),
            (Quantity::Units, &[100.0, 100.0][..]),
        ];
        self::region(&format!("f{at:02}"), 1.0 / last as f64, &details)
    };
    let regions = times[..last].iter().enumerate().map(region).collect();
    side(runs, &[(Quantity::Wall, &times[last][..])], regions)
}

/// `runs` runs of 20 regions. `noise`: of a region in a run, about 1. What a run has in common is as large as what its regions have.
fn recorded(chance: &mut Chance, runs: usize, noise: fn(&mut Chance) -> f64) -> Times {
    let mut times: Times = vec![vec![]; 21];
    for _ in 0..runs {
        let common = noise(chance);
        let mut all = 0.0;
        for (at, list) in times[..20].iter_mut().enumerate() {
            let time = (at + 1) as f64 * common * noise(chance);
            all += time;
            list.push(time);
        }
        times[20].push(all);
    }
    times
}

/// Comparisons of equal builds that show something.
fn alarms(trials: u32, runs: usize, noise: fn(&mut Chance) -> f64) -> usize {
    let mut chance = Chance::new(28);
    let shown = (0..trials).filter(|_| {
        let a = of_times(&recorded(&mut chance, runs, noise));
        let b = of_times(&recorded(&mut chance, runs, noise));
        is_any_changed(&a, &b)
    });
    shown.count()
}

#[test]
fn equal_builds_show_something_in_one_comparison_of_twenty_at_most() {
    let normal = |c: &mut Chance| (0.02 * c.normal()).exp();
    let skewed = |c: &mut Chance| 1.0 + 0.03 * c.exponential();
    let outliers = |c: &mut Chance| {
        let is_slow = c.even() < 0.1;
        (0.01 * c.normal() + if is_slow { 0.3 } else { 0.0 }).exp()
    };
    let two_modes = |c: &mut Chance| {
        let mode = if c.even() < 0.5 { 1.0 } else { 1.05 };
        mode * (0.01 * c.normal()).exp()
    };
    for (name, noise) in [
        ("normal", normal as fn(&mut Chance) -> f64),
        ("skewed", skewed),
        ("outliers", outliers),
        ("two modes", two_modes),
    ] {
        for runs in [3, 5] {
            let shown = alarms(200, runs, noise);
            assert!(shown <= 18, "{name}, {runs} runs: {shown} of 200");
        }
    }
}

/// Comparisons of 200 that find a loop which takes `factor` times as long, and how often another region was said to have changed.
fn found(factor: f64, runs: usize) -> (usize, usize) {
    let mut chance = Chance::new(7);
    let noise = |c: &mut Chance| (0.005 * c.normal()).exp();
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..200 {
        let a = recorded(&mut chance, runs, noise);
        let mut b = recorded(&mut chance, runs, noise);
        for time in &mut b[12] {
            *time *= factor;
        }
        let (a, b) = (of_times(&a), of_times(&b));
        let (_, pairs) = changes(&a, &b, &matched(&a, &b));
        for pair in pairs.iter().filter(|p| p.is_changed()) {
            match pair.a[0].function.as_deref() {
                Some("f12") => right += 1,
                _ => wrong += 1,
            }
        }
    }
    (right, wrong)
}

#[test]
fn what_could_be_seen_is_seen_four_times_in_five() {
    let mut chance = Chance::new(3);
    let noise = |c: &mut Chance| (0.005 * c.normal()).exp();
    let mut sizes = vec![];
    for _ in 0..50 {
        let a = of_times(&recorded(&mut chance, 5, noise));
        let b = of_times(&recorded(&mut chance, 5, noise));
        let (_, pairs) = changes(&a, &b, &matched(&a, &b));
        sizes.extend(pairs.iter().filter_map(|p| match p.headline()?.finding {
            Finding::NotSeen { could_see } => could_see,
            _ => None,
        }));
    }
    sizes.sort_by(f64::total_cmp);
    let median = sizes[sizes.len() / 2];
    let (right, wrong) = found(1.0 + median, 5);
    assert!((140..=190).contains(&right), "{median}: {right} of 200");
    assert!(wrong <= 18, "{wrong}");
    let (right, _) = found(1.0 + median / 4.0, 5);
    assert!(right <= 20, "{right}");
}
