//! What samples tell of regions: where threads were when they were looked at.

use ompfuse_format::Construct;
use ompfuse_fuse::samples::{Asleep, LastSeen, StopPlace, Uneven};
use ompfuse_fuse::table::Site;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fewer samples say nothing.
pub const LEAST: u64 = 10;
/// From this share on, code that isn't counted makes a count of instructions say little.
pub const MUCH_UNCOUNTED: f64 = 0.05;
/// One sample may be there by chance.
const LEAST_UNCOUNTED: u64 = 2;
/// Of fewer than [`LEAST`] samples so many are there by chance in fewer than one of a hundred runs with that share.
const CERTAINLY_UNCOUNTED: u64 = 3;
/// Functions that are kept of code that isn't counted.
const FUNCTIONS: usize = 5;

/// The samples of the run that times are from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// Samples a second of processor time that were wanted.
    pub rate: u32,
    /// Samples; 0 in the report of a job.
    pub samples: u64,
    /// Those in the program's code and that of its libraries, in regions and outside; 0 if they were not looked at, because there are too
    /// many records.
    pub work: u64,
    /// What of the regions' work is in no count of instructions; absent if no function counts (`--count`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncounted: Option<UncountedWork>,
    /// By region, the one with most samples first. Empty in the report of a job, and if they were not looked at.
    pub regions: Vec<SampledWork>,
    /// The work while a thread was in a construct that admits one at a time, by that construct. It is in `regions`, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<SampledWork>,
    /// What processes did last that didn't come to their end; of a job one for each rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endings: Vec<SampledEnding>,
}

/// What a thread did when it was looked at last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledLast {
    /// The construct, in words: `barrier solve.c:70`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub construct: Option<String>,
    /// It was in the OpenMP runtime, or in the library that the construct is a call of.
    pub is_runtime: bool,
    /// There it had nothing to do.
    pub is_idle: bool,
    /// The runtime's function that was called, where the construct isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// It had no processor, for so many seconds then; absent if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_s: Option<f64>,
    /// It had none when it was looked at first: it may have been so for longer.
    pub is_from_begin: bool,
    /// The function of another library that the program has called there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// Where.
    #[serde(flatten)]
    pub at: StopPlace,
}

impl SampledLast {
    /// `site`: the construct.
    pub(crate) fn new(last: &LastSeen, site: Option<&Site>) -> SampledLast {
        let LastSeen {
            site: _,
            is_runtime,
            is_idle,
            entry,
            away_ns,
            is_from_begin,
            through,
            at,
        } = last;
        SampledLast {
            construct: site.map(name),
            is_runtime: *is_runtime,
            is_idle: *is_idle,
            entry: entry.clone(),
            away_s: away_ns.map(|ns| ns as f64 * 1e-9),
            is_from_begin: *is_from_begin,
            through: through.clone(),
            at: at.clone(),
        }
    }
}

/// A construct in words.
fn name(site: &Site) -> String {
    let construct = site.construct.map_or("construct", Construct::name);
    let construct = called(site).unwrap_or(construct);
    match &site.source {
        Some(source) => format!("{construct} {}:{}", base(&source.file), source.line),
        None => format!("{construct} {}", site.name),
    }
}

/// The function of another library that is called there.
pub(crate) fn called(site: &Site) -> Option<&str> {
    let is_call = site.construct.is_some_and(Construct::is_call);
    let detail = site.detail.as_deref().filter(|_| is_call)?;
    detail.split(',').next() // its kind is behind it
}

pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A process that goes on: the report is of what it had recorded by then.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoesOn {
    /// The process.
    pub pid: u32,
    /// Its rank in a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// What its threads did then, as far as it is known, the process's first thread first; at most 20.
    pub threads: Vec<EndedThread>,
    /// Why its threads can't be looked at; absent: they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// How a process ended that didn't come to its end: it was killed, or left from within.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledEnding {
    /// Its rank in a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// For so many seconds before that nothing of it is on record.
    pub silent_s: f64,
    /// What its threads did then, as far as it is known, the process's first thread first; at most 20.
    pub threads: Vec<EndedThread>,
}

/// A thread, and what it did when it was looked at last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndedThread {
    /// Kernel's thread number.
    pub tid: u32,
    /// It is its process's first.
    pub is_main: bool,
    /// What it did.
    #[serde(flatten)]
    pub last: SampledLast,
}

/// The samples of a region's own work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledWork {
    /// `id` of the region; null for the code outside of constructs.
    pub region: Option<u32>,
    /// Samples.
    pub work: u64,
    /// As in the report's `sampled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncounted: Option<UncountedWork>,
    /// The functions with most samples, the hottest first; at most 20.
    pub functions: Vec<SampledFunction>,
    /// Likewise the lines.
    pub lines: Vec<SampledLine>,
    /// Of `work` what Python did to import modules, by stacks: those that aren't whole may hide some. Absent if there was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub importing: u64,
    /// Its slow units against fast ones, where they are uneven. Of several sites that are one region those with most units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uneven: Option<Uneven>,
    /// Time in which its threads had no processor, because they wanted none and OpenMP didn't make them wait; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asleep: Option<Asleep>,
}

impl SampledWork {
    /// Adds another place's samples, as those of one place.
    pub fn absorb(&mut self, more: &SampledWork) {
        let SampledWork {
            region: _,
            work,
            uncounted,
            functions,
            lines,
            importing,
            uneven,
            asleep,
        } = more;
        self.importing += importing;
        if let Some(asleep) = asleep {
            self.asleep.get_or_insert_default().absorb(asleep);
        }
        let units = |u: &Option<Uneven>| u.as_ref().map_or(0, |u| u.units);
        if units(uneven) > units(&self.uneven) {
            self.uneven.clone_from(uneven);
        }
        self.uncounted = match self.work {
            0 => uncounted.clone(),
            _ => UncountedWork::sum([self.uncounted.as_ref(), uncounted.as_ref()]),
        };
        self.work += work;
        for function in functions {
            add_function(&mut self.functions, function);
        }
        for line in lines {
            let place = |l: &SampledLine| SampledLine {
                samples: 0,
                ..l.clone()
            };
            match self.lines.iter_mut().find(|l| place(l) == place(line)) {
                Some(known) => known.samples += line.samples,
                None => self.lines.push(line.clone()),
            }
        }
        self.functions.sort_by_key(|f| std::cmp::Reverse(f.samples));
        self.lines.sort_by_key(|l| std::cmp::Reverse(l.samples));
    }
}

/// Adds the samples of a function to those of the same one.
fn add_function(all: &mut Vec<SampledFunction>, more: &SampledFunction) {
    let SampledFunction {
        function,
        object,
        samples,
        total,
    } = more;
    let same = |f: &&mut SampledFunction| (&f.function, &f.object) == (function, object);
    match all.iter_mut().find(same) {
        Some(known) => {
            known.samples += samples;
            known.total += total;
        }
        None => all.push(more.clone()),
    }
}

/// The samples of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledFunction {
    /// Its name; null if nothing is known of the code.
    pub function: Option<String>,
    /// The file with its machine code, where that isn't the program's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Its own, without those of what it calls.
    pub samples: u64,
    /// With those of what it calls inside of the region, by stacks: those that aren't whole may hide some. 0: it isn't known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub total: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A function of a library that a line calls.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Callee {
    /// Its name; null if nothing is known of the code.
    pub function: Option<String>,
    /// The file with its machine code.
    pub object: Option<String>,
}

/// The samples of a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledLine {
    /// The function, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Where that is inlined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inlined_into: Option<String>,
    /// Source file, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The file with the machine code, where that isn't the program's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Where the samples aren't of the line itself: they are in this function of a library, or in what it calls there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callee: Option<Callee>,
    /// How many.
    pub samples: u64,
}

impl SampledLine {
    /// Where it is: file and line, or else the file with the machine code.
    pub fn place(&self) -> String {
        let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        match (&self.file, self.line, &self.object) {
            (Some(file), Some(line), _) => format!("{}:{line}", base(file)),
            (_, _, Some(object)) => base(object),
            _ => "?".to_owned(),
        }
    }
}

/// How much of some work is in code that doesn't count its instructions, by samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UncountedWork {
    /// Samples of all the work.
    pub work: u64,
    /// Samples in code that isn't counted.
    pub uncounted: u64,
    /// The functions with most of these, at most 5. `object` has no folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<SampledFunction>,
}

impl UncountedWork {
    /// The share that isn't counted, from 0 to 1; `None`: there are too few samples to tell.
    pub fn share(&self) -> Option<f64> {
        (self.work >= LEAST).then(|| self.uncounted as f64 / self.work as f64)
    }

    /// Whether so much isn't counted that a change of the count may be one of what isn't.
    pub fn is_much(&self) -> bool {
        match self.share() {
            Some(share) => self.uncounted >= LEAST_UNCOUNTED && share > MUCH_UNCOUNTED,
            None => self.uncounted >= CERTAINLY_UNCOUNTED,
        }
    }

    /// Adds other work.
    pub(crate) fn add(&mut self, more: &UncountedWork) {
        let UncountedWork {
            work,
            uncounted,
            functions,
        } = more;
        self.work += work;
        self.uncounted += uncounted;
        for function in functions {
            add_function(&mut self.functions, function);
        }
        self.functions.sort_by_key(|f| std::cmp::Reverse(f.samples));
        self.functions.truncate(FUNCTIONS);
    }

    /// The sum, where all parts are known; `None`: some is not, or there is none.
    pub fn sum<'u>(
        all: impl IntoIterator<Item = Option<&'u UncountedWork>>,
    ) -> Option<UncountedWork> {
        let mut sum: Option<UncountedWork> = None;
        for one in all {
            sum.get_or_insert_default().add(one?);
        }
        sum
    }
}
