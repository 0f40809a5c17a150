//! A program over its commits: what changed, since which commit, and how sure that is.
//!
//! ```text
//! baselines ──groups──> Group (comparable) ──tracks──> regions over builds ──curves, steps──> History ──view::history──> text, JSON, page, badge
//! ```
//!
//! Times are compared on one machine only. Counts that depend on the executed code alone are compared on all of them, without statistics.

mod curves;
mod groups;
mod pace;
mod steps;
#[cfg(test)]
mod tests;
mod tracks;

pub use steps::{FEWEST, LEVEL, MOST};

use crate::diff::Interval;
use crate::{Machine, Quantity, Side, gate};
use ompfuse_account::model::key::RegionKey;
use ompfuse_account::similar::did_you_mean;
use ompfuse_fuse::names::Selector;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Version of [`History`].
pub const HISTORY_VERSION: u32 = 1;

/// A baseline with the name of its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// The file's name.
    pub name: String,
    /// What it holds.
    pub side: Side,
}

/// What is looked at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// Only this quantity; as in a `--fail-on` of `diff`, the program's time is its wall time.
    pub quantity: Option<Quantity>,
    /// Only these regions.
    pub region: Option<Selector>,
}

/// Why there is no history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// There is nothing to look at.
    #[error(
        "there is no baseline; `ompfuse baseline RUNS -o FILE.json.gz` makes one of each commit's runs"
    )]
    Empty,
    /// No region has that name.
    #[error("no region is {0}; `ompfuse history` without --region shows what there is")]
    Region(String),
    /// Nothing has that quantity.
    #[error("the baselines have no '{name}'{meant}; they have {known}")]
    Quantity {
        /// Its name.
        name: String,
        /// What it may have meant, as a question; or nothing.
        meant: String,
        /// What there is.
        known: String,
    },
}

/// A program over its commits.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct History {
    /// Version of this form: 1.
    pub version: u32,
    /// Number of commits.
    pub commits: u32,
    /// Machines with times.
    pub machines: Vec<Machine>,
    /// Baselines that can be compared with each other: those of times first, then those with the newest commit.
    pub series: Vec<Series>,
}

/// Commits that can be compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// File name of the program.
    pub program: String,
    /// Threads of the largest team.
    pub threads: u32,
    /// A hash of the arguments.
    pub arguments: String,
    /// The machine; null if the values are counts that are equal on every machine.
    pub machine: Option<Machine>,
    /// The commits, oldest first.
    pub commits: Vec<Point>,
    /// What was measured.
    pub curves: Vec<Curve>,
}

/// A commit with its measurements.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Name of the file with its baseline; of several the first.
    pub name: String,
    /// Hash of the commit; null if not known.
    pub commit: Option<String>,
    /// The branch that was built; null if not known.
    pub branch: Option<String>,
    /// When it was committed, after RFC 3339; null if not known.
    pub date: Option<String>,
    /// True if files had changes that were in no commit.
    pub is_changed: bool,
    /// Number of runs.
    pub runs: u32,
    /// True if the machine's speed changed while it was measured: its times are left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unsteady: bool,
}

/// A quantity over the commits.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Curve {
    /// What was measured. Times are in seconds.
    pub quantity: Quantity,
    /// The region, as the newest commit with it has it; null for the program.
    pub region: Option<RegionKey>,
    /// One per commit: what a run typically has; null where it was not measured.
    pub values: Vec<Option<f64>>,
    /// Where it changed, oldest first.
    pub changes: Vec<ChangePoint>,
    /// Changes of a time with which the machine's speed changed as well: what they are of is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<ChangePoint>,
    /// How changes were looked for.
    pub basis: Basis,
    /// Positions in `commits` of values that stand alone, for up to three commits: no changes, however large. At the end of a series
    /// they may be the begin of one.
    pub lone: Vec<u32>,
}

/// How changes of a curve were looked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Every difference is a change: the value depends on the executed code alone.
    Exact,
    /// By a statistical test.
    Tested(Noise),
    /// Not at all: there are too few commits with a value.
    TooFew,
}

/// The noise of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Noise {
    /// Standard deviation of a commit's value, as a share of it.
    pub deviation: f64,
    /// Correlation of the noise of neighbouring commits, from 0 to 0.9.
    pub correlation: f64,
    /// The smallest relative change that five commits show in 95 % of all cases; null if no change is certain to be seen.
    pub smallest: Option<f64>,
}

/// A change of a curve's level.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChangePoint {
    /// Position in `commits` of the first commit that most likely has it.
    pub at: u32,
    /// It may have begun with this commit already.
    pub earliest: u32,
    /// It may have begun as late as with this one.
    pub latest: u32,
    /// The level before it.
    pub before: f64,
    /// The level behind it.
    pub after: f64,
    /// Relative change; of efficiencies the difference. Null if the value was 0.
    pub change: Option<f64>,
    /// Where `change` is by a confidence interval; null if it is exact.
    pub interval: Option<Interval>,
    /// True if it is for the worse, false if for the better; null if the quantity alone doesn't tell.
    pub is_worse: Option<bool>,
}

impl Curve {
    /// Whether it has a change for the worse in the newest `n` of so many commits.
    fn got_worse_within(&self, n: u32, commits: usize) -> bool {
        let begin = (commits as u32).saturating_sub(n);
        let is_late = |c: &ChangePoint| c.is_worse == Some(true) && c.latest >= begin;
        self.changes.iter().any(is_late)
    }
}

impl History {
    /// Whether anything has a change for the worse that may be in the newest `n` commits of its series.
    pub fn got_worse_within(&self, n: u32) -> bool {
        let of_series = |s: &Series| {
            let mut curves = s.curves.iter();
            curves.any(|c| c.got_worse_within(n, s.commits.len()))
        };
        self.series.iter().any(of_series)
    }
}

impl Series {
    /// The curve that speaks for the program: of its time, or of its instructions, or else the first one.
    pub fn headline(&self) -> Option<&Curve> {
        let of_program = |c: &&Curve| c.region.is_none();
        let is = |test: fn(&Quantity) -> bool| {
            let mut curves = self.curves.iter().filter(of_program);
            curves.find(|c| test(&c.quantity))
        };
        is(|q| *q == Quantity::Wall)
            .or_else(|| is(Quantity::is_instructions))
            .or_else(|| self.curves.first())
    }
}

/// Baselines over their commits.
///
/// # Errors
/// [`HistoryError`] if there is nothing that is wanted.
pub fn history(baselines: &[Named], wanted: &Wanted) -> Result<History, HistoryError> {
    if baselines.is_empty() {
        return Err(HistoryError::Empty);
    }
    let mut ordered: Vec<&Named> = baselines.iter().collect();
    groups::sort(&mut ordered);
    let mut series: Vec<Series> = vec![];
    let mut is_known = wanted.region.is_none();
    for group in groups::groups(&ordered) {
        let tracks = tracks::tracks(&group.sides);
        let tracks: Vec<_> = (tracks.into_iter())
            .filter(|t| (wanted.region.as_ref()).is_none_or(|s| gate::matches(s, t.key)))
            .collect();
        is_known |= !tracks.is_empty();
        series.extend(curves::series(&group, &tracks, wanted));
    }
    if let Some(selector) = wanted.region.as_ref().filter(|_| !is_known) {
        return Err(HistoryError::Region(selector.to_string()));
    }
    if series.is_empty() {
        let name = wanted
            .quantity
            .as_ref()
            .map_or("wall".to_owned(), Quantity::to_string);
        let all = baselines.iter().map(|b| &b.side);
        let all = all.flat_map(|s| s.regions.iter().map(|r| &r.values).chain([&s.total]));
        let all: BTreeSet<String> = all
            .flat_map(BTreeMap::keys)
            .map(Quantity::to_string)
            .collect();
        return Err(HistoryError::Quantity {
            meant: did_you_mean(&name, &all),
            known: Vec::from_iter(all).join(", "),
            name,
        });
    }
    // What takes time is of more interest than what is counted.
    series.sort_by_key(|s| std::cmp::Reverse((s.machine.is_some(), groups::newest(s))));
    let mut machines: Vec<Machine> = series.iter().filter_map(|s| s.machine.clone()).collect();
    machines.sort();
    machines.dedup();
    Ok(History {
        version: HISTORY_VERSION,
        commits: groups::points(&ordered).len() as u32,
        machines,
        series,
    })
}
