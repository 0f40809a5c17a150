//! Which baselines can be compared, and in which order.

use super::{Named, Point, Series, pace};
use crate::{Machine, Pace, Side};
use chrono::DateTime;
use std::collections::BTreeMap;

/// Baselines of one program with one input and number of threads.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// Oldest first.
    pub(super) sides: Vec<&'a Named>,
}

/// A commit: its baselines are repetitions.
#[derive(Debug, Clone)]
pub(super) struct Commit<'a> {
    /// Positions in the group.
    pub(super) at: Vec<usize>,
    /// Their baselines.
    pub(super) of: Vec<&'a Named>,
}

/// Seconds since 1970: of the commit, or of the first run.
fn time(side: &Side) -> f64 {
    let date = side.origin.commit.as_ref().and_then(|c| c.date.as_deref());
    let date = date.and_then(|d| DateTime::parse_from_rfc3339(d).ok());
    date.map(|d| d.timestamp() as f64)
        .or(side.origin.started)
        .unwrap_or(0.0)
}

/// Oldest first. Commits of one second, as a rebase makes them, are in the order in which they were measured.
pub(super) fn sort(baselines: &mut [&Named]) {
    baselines.sort_by(|a, b| {
        let measured = |n: &Named| n.side.origin.started.unwrap_or(0.0);
        let by_time = time(&a.side).total_cmp(&time(&b.side));
        let by_run = measured(a).total_cmp(&measured(b));
        by_time.then(by_run).then_with(|| a.name.cmp(&b.name))
    });
}

/// When a series' newest commit was, to sort by.
pub(super) fn newest(series: &Series) -> (i64, usize) {
    let date = series.commits.iter().rev().find_map(|p| p.date.as_deref());
    let date = date.and_then(|d| DateTime::parse_from_rfc3339(d).ok());
    (date.map_or(0, |d| d.timestamp()), series.commits.len())
}

/// Sorted baselines by what must be equal.
pub(super) fn groups<'a>(baselines: &[&'a Named]) -> Vec<Group<'a>> {
    let mut found: BTreeMap<(&str, u32, &str), Vec<&Named>> = BTreeMap::new();
    for baseline in baselines {
        let origin = &baseline.side.origin;
        let key = (&*origin.program, origin.team, &*origin.args_hash);
        found.entry(key).or_default().push(baseline);
    }
    found.into_values().map(|sides| Group { sides }).collect()
}

/// Sorted baselines by commit. What has no commit is one of its own.
pub(super) fn points<'a>(baselines: &[&'a Named]) -> Vec<Commit<'a>> {
    let mut found: Vec<Commit<'_>> = vec![];
    let mut known: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    for (at, baseline) in baselines.iter().enumerate() {
        let commit = baseline.side.origin.commit.as_ref();
        let hash = commit.map(|c| (&*c.hash, c.is_changed));
        match hash.and_then(|hash| known.get(&hash).copied()) {
            Some(point) => {
                found[point].at.push(at);
                found[point].of.push(baseline);
            }
            None => {
                known.extend(hash.map(|hash| (hash, found.len())));
                found.push(Commit {
                    at: vec![at],
                    of: vec![baseline],
                });
            }
        }
    }
    found
}

impl<'a> Group<'a> {
    /// The commits of all baselines that `is_wanted`.
    pub(super) fn commits(&self, is_wanted: &dyn Fn(&Side) -> bool) -> Vec<Commit<'a>> {
        let mut all = points(&self.sides);
        for commit in &mut all {
            let kept = commit
                .at
                .iter()
                .zip(&commit.of)
                .filter(|(_, n)| is_wanted(&n.side));
            let (at, of) = kept.map(|(at, of)| (*at, *of)).unzip();
            *commit = Commit { at, of };
        }
        all.retain(|c| !c.of.is_empty());
        all
    }

    /// The machines that have times.
    pub(super) fn machines(&self) -> Vec<&'a Machine> {
        let timed = self.sides.iter().filter(|n| is_timed(&n.side));
        let mut machines: Vec<&Machine> = timed.map(|n| &n.side.origin.machine).collect();
        machines.sort();
        machines.dedup();
        machines
    }
}

/// Whether a processor executed it.
pub(super) fn is_timed(side: &Side) -> bool {
    side.total.keys().any(crate::Quantity::is_time)
}

impl Commit<'_> {
    pub(super) fn point(&self) -> Point {
        let first = self.of[0];
        let commit = first.side.origin.commit.as_ref();
        Point {
            name: first.name.clone(),
            commit: commit.map(|c| c.hash.clone()),
            branch: commit.and_then(|c| c.branch.clone()),
            date: commit.and_then(|c| c.date.clone()),
            is_changed: commit.is_some_and(|c| c.is_changed),
            runs: self.of.iter().map(|n| n.side.origin.runs).sum(),
            is_unsteady: self.is_unsteady(),
        }
    }

    /// How fast the machine computed; `None`: it is not known of all of its baselines.
    pub(super) fn pace(&self) -> Option<Pace> {
        pace::of_all(self.of.iter().map(|n| n.side.origin.pace))
    }

    /// Whether that changed while it was measured.
    pub(super) fn is_unsteady(&self) -> bool {
        self.pace().is_some_and(|pace| pace::is_unsteady(&pace))
    }
}
