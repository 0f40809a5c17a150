//! What a report needs of a run beside the table of XUs: the program, and per region and thread the sums of all
//! intervals. It travels as JSON in a profile's metadata.

mod collect;
pub mod distribution;
mod groups;
pub mod growth;
pub mod live;
mod parallel;
mod span_paths;
mod stream;
mod sums;
mod table;
pub(crate) mod tree;

pub use span_paths::{PathStep, SpanPaths};
pub(crate) use table::TableSums;
pub use tree::{MOST_PATHS, PathKind, PathStat};

use crate::account::OwnTime;
use crate::combine::Unmatched;
use crate::run::{
    Contexts, EventInfo, Health, LeftOut, LockStat, Meetings, MessageStat, ProcessInfo,
    RegionParts, ThreadAccount,
};
use crate::table::{ProcessId, Site};
use ompfuse_format::Construct;
use ompfuse_format::coverage::Coverage;
use ompfuse_format::run::{Exit, RankEnd};
use ompfuse_format::site::Uncounted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program's executions in numbers. Times are the first run's; counts of an event are those of the run it comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The program as the user named it; the file's name for a foreign table.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Host name.
    pub host: String,
    /// Logical processors.
    pub cpus: u32,
    /// Kernel release.
    pub kernel: String,
    /// Model of the processor, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Size of the processor's largest cache, in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
    /// `OMP_*`, `KMP_*` and `GOMP_*` variables.
    pub environment: Vec<(String, String)>,
    /// Threads that recorded.
    pub threads: u32,
    /// Wall-clock time in seconds, if known.
    pub duration_s: Option<f64>,
    /// Time inside outermost parallel regions, fork to join, in nanoseconds; counted once where they overlap.
    pub parallel_ns: u64,
    /// The patched modules.
    pub modules: Vec<ModuleSummary>,
    /// The places that everything else refers to by position.
    pub sites: Vec<Site>,
    /// The events of all runs.
    pub events: Vec<EventOrigin>,
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// Sums per region.
    pub regions: Vec<RegionStat>,
    /// Parallel regions, instance by instance summed up.
    pub parallel: Vec<ParallelStat>,
    /// The same sums by path of enclosing regions: the program's own code first, each path behind the one around it. Empty for
    /// foreign tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathStat>,
    /// Where parallel regions were called from, of the first run.
    pub contexts: Contexts,
    /// There were more paths than [`MOST_PATHS`]: further ones are summed up by place and parallel region.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub paths_folded: bool,
    /// How the first run's processes are told apart.
    pub processes: Vec<ProcessId>,
    /// The threads of the first run.
    pub accounts: Vec<ThreadAccount>,
    /// What was executed and not recorded, of the first run.
    pub left_out: Vec<LeftOut>,
    /// The events that were counted per outermost parallel region and thread, of all runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub region_events: Vec<EventOrigin>,
    /// Processor time and such counts by region and thread: times are the first run's, counts of an event are those of the run
    /// that it comes from. No execution unit has a share of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub region_parts: Vec<RegionParts>,
    /// Locks by address, of the first run. Empty where only sums were recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockStat>,
    /// What calls of MPI handed over, by place and thread, of the first run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageStat>,
    /// When processes met all others, of the first run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meetings: Vec<Meetings>,
    /// Processors that the program could use at once in the first run, if known: not always a whole number, where a control group
    /// has a quota.
    pub processors: Option<f64>,
    /// Why there weren't more. `None`: they are all that the machine has, or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<ProcessorLimit>,
    /// Processor time that the hypervisor took from the whole machine during the first run, in seconds, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_s: Option<f64>,
    /// Processor time that other programs used during the first run on the processors that its command may run on, in seconds, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_s: Option<f64>,
    /// Own time and threads at once of the first run's processes, as they come in [`RunSummary::processes`]. Empty for foreign tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<OwnTime>,
    /// How the runs were combined, if they were.
    pub matching: Option<Matching>,
    /// Work, span and causes, of the first run's first records; `None`: nobody has asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<crate::span::Analysis>,
    /// What samples tell, of the first run; `None`: nothing, or nobody has asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<crate::samples::SampledSums>,
}

impl Summary {
    /// Whether all code that calls an OpenMP runtime calls libgomp.
    pub fn is_libgomp(&self) -> bool {
        let mut runtimes = self.modules.iter().flat_map(|m| &m.runtimes);
        runtimes.all(|name| name.starts_with("libgomp"))
    }
}

/// A patched module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleSummary {
    /// Path of the original.
    pub path: String,
    /// Build id in hexadecimal, where there is one.
    pub build_id: Option<String>,
    /// OpenMP runtimes that it needs or contains.
    pub runtimes: Vec<String>,
    /// The functions of OpenMP runtimes that it calls, in alphabetic order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<String>,
    /// Sites with a probe.
    pub patched: u32,
    /// Sites without one, and why: reason and number of sites.
    pub skipped: Vec<(String, u32)>,
    /// The same by constructs, of which each has several sites.
    pub coverage: Coverage,
    /// Functions that were to count their instructions and can't.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
}

/// An event and where its counts come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventOrigin {
    /// Name.
    pub name: String,
    /// The run (from 0) whose counts are shown; `None` if no run counted it.
    pub run: Option<u16>,
    /// Why it was not counted, with the remedy.
    pub reason: Option<String>,
    /// It took turns with others on the processor's counters: its counts are scaled.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub scaled: bool,
}

/// What keeps a program from more processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessorLimit {
    /// Its threads are bound to few (`OMP_PROC_BIND`, `OMP_PLACES`, `GOMP_CPU_AFFINITY`, `KMP_AFFINITY`, or calls of its own).
    Binding,
    /// The affinity mask that it was started with.
    Affinity,
    /// The quota of its control group.
    Quota,
}

/// One run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// What the caller calls it: a folder or file.
    pub name: String,
    /// Begin, seconds since 1970, if known.
    pub started: Option<f64>,
    /// Its addresses were not random.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub fixed_addresses: bool,
    /// Wall-clock time in seconds, if known.
    pub duration_s: Option<f64>,
    /// How long a computation took that is always the same, before it and behind it, in seconds, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace_s: Option<[f64; 2]>,
    /// How the program ended, if known.
    pub exit: Option<Exit>,
    /// Its event set.
    pub events: Vec<EventInfo>,
    /// The events that it counted per outermost parallel region and thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub region_events: Vec<EventInfo>,
    /// Its processes.
    pub processes: Vec<ProcessInfo>,
    /// Number of its XUs.
    pub xus: u64,
    /// What was lost or broken.
    pub health: Health,
    /// What counting the processor's events added to the processor time of a thread's switch and its return, in nanoseconds,
    /// if that was measured.
    pub switch_cost_ns: Option<u64>,
    /// From when to when it was recorded, in seconds from its start, where that was not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Vec<[f64; 2]>>,
    /// The ranks of a job whose launcher has started a command for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankEnd>,
    /// Only sums were recorded, no unit, wait or region by itself.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub sums_only: bool,
}

/// How runs were combined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matching {
    /// Name of the strategy (`lgl`, `ctc`).
    pub strategy: String,
    /// XUs in the result.
    pub matched: u64,
    /// XUs that are not.
    pub unmatched: Vec<Unmatched>,
}

/// Sums over the intervals of one kind, at one place, inside one parallel region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionStat {
    /// Position in [`Summary::sites`]; `None` for the program and for unknown places.
    pub site: Option<u32>,
    /// Kind of interval; `None` for XUs of a foreign table.
    pub construct: Option<Construct>,
    /// Site of the innermost parallel region that it happened in, if that execution is on record: sums over these can be
    /// compared with its time.
    pub parallel: Option<u32>,
    /// Instances: executions by a team count once. Intervals, where they can't be told apart.
    pub instances: u64,
    /// Per thread, in equal lengths; threads without such intervals are left out.
    pub threads: ThreadColumns,
    /// Total per event, in the order of [`Summary::events`], over all threads of the run that the event comes from.
    pub counts: Vec<Option<u64>>,
    /// How the units are distributed, where only sums were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Box<distribution::Distribution>>,
}

/// See [`RegionStat::threads`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadColumns {
    /// Position in [`Summary::accounts`] (for foreign tables: number of the thread).
    pub thread: Vec<u32>,
    /// Intervals; XUs with several parts count once.
    pub count: Vec<u64>,
    /// Exclusive time in nanoseconds.
    pub own_ns: Vec<u64>,
    /// Begin to end, in nanoseconds.
    pub wall_ns: Vec<u64>,
    /// Waiting to enter (critical and the like), in nanoseconds; iterations of ranges; of barriers how often the thread came to it
    /// with next to nothing done since its last synchronisation.
    pub extent: Vec<u64>,
    /// Shortest interval's exclusive time in nanoseconds.
    pub min_ns: Vec<u64>,
    /// Longest interval's.
    pub max_ns: Vec<u64>,
    /// Largest extent of an interval; of kinds other than natural loops it is 0 where only sums were recorded.
    pub largest: Vec<u64>,
}

impl ModuleSummary {
    /// What tells it apart: its build id, or else its path.
    pub fn key(&self) -> &str {
        self.build_id.as_deref().unwrap_or(&self.path)
    }
}

impl RunSummary {
    /// Time in which at least one of its processes had own time, in nanoseconds; `None`: nothing is known of them.
    pub fn lifetime_ns(&self) -> Option<u64> {
        let lives = self.processes.iter().map(ProcessInfo::own_span);
        let mut lives: Vec<(i64, i64)> = lives.collect();
        (!lives.is_empty()).then(|| parallel::union_ns(&mut lives))
    }
}

impl RegionStat {
    /// Number of intervals, all threads together.
    pub fn count(&self) -> u64 {
        self.threads.count.iter().sum()
    }

    /// Exclusive time in nanoseconds, all threads together.
    pub fn own_ns(&self) -> u64 {
        self.threads.own_ns.iter().sum()
    }

    /// Begin to end in nanoseconds, all threads together.
    pub fn wall_ns(&self) -> u64 {
        self.threads.wall_ns.iter().sum()
    }

    /// Sum of the extents.
    pub fn extent(&self) -> u64 {
        self.threads.extent.iter().sum()
    }
}

/// A parallel region's executions, from the relation of each fork and join to its implicit tasks. Sums over threads are
/// over those whose implicit task was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParallelStat {
    /// Position in [`Summary::sites`].
    pub site: Option<u32>,
    /// Executions.
    pub executions: u64,
    /// Those inside another parallel region.
    pub nested: u64,
    /// Those whose implicit tasks were all recorded: the following sums are over these.
    pub measured: u64,
    /// Fork to join in nanoseconds, of all executions.
    pub wall_ns: u64,
    /// Fork to join times team size, of all executions: the time that the team's threads are bound to it.
    pub team_ns: u64,
    /// Largest team.
    pub team: u64,
    /// Fork to begin of the implicit task, summed over threads (creating and waking threads).
    pub startup_ns: u64,
    /// End of the last work to join, summed over threads.
    pub shutdown_ns: u64,
    /// End of the own implicit task to the end of the team's last work, less the tasks executed meanwhile, summed over
    /// threads: waiting in the region's last barrier.
    pub imbalance_ns: u64,
    /// The part of `imbalance_ns` of threads that had next to nothing to do, while one other thread executed something.
    pub limited_ns: u64,
    /// Own time of what was executed at the region's end, behind the threads' parts, and is not on record: part of
    /// `imbalance_ns` and `shutdown_ns`.
    pub left_behind_ns: u64,
    /// Executions of which the next sum is: outermost ones whose parts were all recorded, without another region inside.
    pub least_idle_of: u64,
    /// Team size times what the least idle of the team's threads does not work, summed over executions: what all threads lose alike.
    pub least_idle_ns: u64,
    /// Time from fork to join in which workers do nothing for the region. Their program's intervals hold it.
    pub workers: WorkerWaits,
    /// What each thread did from fork to join.
    #[serde(default, skip_serializing_if = "TeamColumns::is_empty")]
    pub team_parts: TeamColumns,
}

/// See [`ParallelStat::team_parts`]: per thread, in equal lengths. All columns of nanoseconds of a thread together are the time from fork to
/// join of the executions that it had a part of, where all of these are measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamColumns {
    /// Position in [`Summary::accounts`].
    pub thread: Vec<u32>,
    /// Executions that it had a part of.
    pub count: Vec<u64>,
    /// Those of them whose parts were all recorded: `barrier_ns`, `task_ns` and `shutdown_ns` are of these only.
    pub measured: Vec<u64>,
    /// Fork to the begin of its part.
    pub startup_ns: Vec<u64>,
    /// Its part, whatever is executed in it.
    pub body_ns: Vec<u64>,
    /// End of its part to the end of the team's last work, less `task_ns`.
    pub barrier_ns: Vec<u64>,
    /// What it executed for the region after its part: tasks.
    pub task_ns: Vec<u64>,
    /// End of the team's last work to the join.
    pub shutdown_ns: Vec<u64>,
}

impl TeamColumns {
    /// Whether nothing is known of any thread.
    pub fn is_empty(&self) -> bool {
        self.thread.is_empty()
    }
}

/// See [`ParallelStat::workers`]: per thread, in equal lengths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerWaits {
    /// Position in [`Summary::accounts`].
    pub thread: Vec<u32>,
    /// Nanoseconds.
    pub ns: Vec<u64>,
}
