//! How many times as long the same units take with more threads: work-time inflation (Olivier et al., SC 2012).

use super::cells::Measured;
use ompfuse_account::model::series::{Inflation, SeriesPlace};
use ompfuse_fuse::span::Labelled;

/// Less of a place's time in units that both runs have, and that were left alone in both, says nothing of the place.
const ENOUGH: f64 = 0.1;

/// Of a place's units in these runs beside those with the fewest threads; `None` if that isn't known.
pub(super) fn inflation(
    fewest: &[&Measured],
    these: &[&Measured],
    place: &SeriesPlace,
) -> Option<Inflation> {
    let (before, now) = (units(fewest, place)?, units(these, place)?);
    let pairs = before.iter().flat_map(|b| now.iter().map(move |n| (b, n)));
    let mut all: Vec<(f64, f64)> = pairs
        .map(|(before, now)| beside(before, now))
        .collect::<Option<_>>()?;
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (all.first()?.0, all.last()?.0);
    let times = all.iter().map(|a| a.0).collect();
    Some(Inflation {
        times: super::points::median(times),
        between: [least, most],
        compared: all.iter().map(|a| a.1).fold(1.0, f64::min),
    })
}

/// A place's units in each of these runs.
fn units<'m>(runs: &[&'m Measured], place: &SeriesPlace) -> Option<Vec<&'m [Labelled]>> {
    let of = |run: &&'m Measured| run.units.get(place).map(Vec::as_slice);
    runs.iter().map(of).collect()
}

/// How many times as long the units take that two runs have and that were left alone in both, and the share of the time that these are.
fn beside(before: &[Labelled], now: &[Labelled]) -> Option<(f64, f64)> {
    let same = |a: &Labelled, b: &Labelled| a.instance == b.instance;
    let mut others = now.chunk_by(same).peekable();
    let mut sums = [0u64; 2];
    for execution in before.chunk_by(same) {
        let instance = execution[0].instance;
        while others.next_if(|o| o[0].instance < instance).is_some() {}
        if let Some(other) = others.next_if(|o| o[0].instance == instance) {
            add_common(execution, other, &mut sums);
        }
    }
    let all = |units: &[Labelled]| units.iter().map(|u| u.ns as f64).sum::<f64>();
    let sums = sums.map(|ns| ns as f64);
    let share = (sums[0] / all(before)).min(sums[1] / all(now));
    (sums[0] > 0.0 && share >= ENOUGH).then_some((sums[1] / sums[0], share))
}

/// Adds the times of the shortest stretches of iterations that both divide the same way, of those that were left alone.
fn add_common(before: &[Labelled], now: &[Labelled], sums: &mut [u64; 2]) {
    let sides = [before, now];
    let mut at = [0, 0];
    while let (Some(a), Some(b)) = (before.get(at[0]), now.get(at[1])) {
        if a.first != b.first {
            at[usize::from(b.first < a.first)] += 1;
            continue;
        }
        // The side that is behind goes on until both end at the same iteration.
        let (mut times, mut is_left_alone) = ([0, 0], true);
        let mut ends = [a.first, a.first];
        let mut side = 0;
        let is_common = loop {
            let next = sides[side].get(at[side]);
            let Some(unit) = next.filter(|u| u.first == ends[side]) else {
                break false;
            };
            at[side] += 1;
            times[side] = u64::saturating_add(times[side], unit.ns);
            is_left_alone &= !unit.disturbed;
            ends[side] = unit.first.saturating_add_unsigned(unit.count);
            if ends[0] == ends[1] {
                break true;
            }
            side = usize::from(ends[1] < ends[0]);
        };
        if is_common && is_left_alone {
            for (sum, more) in sums.iter_mut().zip(times) {
                *sum = sum.saturating_add(more);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(instance: u64, list: &[(i64, u64, u64)], disturbed: usize) -> Vec<Labelled> {
        let unit = |(at, &(first, count, ns)): (usize, &(i64, u64, u64))| Labelled {
            site: 0,
            instance,
            first,
            count,
            ns,
            disturbed: at == disturbed,
        };
        list.iter().enumerate().map(unit).collect()
    }

    const NONE: usize = usize::MAX;

    #[test]
    fn the_same_iterations_are_compared_however_they_were_dealt() {
        let whole = made(1, &[(0, 8, 800)], NONE);
        let halves = made(1, &[(0, 4, 700), (4, 4, 900)], NONE);
        assert_eq!(beside(&whole, &halves), Some((2.0, 1.0)));
        assert_eq!(beside(&halves, &whole), Some((0.5, 1.0)));
        let thirds = made(1, &[(0, 3, 300), (3, 3, 300), (6, 2, 200)], NONE);
        assert_eq!(beside(&thirds, &halves), Some((2.0, 1.0)));
        // Other iterations, and another execution of the loop.
        assert_eq!(beside(&whole, &made(1, &[(8, 8, 800)], NONE)), None);
        assert_eq!(beside(&whole, &made(2, &[(0, 8, 800)], NONE)), None);
    }

    #[test]
    fn disturbed_units_are_left_out_on_both_sides() {
        let before = made(1, &[(0, 4, 400), (4, 4, 400)], NONE);
        let now = made(1, &[(0, 2, 200), (2, 2, 90_000), (4, 4, 800)], 1);
        // The first half was disturbed: 400 of 800 and 800 of 91000 are left, too little of the second.
        assert_eq!(beside(&before, &now), None);
        let now = made(1, &[(0, 2, 200), (2, 2, 200), (4, 4, 800)], 1);
        assert_eq!(beside(&before, &now), Some((2.0, 0.5)));
    }

    #[test]
    fn missing_units_end_a_stretch() {
        let before = made(1, &[(0, 2, 10), (2, 2, 10), (4, 2, 10)], NONE);
        let now = made(1, &[(0, 1, 5), (2, 2, 30), (4, 2, 10)], NONE);
        let (times, _) = beside(&before, &now).expect("four iterations are there");
        assert_eq!(times, 2.0);
    }
}
