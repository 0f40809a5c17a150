//! What a comparison found: values only, no sentences.

use super::side::{Quantity, SideRegion};
use crate::model::key::RegionKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the comparison's JSON.
pub const DIFF_VERSION: u32 = 1;

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// [`DIFF_VERSION`] of the writer.
    pub version: u32,
    /// The side that is compared with.
    pub a: SideInfo,
    /// The side that is judged.
    pub b: SideInfo,
    /// What makes the sides less comparable.
    pub conditions: Vec<Condition>,
    /// Share of the thread time in regions that is matched, on each side; from 0 to 1.
    pub matched: [f64; 2],
    /// Changes of the whole program.
    pub total: Vec<Change>,
    /// What belongs together, the largest change of time first.
    pub pairs: Vec<Pair>,
    /// Regions of A that have no partner, those with the most time first.
    pub only_a: Vec<Lone>,
    /// Regions of B that have none.
    pub only_b: Vec<Lone>,
}

/// A side in a few words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideInfo {
    /// What the user calls it.
    pub name: String,
    /// The program.
    pub program: String,
    /// Number of runs.
    pub runs: u32,
    /// Threads that recorded.
    pub threads: u32,
}

/// A region without a partner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lone {
    /// What it is.
    pub key: RegionKey,
    /// Share of its side's thread time.
    pub share: f64,
    /// Own time, all threads, in seconds.
    pub time_s: f64,
    /// Whether the other side's program has constructs without a probe in that module: it may be among those.
    pub may_be_unseen: bool,
}

/// Regions that belong together: one on each side; several where compilers made copies, or where they can't be told apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Regions of A.
    pub a: Vec<RegionKey>,
    /// Regions of B.
    pub b: Vec<RegionKey>,
    /// By what they were matched.
    pub basis: Basis,
    /// How sure that is.
    pub confidence: Confidence,
    /// Whether these are compared as a sum, since they can't be told apart.
    pub is_group: bool,
    /// Share of the thread time on each side.
    pub share: [f64; 2],
    /// Whether it took part in the test of the regions with much time.
    pub is_tested: bool,
    /// What was compared.
    pub changes: Vec<Change>,
    /// Distance of the distributions of units' times: what the units of A would have to change on the mean to be those of B, over A's
    /// mean time; `None` without units.
    pub distance: Option<f64>,
    /// The unit that got slower most.
    pub unit: Option<UnitChange>,
    /// Schedules, where they differ.
    pub schedules: Option<[Option<String>; 2]>,
}

/// Regions that belong together, before anything was compared: what the matching gives, and what statistics make a [`Pair`] of.
#[derive(Debug, Clone, PartialEq)]
pub struct Matched<'a> {
    /// Regions of A, at least one.
    pub a: Vec<&'a SideRegion>,
    /// Regions of B, at least one.
    pub b: Vec<&'a SideRegion>,
    /// By what they were matched.
    pub basis: Basis,
    /// How sure that is.
    pub confidence: Confidence,
    /// Whether these are compared as a sum, since they can't be told apart.
    pub is_group: bool,
}

impl Pair {
    /// The change of a quantity, if a side has it.
    pub fn get(&self, quantity: &Quantity) -> Option<&Change> {
        self.changes.iter().find(|c| c.quantity == *quantity)
    }

    /// The change that stands for the region: of the wall time where both sides have it, else of the threads' time, else of the
    /// instructions.
    pub fn headline(&self) -> Option<&Change> {
        headline(&self.changes)
    }

    /// By how many seconds all threads' time is more on B.
    pub fn time_change(&self) -> Option<f64> {
        self.get(&Quantity::Time)?.difference()
    }

    /// Whether something is certain to have changed.
    pub fn is_changed(&self) -> bool {
        let has_slow_unit = self.unit.as_ref().is_some_and(|u| u.is_certain);
        has_slow_unit || self.changes.iter().any(|c| c.finding == Finding::Changed)
    }
}

impl Diff {
    /// The change of a quantity of the whole program, if a side has it.
    pub fn get(&self, quantity: &Quantity) -> Option<&Change> {
        self.total.iter().find(|c| c.quantity == *quantity)
    }

    /// The change that stands for the program: of the wall time where both sides have it, else of the threads' time, else of the
    /// instructions.
    pub fn headline(&self) -> Option<&Change> {
        headline(&self.total)
    }
}

/// The change that stands for all.
pub(super) fn headline(changes: &[Change]) -> Option<&Change> {
    let known = || changes.iter().filter(|c| c.a.is_some() && c.b.is_some());
    let of = |wanted: Quantity| known().find(|c| c.quantity == wanted);
    of(Quantity::Wall)
        .or_else(|| of(Quantity::Time))
        .or_else(|| known().find(|c| c.quantity.is_instructions()))
}

impl Change {
    /// `b - a`.
    pub fn difference(&self) -> Option<f64> {
        Some(self.b? - self.a?)
    }
}

/// By what two regions were matched: the most certain first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The same build and address.
    Address,
    /// Source file, line and construct.
    Line,
    /// Source file, function, construct and the order in it; lines differ.
    Order,
    /// Function, construct and the order in it; no lines are known.
    Function,
    /// The names of the functions that called it.
    Callers,
    /// The units' places in the tree of regions are the same ones.
    Units,
    /// Its parent's match, and construct and order in it.
    Tree,
    /// Executions, units, iterations, and what it is nested in.
    Behaviour,
}

/// How sure a match is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Nothing else is possible.
    Certain,
    /// Several independent signs agree.
    High,
    /// One sign tells.
    Fair,
}

/// An interval with its level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Level, from 0 to 1.
    pub level: f64,
}

/// One quantity on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What.
    pub quantity: Quantity,
    /// What a run of A has; `None` if it was not measured there.
    pub a: Option<f64>,
    /// What a run of B has.
    pub b: Option<f64>,
    /// `b / a - 1`; of shares `b - a`. `None` if `a` is 0 or something is not known.
    pub change: Option<f64>,
    /// Where the true change is, at 95 %; `None`: both are constant, or noise is unknown.
    pub interval: Option<Interval>,
    /// Probability of such a difference by chance, if it was tested.
    pub p: Option<f64>,
    /// What that means.
    pub finding: Finding,
    /// Runs on each side that would be needed to tell a difference of this size, where it isn't certain.
    pub runs_needed: Option<u32>,
    /// A model estimates it.
    pub is_modelled: bool,
}

/// What a comparison of two samples says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// Both are constant and equal.
    Equal,
    /// It changed: constant on both sides and different, or certain after correction for the number of tests.
    Changed,
    /// No difference was seen; one of this size would have been, four times in five.
    NotSeen {
        /// The size: a share of A, or points. `None` if A is 0.
        could_see: Option<f64>,
    },
    /// It varies, and was not tested: it is a detail of what has not changed, or of a region with little time.
    NotTested,
    /// With one run on a side noise is unknown.
    NoiseUnknown,
    /// It was not measured on a side.
    NotMeasured,
}

/// A unit on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitChange {
    /// Its label on A, then on B.
    pub labels: [String; 2],
    /// What it is, in words that scripts can rely on: `iterations 10..20`, `task 3`, `section 1`.
    pub what: String,
    /// Its time on A and on B in seconds, the mean over runs.
    pub time_s: [f64; 2],
    /// It took longer in every run of B than in any of A, too often for chance (see `units::add_slowest`), and by half at least.
    #[serde(default)]
    pub is_certain: bool,
}

/// What makes two sides less comparable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Condition {
    /// Teams of other sizes.
    Threads {
        /// Largest team of A.
        a: u32,
        /// Of B.
        b: u32,
    },
    /// Other arguments.
    Arguments,
    /// Other hosts.
    Hosts,
    /// Other numbers of processors.
    Processors {
        /// Of A.
        a: f64,
        /// Of B.
        b: f64,
    },
    /// Events that only one side has.
    Events {
        /// Those of A only.
        only_a: Vec<String>,
        /// Those of B only.
        only_b: Vec<String>,
    },
    /// One side was recorded in part (sampling, throttling, a filter).
    InPart {
        /// Whether it was A.
        a: bool,
        /// Whether it was B.
        b: bool,
    },
    /// A simulator counted on one side only.
    Simulated {
        /// Whether on A.
        a: bool,
        /// Whether on B.
        b: bool,
    },
    /// Threads waited for processors.
    Starved {
        /// Share of the time on A.
        a: Option<f64>,
        /// On B.
        b: Option<f64>,
    },
    /// Probes took much of the time: times are those of the probes too.
    Probes {
        /// Share on A.
        a: Option<f64>,
        /// On B.
        b: Option<f64>,
    },
    /// Something is lost or damaged.
    Damaged {
        /// On A.
        a: Vec<String>,
        /// On B.
        b: Vec<String>,
    },
    /// One run on a side: noise is unknown.
    OneRun {
        /// Whether it is A.
        a: bool,
        /// Whether it is B.
        b: bool,
    },
}
