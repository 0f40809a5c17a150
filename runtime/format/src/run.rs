//! The JSON files of a run folder, and the environment that starts a recording.
//!
//! ```text
//! run-0001/
//!   run.json               RunHeader, written by the command that starts the program (begun.json until the program's end)
//!   process-<pid>.json     ProcessHeader, by the runtime library when recording begins in a process
//!   module-<pid>-<n>.json  ModuleStatus of a module that was loaded later
//!   events-<pid>-<n>.json  EventSet that was added while the process ran
//!   costs-<pid>.json       ProcessCosts, by the runtime library when it has measured them
//!   rank-<n>.json          RankEnd and more, by the command that is a rank of a job, until the leading one has written run.json
//!   held-times             when that changed, for the command that starts the program
//!   held                   as long as it is there, processes start without recording (see `control`)
//!   <pid>.ctl              what can be changed while the process runs (see `control`)
//!   process-<pid>.end.json ProcessEnd, by the runtime library at an orderly exit
//!   <pid>-<index>.rec      a thread's records (see `record`)
//!   <pid>.samples          samples of the program, by the command that starts it (see `samples`)
//! ```

use crate::samples::Sampling;
use crate::site::{BinaryInfo, SiteInfo};
use serde::{Deserialize, Serialize};

/// Environment variable: absolute path of the run folder. Without it nothing is recorded.
pub const ENV_DIR: &str = "OMPFUSE_DIR";
/// Environment variable: names of the events to count, separated by commas (see [`event`](crate::event)); several event sets are
/// separated by semicolons. In a set, [`TAKES_TURNS`] separates groups that take turns on the processor's counters.
pub const ENV_EVENTS: &str = "OMPFUSE_EVENTS";
/// Separates groups of events in a set: the kernel has them take turns on the processor's counters (hardware multiplexing).
pub const TAKES_TURNS: char = '|';
/// Environment variable: names of the events that are counted per outermost parallel region and thread, separated by commas.
pub const ENV_REGION_EVENTS: &str = "OMPFUSE_REGION_EVENTS";
/// Environment variable, `1`: nobody has named the events of [`ENV_EVENTS`]. Those that need a system call at each reading are
/// counted as those of [`ENV_REGION_EVENTS`] are.
pub const ENV_CHEAP: &str = "OMPFUSE_CHEAP";
/// Environment variable: after how many instances of a region the next event set comes.
pub const ENV_ROTATE: &str = "OMPFUSE_ROTATE";
/// Environment variable: one in so many tasks, ranges and waits is recorded.
pub const ENV_SAMPLE: &str = "OMPFUSE_SAMPLE";
/// Environment variable: percentage of a region's time that its probes may cost before fewer of its instances are recorded.
pub const ENV_THROTTLE: &str = "OMPFUSE_THROTTLE";
/// Environment variable: tasks, ranges and waits whose own time is shorter than so many nanoseconds are only counted.
pub const ENV_MIN_DURATION: &str = "OMPFUSE_MIN_DURATION";
/// Environment variable: most return addresses of a region's calling context; 0: none are recorded. Without it
/// [`DEFAULT_DEPTH`](crate::record::context::DEFAULT_DEPTH).
pub const ENV_CONTEXT_DEPTH: &str = "OMPFUSE_CONTEXT_DEPTH";
/// Environment variable, `1`: threads keep sums and record nothing one by one ([`record::sums`](crate::record::sums)); `2`: they
/// keep sums beside their records.
pub const ENV_SUMS: &str = "OMPFUSE_SUMS";
/// Environment variable: file that is read again when SIGUSR1 comes.
pub const ENV_CONTROL: &str = "OMPFUSE_CONTROL";

/// Environment variable: folder with what the auditing library needs, and what it has decided.
pub const ENV_LIBRARIES: &str = "OMPFUSE_LIBRARIES";
/// Nothing: it makes all variables together as long in each run.
pub const ENV_PADDING: &str = "OMPFUSE_PADDING";

/// File in that folder: functions of other libraries whose calls are recorded, by symbol, a line each, in ascending order.
pub const INTEREST_CALLS: &str = "calls";
/// File in that folder: how those functions' names begin ([`beginning`]), a line each. Most files import none that begins so.
pub const INTEREST_BEGINNINGS: &str = "beginnings";
/// File in that folder: names of libraries whose functions are recorded, a glob a line.
pub const INTEREST_LIBRARIES: &str = "libraries";

/// Environment variables by which launchers of MPI programs (PMIx, Open MPI, MPICH, MVAPICH, Slurm) tell a process its
/// rank; the first that holds a number counts.
pub const RANK_VARIABLES: &[&str] = &[
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
];

/// Environment variables by which they tell a process how many ranks there are.
pub const SIZE_VARIABLES: &[&str] = &[
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "SLURM_STEP_NUM_TASKS",
];

/// File name of the auditing library.
pub const AUDIT_LIBRARY: &str = "libompfuse_audit.so";

/// Name of the file of a rank whose program another command has started.
pub fn rank_file(rank: u32) -> String {
    format!("rank-{rank}.json")
}

/// The first characters of a function's name.
pub fn beginning(name: &str) -> &str {
    name.get(..4).unwrap_or(name)
}

/// Names a file in the folder of [`ENV_LIBRARIES`]: another file, or another version of it, has another name.
pub fn library_key(dev: u64, ino: u64, size: u64, mtime: i64, mtime_ns: i64) -> String {
    format!("{dev:x}-{ino:x}-{size:x}-{mtime:x}.{mtime_ns:x}")
}

/// Name of the run header in its folder.
pub const RUN_FILE: &str = "run.json";

/// Name of the run header from the program's start until [`RUN_FILE`] is written: who finds it alone reads a run that goes on,
/// or whose command was killed. Its duration is 0, its modules are those that were known then.
pub const BEGUN_FILE: &str = "begun.json";

/// Name of the file that describes a module which a process loaded after its recording began. `key`: the process, as in
/// the name of its header.
pub fn module_file(key: &str, module: u32) -> String {
    format!("module-{key}-{module}.json")
}

/// The process (`key`) that a file of a late module belongs to; `None` for other files.
pub fn module_file_process(name: &str) -> Option<&str> {
    let (key, module) = name
        .strip_prefix("module-")?
        .strip_suffix(".json")?
        .split_once('-')?;
    module.bytes().all(|b| b.is_ascii_digit()).then_some(key)
}

/// Name of the file that describes an event set which a process has besides its first. `key`: the process, as in the name
/// of its header.
pub fn events_file(key: &str, set: u32) -> String {
    format!("events-{key}-{set}.json")
}

/// The process (`key`) that a file of a further event set belongs to; `None` for other files.
pub fn events_file_process(name: &str) -> Option<&str> {
    let (key, set) = name
        .strip_prefix("events-")?
        .strip_suffix(".json")?
        .split_once('-')?;
    set.bytes().all(|b| b.is_ascii_digit()).then_some(key)
}

/// Name of the file that tells what recording costs a process. `key`: the process, as in the name of its header.
pub fn costs_file(key: &str) -> String {
    format!("costs-{key}.json")
}

/// The process (`key`) that a file of costs belongs to; `None` for other files.
pub fn costs_file_process(name: &str) -> Option<&str> {
    name.strip_prefix("costs-")?.strip_suffix(".json")
}

/// A time on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPair {
    /// Time stamp counter.
    pub tsc: u64,
    /// CLOCK_MONOTONIC in nanoseconds.
    pub ns: u64,
}

/// One event of an event set, as a process could open it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventStatus {
    /// perf's name.
    pub name: String,
    /// Position of its count in the intervals; `None` if it is not counted.
    pub column: Option<u32>,
    /// Why it is not counted, with the remedy.
    pub reason: Option<String>,
    /// It had the processor's counters only part of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedCounter>,
}

/// Of an event that takes turns with others on the processor's counters: where the intervals tell for how long it was counted.
/// Its count has to be multiplied by the quotient of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedCounter {
    /// Position of the time in which it was counted, in nanoseconds (perf_event_open(2): `time_running`).
    pub running: u32,
    /// Position of the time in which it was to be counted, in nanoseconds (`time_enabled`).
    pub enabled: u32,
}

/// An event set that a process has besides its first, which is number 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventSet {
    /// Number in the intervals.
    pub set: u32,
    /// The wanted events, and what became of them.
    pub events: Vec<EventStatus>,
}

/// A patched module in a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleStatus {
    /// Number in the records' `site`.
    pub module: u32,
    /// Path of the patched file, as the system has it.
    pub path: String,
    /// Difference between run-time and link-time addresses.
    pub bias: u64,
}

/// Written when recording begins in a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessHeader {
    /// Version of ompfuse.
    pub version: String,
    /// Process.
    pub pid: u32,
    /// Its MPI rank, if it has one (see [`RANK_VARIABLES`]).
    pub mpi_rank: Option<u32>,
    /// How many ranks there are, if it has one (see [`SIZE_VARIABLES`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi_size: Option<u32>,
    /// When recording began.
    pub begin: ClockPair,
    /// The wanted events, and what became of them.
    pub events: Vec<EventStatus>,
    /// The patched modules that were there.
    pub modules: Vec<ModuleStatus>,
    /// What is shorter than so many nanoseconds is not on record (see [`ENV_MIN_DURATION`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_duration_ns: Option<u64>,
    /// Further event sets; the files of those that came later say so themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<EventSet>,
    /// The events that are counted per outermost parallel region and thread, and never per execution unit: their columns are
    /// positions in [`PartSum::counts`](crate::record::PartSum).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub region_events: Vec<EventStatus>,
    /// Processors that its first thread may run on (sched_getaffinity(2)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// Time stamp counter when the runtime library began to prepare the recording.
    pub started: u64,
}

/// What boundaries cost: each reads the clock and the counters once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundaryCost {
    /// So many boundaries ...
    pub boundaries: u64,
    /// ... took so many ticks.
    pub ticks: u64,
}

/// What an interval's probes take, from before its begin until behind its end, its record included: empty tasks have been executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalCost {
    /// So many intervals ...
    pub intervals: u64,
    /// ... took so many ticks.
    pub ticks: u64,
    /// Reading only the clock took so many ticks, as often as there are intervals.
    pub clock_ticks: u64,
}

/// What probes add to the counts of an event: an empty task has been executed, and counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeCount {
    /// The event.
    pub event: String,
    /// Counted in the task itself.
    pub inside: u64,
    /// Counted in what executed the task.
    pub around: u64,
}

/// What recording costs, as the main thread has measured it when recording began. Written at once: however the process ends,
/// it is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCosts {
    /// What a boundary costs; `None`: nobody has measured it.
    pub boundary: Option<BoundaryCost>,
    /// What the two readings of a thread's part of a region cost (see [`PartSum`](crate::record::PartSum)); counted as boundaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<BoundaryCost>,
    /// What an interval costs; `None`: nobody has measured it.
    pub interval: Option<IntervalCost>,
    /// What the probes of an execution unit add to the counts of the first event set.
    pub probes: Vec<ProbeCount>,
    /// When that had been measured: with [`ProcessHeader::begin`] it tells the clock's rate where there is no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockPair>,
}

/// Written at an orderly exit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEnd {
    /// When recording ended.
    pub end: ClockPair,
    /// Threads that recorded.
    pub threads: u32,
    /// Records that could not be written, all threads together.
    pub lost: u64,
    /// Threads that could not be recorded at all.
    pub threads_lost: u64,
    /// Why recording stopped early, if it did.
    pub stopped: Option<String>,
    /// How often the process's threads have been switched away from a processor since recording began.
    pub switches: Option<u64>,
    /// Processor time of the process, in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Most memory that it had in use at once, in bytes (`VmHWM` in proc_pid_status(5)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// Time stamp counter when the recording had been prepared. Where a first thread records from then on, its
    /// [`tsc_start`](crate::record::ThreadHeader::tsc_start) says the same of a process that was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepared: Option<u64>,
    /// Time stamp counter when the program began to exit, as soon as the runtime library was told. From then until `end` records were
    /// completed, and the program's own destructors were called ([`ProcessEnd::handlers`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exiting: Option<u64>,
    /// Time stamp counter when records were complete then, and when this library's destructor was called. In between the program's
    /// other exit handlers and its destructors were called, by a thread without a record of it. `None`: it was recorded, or isn't known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handlers: Option<[u64; 2]>,
    /// Processors that its threads may run on, all of them together, if every thread that recorded was still there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<u32>,
    /// Whether a call of gcc's that forks a team has said how many threads it wants (`num_threads` with two or more).
    pub sized_teams: bool,
}

/// A patched module of a run, with the sites that its records refer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunModule {
    /// Path of the patched file, as in [`ModuleStatus::path`].
    pub patched: String,
    /// The original.
    pub binary: BinaryInfo,
    /// Its sites, by index.
    pub sites: Vec<SiteInfo>,
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// It returned this status.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// Nobody has seen it end: the command that started it was killed, or it goes on.
    Unknown,
}

/// What has become of a rank that was recorded by a command of its own (`mpirun -n 2 ompfuse profile -- ./program`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RankState {
    /// Nobody has waited for its end.
    GoesOn,
    /// Its program ended so.
    Ended(Exit),
    /// Its command was killed.
    Killed,
    /// No command has come for it.
    Missing,
}

/// A rank that was recorded by a command of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankEnd {
    /// Its number.
    pub rank: u32,
    /// Its host, if it came.
    pub host: Option<String>,
    /// What has become of it.
    pub state: RankState,
    /// Wall-clock time of its program in seconds, if it ended.
    pub duration_s: Option<f64>,
}

/// The header of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Version of ompfuse.
    pub version: String,
    /// The program as the user named it.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Host name.
    pub host: String,
    /// Logical processors.
    pub cpus: u32,
    /// Kernel release.
    pub kernel: String,
    /// Model of the processor, as `/proc/cpuinfo` has it; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Size of the processor's largest cache, in bytes; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
    /// `OMP_*`, `KMP_*` and `GOMP_*` variables of the environment.
    pub environment: Vec<(String, String)>,
    /// The event set.
    pub events: Vec<String>,
    /// Events that are counted per outermost parallel region and thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub region_events: Vec<String>,
    /// Processors that the program could use at once: those that the command may run on, or fewer where its control group has a
    /// quota (then not always a whole number).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<f64>,
    /// The quota of its control group, in processors, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<f64>,
    /// Processor time that the hypervisor took from the whole machine during the run, in seconds (`steal` in proc_stat(5)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stolen_s: Option<f64>,
    /// Processor time that other programs used meanwhile on the processors that the command may run on, in seconds. `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_s: Option<f64>,
    /// How long the control groups with a quota around it were stopped because they had used it up, in seconds (`cpu.stat`).
    /// `None`: not known, or there is no quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_s: Option<f64>,
    /// How long a short computation took that is always the same, before the run and behind it, in seconds. `None`: not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace_s: Option<[f64; 2]>,
    /// Begin, seconds since 1970.
    pub started: f64,
    /// Wall-clock time of the process in seconds.
    pub duration_s: f64,
    /// How it ended.
    pub exit: Exit,
    /// What the processor's counters of the event set add to the processor time of a switch from one thread to another and
    /// back, in nanoseconds; measured before the run. `None`: not measured, or no such counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_cost_ns: Option<u64>,
    /// Where not all of the run was recorded by wish (`record --delay` and the like): from when to when, in seconds from its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Vec<[f64; 2]>>,
    /// The ranks of a job whose launcher has started a command for each; the run's end is that of the first rank that failed, its
    /// duration the longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankEnd>,
    /// Bytes of records at which recording was ended, while the program went on. `None`: it wasn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at_bytes: Option<u64>,
    /// Its addresses were not random, and the variables of the recording as long as in other runs.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub fixed_addresses: bool,
    /// What became of its sampling. `None`: nobody wanted samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// There are samples, and no records: of these processes, which ran already; empty: of a program that was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<Vec<u32>>,
    /// These are another user's, or see other files (a container): what their files name, such as sources, is not to be opened.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_foreign: bool,
    /// The patched modules.
    pub modules: Vec<RunModule>,
    /// Files with something to record that processes have loaded, and that could not be patched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpatched: Vec<Unpatched>,
}

/// A file that was to be recorded, and isn't.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unpatched {
    /// Its path.
    pub file: String,
    /// Why, in a line that names it.
    pub told: String,
}
