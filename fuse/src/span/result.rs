//! What the analysis finds, as values. Times are in nanoseconds, sums over the executions that were looked at.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// See [`super`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Intervals that were looked at.
    pub intervals: u64,
    /// Whether these are all of the run.
    pub is_whole: bool,
    /// The event that tells instructions, if the run counted one.
    pub instructions: Option<String>,
    /// The event that tells misses of a cache or branch predictor, if the run counted one.
    pub misses: Option<String>,
    /// Parallel regions of which at least one execution is among them.
    pub regions: Vec<RegionAnalysis>,
}

/// Why a span is only a lower bound.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LowerBound {
    /// Something orders tasks or iterations, and how is not recorded.
    TaskDependences,
    /// Locks determine the order of the code that holds them.
    Locks,
    /// A range of iterations counts as one unit, but its iterations may run at once.
    WholeRanges,
    /// Some units are not on record.
    LeftOut,
    /// Tasks exclude each other (`mutexinoutset`), in any order.
    Exclusions,
    /// Tasks end when an event is fulfilled (`detach`), by whom is not recorded.
    Detached,
}

/// An outermost parallel region. Of one inside another there is only `waiting`, and no execution.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionAnalysis {
    /// Position in the summary's sites.
    pub site: Option<u32>,
    /// Executions that were looked at.
    pub executions: u64,
    /// Their time from fork to join.
    pub wall_ns: u64,
    /// Largest team.
    pub team: u64,
    /// T1.
    pub work_ns: u64,
    /// T∞, where each range of iterations on record is one unit.
    pub span_ns: u64,
    /// T∞, where all iterations of a range take equally long and may run in parallel.
    pub span_equal_ns: u64,
    /// T∞, where tasks that were executed at their creation may run beside their creator.
    pub span_deferred_ns: u64,
    /// Why the span may be longer.
    pub lower_bound: Vec<LowerBound>,
    /// Predicted time from fork to join with each of [`super::TEAMS`] threads; empty: can't be told (nested regions).
    pub predicted_ns: Vec<u64>,
    /// By number of threads, between what and what the predicted time lies.
    pub predicted_between_ns: Vec<[u64; 2]>,
    /// What the span consists of, by place; the longest comes first. Where the span is a lower bound the path is that of the bound.
    pub path: Vec<OnPath>,
    /// The same with the threads that it had: what the prediction's model makes of the execution itself.
    pub modelled_ns: u64,
    /// Whether a prediction assumes that iterations of one range take equally long.
    pub assumes_equal: bool,
    /// Whether predictions lack bounds because it isn't known how many ranges or tasks there would be.
    pub by_number: bool,
    /// The construct that one thread at a time is in for the longest time.
    pub held: Option<Held>,
    /// Waiting at barriers and at the region's end, by what the last thread did meanwhile.
    pub waiting: Vec<Waiting>,
    /// Waiting for tasks, at barriers and elsewhere, by why there was none to execute.
    pub idle: Vec<Idle>,
    /// Waiting for turns in `ordered` blocks, by place.
    pub turns: Vec<Turns>,
    /// Work-sharing loops and sections, by place.
    pub loops: Vec<LoopAnalysis>,
    /// Tasks that depend on others.
    pub dependent: u64,
    /// Tasks that were executed.
    pub task_count: u64,
    /// Time that tasks took, all threads together.
    pub tasks_ns: u64,
    /// Creating tasks, on the thread that spent the most on it in each execution.
    pub creating_ns: u64,
    /// Part of the work that each thread of the team does for itself, one thread's: no number of threads makes it shorter.
    pub each_ns: u64,
}

/// A place's part of the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnPath {
    /// Position in the summary's sites.
    pub site: u32,
    /// Time on the path.
    pub ns: u64,
    /// Stretches of code that it consists of.
    pub units: u64,
}

/// One thread at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Position in the summary's sites.
    pub site: u32,
    /// Time in which a thread was in it.
    pub ns: u64,
}

/// What the last thread did while the others waited for it: what it had more of than the mean of all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitedFor {
    /// Iterations of the loop at this place, or sections.
    Units(u32),
    /// A block that one thread executes.
    Block(u32),
    /// Tasks; the place of most of them.
    Tasks(u32),
    /// Code of the region that every thread executes.
    Code,
    /// A region inside.
    Nested(u32),
    /// It had begun later.
    Late,
    /// It waited to enter the construct at this place.
    Entering(u32),
    /// The runtime library, or the thread was not running.
    Runtime,
}

/// Waiting of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Position of the barrier in the summary's sites; `None`: the region's end.
    pub barrier: Option<u32>,
    /// For what.
    pub waited_for: WaitedFor,
    /// How long, all threads together.
    pub ns: u64,
    /// How often.
    pub times: u64,
    /// The part of `ns` in which the last thread's work was disturbed ([`ompfuse_format::record::Interval::disturbed`]): it may have
    /// been late for that.
    pub disturbed_ns: u64,
    /// Threads came to the barrier behind units of several loops or sections, at least once.
    pub several: bool,
}

/// Why a thread that waits has no task to execute. Places are positions in the summary's sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoTask {
    /// Tasks of this place are ready, and it doesn't take one.
    Untaken(u32),
    /// Tasks are ready, but its runtime lets it execute only those that it waits for. The place of one that is executed.
    NotItsOwn(u32),
    /// Tasks of this place wait for others that they depend on.
    Dependent(u32),
    /// Tasks of this place wait for one that excludes them (`mutexinoutset`).
    Excluded(u32),
    /// Nobody works, and tasks of this place wait for their event (`detach`).
    Event(u32),
    /// A thread executes tasks of this place where it creates them (`if`, `final`).
    AtOnce(u32),
    /// A thread that has yet to create tasks of this place executes those that it has created, in a `taskyield`.
    InYield(u32),
    /// The thread that executes the block at this place has yet to create tasks.
    Block(u32),
    /// A thread is about to create tasks of this place.
    Creating(u32),
    /// One task was created, and is waited for before the next one.
    OneByOne {
        /// The `taskwait` or `taskgroup`.
        wait: u32,
        /// The tasks.
        tasks: u32,
    },
    /// A thread works outside of tasks, on code that every thread executes.
    Code,
    /// Others execute the last tasks; the place of the one that ends last.
    Last(u32),
}

/// Waiting while there was no task to execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// Position of the barrier, `taskwait` or `taskgroup` in the summary's sites; `None`: the region's end.
    pub at: Option<u32>,
    /// Why.
    pub why: NoTask,
    /// How long, all threads together.
    pub ns: u64,
    /// Of [`NoTask::Last`] the part for a task that had waited behind shorter ones.
    pub late_ns: u64,
    /// ... and the part for a task whose execution was disturbed ([`ompfuse_format::record::Interval::disturbed`]).
    pub disturbed_ns: u64,
    /// Of [`NoTask::OneByOne`] the number of such waits.
    pub times: u64,
}

/// Waiting for turns in an `ordered` block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// Position in the summary's sites.
    pub site: u32,
    /// The loop that it is in, if known.
    pub of_loop: Option<u32>,
    /// How long threads waited, all together.
    pub ns: u64,
    /// The part in which a thread was in the block. In the rest those whose turn it was had not come to it.
    pub inside_ns: u64,
}

/// A loop, or sections.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopAnalysis {
    /// Position in the summary's sites.
    pub site: u32,
    /// Sections, not iterations.
    pub is_sections: bool,
    /// Executions by a team.
    pub executions: u64,
    /// Those with fewer units than threads.
    pub with_few_units: u64,
    /// Units: ranges, or sections.
    pub units: u64,
    /// Iterations, all executions together.
    pub iterations: u64,
    /// Time of all units.
    pub units_ns: u64,
    /// Time of the thread with the most, summed up over executions.
    pub slowest_ns: u64,
    /// The longest unit of each execution, all together.
    pub longest: Longest,
    /// When the last thread would end if the longest unit began first and others were fetched in their order, summed up over executions.
    pub longest_first_ns: u64,
    /// The unit that is the longest one for most of that time.
    pub largest: Largest,
    /// Counts of the units: instructions and misses, where they are known of all.
    pub counts: [Option<u64>; 2],
    /// What fetching a range costs, where it is on record.
    pub fetch_ns: Option<u64>,
    /// The sums of the slowest thread's time under other schedules, with the same threads.
    pub candidates: Vec<Candidate>,
}

/// The longest units of several executions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Longest {
    /// Their time.
    pub ns: u64,
    /// Their iterations.
    pub iterations: u64,
    /// Their instructions and misses, where they are known of all.
    pub counts: [Option<u64>; 2],
}

/// A unit of a place in all executions in which it is the longest one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Largest {
    /// First iteration (logical, from 0), or the section's number.
    pub first: i64,
    /// Its iterations, the most of an execution.
    pub iterations: u64,
    /// Its time, the sum of these executions.
    pub ns: u64,
}

/// Another schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The schedule.
    pub schedule: super::replay::Schedule,
    /// Time of the slowest thread.
    pub ns: u64,
    /// Whether that takes iterations of one range to last equally long.
    pub assumes_equal: bool,
}
