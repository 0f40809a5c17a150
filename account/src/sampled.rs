//! Samples as a report: the lines and functions of regions, and of the code outside of them.

pub mod compare;
mod pools;

use crate::model::sampled::called;
pub use crate::model::sampled::{Callee, LEAST, SampledFunction, SampledLast, SampledLine};
pub use pools::SampledPool;

use ompfuse_format::Construct;
use ompfuse_format::run::RunHeader;
use ompfuse_format::samples::{ClosedAt, Sampling};
use ompfuse_fuse::names::readable;
use ompfuse_fuse::samples::{
    Asleep, LastSeen, Lines, RegionLines, SampledPlace, SampledPlaces, ThreadLines, UNKNOWN, Uneven,
};
use ompfuse_fuse::table::Site;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most lines of a region that are told.
const MOST: usize = 1000;

/// The samples of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledReport {
    /// The program as the user named it.
    pub program: String,
    /// Samples a second of processor time that were wanted.
    pub rate: u32,
    /// Nanoseconds of processor time in user code that a sample stands for.
    pub period_ns: u64,
    /// Samples.
    pub samples: u64,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// Since when there were none any more, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<ClosedAt>,
    /// Samples of threads that had nothing to do, outside of constructs.
    pub idle: u64,
    /// Samples of other processes, other threads, and times at which nothing was recorded.
    pub unrecorded: u64,
    /// Libraries with threads of their own, which aren't recorded; without those that hardly worked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<SampledPool>,
    /// Regions, those with most samples first.
    pub regions: Vec<SampledRegion>,
    /// Of a process that ran already, or couldn't be patched: there are no records, and stacks tell regions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<SampledProcess>,
    /// Of such a process, and of one that a signal has ended: the threads, the one that computed most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<SampledThread>,
}

/// Processes that ran already when they were looked at, or a program of which there are no records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledProcess {
    /// The numbers of the processes; empty: it was started.
    pub pids: Vec<u32>,
    /// For how long it was looked at, in seconds.
    pub seconds: f64,
    /// They are another user's, or see other files (a container): the sources that their files name are not opened.
    #[serde(default)]
    pub is_foreign: bool,
}

/// What a thread did while it was looked at. Times are in seconds; those with a processor are estimates, as samples are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledThread {
    /// Kernel's thread number.
    pub tid: u32,
    /// It is its process's first.
    pub is_main: bool,
    /// In the program's code and that of its libraries.
    pub work_s: f64,
    /// In the OpenMP runtime, for a construct.
    pub runtime_s: f64,
    /// Without processor: it waited in the runtime for a construct.
    pub waits_s: f64,
    /// Without processor: its own code slept or waited.
    pub asleep_s: f64,
    /// In the runtime, with a processor or without, for no construct: it had nothing to do.
    pub idle_s: f64,
    /// Without processor, and nobody has seen where.
    pub unseen_s: f64,
    /// What it did when it was looked at last; absent if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<SampledLast>,
}

/// The samples of a region, or of the code outside of constructs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledRegion {
    /// Kind; `None`: the code outside of constructs, or in one that isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub construct: Option<Construct>,
    /// It is in a construct, and stacks don't tell in which: the last call of a function may be a jump.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
    /// Of a call of another library: the function that is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<String>,
    /// The function that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Link-time addresses of its sites.
    pub sites: Vec<String>,
    /// Build ids or paths of the modules that they are in.
    pub modules: Vec<String>,
    /// All samples.
    pub samples: u64,
    /// In the program's code and that of its libraries.
    pub work: u64,
    /// In the OpenMP runtime, or waiting.
    pub runtime: u64,
    /// In what records.
    pub recording: u64,
    /// So near to a begin or end that they may be of another region; they are in no other sum.
    pub uncertain: u64,
    /// Where there are no records: time that threads waited in the OpenMP runtime without processor, in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waits_s: f64,
    /// Samples of the work whose callers are known up to the region's begin.
    pub whole: u64,
    /// Functions with at least [`LEAST`] samples of the work, with what they call, the hottest first.
    pub functions: Vec<SampledFunction>,
    /// Lines with at least [`LEAST`], likewise.
    pub lines: Vec<SampledLine>,
    /// Its slow units against fast ones, where they are uneven. Of several sites that are one region those with most units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uneven: Option<Uneven>,
    /// Time in which its threads had no processor, because they wanted none and OpenMP didn't make them wait; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asleep: Option<Asleep>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands on a reference"
)]
fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl SampledReport {
    /// `sites`: those of the run.
    pub fn new(
        header: &RunHeader,
        sampling: &Sampling,
        lines: &Lines,
        sites: &[Site],
        places: &SampledPlaces,
    ) -> SampledReport {
        let mut rows: BTreeMap<(bool, Key<'_>), Row> = BTreeMap::new();
        for region in &lines.regions {
            let site = region.site.and_then(|at| sites.get(at as usize));
            let is_unknown = region.site == Some(UNKNOWN);
            let row = rows.entry((is_unknown, key(site))).or_default();
            row.region.is_unknown = is_unknown;
            row.add(site, region, places);
            if let Some(uneven) = region.site.and_then(|site| lines.uneven.get(&site)) {
                row.add_uneven(uneven);
            }
        }
        let pools = pools::of(&lines.regions, places);
        let period_ns = 1_000_000_000 / u64::from(sampling.rate.max(1));
        let mut regions: Vec<SampledRegion> = rows.into_values().map(Row::finish).collect();
        regions.sort_by_key(|r| std::cmp::Reverse(r.samples)); // stable: else by place
        SampledReport {
            program: header.program.clone(),
            rate: sampling.rate,
            period_ns,
            samples: sampling.samples,
            lost: sampling.lost,
            closed: sampling.closed,
            idle: lines.idle,
            unrecorded: lines.unrecorded,
            process: header.attached_to.as_ref().map(|pids| SampledProcess {
                pids: pids.clone(),
                seconds: header.duration_s,
                is_foreign: header.is_foreign,
            }),
            threads: threads(lines, &places.sites, period_ns),
            pools,
            regions,
        }
    }
}

fn threads(lines: &Lines, sites: &[Site], period_ns: u64) -> Vec<SampledThread> {
    const NS: f64 = 1e-9;
    let of = |thread: &ThreadLines| {
        let sampled = |samples: u64| samples as f64 * period_ns as f64 * NS;
        let site = |last: &LastSeen| sites.get(last.site? as usize);
        SampledThread {
            tid: thread.tid,
            is_main: thread.tid == thread.pid,
            work_s: sampled(thread.work),
            runtime_s: sampled(thread.runtime),
            waits_s: thread.waits_ns as f64 * NS,
            asleep_s: thread.asleep_ns as f64 * NS,
            idle_s: sampled(thread.idle) + thread.idle_ns as f64 * NS,
            unseen_s: thread.unseen_ns as f64 * NS,
            last: (thread.last.as_ref()).map(|last| SampledLast::new(last, site(last))),
        }
    };
    let mut threads: Vec<SampledThread> = lines.threads.iter().map(of).collect();
    threads.sort_by(|a, b| b.work_s.total_cmp(&a.work_s).then(a.tid.cmp(&b.tid)));
    threads
}

/// Copies of a place in the source are one region.
type Key<'a> = (Option<Construct>, Option<(&'a str, u32)>, Option<&'a str>);

fn key(site: Option<&Site>) -> Key<'_> {
    let Some(site) = site else {
        return (None, None, None);
    };
    let source = site.source.as_ref().map(|s| (s.file.as_str(), s.line));
    let name = source.is_none().then_some(site.name.as_str());
    (site.construct, source, name)
}

/// A region under construction.
#[derive(Default)]
struct Row {
    region: SampledRegion,
    lines: BTreeMap<(SampledPlace, Option<Callee>), u64>,
    /// Functions by name and file: own samples, and with what they call.
    functions: BTreeMap<(Option<String>, Option<String>), [u64; 2]>,
}

impl Row {
    fn add_uneven(&mut self, uneven: &Uneven) {
        let known = self.region.uneven.as_ref();
        if known.is_none_or(|known| known.units < uneven.units) {
            self.region.uneven = Some(uneven.clone());
        }
    }

    fn add(&mut self, site: Option<&Site>, more: &RegionLines, places: &SampledPlaces) {
        let region = &mut self.region;
        let RegionLines {
            site: _,
            work,
            runtime,
            recording,
            uncertain,
            uncounted: _,
            whole,
            lines,
            functions,
            waits_ns,
            asleep,
        } = more;
        region.waits_s += *waits_ns as f64 * 1e-9;
        if let Some(asleep) = asleep {
            region.asleep.get_or_insert_default().absorb(asleep);
        }
        region.samples += more.samples();
        region.work += work;
        region.runtime += runtime;
        region.recording += recording;
        region.uncertain += uncertain;
        region.whole += whole;
        if let Some(site) = site {
            region.construct = site.construct;
            region.called = called(site).map(str::to_owned);
            let function = site.function.as_deref().map(readable);
            region.function = function.map(|f| f.into_owned());
            let source = site.source.as_ref();
            region.file = source.map(|s| s.file.clone());
            region.line = source.map(|s| s.line);
            region.sites.push(site.name.clone());
            if !region.modules.contains(&site.module) {
                region.modules.push(site.module.clone());
            }
        }
        let known = |at: Option<u32>| places.places.get(at? as usize);
        for line in lines {
            let place = known(line.place).cloned().unwrap_or_default();
            let callee = known(line.callee).cloned().map(|p| Callee {
                function: p.inlined_into.or(p.function),
                object: p.object,
            });
            *self.lines.entry((place, callee)).or_default() += line.samples;
        }
        for function in functions {
            let place = known(Some(function.place)).cloned().unwrap_or_default();
            let name = match function.is_outer {
                true => place.inlined_into,
                false => place.function,
            };
            let sums = self.functions.entry((name, place.object)).or_default();
            sums[0] += function.own;
            sums[1] += function.total;
        }
    }

    fn finish(self) -> SampledRegion {
        let Row {
            mut region,
            lines,
            functions,
        } = self;
        for ((place, callee), samples) in lines {
            if samples >= LEAST {
                region.lines.push(SampledLine {
                    function: place.function,
                    inlined_into: place.inlined_into,
                    file: place.file,
                    line: place.line,
                    object: place.object,
                    callee,
                    samples,
                });
            }
        }
        let function = |((function, object), [samples, total]): (_, [u64; 2])| SampledFunction {
            function,
            object,
            samples,
            total: total.max(samples),
        };
        region.functions = functions.into_iter().map(function).collect();
        region.functions.retain(|f| f.total >= LEAST);
        region
            .functions
            .sort_by_key(|f| std::cmp::Reverse((f.total, f.samples)));
        region.lines.sort_by_key(|l| std::cmp::Reverse(l.samples));
        region.functions.truncate(MOST);
        region.lines.truncate(MOST);
        region
    }
}
