//! Why some units of a region are slower than others, by their samples.
//!
//! The slowest tenth of the units is compared with the others. What is compared are units, not samples: a unit that is looked at a
//! hundred times is one unit. (The division of a variance among functions is that of VProfiler, Huang et al., EuroSys 2017; see
//! `docs/references.md`.)

mod tested;
mod times;

use super::asleep::{StopPlace, Stops};
use super::functions::FunctionSum;
use super::units::SiteUnits;
use crate::run::places::SampledPlaces;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tested::{Tested, Totals, differences};
use times::{Both, Means, NS, in_kernel, is_by_samples, is_of_one, slowest};

/// Fewer units are not divided into slow and fast ones.
const LEAST_UNITS: usize = 20;
/// Fewer slow units don't tell what slow ones have in common.
const LEAST_SLOW: u64 = 5;
/// Fewer samples of slow units, or of fast ones, don't tell where they differ.
const LEAST_SAMPLES: u64 = 20;
/// Units are uneven if the slow ones take so many times as long.
const UNEVEN: f64 = 1.5;
/// What explains so much of what slow units take longer is a reason.
const MOST: f64 = 0.5;
/// If the place with the largest difference may explain no more than this, units are alike.
const ALIKE: f64 = 0.25;

/// Slow units of a region against the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Uneven {
    /// Units.
    pub units: u64,
    /// Of these the slowest tenth.
    pub slow: u64,
    /// Mean own time of a slow unit, in seconds; without interruptions, if these aren't the reason.
    pub slow_s: f64,
    /// Mean own time of the others, likewise.
    pub fast_s: f64,
    /// Slow units have so many times the others' iterations.
    pub iterations_times: f64,
    /// Mean instructions of a unit, exact; absent if they are not counted, or not of all units, or of less than nearly all their work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Executed>,
    /// Why they are slow.
    pub reason: Reason,
    /// Mean times of a unit by line, where there are enough samples: the line that slow units are longest in first; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<AtLine>,
}

/// Mean instructions of slow and of fast units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Executed {
    /// Of slow units.
    pub slow: f64,
    /// Of the others.
    pub fast: f64,
}

/// Why units are slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// They have more iterations, each of which takes about as long.
    Iterations,
    /// They spend the time in code where fast ones spend less.
    Code(Difference),
    /// Their thread gave its processor away: it waited for something, or slept.
    Asleep(UnitsAsleep),
    /// Their thread lost its processor, and would have gone on. Mean seconds in slow and in fast units.
    Interrupted(Pair),
    /// Their thread had a processor and was not in user code: in the kernel, for system calls or page faults, or a hypervisor had it.
    /// Likewise.
    Kernel(Pair),
    /// They spend it in the same code as fast ones: there are more rounds of an inner loop, memory or a processor is slower.
    Alike,
    /// It isn't known: there are too few units or samples.
    Unknown,
}

impl Reason {
    fn with_times(mut self, change: impl Fn(Pair) -> Pair) -> Reason {
        if let Reason::Code(Difference { function, line }) = &mut self {
            let function = function.iter_mut().map(|f| &mut f.time);
            let line = line.iter_mut().map(|l| &mut l.time);
            function.chain(line).for_each(|time| *time = change(*time));
        }
        self
    }
}

/// Means of slow and of fast units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Of slow units.
    pub slow_s: f64,
    /// Of the others.
    pub fast_s: f64,
}

/// Units whose threads gave their processor away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitsAsleep {
    /// How long they had none.
    #[serde(flatten)]
    pub time: Pair,
    /// Where slow units did so, if most of that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<StopPlace>,
}

/// Code that makes slow units slow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The function, with what it calls; absent if none differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<InFunction>,
    /// The line; absent if none has most of the difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<AtLine>,
}

/// A function that makes slow units slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InFunction {
    /// Its name.
    pub name: String,
    /// Time in it, and in what it calls.
    #[serde(flatten)]
    pub time: Pair,
}

/// A line that makes slow units slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtLine {
    /// Source file.
    pub file: String,
    /// The line there.
    pub line: u32,
    /// Time in it, and in functions of libraries that it calls.
    #[serde(flatten)]
    pub time: Pair,
}

/// Names of what samples are in.
#[derive(Clone, Copy)]
pub(super) struct Names<'n> {
    pub(super) places: &'n SampledPlaces,
    /// By number.
    pub(super) functions: &'n [FunctionSum],
}

/// Compares the units of a site. `period_s`: what a sample stands for. `None`: they are even, or too few to be divided.
pub(super) fn uneven(site: &SiteUnits, period_s: f64, names: Names<'_>) -> Option<Uneven> {
    let units = &site.units;
    let count = units.len();
    if count < LEAST_UNITS {
        return None;
    }
    // What others did with the processor is no property of units: it is looked at only if nothing else makes them slow.
    let by_time = slowest(units, |u| u.own_ns.saturating_sub(u.interrupted_ns));
    let all = Both::of(units, &by_time);
    let is_uneven = |time: Means| time.slow > 0.0 && time.slow >= UNEVEN * time.fast;
    if !is_uneven(all.time) {
        let by_length = slowest(units, |u| u.own_ns);
        let all = Both::of(units, &by_length);
        let Both {
            own, interrupted, ..
        } = all;
        // They may be the slowest because they were looked at.
        let is_it = interrupted.slow - interrupted.fast >= MOST * (own.slow - own.fast);
        let reason = Reason::Interrupted(interrupted.seconds());
        return (is_uneven(own) && is_it).then(|| found(own, &all, reason, vec![]));
    }
    let excess = all.time.slow - all.time.fast;
    let explains = |of: Means| of.slow - of.fast >= MOST * excess;
    let kernel = in_kernel(units, &by_time, &all, period_s);
    let user = all.time.without(all.asleep).without(kernel.0);
    let is_all_user = user.slow - user.fast >= (1.0 - ALIKE) * excess;
    let times = all.iterations.slow / all.iterations.fast.max(1.0);
    let each = all.time.slow / all.time.fast / times;
    let reason = if explains(all.asleep) {
        Reason::Asleep(UnitsAsleep {
            time: all.asleep.seconds(),
            at: stopped(site, &by_time, names.places),
        })
    } else if times >= UNEVEN && (1.0 / UNEVEN..=UNEVEN).contains(&each) {
        Reason::Iterations
    } else if is_by_samples(units, &by_time, excess, period_s) {
        return None; // whether they are uneven without samples isn't known
    } else if explains(kernel.0) && kernel.0.slow - kernel.0.fast > 2.0 * kernel.1 {
        match is_of_one(units, &by_time, period_s) {
            true => Reason::Unknown,
            false => Reason::Kernel(kernel.0.seconds()),
        }
    } else if all.slow < LEAST_SLOW || !explains(user) {
        // Samples are of user code, and that is not most of it.
        Reason::Unknown
    } else {
        match in_code(site, &by_time, period_s, names) {
            Reason::Alike if !is_all_user => Reason::Unknown,
            reason => reason.with_times(|pair| all.time.at_most(pair)),
        }
    };
    // A sample makes its unit longer: with few of them the slow units may be those that have one.
    let lines = match &reason {
        Reason::Unknown | Reason::Interrupted(_) => vec![],
        _ => by_line(site, &by_time, period_s, names),
    };
    let line = |line: AtLine| AtLine {
        time: all.time.at_most(line.time),
        ..line
    };
    let lines = lines.into_iter().map(line).collect();
    Some(Uneven {
        instructions: executed(site, &all),
        ..found(all.time, &all, reason, lines)
    })
}

/// With more samples in code that doesn't count its instructions these tell little.
const UNCOUNTED: f64 = 0.05;

fn executed(site: &SiteUnits, all: &Both) -> Option<Executed> {
    let uncounted = site.samples.iter().filter(|s| !s.is_counted).count();
    let is_known = site.units.iter().all(|unit| !unit.has_no_count);
    let is_most = uncounted as f64 <= UNCOUNTED * site.samples.len() as f64;
    (is_known && is_most).then_some(Executed {
        slow: all.instructions.slow,
        fast: all.instructions.fast,
    })
}

/// Where slow units had stopped for most of the time.
fn stopped(site: &SiteUnits, is_slow: &[bool], places: &SampledPlaces) -> Option<StopPlace> {
    let is_slow = |unit: usize| is_slow.get(unit).copied().unwrap_or(false);
    let mut stops = Stops::default();
    let slow = site.units.iter().enumerate().filter(|(at, _)| is_slow(*at));
    slow.for_each(|(_, unit)| stops.add(unit.asleep_ns, None)); // each as one stop
    let seen = site.stops.iter().filter(|s| is_slow(s.unit as usize));
    seen.for_each(|stop| stops.saw(stop.ns, stop.at));
    let asleep = stops.finish(places)?;
    asleep.main().map(|main| main.at.clone())
}

/// `time`: what of the units' time counts.
fn found(time: Means, all: &Both, reason: Reason, lines: Vec<AtLine>) -> Uneven {
    Uneven {
        units: all.units,
        slow: all.slow,
        slow_s: time.slow * NS,
        fast_s: time.fast * NS,
        iterations_times: all.iterations.slow / all.iterations.fast.max(1.0),
        instructions: None,
        reason,
        lines,
    }
}

/// Lines that are kept.
const LINES: usize = 20;
/// Fewer samples of a line say nothing.
const LEAST_OF_LINE: u64 = 10;

/// Mean times of slow and of fast units by line.
fn by_line(site: &SiteUnits, is_slow: &[bool], period_s: f64, names: Names<'_>) -> Vec<AtLine> {
    let mut counts: BTreeMap<(&str, u32), [u64; 2]> = BTreeMap::new();
    for sample in &site.samples {
        let place = sample
            .line
            .0
            .and_then(|p| names.places.places.get(p as usize));
        let line = place.and_then(|p| Some((p.file.as_deref()?, p.line?)));
        if let (Some(line), Some(is_slow)) = (line, is_slow.get(sample.unit as usize)) {
            counts.entry(line).or_default()[usize::from(*is_slow)] += 1;
        }
    }
    let slow = is_slow.iter().filter(|is| **is).count();
    let mean = |samples: u64, units: usize| samples as f64 * period_s / (units as f64).max(1.0);
    counts.retain(|_, [fast, slow]| *fast + *slow >= LEAST_OF_LINE);
    let mut lines: Vec<AtLine> = counts
        .into_iter()
        .map(|((file, line), [in_fast, in_slow])| AtLine {
            file: file.to_owned(),
            line,
            time: Pair {
                slow_s: mean(in_slow, slow),
                fast_s: mean(in_fast, is_slow.len() - slow),
            },
        })
        .collect();
    lines.sort_by(|a, b| b.time.slow_s.total_cmp(&a.time.slow_s)); // stable: else by place
    lines.truncate(LINES);
    lines
}

/// The key of samples without a line.
const NOWHERE: u32 = u32::MAX;

/// Where the samples of slow units differ from those of fast ones.
fn in_code(site: &SiteUnits, is_slow: &[bool], period_s: f64, names: Names<'_>) -> Reason {
    let totals = Totals::of(site, is_slow);
    if totals.slow.n < LEAST_SAMPLES || totals.fast.n < LEAST_SAMPLES {
        return Reason::Unknown;
    }
    let functions = differences(site, &totals, period_s, |s| s.functions.to_vec());
    // What isn't known to be in a line may make the difference, too.
    let lines = differences(site, &totals, period_s, |s| {
        vec![s.line.0.unwrap_or(NOWHERE)]
    });
    // Of functions in each other the one that explains the difference and has the least besides.
    let told = |d: &&Tested| d.is_certain && d.explains >= MOST;
    let least = |a: &&Tested, b: &&Tested| a.time.slow_s.total_cmp(&b.time.slow_s);
    let function = functions.iter().filter(told).min_by(least);
    let line = lines
        .iter()
        .filter(|d| told(d) && d.key != NOWHERE)
        .max_by(|a, b| a.explains.total_cmp(&b.explains));
    let difference = Difference {
        function: function.and_then(|d| names.function(d)),
        line: line.and_then(|d| names.line(d)),
    };
    if difference != Difference::default() {
        return Reason::Code(difference);
    }
    // A difference that could explain something would have been seen.
    let largest = lines.iter().map(|d| d.at_most).fold(0.0, f64::max);
    match largest <= ALIKE {
        true => Reason::Alike,
        false => Reason::Unknown,
    }
}

impl Names<'_> {
    fn function(&self, tested: &Tested) -> Option<InFunction> {
        let function = self.functions.get(tested.key as usize)?;
        let place = self.places.places.get(function.place as usize)?;
        let name = match function.is_outer {
            true => &place.inlined_into,
            false => &place.function,
        };
        Some(InFunction {
            name: name.clone()?,
            time: tested.time,
        })
    }

    fn line(&self, tested: &Tested) -> Option<AtLine> {
        let place = self.places.places.get(tested.key as usize)?;
        Some(AtLine {
            file: place.file.clone()?,
            line: place.line?,
            time: tested.time,
        })
    }
}
