//! Two runs by the shares of their regions, where at least one has samples only. Shares of samples have errors: a difference is a change
//! only if chance doesn't explain it.

use super::{LEAST, SampledRegion, SampledReport};
use crate::model::sampled::base;
use crate::model::{Region, Report};
use ompfuse_format::Construct;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A difference of so many standard errors is a change.
const ERRORS: f64 = 3.0;
/// The construct that a thread is in is known by the function that the compiler has made of it. The time of others is part of what is
/// around them.
const BODIES: [Construct; 4] = [
    Construct::Parallel,
    Construct::Task,
    Construct::Taskloop,
    Construct::Teams,
];

/// What shares are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SharesOf {
    /// All samples: processor time.
    Samples,
    /// Work in parallel regions and tasks: one side is recorded, so that its work is time by the clock. No change is told.
    Work,
}

/// What a share is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShareOf {
    /// The program's code.
    Work,
    /// The OpenMP runtime, or the library that the region is a call of.
    Runtime,
}

/// Two runs, compared by shares.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SharesDiff {
    /// What shares are of.
    pub shares_of: SharesOf,
    /// The side to compare with.
    pub a: ShareSide,
    /// The side that is judged.
    pub b: ShareSide,
    /// Regions, those that changed first.
    pub regions: Vec<SharePair>,
}

impl SharesDiff {
    /// The largest share of a side that is in constructs that aren't known.
    pub fn unknown(&self) -> f64 {
        self.a.unknown.max(self.b.unknown)
    }
}

/// A side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ShareSide {
    /// What the user calls it.
    pub name: String,
    /// The program as the user named it.
    pub program: String,
    /// Samples that shares are of; null: it is recorded.
    pub samples: Option<u64>,
    /// The share of samples in constructs that aren't known, from 0 to 1.
    pub unknown: f64,
}

/// The shares of a region.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SharePair {
    /// What it is about.
    pub what: ShareOf,
    /// Kind; null: the code outside of constructs.
    pub construct: Option<Construct>,
    /// Of a call of another library: the function that is called.
    pub called: Option<String>,
    /// The function that holds it.
    pub function: Option<String>,
    /// Source file, as B has it if it is there.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<u32>,
    /// Link-time address of a site, where there is no line.
    pub site: Option<String>,
    /// The share in A, from 0 to 1.
    pub a: f64,
    /// The share in B.
    pub b: f64,
    /// The standard error of the difference, if both shares were the same.
    pub error: f64,
    /// Whether the difference is larger than chance explains (three standard errors), wherever samples of unknown constructs belong.
    pub is_changed: bool,
}

/// Which region it is: by its line, or else by its function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    construct: Option<Construct>,
    called: Option<String>,
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    site: Option<String>,
}

impl Key {
    fn of(region: &SampledRegion) -> Key {
        let line = region.line;
        Key {
            construct: region.construct,
            called: region.called.clone(),
            function: region.function.clone(),
            file: region.file.as_deref().map(|file| base(file).to_owned()),
            line,
            site: region.sites.first().filter(|_| line.is_none()).cloned(),
        }
    }

    fn recorded(region: &Region) -> Key {
        let source = region.source.as_ref();
        let function = region.function_demangled.as_ref();
        Key {
            construct: region.construct,
            called: None,
            function: function.or(region.function.as_ref()).cloned(),
            file: source.map(|s| base(&s.file).to_owned()),
            line: source.map(|s| s.line),
            site: source.is_none().then(|| region.name.clone()),
        }
    }

    /// The same place of the source.
    fn is_at(&self, other: &Key) -> bool {
        let place = |key: &Key| {
            (
                key.construct,
                key.called.clone(),
                key.file.clone(),
                key.line,
            )
        };
        place(self) == place(other)
            && (self.line.is_some() || self.construct.is_none() || self.site == other.site)
    }

    /// The same function, in which lines may have moved.
    fn is_like(&self, other: &Key) -> bool {
        let place = |key: &Key| (key.construct, key.called.clone(), key.function.clone());
        self.function.is_some() && place(self) == place(other)
    }
}

/// A side's shares: by region those of its work and of the runtime.
pub struct Shares {
    side: ShareSide,
    regions: BTreeMap<Key, [f64; 2]>,
}

impl Shares {
    /// Of samples. `of`: what the other side has, too.
    pub fn sampled(name: &str, report: &SampledReport, of: SharesOf) -> Shares {
        let mut regions: BTreeMap<Key, [f64; 2]> = BTreeMap::new();
        let is_placed = |region: &&SampledRegion| !region.is_unknown;
        let nowhere = report.regions.iter().filter(|r| r.is_unknown);
        let nowhere: u64 = nowhere.map(|r| r.work).sum();
        for region in report.regions.iter().filter(is_placed) {
            let is_body = region.construct.is_some_and(|c| BODIES.contains(&c));
            if of == SharesOf::Work && !is_body {
                continue;
            }
            let runtime = match of {
                SharesOf::Samples => region.runtime,
                SharesOf::Work => 0,
            };
            let sums = regions.entry(Key::of(region)).or_default();
            sums[0] += region.work as f64;
            sums[1] += runtime as f64;
        }
        let recording: u64 = report.regions.iter().map(|r| r.recording).sum();
        let samples = match of {
            SharesOf::Samples => report.samples.saturating_sub(recording),
            SharesOf::Work => nowhere + regions.values().map(|sums| sums[0]).sum::<f64>() as u64,
        };
        // Samples in the runtime may belong to unknown constructs, too.
        let unknown = match of {
            SharesOf::Samples => nowhere + report.unrecorded,
            SharesOf::Work => nowhere,
        };
        let unknown = unknown as f64 / samples.max(1) as f64;
        let about = (Some(samples), unknown);
        Shares::new(name, &report.program, about, regions, samples as f64)
    }

    /// Of records: work by the clock, by the innermost construct around it that samples know.
    pub fn recorded(name: &str, report: &Report) -> Shares {
        let region = |id: Option<u32>| report.regions.iter().find(|r| Some(r.id) == id);
        let body = |path: usize| {
            let above = |at: &usize| Some(report.call_paths[*at].parent? as usize);
            let up = std::iter::successors(Some(path), above);
            let mut around = up.filter_map(|at| region(report.call_paths[at].region));
            around.find(|r| r.construct.is_some_and(|c| BODIES.contains(&c)))
        };
        // How a region's work is divided among the paths to it.
        let mut paths: BTreeMap<u32, Vec<(usize, f64)>> = BTreeMap::new();
        for (at, path) in report.call_paths.iter().enumerate() {
            let own = path.per_thread.iter().map(|t| {
                let others = t.classes.values().sum::<f64>() + t.idle_s.unwrap_or(0.0);
                (t.exclusive_s - others).max(0.0)
            });
            if let Some(region) = path.region {
                paths.entry(region).or_default().push((at, own.sum()));
            }
        }
        let mut regions: BTreeMap<Key, [f64; 2]> = BTreeMap::new();
        for region in &report.regions {
            let paths = paths.get(&region.id).map_or(&[][..], |all| all);
            let all: f64 = paths.iter().map(|(_, own)| own).sum();
            for (at, own) in paths.iter().filter(|_| all > 0.0) {
                if let Some(body) = body(*at) {
                    let sums = regions.entry(Key::recorded(body)).or_default();
                    sums[0] += region.work_s * own / all;
                }
            }
        }
        let all = regions.values().map(|sums| sums[0]).sum();
        Shares::new(name, &report.program, (None, 0.0), regions, all)
    }

    fn new(
        name: &str,
        program: &str,
        (samples, unknown): (Option<u64>, f64),
        mut regions: BTreeMap<Key, [f64; 2]>,
        all: f64,
    ) -> Shares {
        let shares = regions.values_mut().flatten();
        shares.for_each(|share| *share /= if all > 0.0 { all } else { 1.0 });
        let side = ShareSide {
            name: name.to_owned(),
            program: program.to_owned(),
            samples,
            unknown,
        };
        Shares { side, regions }
    }
}

/// Compares two sides.
pub fn compare(a: Shares, b: Shares, shares_of: SharesOf) -> SharesDiff {
    let samples = [a.side.samples, b.side.samples];
    let unknown = [a.side.unknown, b.side.unknown];
    let (mut left, mut pairs): (Vec<_>, Vec<_>) = (a.regions.into_iter().collect(), vec![]);
    let mut alone = vec![];
    let mut take = |is_it: &dyn Fn(&Key) -> bool, only: bool| {
        let mut found = left.iter().enumerate().filter(|(_, (key, _))| is_it(key));
        let at = found.next()?.0;
        let is_only = found.next().is_none();
        (is_only || !only).then(|| left.remove(at).1)
    };
    for (key, shares) in b.regions {
        match take(&|of| of.is_at(&key), false) {
            Some(of_a) => pairs.push((key, of_a, shares)),
            None => alone.push((key, shares)),
        }
    }
    let keys: Vec<Key> = alone.iter().map(|(key, _)| key.clone()).collect();
    for (key, shares) in alone {
        // Of several regions of a function nobody knows which is which.
        let is_only = keys.iter().filter(|of| of.is_like(&key)).count() == 1;
        let of_a = is_only
            .then(|| take(&|of| of.is_like(&key), true))
            .flatten();
        pairs.push((key, of_a.unwrap_or_default(), shares));
    }
    pairs.extend(left.into_iter().map(|(key, of_a)| (key, of_a, [0.0; 2])));
    let mut regions: Vec<SharePair> = vec![];
    for (key, of_a, of_b) in pairs {
        for (what, at) in [(ShareOf::Work, 0), (ShareOf::Runtime, 1)] {
            let shares = [of_a[at], of_b[at]];
            regions.extend(pair(&key, what, shares, samples, unknown));
        }
    }
    if shares_of == SharesOf::Work {
        regions.iter_mut().for_each(|pair| pair.is_changed = false);
    }
    let differs = |p: &SharePair| (p.a - p.b).abs();
    regions.sort_by(|p, q| {
        let by_size = |p: &SharePair| {
            if p.is_changed {
                differs(p)
            } else {
                p.a.max(p.b)
            }
        };
        let changed = q.is_changed.cmp(&p.is_changed);
        changed.then(by_size(q).total_cmp(&by_size(p)))
    });
    SharesDiff {
        shares_of,
        a: a.side,
        b: b.side,
        regions,
    }
}

/// `None`: there are too few samples of it.
fn pair(
    key: &Key,
    what: ShareOf,
    [a, b]: [f64; 2],
    samples: [Option<u64>; 2],
    unknown: [f64; 2],
) -> Option<SharePair> {
    let shares = [a, b].into_iter().zip(samples);
    let counted = shares.clone().map(|(share, n)| Some(share * n? as f64));
    let is_seen = |n: Option<f64>| n.is_none_or(|n| n + 0.5 >= LEAST as f64);
    let (mut seen, mut is_there) = (counted, a + b > 0.0);
    is_there &= seen.any(is_seen);
    // If nothing differs all samples are of one share.
    let known: Vec<(f64, f64)> = shares.filter_map(|(s, n)| Some((s, n? as f64))).collect();
    let all: f64 = known.iter().map(|(_, n)| n).sum();
    let p = match (samples, all > 0.0) {
        (_, false) => return None,
        ([None, _], _) => a,
        ([_, None], _) => b,
        _ => known.iter().map(|(share, n)| share * n).sum::<f64>() / all,
    };
    let inverse: f64 = known.iter().map(|(_, n)| 1.0 / n.max(1.0)).sum();
    let error = (p * (1.0 - p) * inverse).sqrt().max(inverse);
    let Key {
        construct,
        called,
        function,
        file,
        line,
        site,
    } = key.clone();
    // Each share may be larger by what isn't known.
    let differs = (b - a - unknown[0]).max(a - b - unknown[1]);
    is_there.then_some(SharePair {
        what,
        construct,
        called,
        function,
        file,
        line,
        site,
        a,
        b,
        error,
        is_changed: differs > ERRORS * error,
    })
}
