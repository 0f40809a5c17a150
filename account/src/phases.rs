//! Phases of a run: stretches of intervals in which the program executes the same code.
//!
//! An interval's composition is how the time in the program's code is divided among constructs and the code outside of all. Waiting is
//! left out: it says how well the program does something, not what, and a busy machine changes it. Two compositions differ by what
//! would have to move: half of the sum of the shares' differences. A phase goes on as long as the next interval differs from the
//! phase so far by no more than [`DISTANCE`]. One interval alone that is a mixture of its neighbours, since the program went on to
//! something else in its midst, belongs to the one that it is more like.

use crate::model::Class;
use crate::model::growth::{GrowthInterval, GrowthRegion, Phase};

/// See the module's description.
pub(crate) const DISTANCE: f64 = 0.25;

/// A mixture may lie so far beside the way from one composition to the other.
const BESIDE: f64 = 0.05;

/// Seconds in the program's code: by construct, then outside of all, then in those that aren't listed.
#[derive(Debug, Clone, PartialEq)]
struct Composition(Vec<f64>);

impl Composition {
    fn of(interval: &GrowthInterval, at: usize, regions: &[GrowthRegion]) -> Composition {
        let listed: Vec<f64> = regions.iter().map(|r| r.interval_work_s[at]).collect();
        let others = (interval.work_s - listed.iter().sum::<f64>()).max(0.0);
        let outside = [interval.serial_s, others];
        Composition(listed.into_iter().chain(outside).collect())
    }

    fn add(&mut self, other: &Composition) {
        (self.0.iter_mut().zip(&other.0)).for_each(|(to, from)| *to += from);
    }

    fn sum(&self) -> f64 {
        self.0.iter().sum()
    }

    fn is_empty(&self) -> bool {
        self.sum() <= 0.0
    }

    /// From 0 to 1.
    fn distance(&self, other: &Composition) -> f64 {
        let (all, others) = (self.sum(), other.sum());
        if all <= 0.0 || others <= 0.0 {
            return 0.0;
        }
        let both = self.0.iter().zip(&other.0);
        both.map(|(a, b)| (a / all - b / others).abs()).sum::<f64>() / 2.0
    }
}

/// Intervals one after the other, from the first to before the last.
#[derive(Debug, Clone, PartialEq)]
struct Stretch {
    first: usize,
    end: usize,
    sum: Composition,
}

/// The phases of a run.
pub(crate) fn phases(intervals: &[GrowthInterval], regions: &[GrowthRegion]) -> Vec<Phase> {
    let all: Vec<Composition> = (intervals.iter().enumerate())
        .map(|(at, interval)| Composition::of(interval, at, regions))
        .collect();
    let stretches = without_mixtures(stretches(&all));
    let phase = |s: &Stretch| phase(s, intervals, regions);
    stretches.iter().map(phase).collect()
}

fn stretches(all: &[Composition]) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = vec![];
    for (at, composition) in all.iter().enumerate() {
        match found.last_mut() {
            Some(last)
                if composition.is_empty()
                    || last.sum.is_empty()
                    || last.sum.distance(composition) <= DISTANCE =>
            {
                last.end = at + 1;
                last.sum.add(composition);
            }
            _ => found.push(Stretch {
                first: at,
                end: at + 1,
                sum: composition.clone(),
            }),
        }
    }
    found
}

/// Single intervals between two different phases that are mixtures of these become part of one of them.
fn without_mixtures(stretches: Vec<Stretch>) -> Vec<Stretch> {
    let mut kept: Vec<Stretch> = vec![];
    let mut rest = stretches.into_iter().peekable();
    while let Some(stretch) = rest.next() {
        let Some((before, behind)) = kept.last_mut().zip(rest.peek_mut()) else {
            kept.push(stretch);
            continue;
        };
        let is_single = stretch.end - stretch.first == 1;
        let (a, b) = (
            before.sum.distance(&stretch.sum),
            stretch.sum.distance(&behind.sum),
        );
        let is_between = a + b <= before.sum.distance(&behind.sum) + BESIDE;
        // What is a mixture of two that are alike is a phase of its own.
        if !(is_single && is_between && before.sum.distance(&behind.sum) > DISTANCE) {
            kept.push(stretch);
            continue;
        }
        if a <= b {
            before.end = stretch.end;
            before.sum.add(&stretch.sum);
        } else {
            behind.first = stretch.first;
            behind.sum.add(&stretch.sum);
        }
    }
    kept
}

fn phase(stretch: &Stretch, intervals: &[GrowthInterval], regions: &[GrowthRegion]) -> Phase {
    let of = &intervals[stretch.first..stretch.end];
    let sums = sum(of);
    let work = |r: &GrowthRegion| {
        let of = &r.interval_work_s[stretch.first..stretch.end];
        of.iter().sum::<f64>()
    };
    let largest = regions.iter().map(|r| (Some(&r.place), work(r)));
    let largest = largest
        .chain([(None, sums.serial_s)])
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let (main, most_s) = largest.unwrap_or((None, 0.0));
    let all_s = sums.work_s + sums.serial_s;
    Phase {
        begin_s: sums.begin_s,
        end_s: sums.end_s,
        first: stretch.first as u32,
        count: of.len() as u32,
        main: main.cloned(),
        main_share: if all_s > 0.0 { most_s / all_s } else { 0.0 },
        sums,
    }
}

/// Several intervals as one.
fn sum(of: &[GrowthInterval]) -> GrowthInterval {
    let mut sums = GrowthInterval::nothing();
    for interval in of {
        sums.thread_time_s += interval.thread_time_s;
        sums.work_s += interval.work_s;
        sums.serial_s += interval.serial_s;
        sums.idle_s += interval.idle_s;
        sums.unknown_s += interval.unknown_s;
        sums.other_s += interval.other_s;
        for class in Class::ALL {
            if let Some(seconds) = interval.overhead.get(class) {
                sums.overhead.add(class, seconds);
            }
        }
    }
    if let (Some(first), Some(last)) = (of.first(), of.last()) {
        (sums.begin_s, sums.end_s) = (first.begin_s, last.end_s);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Overhead;
    use crate::model::series::SeriesPlace;

    fn place(name: &str) -> SeriesPlace {
        SeriesPlace {
            name: name.to_owned(),
            ..SeriesPlace::default()
        }
    }

    /// Intervals of a second on one thread, by how much of each is in `a`, the rest is in `b`.
    fn of(shares: &[f64]) -> Vec<(f64, f64, Option<SeriesPlace>)> {
        let interval = |at: usize| GrowthInterval {
            begin_s: at as f64,
            end_s: at as f64 + 1.0,
            thread_time_s: 1.0,
            work_s: 1.0,
            overhead: Overhead::default(),
            ..GrowthInterval::nothing()
        };
        let region = |name: &str, interval_s: Vec<f64>| GrowthRegion {
            place: place(name),
            time_s: interval_s.iter().sum(),
            interval_work_s: interval_s.clone(),
            interval_s,
        };
        let intervals: Vec<GrowthInterval> = (0..shares.len()).map(interval).collect();
        let others = shares.iter().map(|s| 1.0 - s).collect();
        let regions = [region("a", shares.to_vec()), region("b", others)];
        let phases = phases(&intervals, &regions);
        phases
            .into_iter()
            .map(|p| (p.begin_s, p.end_s, p.main))
            .collect()
    }

    #[test]
    fn a_mixture_is_no_phase() {
        let (a, b) = (Some(place("a")), Some(place("b")));
        let found = of(&[1.0, 1.0, 0.6, 0.0, 0.0, 0.3, 1.0]);
        assert_eq!(
            found,
            [
                (0.0, 3.0, a.clone()),
                (3.0, 6.0, b.clone()),
                (6.0, 7.0, a.clone())
            ]
        );
        // Something short between two that are alike.
        let found = of(&[1.0, 0.6, 1.0]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(of(&[0.5, 0.6, 0.4, 0.5]).len(), 1);
        assert_eq!(of(&[]), []);
    }
}
