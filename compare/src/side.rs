//! One side of a comparison: what repeated runs of one build have in common. Serialised it is the baseline file.

mod quantity;

pub use quantity::{Quantity, Unit};

use crate::functions::FunctionSamples;
use ompfuse_account::model::UncountedWork;
use ompfuse_account::model::key::{Caller, RegionKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// Version of the baseline file. Files of another one are not read.
pub const SIDE_VERSION: u32 = 3;

/// A quantity over the runs of a side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sample {
    /// The same in all runs that measured it (of one run, too).
    Same(u32, f64),
    /// Positive and different: number of runs, mean and standard deviation (of a sample, n - 1) of the natural logarithms.
    Log(u32, f64, f64),
    /// With zeros or negative values: number of runs, mean, standard deviation, and 0 to tell it apart.
    Linear(u32, f64, f64, u8),
}

impl Sample {
    /// Of the values of the runs that measured it; `None` if none did.
    pub fn of(values: &[f64]) -> Option<Sample> {
        let n = values.len() as u32;
        let first = *values.first()?;
        if values.iter().all(|&v| v == first) {
            return Some(Sample::Same(n, first));
        }
        let moments = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
            (mean, (squares / (values.len() as f64 - 1.0)).sqrt())
        };
        if values.iter().all(|&v| v > 0.0) {
            let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
            let (mean, deviation) = moments(&logs);
            return Some(Sample::Log(n, mean, deviation));
        }
        let (mean, deviation) = moments(values);
        Some(Sample::Linear(n, mean, deviation, 0))
    }

    /// Runs that measured it.
    pub fn runs(&self) -> u32 {
        match *self {
            Sample::Same(n, _) | Sample::Log(n, _, _) | Sample::Linear(n, _, _, _) => n,
        }
    }

    /// What one run has: the geometric mean of positive values, else the mean.
    pub fn typical(&self) -> f64 {
        match *self {
            Sample::Same(_, v) | Sample::Linear(_, v, _, _) => v,
            Sample::Log(_, mean, _) => mean.exp(),
        }
    }
}

/// What single runs measured, in the order in which they began: of what all of them measured. Baselines don't have it.
pub type Each = BTreeMap<Quantity, Vec<f64>>;

/// A region on one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideRegion {
    /// What it is.
    pub key: RegionKey,
    /// The parallel region around it: its position in [`Side::regions`], or behind these in [`Side::parts`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// Where its units are among all others, whatever their addresses: a sum of hashes that two builds have in common if they execute
    /// the same units. `None` where it has no units, or runs differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<String>,
    /// How often threads wait at barriers in it: those of the source and those at the ends of constructs. `None` where it is no parallel
    /// region, or runs differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barriers: Option<u64>,
    /// Why it may be more than one construct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// Share of the side's thread time, waits of a parallel region included; from 0 to 1.
    pub share: f64,
    /// What was measured.
    pub values: BTreeMap<Quantity, Sample>,
    /// What of its own work is in no count of instructions, by the samples of all runs; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncounted: Option<UncountedWork>,
    /// Its samples by function, of all runs; `None`: not known. A baseline has none: they differ from run to run.
    #[serde(skip)]
    pub functions: Option<FunctionSamples>,
    /// How long units take: seconds at equal steps of rank, the shortest first, the longest last. Empty without units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantiles: Vec<f32>,
    /// Of a parallel region with one chain of callers: these, from outside inwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<Caller>,
    /// What was measured, run by run.
    #[serde(skip)]
    pub each: Each,
}

impl SideRegion {
    /// Whether it is a barrier or a `taskwait`, of which only the number of executions is known.
    pub fn is_wait(&self) -> bool {
        self.key.construct.is_wait()
    }

    /// A count that is the same in all runs.
    pub fn constant(&self, quantity: &Quantity) -> Option<f64> {
        match self.values.get(quantity) {
            Some(Sample::Same(_, value)) => Some(*value),
            _ => None,
        }
    }
}

/// Where a side's numbers come from: what makes two sides comparable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// What the user calls it: paths.
    pub name: String,
    /// The program's file name.
    pub program: String,
    /// Its arguments; empty in a baseline, which is redacted.
    pub args: Vec<String>,
    /// A hash of the arguments.
    pub args_hash: String,
    /// A hash of the host's name.
    pub host_hash: String,
    /// The host's name; empty in a baseline.
    pub host: String,
    /// Threads that recorded.
    pub threads: u32,
    /// Largest team.
    pub team: u32,
    /// Processors that the program could use.
    pub processors: Option<f64>,
    /// Number of runs.
    pub runs: u32,
    /// Events that were counted per unit, and in how many runs.
    pub events: BTreeMap<String, u32>,
    /// Whether a simulator counted.
    pub simulated: bool,
    /// Whether all runs had one thread, and addresses that were not random: one of them tells what is counted by instructions.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_steady: bool,
    /// Whether some units are not on record (sampling, throttling, a filter).
    pub in_part: bool,
    /// Regions of a job that some rank's summary has no room for, so that no sum is known of them.
    pub left_out: u64,
    /// Share of the wanted time in which threads were not running, if that is much.
    pub starved: Option<f64>,
    /// Share of the threads' time that probes took, estimated.
    pub probes: Option<f64>,
    /// Build ids of the modules (or hashes of their paths), with their file names.
    pub modules: BTreeMap<String, String>,
    /// What is lost or damaged: such a side passes no gate.
    pub damage: Vec<String>,
    /// Places that have no probe: link-time addresses, constructs and lines of what was not seen.
    pub unseen: Vec<Unseen>,
    /// Seconds since 1970 when the first run began, if known.
    pub started: Option<f64>,
    /// How fast the machine computed, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Where it ran.
    pub machine: Machine,
    /// What was built; only in baselines, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
}

/// How fast a machine computes: the times of a computation that is always the same, measured before and behind each run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// The shortest, in seconds.
    pub least_s: f64,
    /// The longest, in seconds.
    pub most_s: f64,
}

impl Pace {
    /// Of a run. `None`: there are no such times.
    pub fn of([before, behind]: [f64; 2]) -> Option<Pace> {
        let pace = Pace {
            least_s: before.min(behind),
            most_s: before.max(behind),
        };
        (pace.least_s > 0.0 && pace.most_s.is_finite()).then_some(pace)
    }

    /// Of two together.
    #[must_use]
    pub fn with(self, other: Pace) -> Pace {
        Pace {
            least_s: self.least_s.min(other.least_s),
            most_s: self.most_s.max(other.most_s),
        }
    }

    /// One between the shortest and the longest.
    pub fn typical_s(&self) -> f64 {
        (self.least_s * self.most_s).sqrt()
    }

    /// By which part of the shortest the longest is longer.
    pub fn apart(&self) -> f64 {
        self.most_s / self.least_s - 1.0
    }
}

/// What times depend on beside the program: those of different machines can't be compared.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Machine {
    /// Model of the processor; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Logical processors; 0: not known.
    pub processors: u32,
    /// Kernel release; empty if not known.
    pub kernel: String,
}

/// A state of the sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Commit {
    /// Its hash.
    pub hash: String,
    /// The branch that was built; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// When it was committed, after RFC 3339; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Whether files of the repository had changes that were in no commit.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_changed: bool,
}

/// Constructs without a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unseen {
    /// File name of the module.
    pub module: String,
    /// Constructs without a probe there.
    pub lost: u32,
}

/// The interface between compilers and OpenMP runtimes that a module uses. It decides which constructs are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// gcc's: a barrier that the source has is no other call than many at the end of a construct.
    Gomp,
    /// clang's and Intel's: calls say which barriers the source has.
    Kmpc,
}

/// One side: one build, one or more runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// [`SIDE_VERSION`] of the writer.
    pub version: u32,
    /// Where it comes from.
    pub origin: Origin,
    /// The interfaces of modules, by their file names: of those that use one. Without it waits have no rows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub interfaces: BTreeMap<String, Interface>,
    /// The whole program.
    pub total: BTreeMap<Quantity, Sample>,
    /// What of the regions' work is in no count of instructions, by the samples of all runs; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncounted: Option<UncountedWork>,
    /// Its regions, those with the most time first.
    pub regions: Vec<SideRegion>,
    /// Regions with several chains of callers once more, by these chains (see `compare::by_callers`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<SideRegion>,
    /// The whole program, run by run.
    #[serde(skip)]
    pub each: Each,
    /// When the runs began, in seconds since 1970; empty if that is not known of all.
    #[serde(skip)]
    pub begun: Vec<f64>,
}

/// Parts of a path that a baseline keeps: enough to tell files of one name apart.
const PATH_PARTS: usize = 3;

impl Side {
    /// What of some of its regions' work is in no count. Where they have too few samples to tell, they are as the whole program is.
    pub fn uncounted_of(&self, regions: &[&SideRegion]) -> Option<UncountedWork> {
        let own = UncountedWork::sum(regions.iter().map(|r| r.uncounted.as_ref()));
        let told = own.filter(|own| own.share().is_some() || own.is_much());
        told.or_else(|| self.uncounted.clone())
    }

    /// Without what depends on the time that a processor took.
    #[must_use]
    pub fn counts_only(mut self) -> Side {
        self.total.retain(|quantity, _| !quantity.is_time());
        for region in self.regions.iter_mut().chain(&mut self.parts) {
            region.values.retain(|quantity, _| !quantity.is_time());
            region.quantiles.clear();
        }
        // Samples differ from machine to machine. Where little is uncounted, it is as if nobody knew.
        let regions = self.regions.iter().chain(&self.parts);
        let all = regions.map(|r| &r.uncounted).chain([&self.uncounted]);
        let is_any = all.flatten().any(UncountedWork::is_much);
        if !is_any {
            self.uncounted = None;
            let regions = self.regions.iter_mut().chain(&mut self.parts);
            regions.for_each(|r| r.uncounted = None);
        }
        self
    }

    /// Without what should not leave the house: host, arguments, the beginnings of absolute paths. Times have five digits.
    #[must_use]
    pub fn redacted(mut self) -> Side {
        let end = |path: &str| -> String {
            let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
            let kept = parts.len().saturating_sub(PATH_PARTS);
            parts[kept..].join("/")
        };
        self.origin.host.clear();
        self.origin.args.clear();
        self.origin.name = self.origin.program.clone();
        // Builds without an id are known by their paths.
        let build = |build: &str| -> String {
            match build.contains('/') {
                true => hash(build),
                false => build.to_owned(),
            }
        };
        for region in self.regions.iter_mut().chain(&mut self.parts) {
            let key = &mut region.key;
            key.build = build(&key.build);
            if let Some(file) = key.file.as_mut().filter(|f| f.starts_with('/')) {
                *file = end(file);
            }
            region.share = rounded(region.share);
            for quantile in &mut region.quantiles {
                *quantile = rounded(f64::from(*quantile)) as f32;
            }
            region.values.iter_mut().for_each(round);
        }
        self.total.iter_mut().for_each(round);
        self
    }
}

/// To five significant digits.
fn rounded(value: f64) -> f64 {
    match value == 0.0 || !value.is_finite() {
        true => value,
        false => format!("{value:.4e}").parse().unwrap_or(value),
    }
}

/// Measured times get five digits. Counts that are the same in all runs stay exact, also per unit: they are compared without tolerance.
fn round((quantity, sample): (&Quantity, &mut Sample)) {
    match sample {
        Sample::Same(..) if !quantity.is_time() => {}
        Sample::Same(_, v) => *v = rounded(*v),
        // A mean logarithm's fifth decimal is a hundred thousandth of the value.
        Sample::Log(_, mean, deviation) => {
            *mean = (*mean * 1e6).round() / 1e6;
            *deviation = rounded(*deviation);
        }
        Sample::Linear(_, mean, deviation, _) => {
            *mean = rounded(*mean);
            *deviation = rounded(*deviation);
        }
    }
}

/// Stands for a text that is not to be shown.
pub(super) fn hash(text: &str) -> String {
    format!("{:016x}", xxh3_64(text.as_bytes()))
}
