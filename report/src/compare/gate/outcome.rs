//! What became of expressions: values only, no sentences.

use crate::compare::side::Quantity;
use crate::model::key::RegionKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of an expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// As the user wrote it.
    pub expression: String,
    /// What it says.
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

    /// The region that it is about: the one that fails most.
    pub fn region(&self) -> Option<&RegionKey> {
        match &self.verdict {
            Verdict::Holds { hits } => hits.first()?.region.as_ref(),
            _ => None,
        }
    }
}

/// What an expression says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Verdict {
    /// What it warns of is there.
    Holds {
        /// Where: the worst first, at least one.
        hits: Vec<Hit>,
    },
    /// It is not there.
    Passes,
    /// It can't be told.
    Error {
        /// Why.
        problem: Problem,
    },
}

/// Something that an expression warns of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The region as B has it; `None`: the whole program.
    pub region: Option<RegionKey>,
    /// What was compared; `None`: the number of new regions.
    pub quantity: Option<Quantity>,
    /// What a run of A has.
    pub a: Option<f64>,
    /// What a run of B has.
    pub b: Option<f64>,
    /// `b / a - 1`; of shares `b - a`. `None` if `a` is 0 or the value itself was compared.
    pub change: Option<f64>,
    /// Probability of such a difference by chance, if it was tested.
    pub p: Option<f64>,
}

/// Why an expression can't be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum Problem {
    /// Something is lost or damaged on a side.
    Damaged {
        /// What the user calls the side.
        side: String,
        /// What is wrong with it.
        what: Vec<String>,
    },
    /// The selector matches no region.
    NoRegion {
        /// The selector.
        selector: String,
    },
    /// The selector matches regions that have no partner.
    NoPartner {
        /// The selector.
        selector: String,
        /// What the user calls the side that has the region.
        side: String,
        /// One of the regions.
        region: Box<RegionKey>,
    },
    /// A region with much time may have lost its probe.
    LostProbe {
        /// What it is on A.
        region: Box<RegionKey>,
        /// Its share of A's time.
        share: f64,
    },
    /// B has regions that A may have had without a probe.
    MayBeOld {
        /// One of them.
        region: Box<RegionKey>,
    },
    /// No region is matched, or none has the quantity.
    NotMeasured {
        /// What the user calls the side.
        side: String,
        /// The quantity.
        quantity: Quantity,
        /// The region; `None`: the whole program, or any region.
        region: Option<Box<RegionKey>>,
        /// The events that the side has.
        events: Vec<String>,
    },
    /// There is one run on a side, so noise is unknown.
    OneRun {
        /// What the user calls the side.
        side: String,
        /// The quantity.
        quantity: Quantity,
    },
}
