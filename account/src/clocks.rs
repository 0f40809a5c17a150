//! Clocks of several hosts are aligned by what ranks did anyway.
//!
//! No rank leaves a meeting before the last one has come. So the earliest end on one host is later than the latest begin on another one,
//! whatever the clocks say: each meeting gives a lower and an upper bound of the difference of two clocks. The difference is taken to
//! grow evenly, so bounds of several meetings are those of a straight line.

use crate::model::{Clocks, HostClock, Latest, Meetings, Rank};
use std::collections::{BTreeMap, BTreeSet};

/// A reading of a clock is right to this, in nanoseconds: a process's ticks are scaled by two readings.
const PRECISION_NS: f64 = 1_000.0;

/// Aligns the clocks of ranks whose meetings are known, which are taken from them, and tells each rank how late it comes. `None`: there are
/// no two, or they have no meeting.
pub(crate) fn aligned(ranks: &mut [Rank]) -> Option<Clocks> {
    let all: Vec<(usize, Meetings)> = (ranks.iter_mut().enumerate())
        .filter_map(|(at, rank)| Some((at, rank.meetings.take()?)))
        .collect();
    // Ranks that have lost records, or were recorded for a time only, have other numbers.
    let mut numbers: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, meetings) in &all {
        *numbers.entry(meetings.all).or_default() += 1;
    }
    let (&meetings, _) = numbers.iter().max_by_key(|(_, count)| **count)?;
    let is_meant = |(at, m): &(usize, Meetings)| m.all == meetings && ranks[*at].ended;
    let known: Vec<(usize, Meetings)> = all.into_iter().filter(is_meant).collect();
    let mut hosts: BTreeMap<Option<&str>, Vec<&(usize, Meetings)>> = BTreeMap::new();
    for one in &known {
        hosts
            .entry(ranks[one.0].host.as_deref())
            .or_default()
            .push(one);
    }
    let first_host = ranks[known.first()?.0].host.clone();
    let reference = Times::of(hosts.get(&first_host.as_deref())?)?;
    let (mut list, mut lines) = (vec![], BTreeMap::new());
    for (host, on_host) in &hosts {
        let line = match *host == first_host.as_deref() {
            true => Some(Line::default()),
            false => Times::of(on_host).and_then(|times| Line::between(&reference, &times)),
        };
        let Some(line) = line else { continue };
        list.push(HostClock {
            host: host.map(str::to_owned),
            ranks: on_host.len() as u32,
            offset_s: line.first * 1e-9,
            offset_at_end_s: line.last * 1e-9,
            error_s: line.error * 1e-9,
        });
        lines.insert(host.map(str::to_owned), line);
    }
    list.sort_by_key(|h| h.host != first_host);
    let span = reference.span();
    // When ranks came, by the first host's clock.
    let mut came: Vec<(usize, Vec<f64>)> = vec![];
    for (at, meetings) in &known {
        let Some(line) = lines.get(&ranks[*at].host) else {
            continue;
        };
        let both = meetings.times.iter().zip(&reference.list);
        let times = both.map(|(&(_, came, _), (t, _))| came as f64 - line.at(*t, span));
        came.push((*at, times.collect()));
    }
    if came.len() < 2 {
        return None;
    }
    let used = reference.list.len();
    let is_in: BTreeSet<usize> = came.iter().map(|(at, _)| *at).collect();
    let others = (0..ranks.len()).filter(|at| !is_in.contains(at));
    let left_out: Vec<u32> = others.map(|at| ranks[at].rank).collect();
    let extreme = |how: fn(f64, f64) -> f64| -> Vec<f64> {
        let of = |nth: usize| came.iter().map(|(_, times)| times[nth]).reduce(how);
        (0..used).map(|nth| of(nth).unwrap_or(0.0)).collect()
    };
    let (earliest, latest_times) = (extreme(f64::min), extreme(f64::max));
    let mut latest: Option<Latest> = None;
    for (at, times) in &came {
        let late: f64 = times
            .iter()
            .zip(&earliest)
            .map(|(t, first)| t - first)
            .sum();
        let late_s = late / used as f64 * 1e-9;
        ranks[*at].late_s = Some(late_s);
        if latest.is_none_or(|l| late_s > l.late_s) {
            latest = Some(Latest {
                rank: ranks[*at].rank,
                late_s,
                last: times
                    .iter()
                    .zip(&latest_times)
                    .filter(|(t, last)| t == last)
                    .count() as u32,
            });
        }
    }
    Some(Clocks {
        meetings,
        used: used as u32,
        error_s: list.iter().map(|h| h.error_s).fold(0.0, f64::max),
        hosts: list,
        left_out,
        latest,
    })
}

/// When the last rank of a host came to meetings, and the first one left, by the host's clock.
struct Times {
    list: Vec<(f64, f64)>,
}

impl Times {
    /// `None`: the clocks of these ranks contradict one another.
    fn of(ranks: &[&(usize, Meetings)]) -> Option<Times> {
        let (_, first) = ranks.first()?;
        let mut list: Vec<(f64, f64)> = first
            .times
            .iter()
            .map(|&(_, came, left)| (came as f64, left as f64))
            .collect();
        for (_, more) in &ranks[1..] {
            if more.times.len() != list.len() {
                return None;
            }
            for (time, &(_, came, left)) in list.iter_mut().zip(&more.times) {
                *time = (time.0.max(came as f64), time.1.min(left as f64));
            }
        }
        let is_right = list
            .iter()
            .all(|(came, left)| *left >= came - 2.0 * PRECISION_NS);
        (is_right && !list.is_empty()).then_some(Times { list })
    }

    /// From when the first meeting began to when the last one ended.
    fn span(&self) -> [f64; 2] {
        let first = self.list.first().map_or(0.0, |t| t.0);
        [first, self.list.last().map_or(0.0, |t| t.1)]
    }
}

/// What a clock is ahead of another one when the first meeting begins and when the last one ends, and the most that this can be wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Line {
    first: f64,
    last: f64,
    error: f64,
}

/// The difference of two clocks at a time is at least, or at most, this.
#[derive(Debug, Clone, Copy)]
struct Bound {
    t: f64,
    limit: f64,
}

impl Line {
    /// `None`: no line is within all bounds.
    fn between(reference: &Times, other: &Times) -> Option<Line> {
        if reference.list.len() != other.list.len() {
            return None;
        }
        // A meeting may last long, and clocks go on drifting: a bound holds when the reference left, or came.
        let both = || reference.list.iter().zip(&other.list);
        let least: Vec<Bound> = both()
            .map(|(a, b)| Bound {
                t: a.1,
                limit: b.0 - a.1 - 2.0 * PRECISION_NS,
            })
            .collect();
        let most: Vec<Bound> = both()
            .map(|(a, b)| Bound {
                t: a.0,
                limit: b.1 - a.0 + 2.0 * PRECISION_NS,
            })
            .collect();
        let span = reference.span();
        let [low, high] = at_begin(span[0], &least, &most);
        let backwards = |bounds: &[Bound]| -> Vec<Bound> {
            bounds.iter().map(|b| Bound { t: -b.t, ..*b }).collect()
        };
        let [low_at_end, high_at_end] = at_begin(-span[1], &backwards(&least), &backwards(&most));
        let line = Line {
            first: f64::midpoint(low, high),
            last: f64::midpoint(low_at_end, high_at_end),
            error: (high - low).max(high_at_end - low_at_end) / 2.0,
        };
        let fits = least
            .iter()
            .all(|b| line.at(b.t, span) >= b.limit - line.error)
            && most
                .iter()
                .all(|b| line.at(b.t, span) <= b.limit + line.error);
        (high >= low && high_at_end >= low_at_end && fits).then_some(line)
    }

    /// The difference at a time. `span`: from the first meeting to the last.
    fn at(&self, t: f64, [from, to]: [f64; 2]) -> f64 {
        match to > from {
            true => self.first + (self.last - self.first) * (t - from) / (to - from),
            false => self.first,
        }
    }
}

/// Two clocks drift by less: the kernel lets each be corrected by 500 parts of a million at most.
const MOST_DRIFT: f64 = 1e-3;

/// What a straight line within all bounds has at a time before them.
fn at_begin(begin: f64, least: &[Bound], most: &[Bound]) -> [f64; 2] {
    // From one bound alone, and from two of which the nearer one is on the other side of the line than the farther one.
    let drift = |b: &Bound| MOST_DRIFT * (b.t - begin);
    let low = least.iter().map(|b| b.limit - drift(b));
    let high = most.iter().map(|b| b.limit + drift(b));
    let through = |near: &Bound, far: &Bound| {
        let slope = (near.limit - far.limit) / (far.t - near.t);
        (far.t > near.t).then_some(near.limit + slope * (near.t - begin))
    };
    let steepest = |near: &'_ [Bound], far: &'_ [Bound]| -> Vec<f64> {
        let pairs = near.iter().flat_map(|n| far.iter().map(move |f| (n, f)));
        pairs.filter_map(|(n, f)| through(n, f)).collect()
    };
    [
        low.chain(steepest(least, most))
            .fold(f64::NEG_INFINITY, f64::max),
        high.chain(steepest(most, least))
            .fold(f64::INFINITY, f64::min),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Meetings of four ranks on two hosts in true time: some rank comes last to each of them.
    fn ranks(ahead: impl Fn(i64) -> i64) -> Vec<Rank> {
        let rank = |rank: u32| {
            let times = (0..64u64).map(|n| {
                let begin = 1_000_000_000 + 10_000_000 * n as i64;
                let late = |rank: u32| {
                    100_000 * i64::from((rank + n as u32) % 4) + 50_000 * i64::from(rank == 3)
                };
                let came = begin + late(rank);
                let left =
                    begin + (0..4).map(late).max().unwrap_or(0) + 3_000 + i64::from(rank) * 500;
                let shift = |t: i64| if rank >= 2 { t + ahead(t) } else { t };
                (n, shift(came), shift(left))
            });
            Rank {
                rank,
                host: Some(format!("node{}", rank / 2)),
                ended: true,
                meetings: Some(Meetings {
                    all: 64,
                    times: times.collect(),
                }),
                ..Rank::default()
            }
        };
        (0..4).map(rank).collect()
    }

    #[test]
    fn offsets_and_drifts_are_found_within_the_error() {
        // Hours apart, milliseconds, nothing; with a drift of up to a tenth of a permille.
        for (offset, ppm) in [
            (0, 0),
            (7_200_000_000_000, 0),
            (-3_456_789, 50),
            (12_345_678_901, -100),
        ] {
            let ahead = |t: i64| offset + (t - 1_000_000_000) * ppm / 1_000_000;
            let mut all = ranks(ahead);
            let clocks = aligned(&mut all).unwrap();
            assert_eq!(
                (clocks.meetings, clocks.used, clocks.hosts.len()),
                (64, 64, 2)
            );
            let node1 = &clocks.hosts[1];
            assert_eq!((node1.host.as_deref(), node1.ranks), (Some("node1"), 2));
            let end = 1_000_000_000 + 63 * 10_000_000;
            let wrong = (node1.offset_s - ahead(1_000_000_000) as f64 * 1e-9).abs();
            let wrong_at_end = (node1.offset_at_end_s - ahead(end) as f64 * 1e-9).abs();
            assert!(
                wrong <= node1.error_s + 1e-9 && wrong_at_end <= node1.error_s + 1e-9,
                "{node1:?}"
            );
            assert!(
                node1.error_s < 20e-6 && clocks.error_s == node1.error_s,
                "{node1:?}"
            );
            // Rank 3 comes later than others by 50 µs in the mean.
            let latest = clocks.latest.unwrap();
            assert_eq!((latest.rank, clocks.left_out.len()), (3, 0));
            assert!((latest.late_s - 200e-6).abs() < 20e-6, "{latest:?}");
            assert!(
                all.iter()
                    .all(|r| r.meetings.is_none() && r.late_s.is_some())
            );
        }
    }

    #[test]
    fn clocks_that_drift_while_a_meeting_lasts_are_aligned() {
        // The other host comes 100 ms late to every second meeting, and its clock gains 30 µs meanwhile.
        for ppm in [300, -300] {
            let ahead = |t: i64| (t - 1_000_000_000) * ppm / 1_000_000;
            let times = |is_other: bool| {
                let of = move |n: u64| {
                    let begin = 1_000_000_000 + 110_000_000 * n as i64;
                    let late = if n.is_multiple_of(2) {
                        100_000_000
                    } else {
                        2_000_000
                    };
                    let is_late = n.is_multiple_of(2) == is_other;
                    let came = begin + if is_late { late } else { 0 };
                    let left = begin + late + 2_000;
                    match is_other {
                        true => (n, came + ahead(came), left + ahead(left)),
                        false => (n, came, left),
                    }
                };
                (0..64u64).map(of).collect()
            };
            let rank = |rank: u32| Rank {
                rank,
                host: Some(format!("node{rank}")),
                ended: true,
                meetings: Some(Meetings {
                    all: 64,
                    times: times(rank == 1),
                }),
                ..Rank::default()
            };
            let clocks = aligned(&mut [rank(0), rank(1)]).unwrap();
            assert_eq!((clocks.hosts.len(), clocks.left_out.len()), (2, 0));
            let other = &clocks.hosts[1];
            let end = 1_000_000_000 + 63 * 110_000_000 + 2_002_000;
            let wrong = (other.offset_at_end_s - ahead(end) as f64 * 1e-9).abs();
            assert!(other.offset_s.abs() <= other.error_s, "{other:?}");
            assert!(wrong <= other.error_s && other.error_s < 50e-6, "{other:?}");
        }
    }

    #[test]
    fn ranks_that_contradict_are_left_out() {
        let mut all = ranks(|_| 0);
        // Rank 1 missed a meeting; a clock of node1 jumps.
        all[1].meetings.as_mut().unwrap().all = 63;
        let clocks = aligned(&mut all).unwrap();
        assert_eq!(clocks.left_out, [1]);
        assert_eq!(all[1].late_s, None);
        let mut all = ranks(|t| if t > 1_300_000_000 { 5_000_000 } else { 0 });
        let clocks = aligned(&mut all).unwrap();
        assert_eq!((clocks.hosts.len(), clocks.left_out), (1, vec![2, 3]));
        // Nobody is left to compare with.
        let mut one = ranks(|_| 0);
        one.truncate(1);
        assert_eq!(aligned(&mut one), None);
    }
}
