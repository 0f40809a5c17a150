//! Why a program doesn't scale: losses with their causes, work and span, predictions.

use super::parts::Sharing;
use super::sampled::SampledFunction;
use ompfuse_fuse::samples::Uneven;
use ompfuse_fuse::span::LowerBound;
use ompfuse_fuse::span::replay::Schedule;
use ompfuse_fuse::summary::ProcessorLimit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time in which threads do no work, with one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// Kind of the loss.
    pub loss: LossKind,
    /// `id` of the parallel region; null outside all regions.
    pub region: Option<u32>,
    /// Lost time in seconds, the sum of all threads.
    pub seconds: f64,
    /// Share of `losses_of_s`, from 0 to 1.
    pub share: f64,
    /// Why the time is lost.
    pub cause: Cause,
    /// What samples tell of the work behind it; absent if the run has none, or the cause is no work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
}

/// What samples tell of the work for which threads wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Behind {
    /// Samples of it.
    pub samples: u64,
    /// Where more than half of it is, beside the place that the cause itself names; absent if nothing has so much, or it can't be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_in: Option<MostIn>,
    /// Of code outside of parallel regions without `most_in`: the functions with most samples, at most 3 with at least 10 each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<SampledFunction>,
    /// Of code outside of parallel regions: samples of what Python did to import modules, at least so many. Absent if there were hardly any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importing: Option<u64>,
    /// Of units that take differently long: the slow ones against the fast ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uneven: Option<Uneven>,
}

/// A line, or else a function, with more than half of some work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MostIn {
    /// The function; null if it is the construct's own, or not known.
    pub function: Option<String>,
    /// Of a function without a line the file with its machine code, where that isn't the program's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Source file of the line; null if no line has so much.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// Samples there.
    pub samples: u64,
}

/// The kind of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// One thread works outside of parallel regions.
    Serial,
    /// Threads wait at a barrier or a region's end.
    Waiting,
    /// Threads wait for tasks in `taskwait` or `taskgroup`.
    TaskWait,
    /// Threads wait to enter a construct that admits one thread at a time.
    Exclusion,
    /// Threads' parts of regions are started and ended.
    Forking,
    /// Tasks are created.
    Creation,
    /// Ranges of iterations are fetched.
    Fetching,
    /// A process waits in MPI. Outside parallel regions its whole team waits.
    Communication,
    /// Threads have no processor.
    Starvation,
    /// Threads are left out by a team that is smaller than others.
    SmallerTeam,
    /// Recorded calls of other libraries wait for threads or devices.
    Call,
    /// Threads are in the OpenMP runtime for something else.
    Runtime,
}

/// Why time is lost. `at` is the `id` of a region of this report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// A part of the program is serial.
    SerialPart {
        /// Its wall-clock time in seconds; null if several threads of the program's own may be there at once.
        wall_s: Option<f64>,
        /// Its share of the run on one thread. The program can be at most `1 / of_work` times as fast with any number of
        /// threads. Null if the work is not known.
        of_work: Option<f64>,
        /// `id` of the recorded function with the most of it, and its own time in seconds; null if no function is known to take much of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<(u32, f64)>,
    },
    /// Calls of MPI take the time.
    Communication {
        /// The calls.
        at: u32,
        /// Number of calls.
        calls: u64,
        /// Mean time of a call, in seconds.
        call_s: f64,
        /// The rank with the most work, if it has much more than the mean; null else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        busiest: Option<BusiestRank>,
    },
    /// Receives begin before their message is sent, and wait for the sender. Time behind that is of `communication`.
    LateSender {
        /// The calls that receive.
        at: u32,
        /// Number of receives whose message was found.
        receives: u64,
        /// Number of those that began first.
        late: u64,
        /// Mean time from their begin until the message was sent, in seconds.
        late_s: f64,
        /// As in `communication`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        busiest: Option<BusiestRank>,
    },
    /// Some units take much longer than the others.
    UnevenUnits {
        /// The loop or sections.
        at: u32,
        /// True for sections, false for a loop.
        is_sections: bool,
        /// First iteration of the longest unit, counted from 0; or the number of the section. Null if executions differ in it.
        first: Option<i64>,
        /// Number of iterations of the longest unit.
        iterations: u64,
        /// Time of the longest unit of an execution, in seconds: the mean of all executions.
        unit_s: f64,
        /// That time for one iteration or section, divided by the mean of the others.
        times_mean: f64,
        /// The same ratio of instructions; null if not counted.
        instructions_times_mean: Option<f64>,
        /// The same ratio of the misses `misses_event`; null if not counted.
        misses_times_mean: Option<f64>,
        /// Event of `misses_times_mean`; null if not counted.
        misses_event: Option<String>,
        /// A better schedule, found by replaying the recorded units; null if none is better.
        better: Option<Better>,
        /// The loop's time if the longest unit began first, divided by its present time. Null if that doesn't make it shorter, or where
        /// a unit begins doesn't depend on the others.
        if_first: Option<f64>,
    },
    /// Iterations differ in time, and the schedule gives some threads more of the work.
    UnevenDistribution {
        /// The loop or sections.
        at: u32,
        /// Its schedule; null if not known.
        schedule: Option<String>,
        /// The slowest thread's work, divided by the mean of the threads. Null if the compiler made one loop of this one and the next.
        slowest_times_mean: Option<f64>,
        /// A better schedule, found by replaying the recorded units; null if none is better, or if threads had units of other loops
        /// before they waited.
        better: Option<Better>,
    },
    /// There are fewer units than threads.
    FewUnits {
        /// The loop or sections.
        at: u32,
        /// True for sections, false for a loop.
        is_sections: bool,
        /// Mean number of units in an execution.
        units: f64,
        /// Mean number of iterations in an execution.
        iterations: f64,
        /// Threads of the team.
        threads: u64,
    },
    /// One thread executes a block while the others wait.
    OneThread {
        /// The block.
        at: u32,
    },
    /// Tasks are too few, too large or too dependent for the threads.
    FewTasks {
        /// The tasks.
        at: u32,
        /// Work divided by span: the number of threads that could be busy.
        parallelism: f64,
        /// Mean own time of these tasks, in seconds; null if not known.
        mean_s: Option<f64>,
        /// Own time of the longest task, in seconds; null if not known.
        longest_s: Option<f64>,
        /// Whether the last tasks had waited behind shorter ones, so that they could begin earlier.
        began_late: bool,
        /// Mean number of iterations in a task; null if no `taskloop` creates them.
        iterations: Option<f64>,
    },
    /// One thread creates the tasks more slowly than the others execute them.
    SlowCreation {
        /// The tasks.
        at: u32,
        /// Share of the region's time in which one thread creates tasks, from 0 to 1.
        share: f64,
    },
    /// There are enough tasks, but they are unevenly distributed.
    UnevenTasks {
        /// The tasks.
        at: u32,
        /// Work divided by span.
        parallelism: f64,
        /// Mean own time of these tasks, in seconds; null if not known.
        mean_s: Option<f64>,
        /// Own time of the longest task, in seconds; null if not known.
        longest_s: Option<f64>,
        /// Whether the last tasks had waited behind shorter ones, so that they could begin earlier.
        began_late: bool,
        /// Mean number of iterations in a task; null if no `taskloop` creates them.
        iterations: Option<f64>,
    },
    /// Tasks are ready, but threads sleep or find them too late.
    UntakenTasks {
        /// The tasks.
        at: u32,
        /// Mean own time of these tasks, in seconds; null if not known.
        mean_s: Option<f64>,
    },
    /// Code that every thread executes takes longer on some.
    UnevenCode,
    /// A thread began later than the others.
    Late,
    /// Threads wait for a nested region.
    Nested {
        /// The nested region.
        at: u32,
    },
    /// One thread at a time is in a construct while others wait for it.
    Held {
        /// The construct.
        at: u32,
        /// Time in which a thread was in it, in seconds; null if not known.
        held_s: Option<f64>,
        /// Share of that time in the parallel region's wall-clock time, from 0 to 1; null if not known.
        of_wall: Option<f64>,
        /// Number of entries.
        entries: u64,
        /// The construct where threads wait most, if another one enters the same mutex and they wait there; null else.
        waits_at: Option<u32>,
        /// Whether it is known that threads wait for this place. Else others may hold what they wait for.
        is_holder: bool,
    },
    /// Iterations wait for their turn, in the order of the loop.
    InOrder {
        /// The construct.
        at: u32,
        /// Number of entries.
        entries: u64,
        /// Share of the waits in which a thread was in the construct, from 0 to 1: else iterations before them had not come to it. Null
        /// if not known.
        in_block: Option<f64>,
        /// The slow iterations that hold the others up, if there are such; null else.
        slow: Option<Box<Cause>>,
    },
    /// Threads wait to join their parts of a reduction, one after the other.
    Reduction {
        /// The loop or other construct with the reduction.
        at: u32,
        /// Number of joins.
        joins: u64,
        /// Time in which a thread joined, in seconds; null if not known.
        held_s: Option<f64>,
    },
    /// Barriers are so many that synchronizing takes long.
    ManyBarriers {
        /// The barrier; null if it is known by its region only.
        at: Option<u32>,
        /// Number of barriers that a team came to.
        count: u64,
        /// Mean wait of a thread at one, in seconds.
        wait_s: f64,
    },
    /// Tasks depend on each other, so that few can run at once.
    Dependences {
        /// The tasks.
        at: u32,
        /// Number of tasks.
        count: u64,
        /// Work divided by span; null if it is not recorded how tasks depend on each other.
        parallelism: Option<f64>,
        /// Whether they exclude each other (`mutexinoutset`), and so run one at a time, in any order.
        excludes: bool,
    },
    /// Each task is waited for before the next one is created.
    OneByOne {
        /// The construct that waits.
        at: u32,
        /// The tasks.
        tasks: u32,
        /// Number of waits.
        count: u64,
    },
    /// Threads wait for tasks to end. Others are ready, which the runtime doesn't let a thread execute that waits for its own.
    WaitsForTasks {
        /// The tasks.
        at: u32,
        /// Mean time of such a task, in seconds.
        task_s: f64,
    },
    /// Creating a task takes long for the work in it.
    CostlyTasks {
        /// The tasks.
        at: u32,
        /// Mean time to create a task, in seconds.
        create_s: f64,
        /// Mean time of a task, in seconds.
        task_s: f64,
        /// Number of tasks.
        count: u64,
    },
    /// Fetching a range takes long for the work in it.
    CostlyRanges {
        /// The loop.
        at: u32,
        /// Mean time to fetch a range, in seconds.
        fetch_s: f64,
        /// Mean time of a range, in seconds.
        range_s: f64,
        /// Mean number of iterations in a range; null if not known.
        iterations: Option<f64>,
        /// Mean number of ranges that a thread gets in an execution of the loop; null if not known.
        ranges: Option<f64>,
        /// Whether iterations of a loop in that parallel region wait for those before them.
        is_ordered: bool,
    },
    /// Regions are short, so starting and ending them takes a large part.
    ShortRegions {
        /// Number of executions.
        executions: u64,
        /// Mean wall-clock time of an execution, in seconds.
        wall_s: f64,
        /// Mean cost of an execution on a thread, in seconds.
        cost_s: f64,
    },
    /// There are fewer processors than threads, or other programs use them.
    NoProcessor {
        /// Number of threads.
        threads: u64,
        /// Number of processors that the program could use; null if not known.
        processors: Option<f64>,
        /// Why there weren't more; null if they are all that the machine has, or it is not known.
        limit: Option<ProcessorLimit>,
        /// Who had them; null if not known.
        sharing: Option<Sharing>,
        /// The most of their time that other programs used, from 0 to 1; null if not known.
        taken: Option<f64>,
    },
    /// The region's team has fewer threads than the program has at other times.
    SmallerTeam {
        /// Mean number of its threads.
        team: f64,
        /// The most threads at once.
        threads: u64,
        /// Whether they are threads of nested regions, which have nothing to do beside the region's own code.
        beside_nested: bool,
    },
    /// Calls of another library wait for other threads or for devices.
    Call {
        /// The calls.
        at: u32,
        /// Number of calls.
        calls: u64,
        /// Mean time of a call, in seconds.
        call_s: f64,
    },
    /// A job's ranks lose time in one way. Told is the cause on the rank that loses the most so.
    AtRank {
        /// Number of the rank.
        rank: u32,
        /// The cause there.
        cause: Box<Cause>,
    },
    /// The records don't show the cause.
    Unknown,
    /// The thread that creates tasks executes them itself (`if` or `final` clause, `taskyield`), so others find none.
    AtOnce {
        /// The tasks.
        at: u32,
        /// Work divided by span, as the tasks are executed now; null if not known.
        parallelism: Option<f64>,
        /// Whether it executes them in a `taskyield`, not at their creation.
        in_yield: bool,
    },
    /// Nobody works until the events of detached tasks are fulfilled.
    AwaitsEvent {
        /// The tasks with `detach`.
        at: u32,
        /// Number of tasks.
        count: u64,
    },
}

/// A rank that works more than others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusiestRank {
    /// Number of the rank.
    pub rank: u32,
    /// Its work, divided by the mean of all ranks.
    pub times_mean: f64,
}

/// A schedule that is better than the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Better {
    /// The schedule.
    pub schedule: Schedule,
    /// The loop's time with it, divided by its present time.
    pub of_now: f64,
    /// True if this assumes that the iterations of a recorded range take equal time.
    pub assumes_equal: bool,
    /// True if `OMP_SCHEDULE` says the loop's schedule: the source says `schedule(runtime)`, and the ranges are those of the variable.
    pub by_variable: bool,
}

/// Why nothing is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Silent {
    /// Tasks or iterations depend on each other, and in what order is not recorded.
    TaskDependences,
    /// Tasks exclude each other (`mutexinoutset`), in any order.
    Exclusions,
    /// Tasks end when an event is fulfilled, by whom is not recorded.
    Detached,
    /// Some units are not on record.
    LeftOut,
    /// Code that every thread executes may divide its work by the thread's number.
    EachThread,
    /// Ranges of a loop would be divided, and where in a range its time was spent is not on record.
    Uneven,
    /// How many ranges a loop has, or how many tasks a taskloop, depends on the number of threads, and in what way is not on record.
    ByThreads,
    /// The region has regions inside it, or threads that come to different barriers, or an execution that is too large to be played.
    Shape,
    /// Tasks, ranges or whole loops are so short that handing them out and waiting for all threads counts; how long that takes depends on
    /// the threads.
    SmallUnits,
    /// The program's memory doesn't fit the processor's cache, or that isn't known: threads may share memory's bandwidth.
    Memory,
    /// Threads had no processor for a part of the time.
    NoProcessor,
    /// Several threads execute code outside of parallel regions: how much of that is at once is not on record.
    OwnThreads,
    /// The model is off by too much for the threads of the run.
    Model,
}

/// Work, span, and predictions for other numbers of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scaling {
    /// Share of the time in parallel regions whose records were analysed, from 0 to 1.
    pub seen: f64,
    /// Number of threads of the run: the largest team.
    pub threads: u64,
    /// Work T1: time of the program's code in parallel regions and outside, in seconds.
    pub work_s: f64,
    /// Span T∞: the longest chain of code that must run in order, in seconds. Each recorded range of iterations is one unit.
    pub span_s: f64,
    /// `work_s / span_s`.
    pub parallelism: f64,
    /// Why nothing is predicted for the program: the reason of the region with the most time that has one; null if something is.
    pub silent: Option<Silent>,
    /// Why nothing is predicted for more threads than the run had; null if something is, or if nothing is predicted at all.
    pub silent_above: Option<Silent>,
    /// Predicted times of the run, without the time before recording began; empty if nothing can be predicted.
    pub predicted: Vec<Predicted>,
    /// Predicted time for the threads of the run, divided by the measured time: 1 is exact. Null if `predicted` is empty.
    pub model_error: Option<f64>,
    /// True if the prediction assumes that the iterations of a recorded range take equal time.
    pub assumes_equal: bool,
    /// Parallel regions; the one with the most time comes first.
    pub regions: Vec<RegionScaling>,
}

/// A predicted run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// Number of threads.
    pub threads: u32,
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// Between what and what it lies, in seconds.
    pub between_s: [f64; 2],
    /// Speed-up over one thread.
    pub speedup: f64,
    /// `id` of the parallel region that loses most; null for the serial part.
    pub limited_by: Option<u32>,
    /// Its share of the lost time, from 0 to 1.
    pub limited_share: f64,
}

/// Work and span of a parallel region, for the analysed executions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionScaling {
    /// `id` of the region.
    pub region: u32,
    /// Number of analysed executions.
    pub executions: u64,
    /// Number of all executions.
    pub of_executions: u64,
    /// Wall-clock time of the analysed executions, in seconds.
    pub wall_s: f64,
    /// Work T1, in seconds.
    pub work_s: f64,
    /// Span T∞ in seconds, with each recorded range of iterations as one unit.
    pub span_s: f64,
    /// Span T∞ in seconds if all iterations of a range take equal time and may run at once.
    pub span_equal_s: f64,
    /// `work_s / span_s`; null if the span is 0.
    pub parallelism: Option<f64>,
    /// Why the true span may be longer; empty if it is exact.
    pub lower_bound_because: Vec<LowerBound>,
    /// What the span consists of, by place; the longest comes first.
    pub path: Vec<OnPath>,
    /// Why nothing is predicted; null if something is.
    pub silent: Option<Silent>,
    /// Predicted wall-clock times of these executions; empty if nothing can be predicted.
    pub predicted: Vec<PredictedRegion>,
}

/// A region's predicted time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedRegion {
    /// Number of threads.
    pub threads: u32,
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// Between what and what it lies, in seconds.
    pub between_s: [f64; 2],
}

/// A place's part of the critical path of a region: the longest chain of code that must run in order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnPath {
    /// `id` of the place.
    pub at: u32,
    /// Time on the path, in seconds.
    pub seconds: f64,
    /// `seconds` as a share of the path, from 0 to 1.
    pub share: f64,
    /// Stretches of code that it consists of.
    pub units: u64,
}
