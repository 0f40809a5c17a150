//! Which of several runs that counted the same events is the most typical one.
//!
//! A profile is like its first run in all that labels don't fix. Runs differ, and one that is far from the others makes a
//! profile that is: so the run that the others are nearest to is the better first one. Runs that
//! counted some of these events only can't be chosen, but say as much of what is usual.

use super::histogram::{Histogram, Scaled};
use super::transport::Transport;
use super::{Counts, FLOOR, bounds, pairs_of};
use crate::table::{EventColumn, XuTable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Runs that it takes to tell a typical one: of two each is as far from the other.
pub const ENOUGH: usize = 3;
/// XUs of a run that are looked at, at most.
const ROWS: usize = 1 << 17;

/// Counts of one run, as many as are needed to compare it; takes it piece by piece, in any order if rows are numbered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    names: Vec<String>,
    /// The events that are looked at; all if there are none here.
    #[serde(skip)]
    wanted: Vec<String>,
    /// Per event.
    counts: Vec<Vec<u64>>,
    /// What decides which rows stay when there are too many.
    keys: Vec<u64>,
    /// Rows whose key ends with fewer zero bits are left out.
    zeros: u32,
    #[serde(skip)]
    seen: u64,
}

/// SplitMix64's last step: numbers in any regular distance become as good as drawn.
pub fn scattered(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Sample {
    /// Of a whole run.
    pub fn of(run: &XuTable) -> Sample {
        let mut sample = Sample::default();
        sample.add(run);
        sample
    }

    /// Of these events only, as far as the run has them.
    pub fn of_events(wanted: &[String]) -> Sample {
        Sample {
            wanted: wanted.to_vec(),
            ..Sample::default()
        }
    }

    /// The next rows. Those without some count are left out.
    pub fn add(&mut self, piece: &XuTable) {
        let seen = self.seen;
        self.add_numbered(piece, |row| seen + row as u64);
        self.seen += piece.len() as u64;
    }

    /// Further rows, which have these numbers in the run: the order in which they come doesn't matter.
    pub fn add_numbered(&mut self, piece: &XuTable, number: impl Fn(usize) -> u64) {
        if self.names.is_empty() {
            let names = piece.events.iter().map(|e| &e.name);
            let is_wanted = |name: &&String| self.wanted.is_empty() || self.wanted.contains(name);
            self.names = names.filter(is_wanted).cloned().collect();
            self.names.sort_unstable();
            self.counts = vec![vec![]; self.names.len()];
        }
        let columns: Vec<&EventColumn> = self.names.iter().filter_map(|n| piece.event(n)).collect();
        if columns.len() < self.names.len() {
            return;
        }
        for row in 0..piece.len() {
            let key = scattered((number(row) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            if key.trailing_zeros() < self.zeros || columns.iter().any(|c| c.get(row).is_none()) {
                continue;
            }
            self.keys.push(key);
            for (counts, column) in self.counts.iter_mut().zip(&columns) {
                counts.push(column.values[row]);
            }
            if self.keys.len() > ROWS {
                self.thin(self.zeros + 1);
            }
        }
    }

    /// Takes over another part of the run.
    pub fn merge(&mut self, other: Sample) {
        if self.names.is_empty() {
            *self = other;
            return;
        }
        if other.names != self.names {
            return; // it has no rows
        }
        self.keys.extend(other.keys);
        for (ours, theirs) in self.counts.iter_mut().zip(other.counts) {
            ours.extend(theirs);
        }
        self.thin(self.zeros.max(other.zeros));
        while self.keys.len() > ROWS {
            self.thin(self.zeros + 1);
        }
    }

    /// With so many rows, at most.
    pub fn limit(&mut self, rows: usize) {
        while self.keys.len() > rows {
            self.thin(self.zeros + 1);
        }
    }

    /// With these events only.
    #[must_use]
    pub fn only(self, wanted: &[String]) -> Sample {
        let of_names = self.names.into_iter().zip(self.counts);
        let (names, counts) = of_names.filter(|(name, _)| wanted.contains(name)).unzip();
        Sample {
            names,
            counts,
            ..self
        }
    }

    /// Leaves out the rows whose key ends with fewer zero bits.
    fn thin(&mut self, zeros: u32) {
        self.zeros = zeros;
        let (keys, zeros) = (&self.keys, self.zeros);
        for counts in &mut self.counts {
            let mut at = keys.iter();
            counts.retain(|_| at.next().is_some_and(|k| k.trailing_zeros() >= zeros));
        }
        self.keys.retain(|k| k.trailing_zeros() >= zeros);
    }
}

/// The one of `runs` that the others are nearest to, by the geometric mean over all pairs of events of the mean earth mover's
/// distance to them: what EPD says, with each run as the target. Runs in `beside` have some of these events, and tell by the
/// pairs that they have. The first one where nothing tells: without [`ENOUGH`] runs of the same events, or without events.
pub fn typical(runs: &[Sample], beside: &[Sample]) -> usize {
    let is_usable = |s: &&Sample| !s.keys.is_empty() && s.names == runs[0].names;
    let mut usable: Vec<&Sample> = runs.iter().filter(is_usable).collect();
    let names = runs.first().map_or(&[][..], |s| &s.names);
    let (candidates, events) = (usable.len(), names.len());
    if candidates < ENOUGH || events == 0 {
        return 0;
    }
    usable.extend(beside.iter().filter(|s| !s.keys.is_empty()));
    // Where a run has an event, if it does.
    let places: Vec<Vec<Option<usize>>> = usable
        .iter()
        .map(|s| names.iter().map(|n| s.names.iter().position(|e| e == n)))
        .map(Iterator::collect)
        .collect();
    let counts: Vec<&Counts> = usable[..candidates].iter().map(|s| &s.counts).collect();
    let bounds = bounds(&counts, events);
    let scaled: Vec<Vec<Option<Scaled>>> = usable
        .iter()
        .zip(&places)
        .map(|(run, places)| {
            let events = places.par_iter().zip(&bounds);
            events
                .map(|(at, &bounds)| Some(Scaled::new(&run.counts[(*at)?], bounds)))
                .collect()
        })
        .collect();
    // A single event is compared with itself.
    let pairs: Vec<(usize, usize)> = pairs_of(events)
        .chain((events == 1).then_some((0, 0)))
        .collect();
    let distances: Vec<Vec<f64>> = pairs
        .into_par_iter()
        .map_init(Transport::default, |transport, (x, y)| {
            // Of the candidates, which have all events and come first, and of the others that have both.
            let histograms: Vec<Histogram> = scaled
                .iter()
                .filter_map(|run| Some(Histogram::new(run[x].as_ref()?, run[y].as_ref()?)))
                .collect();
            let mut sums = vec![0.0; candidates];
            for (a, b) in pairs_of(histograms.len()).filter(|pair| pair.0 < candidates) {
                let distance = histograms[a].distance(&histograms[b], transport);
                sums[a] += distance;
                if let Some(sum) = sums.get_mut(b) {
                    *sum += distance;
                }
            }
            let others = (histograms.len() - 1) as f64;
            sums.iter().map(|s| (s / others).max(FLOOR).ln()).collect()
        })
        .collect();
    let far = |run: usize| distances.iter().map(|of_pair| of_pair[run]).sum::<f64>();
    let nearest = (0..candidates).min_by(|&a, &b| far(a).total_cmp(&far(b)));
    let found = usable[nearest.unwrap_or(0)];
    runs.iter()
        .position(|s| std::ptr::eq(s, found))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(columns: &[(&str, &dyn Fn(u64) -> u64)], rows: u64) -> XuTable {
        let mut text = "type,label,thread,t0_ns,t1_ns".to_owned();
        columns
            .iter()
            .for_each(|(name, _)| text += &format!(",{name}"));
        for row in 0..rows {
            text += &format!("\n1,0.{row},0,0,1");
            columns
                .iter()
                .for_each(|(_, f)| text += &format!(",{}", f(row)));
        }
        XuTable::from_csv((text + "\n").as_bytes()).unwrap()
    }

    #[test]
    fn the_one_in_the_middle_is_typical() {
        let of = |shift: u64| {
            let a = move |row: u64| row + shift;
            let b = move |row: u64| row * row % 97 + shift;
            Sample::of(&run(&[("A", &a), ("B", &b)], 100))
        };
        assert_eq!(typical(&[of(0), of(30), of(7)], &[]), 2);
        assert_eq!(typical(&[of(40), of(30), of(7)], &[]), 1);
        // Of two each is as good; a run without XUs tells nothing.
        assert_eq!(typical(&[of(0), of(30)], &[]), 0);
        assert_eq!(typical(&[of(0), of(30), Sample::default()], &[]), 0);
        assert_eq!(typical(&[], &[]), 0);
    }

    #[test]
    fn the_order_of_the_columns_does_not_matter_and_one_is_enough() {
        let one = |shift: u64| move |row: u64| row * 3 + shift;
        let two = |shift: u64| move |row: u64| 1000 - row + shift;
        let tables = [
            run(&[("A", &one(0)), ("B", &two(0))], 50),
            run(&[("B", &two(9)), ("A", &one(9))], 50),
            run(&[("A", &one(4)), ("B", &two(4))], 50),
        ];
        assert_eq!(typical(&tables.each_ref().map(Sample::of), &[]), 2);
        let alone = [8, 0, 3].map(|shift| Sample::of(&run(&[("A", &one(shift))], 50)));
        assert_eq!(typical(&alone, &[]), 2);
    }

    #[test]
    fn runs_with_some_of_the_events_say_what_is_usual() {
        let of = |shift: u64| {
            let a = move |row: u64| row + shift;
            let b = move |row: u64| row * row % 97;
            run(&[("A", &a), ("B", &b)], 100)
        };
        let runs = [10, 20, 50].map(|shift| Sample::of(&of(shift)));
        assert_eq!(typical(&runs, &[]), 1);
        let beside = |events: &[&str]| {
            let wanted: Vec<String> = events.iter().map(|&e| e.to_owned()).collect();
            let mut sample = Sample::of_events(&wanted);
            sample.add(&of(48));
            sample
        };
        // Two more that are as the third one.
        let others = [beside(&["B", "A"]), beside(&["A", "B", "C"])];
        assert_eq!(typical(&runs, &others), 2);
        // They say nothing with one event, of which there is no pair here.
        let others = [beside(&["A"]), beside(&["A"]), Sample::default()];
        assert_eq!(typical(&runs, &others), 1);
    }

    #[test]
    fn many_rows_are_thinned_the_same_way_in_pieces() {
        let table = run(&[("A", &|row| row)], 1000);
        let rows: Vec<u32> = (0..1000).collect();
        let (mut whole, mut pieces) = (Sample::default(), Sample::default());
        for _ in 0..300 {
            whole.add(&table);
            for piece in rows.chunks(301) {
                pieces.add(&table.gather(piece));
            }
        }
        assert_eq!(whole.counts, pieces.counts);
        // Parts in any order give the same.
        let part = |numbers: std::ops::Range<u64>| {
            let mut part = Sample::default();
            for from in numbers.step_by(1000) {
                part.add_numbered(&table, |row| from + row as u64);
            }
            part
        };
        let parts = [0..40_000, 40_000..250_000, 250_000..300_000];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut merged = Sample::default();
            order
                .into_iter()
                .for_each(|at| merged.merge(part(parts[at].clone())));
            let sorted = |sample: &Sample| {
                let mut counts = sample.counts[0].clone();
                counts.sort_unstable();
                (sample.zeros, counts)
            };
            assert_eq!(sorted(&merged), sorted(&whole));
        }
        assert!(whole.zeros > 0 && (ROWS / 3..=ROWS).contains(&whole.counts[0].len()));
    }
}
