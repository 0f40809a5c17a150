//! What became of expressions: values only, no sentences.

use crate::side::Quantity;
use ompfuse_account::model::UncountedWork;
use ompfuse_account::model::key::RegionKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The condition, as the user wrote it.
    pub expression: String,
    /// Its result.
    pub verdict: Verdict,
}

impl Outcome {
    /// Whether the pipeline fails by it.
    pub fn holds(&self) -> bool {
        matches!(self.verdict, Verdict::Holds { .. })
    }
}

impl Outcome {
    /// Whether it can't be told.
    pub fn is_error(&self) -> bool {
        matches!(self.verdict, Verdict::Error { .. })
    }

    /// Whether noise, or code that isn't counted, hides whether it holds.
    pub fn is_undecided(&self) -> bool {
        matches!(self.verdict, Verdict::Undecided { .. })
    }

    /// The region that it is about: the one that fails most.
    pub fn region(&self) -> Option<&RegionKey> {
        match &self.verdict {
            Verdict::Holds { hits } => hits.first()?.region.as_ref(),
            Verdict::Undecided { doubts } => doubts.first()?.region.as_ref(),
            _ => None,
        }
    }
}

/// Result of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Verdict {
    /// The condition holds: the pipeline fails.
    Holds {
        /// Where it holds, worst first; at least one.
        hits: Vec<Hit>,
    },
    /// The condition does not hold.
    Passes,
    /// Nothing shows that the condition holds, and there is so much noise that it may; or so much is in no count that it may hold or not.
    Undecided {
        /// Where, the noisiest first; at least one.
        doubts: Vec<Doubt>,
    },
    /// The condition can't be checked.
    Error {
        /// Why.
        problem: Problem,
    },
}

impl Verdict {
    /// What follows from where a condition holds, and where it may.
    pub(super) fn of(hits: Vec<Hit>, doubts: Vec<Doubt>) -> Verdict {
        match (hits.is_empty(), doubts.is_empty()) {
            (false, _) => Verdict::Holds { hits },
            (true, false) => Verdict::Undecided { doubts },
            (true, true) => Verdict::Passes,
        }
    }
}

/// A place where a condition holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The region, as in B; null for the whole program.
    pub region: Option<RegionKey>,
    /// The compared quantity; null for the number of new regions.
    pub quantity: Option<Quantity>,
    /// Mean of A's runs; null if not known.
    pub a: Option<f64>,
    /// Mean of B's runs; null if not known.
    pub b: Option<f64>,
    /// Relative change `b / a - 1`; for shares `b - a`. Null if `a` is 0 or the value itself was compared.
    pub change: Option<f64>,
    /// Probability of such a difference by chance; null if it was not tested.
    pub p: Option<f64>,
}

/// A place where a condition may hold or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// The region, as in B; null for the whole program.
    pub region: Option<RegionKey>,
    /// The compared quantity.
    pub quantity: Quantity,
    /// Relative change `b / a - 1` that was seen; for shares `b - a`. Null if `a` is 0.
    pub change: Option<f64>,
    /// The smallest change that would be seen in four of five such comparisons, negative where the condition is about less. Null if `a`
    /// is 0.
    pub could_see: Option<f64>,
    /// Runs on each side that would show a change of the condition's limit. Null if no number would, or the limit is no growth.
    pub runs_needed: Option<u32>,
    /// What it is that hides it, where that isn't noise but code that is in no count. Then nothing else is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncounted: Option<NotCounted>,
}

/// Code that no count of a side has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotCounted {
    /// Name of the side.
    pub side: String,
    /// How much of the region's work it is; of the program's, if the region has too few samples.
    pub work: UncountedWork,
}

/// Why a condition can't be checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum Problem {
    /// Records of a side are lost or damaged.
    Damaged {
        /// Name of the side.
        side: String,
        /// What is wrong.
        what: Vec<String>,
    },
    /// The selector matches no region.
    NoRegion {
        /// The selector.
        selector: String,
    },
    /// The selector matches regions without a partner.
    NoPartner {
        /// The selector.
        selector: String,
        /// Name of the side with the region.
        side: String,
        /// One of the regions.
        region: Box<RegionKey>,
    },
    /// A region with much time may have lost its probe.
    LostProbe {
        /// The region, as in A.
        region: Box<RegionKey>,
        /// Its share of A's time, from 0 to 1.
        share: f64,
    },
    /// B has regions that may be in A without a probe, or that only seem to have no partner.
    MayBeOld {
        /// One of them.
        region: Box<RegionKey>,
        /// True if A has a region without a partner that it may be.
        may_be_other: bool,
    },
    /// No region is matched, or none has the quantity.
    NotMeasured {
        /// Name of the side.
        side: String,
        /// The quantity.
        quantity: Quantity,
        /// The region; null for the whole program or any region.
        region: Option<Box<RegionKey>>,
        /// The events of the side.
        events: Vec<String>,
    },
    /// A side has one run, so the noise is not known.
    OneRun {
        /// Name of the side.
        side: String,
        /// The quantity.
        quantity: Quantity,
    },
}
