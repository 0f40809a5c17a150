//! Why a program doesn't scale: losses with their causes, work and span, predictions.

use ompfuse_fuse::span::LowerBound;
use ompfuse_fuse::span::replay::Schedule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time in which threads do no work, of one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// What is lost.
    pub loss: LossKind,
    /// `id` of the parallel region; null outside of all.
    pub region: Option<u32>,
    /// Seconds, all threads together.
    pub seconds: f64,
    /// The same as a share of `losses_of_s`, from 0 to 1.
    pub share: f64,
    /// Why.
    pub cause: Cause,
    /// The share of the region's work for which its threads had no processor, from 0 to 1, where that is much: then the loss holds
    /// waiting for a processor.
    pub starved: Option<f64>,
}

/// What is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// One thread works outside of parallel regions.
    Serial,
    /// Threads wait at a barrier or a region's end.
    Waiting,
    /// Threads wait for tasks in `taskwait` or `taskgroup`.
    TaskWait,
    /// Threads wait to enter what one thread at a time executes.
    Exclusion,
    /// Parts of regions are started and ended.
    Forking,
    /// Tasks are created.
    Creation,
    /// Ranges of iterations are fetched.
    Fetching,
    /// A process waits in MPI; outside of parallel regions for its whole team.
    Communication,
    /// Threads have no processor.
    Starvation,
}

/// Why time is lost. `at` is the `id` of a region of this report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// A part of the program is serial.
    SerialPart {
        /// Its time on the clock.
        wall_s: f64,
        /// Its share of the run on one thread: with any number of threads the program is at most `1 / share` times as fast. Null if the
        /// work isn't known.
        of_work: Option<f64>,
    },
    /// Calls of MPI.
    Communication {
        /// The calls.
        at: u32,
        /// How many.
        calls: u64,
        /// Mean time of a call.
        call_s: f64,
    },
    /// Some units take much longer than the others.
    UnevenUnits {
        /// The loop, or sections.
        at: u32,
        /// They are sections.
        is_sections: bool,
        /// First iteration of the longest unit (logical, from 0), or its section's number.
        first: i64,
        /// Iterations of the longest unit.
        iterations: u64,
        /// Its time.
        unit_s: f64,
        /// Its time for an iteration or section, in those of the others' mean.
        times_mean: f64,
        /// Its instructions likewise, where they were counted.
        instructions_times_mean: Option<f64>,
        /// Its misses likewise (`misses_event`).
        misses_times_mean: Option<f64>,
        /// The event that `misses_times_mean` is of.
        misses_event: Option<String>,
    },
    /// Iterations differ, and the schedule gives some threads more of the work.
    UnevenDistribution {
        /// The loop, or sections.
        at: u32,
        /// Its schedule, as far as it is known.
        schedule: Option<String>,
        /// The slowest thread's work, in those of the threads' mean.
        slowest_times_mean: f64,
        /// A better schedule, from replaying the units on record; null if none of those tried is.
        better: Option<Better>,
    },
    /// There are fewer units than threads.
    FewUnits {
        /// The loop, or sections.
        at: u32,
        /// They are sections.
        is_sections: bool,
        /// Units of an execution, mean.
        units: f64,
        /// Iterations of an execution, mean.
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
        /// Work divided by span: the threads that could be busy.
        parallelism: f64,
        /// Mean own time of these tasks; null if not known.
        mean_s: Option<f64>,
        /// Own time of the longest; null likewise.
        longest_s: Option<f64>,
    },
    /// One thread creates the tasks, more slowly than the others execute them.
    SlowCreation {
        /// The tasks.
        at: u32,
        /// Share of the region's time in which that thread creates, from 0 to 1.
        share: f64,
    },
    /// Tasks are distributed unevenly though there are enough of them.
    UnevenTasks {
        /// The tasks.
        at: u32,
        /// Work divided by span.
        parallelism: f64,
        /// Mean own time of these tasks; null if not known.
        mean_s: Option<f64>,
        /// Own time of the longest; null likewise.
        longest_s: Option<f64>,
    },
    /// Threads wait though there are tasks enough, none of them long: they sleep, or find the tasks too late.
    UntakenTasks {
        /// The tasks.
        at: u32,
        /// Work divided by span.
        parallelism: f64,
    },
    /// Code that every thread executes takes longer on some.
    UnevenCode,
    /// A thread began later than the others.
    Late,
    /// Threads inside wait for a nested region.
    Nested {
        /// The nested region.
        at: u32,
    },
    /// One thread at a time is in a construct, and the others wait for it.
    Held {
        /// The construct.
        at: u32,
        /// Seconds in which a thread was in it; null if that isn't known.
        held_s: Option<f64>,
        /// The same as a share of the time on the clock of the parallel region, from 0 to 1.
        of_wall: Option<f64>,
        /// How often it was entered.
        entries: u64,
    },
    /// Threads wait for tasks to end.
    WaitsForTasks {
        /// The tasks.
        at: u32,
        /// Mean time of such a task.
        task_s: f64,
    },
    /// Creating a task costs too much for what it does.
    CostlyTasks {
        /// The tasks.
        at: u32,
        /// Mean time of a creation.
        create_s: f64,
        /// Mean time of a task.
        task_s: f64,
        /// Tasks.
        count: u64,
    },
    /// Fetching a range costs too much for what it holds.
    CostlyRanges {
        /// The loop.
        at: u32,
        /// Mean time of fetching one.
        fetch_s: f64,
        /// Mean time of a range.
        range_s: f64,
        /// Mean iterations of a range; null if not known.
        iterations: Option<f64>,
    },
    /// Regions are short for what starting and ending them costs.
    ShortRegions {
        /// Executions.
        executions: u64,
        /// Mean time of an execution on the clock.
        wall_s: f64,
        /// Mean cost of an execution on a thread.
        cost_s: f64,
    },
    /// There are fewer processors than threads, or others had them.
    NoProcessor {
        /// Threads.
        threads: u64,
        /// Processors that the program could use, if known.
        processors: Option<f64>,
    },
    /// What is on record doesn't tell.
    Unknown,
}

/// A schedule that is better than the one that was used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Better {
    /// The schedule.
    pub schedule: Schedule,
    /// The loop's time with it, as a share of its time now.
    pub of_now: f64,
    /// Whether that takes iterations of one range to last equally long: nothing finer is on record.
    pub assumes_equal: bool,
}

/// Work, span, and what they say of other numbers of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scaling {
    /// Share of the time in parallel regions that was looked at record by record, from 0 to 1.
    pub seen: f64,
    /// Threads that it ran with: the largest team.
    pub threads: u64,
    /// Work T1: the program's own code in parallel regions, and all of it outside.
    pub work_s: f64,
    /// Span T∞: the longest chain of code that must run one after the other. Each range of iterations on record is one unit.
    pub span_s: f64,
    /// `work_s / span_s`.
    pub parallelism: f64,
    /// Predicted times of the run, without what came before recording began; empty if they can't be told.
    pub predicted: Vec<Predicted>,
    /// The prediction for the threads that it ran with, as a share of what was measured: 1 is exact. Null as `predicted` is empty.
    pub model_error: Option<f64>,
    /// Whether the prediction takes iterations of one range to last equally long.
    pub assumes_equal: bool,
    /// Parallel regions, those with the most time first.
    pub regions: Vec<RegionScaling>,
}

/// A predicted run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// Threads.
    pub threads: u32,
    /// Time on the clock.
    pub seconds: f64,
    /// How many times as fast as with one thread.
    pub speedup: f64,
    /// `id` of the parallel region that loses the most; null: the serial part.
    pub limited_by: Option<u32>,
    /// Share of the lost time that is due to it, from 0 to 1.
    pub limited_share: f64,
}

/// A parallel region's work and span, over the executions that were looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionScaling {
    /// `id` of the region.
    pub region: u32,
    /// Executions that were looked at.
    pub executions: u64,
    /// All executions.
    pub of_executions: u64,
    /// Their time on the clock, as far as they were looked at.
    pub wall_s: f64,
    /// T1.
    pub work_s: f64,
    /// T∞, each range of iterations on record being one unit.
    pub span_s: f64,
    /// T∞ if all iterations of a range last equally long and may run at once.
    pub span_equal_s: f64,
    /// `work_s / span_s`; null without a span.
    pub parallelism: Option<f64>,
    /// Why the span may be longer; empty: it is exact.
    pub lower_bound_because: Vec<LowerBound>,
    /// Predicted time on the clock of these executions; empty if it can't be told.
    pub predicted: Vec<PredictedRegion>,
}

/// A region's predicted time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedRegion {
    /// Threads.
    pub threads: u32,
    /// Time on the clock.
    pub seconds: f64,
}
