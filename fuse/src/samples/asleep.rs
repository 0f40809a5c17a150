//! Where threads had stopped that had given their processor away.
//!
//! How long they had none is known exactly, by switches. Where, is looked at every [`STOP_EVERY_NS`]: a longer stop is seen, a shorter one
//! with the chance that its part of that time is, and one below [`STOP_LEAST_NS`] never. So a stop that was seen stands for at least that
//! time (Horvitz and Thompson, see `docs/references.md`), and shares of what was seen are shares of all stops that could be.

use super::region::Line;
use crate::run::places::SampledPlaces;
use ompfuse_format::samples::{STOP_EVERY_NS, STOP_LEAST_NS};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Places that are kept.
const MOST: usize = 20;
/// Fewer stops don't tell where others were that nobody saw.
const LEAST: u64 = 3;
/// Of all this time.
const MAIN: f64 = 0.5;

/// Where a thread had stopped.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct StopPlace {
    /// The system call; absent if it is in none: a page of memory is fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The function of the program that asks for it, or the library's where the program's isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The file with the machine code, where that isn't the program's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

/// Time at a place without processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AsleepAt {
    /// Where.
    #[serde(flatten)]
    pub at: StopPlace,
    /// How long, in seconds: an estimate, if stops are short.
    pub seconds: f64,
    /// Stops that were seen.
    pub stops: u64,
    /// How long these took, in seconds.
    pub seen_s: f64,
}

/// Time in which threads had no processor because they wanted none, beside waits for OpenMP.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Asleep {
    /// Of all threads, in seconds: exact.
    pub seconds: f64,
    /// Where they had stopped, as far as that was seen, the longest first; at most 20.
    pub places: Vec<AsleepAt>,
}

impl Asleep {
    /// The place with more than half of the time, if that is certain.
    pub fn main(&self) -> Option<&AsleepAt> {
        let least_s = MAIN * self.seconds;
        let first = self.places.first()?;
        let is_seen = first.stops >= LEAST || first.seen_s > least_s;
        (first.seconds > least_s && is_seen).then_some(first)
    }

    /// Adds another region's.
    pub fn absorb(&mut self, more: &Asleep) {
        let Asleep { seconds, places } = more;
        self.seconds += seconds;
        for place in places {
            match self.places.iter_mut().find(|p| p.at == place.at) {
                Some(known) => {
                    let AsleepAt {
                        at: _,
                        seconds,
                        stops,
                        seen_s,
                    } = place;
                    known.seconds += seconds;
                    known.stops += stops;
                    known.seen_s += seen_s;
                }
                None => self.places.push(place.clone()),
            }
        }
        self.places.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        self.places.truncate(MOST);
    }
}

/// A place, and the number of the system call.
pub(super) type StopKey = (Line, Option<u32>);

/// Sums under construction.
#[derive(Debug, Default)]
pub(super) struct Stops {
    ns: u64,
    /// Of stops that could be seen.
    long_ns: u64,
    places: FxHashMap<StopKey, Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    stops: u64,
    ns: u64,
    stands_for_ns: u64,
}

impl Stops {
    /// A thread had no processor for so long; `stop`: where, if that was seen.
    pub(super) fn add(&mut self, ns: u64, stop: Option<StopKey>) {
        self.ns += ns;
        if ns >= STOP_LEAST_NS {
            self.long_ns += ns;
        }
        if let Some(stop) = stop {
            self.saw(ns, stop);
        }
    }

    /// Where a thread had stopped that is in the sum.
    pub(super) fn saw(&mut self, ns: u64, stop: StopKey) {
        let seen = self.places.entry(stop).or_default();
        seen.stops += 1;
        seen.ns += ns;
        seen.stands_for_ns += ns.max(STOP_EVERY_NS);
    }

    /// `None`: there was none.
    pub(super) fn finish(self, places: &SampledPlaces) -> Option<Asleep> {
        const NS: f64 = 1e-9;
        if self.ns == 0 {
            return None;
        }
        let all_ns = self.ns as f64;
        let told_ns: u64 = self.places.values().map(|s| s.stands_for_ns).sum();
        let scale = self.long_ns as f64 / (told_ns as f64).max(1.0);
        let mut asleep = Asleep {
            seconds: all_ns * NS,
            places: vec![],
        };
        let mut found: Vec<(StopKey, Seen)> = self.places.into_iter().collect();
        found.sort_by_key(|(key, _)| *key);
        for (key, seen) in found {
            asleep.absorb(&Asleep {
                seconds: 0.0,
                places: vec![AsleepAt {
                    at: stop_place(key, places),
                    seconds: seen.stands_for_ns as f64 * scale * NS,
                    stops: seen.stops,
                    seen_s: seen.ns as f64 * NS,
                }],
            });
        }
        Some(asleep)
    }
}

pub(super) fn stop_place(((place, _), call): StopKey, places: &SampledPlaces) -> StopPlace {
    let at = place.and_then(|p| places.places.get(p as usize));
    let at = at.cloned().unwrap_or_default();
    let number = |call: u32| {
        let name = places.calls.get(&call).cloned();
        name.unwrap_or_else(|| format!("system call {call}"))
    };
    StopPlace {
        call: call.map(number),
        function: at.function,
        file: at.file,
        line: at.line,
        object: at.object,
    }
}
