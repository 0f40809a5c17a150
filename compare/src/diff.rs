//! What a comparison found: values only, no sentences.

mod headline;

pub(super) use headline::headline;

use super::LEAST_MATCHED;
use super::behaviour::ALIKE;
use super::side::{Quantity, SideRegion};
use ompfuse_account::model::UncountedWork;
use ompfuse_account::model::key::RegionKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the comparison's JSON.
pub const DIFF_VERSION: u32 = 1;

/// A comparison of two sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// Version of these fields, 1. It grows when a field is removed or changes its meaning, not when one is added.
    pub version: u32,
    /// Side A, the reference.
    pub a: SideInfo,
    /// Side B, which is judged.
    pub b: SideInfo,
    /// Reasons why the sides are less comparable.
    pub conditions: Vec<Condition>,
    /// Number of pairs of runs, if both sides were recorded in turns; else null. Times are tested by pairs then.
    pub turns: Option<u32>,
    /// Share of the thread time in regions that is matched, for A and B, from 0 to 1.
    pub matched: [f64; 2],
    /// Share of what the regions' numbers of executions and iterations tell that both sides have in common, from 0 to 1.
    pub alike: f64,
    /// Changes of the whole program.
    pub total: Vec<Change>,
    /// Matched regions; the one with the largest change of time comes first.
    pub pairs: Vec<Pair>,
    /// Regions of A without a partner; the one with the most time comes first.
    pub only_a: Vec<Lone>,
    /// Regions of B without a partner; the one with the most time comes first.
    pub only_b: Vec<Lone>,
}

/// Short description of a side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideInfo {
    /// Name of the side, as the user wrote it.
    pub name: String,
    /// The program.
    pub program: String,
    /// Number of runs.
    pub runs: u32,
    /// Number of threads that recorded.
    pub threads: u32,
}

/// A region without a partner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lone {
    /// The region.
    pub key: RegionKey,
    /// Share of its side's thread time, from 0 to 1.
    pub share: f64,
    /// Own time of all threads, in seconds.
    pub time_s: f64,
    /// True if the other side has constructs without a probe in that module, or was recorded in part. The region may be among what it
    /// lacks.
    pub may_be_unseen: bool,
    /// True if the other side has a region without a partner that it may be. Then it is no change.
    pub may_be_other: bool,
    /// How often it was executed; null if runs differ or it is not known.
    pub executions: Option<f64>,
}

impl Lone {
    /// Whether the other side is certain not to have it.
    pub fn is_certain(&self) -> bool {
        !self.may_be_unseen && !self.may_be_other
    }
}

/// Matched regions: one on each side. There are several if compilers made copies, or if they can't be told apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Regions of A.
    pub a: Vec<RegionKey>,
    /// Regions of B.
    pub b: Vec<RegionKey>,
    /// The basis of the match.
    pub basis: Basis,
    /// How certain the match is.
    pub confidence: Confidence,
    /// True if the regions are compared as a sum because they can't be told apart.
    pub is_group: bool,
    /// Share of the thread time on A and on B, from 0 to 1.
    pub share: [f64; 2],
    /// True if it took part in the test of the regions with much time.
    pub is_tested: bool,
    /// The compared quantities.
    pub changes: Vec<Change>,
    /// Distance between the distributions of the units' times: the mean change that turns A's times into B's, divided by A's
    /// mean time. Null without units.
    pub distance: Option<f64>,
    /// The unit that got slower most; null if none did or there are no units.
    pub unit: Option<UnitChange>,
    /// True if much of its work, on one side at least, is in code that counts no instructions: what counts of functions say of it is not
    /// known then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
    /// Functions whose share of the samples changed and that make a large part of a certain change of the region's time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionChange>,
    /// Schedules on A and on B if they differ, else null. One of them is null if not known.
    pub schedules: Option<[Option<String>; 2]>,
}

/// The work of a region in a function itself, by samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionChange {
    /// Its name.
    pub name: String,
    /// Share of the region's samples on A and on B, from 0 to 1.
    pub share: [f64; 2],
    /// That share of the region's work, in seconds of all threads.
    pub time_s: [f64; 2],
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
    /// instructions, else (of waits) of the executions. The median unit stands for it where that is certain to have changed, and the time is not, or only so far that it
    /// may have changed as much.
    pub fn headline(&self) -> Option<&Change> {
        headline(&self.changes, self.has_own_units())
    }

    /// By how many seconds all threads' time is more on B.
    pub fn time_change(&self) -> Option<f64> {
        self.get(&Quantity::Time)?.difference()
    }

    /// Whether something is certain to have changed. How many units the runtime makes of a loop's iterations depends on compiler, runtime
    /// and moment, with most schedules: that is no change of the program, and a schedule is one.
    pub fn is_changed(&self) -> bool {
        let has_slow_unit = self.unit.as_ref().is_some_and(|u| u.is_certain);
        let is_told = |c: &Change| !c.quantity.is_of_units() || self.has_own_units();
        let mut changed = self
            .changes
            .iter()
            .filter(|c| c.finding == Finding::Changed);
        has_slow_unit || self.has_other_schedule() || changed.any(is_told)
    }

    /// Whether something differs for certain, be it no change of the program.
    pub fn differs(&self) -> bool {
        self.is_changed() || self.changes.iter().any(|c| c.finding == Finding::Changed)
    }

    /// Whether the source's schedule differs. gcc makes `static` of `auto`.
    fn has_other_schedule(&self) -> bool {
        let is_auto = |s: &Option<String>| s.as_deref() == Some("auto");
        (self.schedules.as_ref()).is_some_and(|both| !both.iter().any(is_auto))
    }

    /// Whether the source, the input and the number of threads tell how its work is divided, or nothing says that it was divided otherwise.
    fn has_own_units(&self) -> bool {
        let is_free = |key: &RegionKey| key.schedule.as_ref().is_some_and(|s| s != "static");
        let mut keys = self.a.iter().chain(&self.b);
        let is_changed = |c: &Change| c.finding == Finding::Changed;
        !keys.any(is_free) || !self.get(&Quantity::Units).is_some_and(is_changed)
    }
}

impl Diff {
    /// Whether names, lines, structure or behaviour tell that both sides are builds of one program.
    pub fn is_one_program(&self) -> bool {
        self.matched.iter().all(|&share| share >= LEAST_MATCHED) || self.alike >= ALIKE
    }

    /// The change of a quantity of the whole program, if a side has it.
    pub fn get(&self, quantity: &Quantity) -> Option<&Change> {
        self.total.iter().find(|c| c.quantity == *quantity)
    }

    /// The change that stands for the program: of the wall time where both sides have it, else of the threads' time, else of the
    /// instructions.
    pub fn headline(&self) -> Option<&Change> {
        headline(&self.total, true)
    }
}

impl Change {
    /// `b - a`.
    pub fn difference(&self) -> Option<f64> {
        Some(self.b? - self.a?)
    }
}

/// The basis of a match, most certain first.
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
    /// Function, construct and the order in it, in another file.
    Function,
    /// What the function lost, and new functions have together: it was divided, or functions were joined.
    Parts,
    /// Names of the functions that called it.
    Callers,
    /// Places of its units in the tree of regions.
    Units,
    /// The match of its parent, and construct and order in it.
    Tree,
    /// Numbers of executions, units and iterations, and the region around it.
    Behaviour,
}

/// How certain a match is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// No other match is possible.
    Certain,
    /// Several independent signs agree.
    High,
    /// One sign shows it.
    Fair,
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence level, from 0 to 1.
    pub level: f64,
}

/// One quantity on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The quantity.
    pub quantity: Quantity,
    /// Mean of A's runs; null if it was not measured.
    pub a: Option<f64>,
    /// Mean of B's runs; null if it was not measured.
    pub b: Option<f64>,
    /// Relative change `b / a - 1`; for shares `b - a`. Null if `a` is 0 or a value is not known.
    pub change: Option<f64>,
    /// Interval of the true change at 95 %. Null if both sides are constant or the noise is not known.
    pub interval: Option<Interval>,
    /// Probability of such a difference by chance; null if it was not tested.
    pub p: Option<f64>,
    /// Result of the comparison.
    pub finding: Finding,
    /// Number of runs on each side needed to detect a difference of this size; null if it is certain already.
    pub runs_needed: Option<u32>,
    /// True if a model estimates the quantity (caches, branch prediction).
    pub is_modelled: bool,
}

/// Result of comparing two samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// Both are constant and equal.
    Equal,
    /// It changed. Either both sides are constant and different, or the change is significant after correction for the number
    /// of tests.
    Changed,
    /// No difference was detected. A difference of this size would be detected in four cases of five.
    NotSeen {
        /// The size: relative to A, or in points for shares. Null if A is 0.
        could_see: Option<f64>,
    },
    /// It varies and was not tested, because it is a detail of an unchanged region or of a region with little time.
    NotTested,
    /// A side has one run, so the noise is not known.
    NoiseUnknown,
    /// A side did not measure it.
    NotMeasured,
}

/// A unit on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitChange {
    /// Its label on A, and on B.
    pub labels: [String; 2],
    /// The unit, in words that scripts can rely on: `iterations 10..20`, `task 3`, `section 1`.
    pub what: String,
    /// Median of its undisturbed times on A, and on B, in seconds.
    pub time_s: [f64; 2],
    /// Runs of A, and of B, in which something disturbed it, which are left out.
    pub disturbed: [u32; 2],
    /// True if it took longer in every such run of B than in any of A, too often for chance, and at least half as long again.
    pub is_certain: bool,
}

/// A reason why two sides are less comparable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Condition {
    /// Less than half of the regions' time is matched.
    Unmatched {
        /// Share of A's time in regions without a partner, from 0 to 1.
        a: f64,
        /// Share of B's.
        b: f64,
    },
    /// The largest teams differ.
    Threads {
        /// Size of the largest team of A.
        a: u32,
        /// Size of the largest team of B.
        b: u32,
    },
    /// The arguments differ.
    Arguments,
    /// The hosts differ.
    Hosts,
    /// The numbers of processors differ.
    Processors {
        /// Processors of A.
        a: f64,
        /// Processors of B.
        b: f64,
    },
    /// Functions count their instructions (`--count`), and others have a large part of a side's work.
    Uncounted {
        /// How much of A's work these have; null if it is little, or not known.
        a: Option<UncountedWork>,
        /// The same of B.
        b: Option<UncountedWork>,
    },
    /// Only one side has some events.
    Events {
        /// Events of A only.
        only_a: Vec<String>,
        /// Events of B only.
        only_b: Vec<String>,
    },
    /// A side was recorded in part (sampling, throttling, a filter).
    InPart {
        /// True if A was.
        a: bool,
        /// True if B was.
        b: bool,
    },
    /// Only one side was counted by a simulator.
    Simulated {
        /// True if A was.
        a: bool,
        /// True if B was.
        b: bool,
    },
    /// Threads waited for processors.
    Starved {
        /// Share of the working time on A, from 0 to 1; null if small or not known.
        a: Option<f64>,
        /// Share of the working time on B, from 0 to 1; null if small or not known.
        b: Option<f64>,
    },
    /// Units were disturbed: the kernel took the processor from their thread or moved it, or a signal came. Medians of units leave
    /// them out.
    Disturbed {
        /// Share of A's units, from 0 to 1; null if small or not known.
        a: Option<f64>,
        /// Share of B's units, from 0 to 1; null if small or not known.
        b: Option<f64>,
    },
    /// Probes took much of the time, so the times include much of theirs.
    Probes {
        /// Share on A, from 0 to 1; null if small or not known.
        a: Option<f64>,
        /// Share on B, from 0 to 1; null if small or not known.
        b: Option<f64>,
    },
    /// Records are lost or damaged.
    Damaged {
        /// What is wrong on A.
        a: Vec<String>,
        /// What is wrong on B.
        b: Vec<String>,
    },
    /// A side has one run, so the noise is not known.
    OneRun {
        /// True if A has one run.
        a: bool,
        /// True if B has one run.
        b: bool,
    },
}
