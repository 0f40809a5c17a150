//! How good the strategies are: complete runs pose as runs that counted only a few events each.
//!
//! Of every run only an event set is shown to a strategy. What it puts together is compared with the complete runs that it
//! never saw (EPD, Correlation Error), and with what the first run really had (the hidden truth). Hardware multiplexing is
//! simulated from the complete first run (see [`hem`]).
#![forbid(unsafe_code)]

pub mod hem;
mod statistics;
#[cfg(test)]
mod tests;
mod truth;

pub use statistics::{Estimate, estimate};
use truth::error_by_event;
pub use truth::{
    EventError, TruthError, has_common_labels, hidden_error, rows_in_first, truth_error,
};

use ompfuse_fuse::evaluate::scattered;
use ompfuse_fuse::plan::Correlations;
use ompfuse_fuse::{
    BcError, CellOrder, EvaluationError, References, Relax, XuTable, combine_bc, combine_ctc,
    combine_default, combine_joint, combine_lgl, plan_bc, plan_joint, plan_lgl, with_first_again,
};
use ompfuse_progress::Progress;
use serde::{Deserialize, Serialize};

/// A way to counts of all events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// By type and time.
    Ctc,
    /// By label.
    Lgl,
    /// By behaviour, then label.
    Bc,
    /// By behaviour alone.
    BcUnlabelled,
    /// By label and behaviour together.
    Joint,
    /// The default: as joint, with the most typical of five runs of the first event set as the first run.
    Default,
    /// One run, whose events take turns on the counters.
    Hem,
    /// The first run, complete: what a perfect method would give.
    Complete,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 8] = [
        Method::Ctc,
        Method::Lgl,
        Method::Bc,
        Method::BcUnlabelled,
        Method::Joint,
        Method::Default,
        Method::Hem,
        Method::Complete,
    ];

    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Ctc => "ctc",
            Method::Lgl => "lgl",
            Method::Bc => "bc",
            Method::BcUnlabelled => "bc-unlabelled",
            Method::Joint => "joint",
            Method::Default => "default",
            Method::Hem => "hem",
            Method::Complete => "complete",
        }
    }
}

/// How the experiment is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Events that a run may show at most.
    pub slots: usize,
    /// Time after which the next group of events has its turn, for hardware multiplexing, in nanoseconds.
    pub period_ns: u64,
    /// How many complete runs are kept for comparison.
    pub references: usize,
    /// How often it is done, each time with another choice of runs.
    pub repetitions: usize,
    /// The methods.
    pub methods: Vec<Method>,
}

/// One method's result in one repetition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// See [`ompfuse_fuse::Evaluation::epd`].
    pub epd: f64,
    /// See [`ompfuse_fuse::Evaluation::correlation_error`].
    pub correlation_error: f64,
    /// Sum of |count - hidden count| / sum of hidden counts, over the XUs and the events that the method's first run does not show.
    pub hidden_error: f64,
    /// The same per event, averaged over the events.
    pub hidden_error_by_event: f64,
    /// The same, averaged over the events that no method's first run shows.
    pub shared_error_by_event: f64,
    /// The same, averaged over all events: those of the method's first run have no error.
    pub error_by_event: f64,
    /// Share of the first run's XUs that are in the result.
    pub matched: f64,
}

/// One method's results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodResult {
    /// The method.
    pub method: Method,
    /// Runs that it needs.
    pub runs: usize,
    /// Per repetition; `None` where it gave no XU at all.
    pub scores: Vec<Option<Score>>,
    /// Mean and confidence interval of the EPD, over the repetitions that gave a result.
    pub epd: Option<Estimate>,
    /// Of the Correlation Error.
    pub correlation_error: Option<Estimate>,
    /// Of the hidden-truth error.
    pub hidden_error: Option<Estimate>,
    /// Of the hidden-truth error per event.
    pub hidden_error_by_event: Option<Estimate>,
    /// Of that of events that no method's first run shows.
    pub shared_error_by_event: Option<Estimate>,
    /// Of that of all events.
    pub error_by_event: Option<Estimate>,
    /// Of the share of XUs.
    pub matched: Option<Estimate>,
    /// What it gave the first time.
    #[serde(skip)]
    pub example: Option<XuTable>,
}

/// The experiment's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Experiment {
    /// Runs that were given.
    pub runs: usize,
    /// XUs of the first one.
    pub xus: usize,
    /// Events.
    pub events: usize,
    /// EPDs of complete runs against the others: differences within them mean nothing.
    pub fresh: Option<Estimate>,
    /// Whether some run had to show more than one event set, since there were too few.
    pub reused: bool,
    /// Which runs were kept for comparison the first time.
    pub kept: Vec<usize>,
    /// Per method.
    pub methods: Vec<MethodResult>,
}

/// Why there is no experiment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExperimentError {
    /// Too few runs.
    #[error(
        "{given} complete runs given, at least {needed} are needed: {references} to compare with, and two to combine"
    )]
    Runs {
        /// That were given.
        given: usize,
        /// That are needed.
        needed: usize,
        /// To compare with.
        references: usize,
    },
    /// The runs can't be compared.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// BC has no chain of events.
    #[error(transparent)]
    Bc(#[from] BcError),
}

/// Does the experiment. `progress`: a step is a method of a repetition.
///
/// # Errors
/// [`ExperimentError`] says what is missing.
pub fn experiment(
    complete: &[&XuTable],
    setting: &Setting,
    progress: Progress<'_>,
) -> Result<Experiment, ExperimentError> {
    let needed = setting.references + 2;
    if complete.len() < needed {
        return Err(ExperimentError::Runs {
            given: complete.len(),
            needed,
            references: setting.references,
        });
    }
    let events: Vec<String> = complete[0].events.iter().map(|e| e.name.clone()).collect();
    let mut results: Vec<MethodResult> = setting.methods.iter().map(|&m| empty(m)).collect();
    let (mut fresh, mut reused) = (vec![], false);
    for repetition in 0..setting.repetitions {
        let n = complete.len();
        // Each time other runs are shown, and compared with. Runs that were made one after the other are more alike than others
        // (something else was done on the machine, or not), so none may stand at a place of its own.
        let order = shuffled(n, repetition as u64);
        let order: Vec<&XuTable> = order.into_iter().map(|at| complete[at]).collect();
        let (shown, kept) = order.split_at(n - setting.references);
        let references = References::new(kept, complete[0])?;
        fresh.extend(references.spread().iter().map(|e| e.epd));
        // Runs that nothing else is done with tell how events depend on each other, where there are enough.
        let (shown, measured) = match shown.len() {
            n if n > SPARE => shown.split_at(n - 2),
            _ => (shown, kept),
        };
        let planned = Plans::new(&events, setting.slots, [measured[0], measured[1]]);
        for result in &mut results {
            let scored = score(result.method, shown, &planned, setting, &references)?;
            let (score, table) = scored.unzip();
            if repetition == 0 {
                result.example = table;
            }
            let sets = planned.of(result.method);
            result.runs = sets.map_or(1, <[_]>::len);
            reused |= result.runs > shown.len();
            result.scores.push(score);
            progress.steps(1, setting.repetitions * setting.methods.len());
        }
    }
    for result in &mut results {
        let of = |f: fn(&Score) -> f64| {
            estimate(&result.scores.iter().flatten().map(f).collect::<Vec<_>>())
        };
        result.epd = of(|s| s.epd);
        result.correlation_error = of(|s| s.correlation_error);
        result.hidden_error = of(|s| s.hidden_error);
        result.hidden_error_by_event = of(|s| s.hidden_error_by_event);
        result.shared_error_by_event = of(|s| s.shared_error_by_event);
        result.error_by_event = of(|s| s.error_by_event);
        result.matched = of(|s| s.matched);
    }
    Ok(Experiment {
        runs: complete.len(),
        xus: complete[0].len(),
        events: events.len(),
        fresh: estimate(&fresh),
        reused,
        kept: shuffled(complete.len(), 0).split_off(complete.len() - setting.references),
        methods: results,
    })
}

/// The numbers up to `n` in an order that goes by `seed` (Fisher and Yates; SplitMix64).
fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for last in (1..n).rev() {
        let number = scattered(state);
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        order.swap(last, (number % (last as u64 + 1)) as usize);
    }
    order
}

fn empty(method: Method) -> MethodResult {
    MethodResult {
        method,
        runs: 0,
        scores: vec![],
        epd: None,
        correlation_error: None,
        hidden_error: None,
        hidden_error_by_event: None,
        shared_error_by_event: None,
        error_by_event: None,
        matched: None,
        example: None,
    }
}

/// The event sets of each method, planned with what complete runs tell about the events.
struct Plans {
    lgl: Vec<Vec<String>>,
    bc: Vec<Vec<String>>,
    joint: Vec<Vec<String>>,
    default: Vec<Vec<String>>,
}

/// With more runs than this to show two of them are used for planning alone.
const SPARE: usize = 14;

impl Plans {
    fn new(events: &[String], slots: usize, measured: [&XuTable; 2]) -> Plans {
        let known = Correlations::of(measured[0]);
        let varying = Correlations::between(measured[0], measured[1]);
        let of_labels = |a: &str, b: &str| varying.get(a, b);
        let open = |e: &str| varying.open(e);
        let correlation = |a: &str, b: &str| known.get(a, b);
        let any = |_: &[&str]| true;
        let joint = plan_joint(events, slots, slots / 2, any, of_labels, open);
        Plans {
            lgl: plan_lgl(events, slots, any),
            bc: plan_bc(events, slots, any, correlation),
            default: with_first_again(joint.clone(), usize::MAX),
            joint,
        }
    }

    /// What some method's first run shows: methods are compared by the other events.
    fn first_sets(&self) -> Vec<&String> {
        let sets = [&self.lgl, &self.bc, &self.joint];
        sets.iter().filter_map(|s| s.first()).flatten().collect()
    }

    fn of(&self, method: Method) -> Option<&[Vec<String>]> {
        match method {
            Method::Ctc | Method::Lgl => Some(&self.lgl),
            Method::Bc | Method::BcUnlabelled => Some(&self.bc),
            Method::Joint => Some(&self.joint),
            Method::Default => Some(&self.default),
            Method::Hem | Method::Complete => None,
        }
    }
}

fn score(
    method: Method,
    shown: &[&XuTable],
    plans: &Plans,
    setting: &Setting,
    references: &References<'_>,
) -> Result<Option<(Score, XuTable)>, ExperimentError> {
    let mut first = shown[0];
    let combined = match plans.of(method) {
        None if method == Method::Complete => combine_joint(&[first]),
        None => hem::multiplexed(first, setting.slots, setting.period_ns),
        Some(sets) => {
            // The first run is the truth: where runs are too few the others are shown again.
            let others = shown.len() - 1;
            let run_of = |at: usize| shown[if at == 0 { 0 } else { 1 + (at - 1) % others }];
            let masked: Vec<XuTable> = (0..)
                .zip(sets)
                .map(|(at, set)| run_of(at).only(set))
                .collect();
            let masked: Vec<&XuTable> = masked.iter().collect();
            match method {
                Method::Ctc => combine_ctc(&masked),
                Method::Lgl => combine_lgl(&masked),
                Method::Bc => combine_bc(&masked, Relax::Halve, CellOrder::Label)?,
                Method::BcUnlabelled => combine_bc(&masked, Relax::Halve, CellOrder::Shuffled(1))?,
                Method::Default => {
                    let (combined, order) = combine_default(&masked);
                    first = run_of(order[0]);
                    combined
                }
                _ => combine_joint(&masked),
            }
        }
    };
    if combined.table.is_empty() {
        return Ok(None);
    }
    let (evaluation, _) = references.evaluate(&combined.table)?;
    let shared = hidden_error(&combined, first, &plans.first_sets());
    let error_by_event = error_by_event(&combined, first);
    let (hidden_error, hidden_error_by_event) = hidden_error(&combined, first, &[]);
    let score = Score {
        epd: evaluation.epd,
        correlation_error: evaluation.correlation_error,
        hidden_error,
        hidden_error_by_event,
        shared_error_by_event: shared.1,
        error_by_event,
        matched: combined.table.len() as f64 / first.len().max(1) as f64,
    };
    Ok(Some((score, combined.table)))
}
