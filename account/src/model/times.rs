//! ompP's columns: what a region's time consists of, for each thread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of a region's time, of all threads or of one: ompP's columns for the region's kind. Times are from begin to end,
/// with everything executed meanwhile. `exec_s` is the sum of the other times. A field is absent if the kind has no such
/// column, or if it was not measured; `exec_s` may then be larger than the sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// Number of times that threads came to it.
    pub exec_count: u64,
    /// Time of the whole construct with its end. In a parallel region a worker's time counts from fork to join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_s: Option<f64>,
    /// Parallel regions: from the fork to the begin of the thread's part. This includes waking a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_s: Option<f64>,
    /// Constructs that admit one thread at a time: waiting to enter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enter_s: Option<f64>,
    /// The enclosed code: a thread's part of a parallel region, a loop's ranges and the code between them, the code in a
    /// critical section, the tasks of a taskloop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_s: Option<f64>,
    /// Sections: the executed sections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section_s: Option<f64>,
    /// Sections: number of executed sections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section_count: Option<u64>,
    /// Single: the block, on the thread that executes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_s: Option<f64>,
    /// Single: number of blocks that the thread executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_count: Option<u64>,
    /// Sections: distributing them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management_s: Option<f64>,
    /// Waiting at the construct's end, without `task_s`. Absent if there is no barrier at the end, or if a barrier region of
    /// its own has this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_barrier_s: Option<f64>,
    /// Barriers, `taskwait` and `taskgroup`: waiting, without `task_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_s: Option<f64>,
    /// Tasks that the thread executed while it waited in this construct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_s: Option<f64>,
    /// Constructs that admit one thread at a time: leaving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_s: Option<f64>,
    /// Parallel regions: from the end of the team's last work to the join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown_s: Option<f64>,
    /// Tasks: creating them, on the creating thread. Not part of `exec_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_s: Option<f64>,
    /// Tasks: number of tasks that the thread created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_count: Option<u64>,
}

impl Times {
    /// The times that `exec_s` consists of.
    pub fn parts(&self) -> [Option<f64>; 10] {
        [
            self.startup_s,
            self.enter_s,
            self.body_s,
            self.section_s,
            self.single_s,
            self.management_s,
            self.exit_barrier_s,
            self.waiting_s,
            self.task_s,
            self.exit_s.or(self.shutdown_s),
        ]
    }

    /// Both together: a time that is not known of one of them is not known of both.
    pub(crate) fn plus(&self, other: &Times) -> Times {
        let s = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        let n = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
        let Times {
            exec_count,
            exec_s,
            startup_s,
            enter_s,
            body_s,
            section_s,
            section_count,
            single_s,
            single_count,
            management_s,
            exit_barrier_s,
            waiting_s,
            task_s,
            exit_s,
            shutdown_s,
            create_s,
            create_count,
        } = *other;
        Times {
            exec_count: self.exec_count + exec_count,
            exec_s: s(self.exec_s, exec_s),
            startup_s: s(self.startup_s, startup_s),
            enter_s: s(self.enter_s, enter_s),
            body_s: s(self.body_s, body_s),
            section_s: s(self.section_s, section_s),
            section_count: n(self.section_count, section_count),
            single_s: s(self.single_s, single_s),
            single_count: n(self.single_count, single_count),
            management_s: s(self.management_s, management_s),
            exit_barrier_s: s(self.exit_barrier_s, exit_barrier_s),
            waiting_s: s(self.waiting_s, waiting_s),
            task_s: s(self.task_s, task_s),
            exit_s: s(self.exit_s, exit_s),
            shutdown_s: s(self.shutdown_s, shutdown_s),
            create_s: s(self.create_s, create_s),
            create_count: n(self.create_count, create_count),
        }
    }
}
