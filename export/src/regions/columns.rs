//! The columns of the table of regions that are no events.

use super::Row;
use ompfuse_format::Construct;
use ompfuse_report::model::{Overhead, Times};

/// A column.
#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) name: &'static str,
    /// What it says: in `docs/reference/columns.md`, and in the file.
    pub(super) meaning: &'static str,
    pub(super) get: Get,
}

/// A row's value; `None`: not known.
#[derive(Debug, Clone, Copy)]
pub(super) enum Get {
    Text(fn(&Row<'_>) -> Option<String>),
    Count(fn(&Row<'_>) -> Option<u64>),
    Seconds(fn(&Row<'_>) -> Option<f64>),
}

impl Fixed {
    pub(super) fn unit(&self) -> Option<&'static str> {
        matches!(self.get, Get::Seconds(_)).then_some("s")
    }

    /// Its type as the documents have it.
    #[cfg(test)]
    pub(super) fn kind(&self) -> &'static str {
        match self.get {
            Get::Text(_) => "text",
            Get::Count(_) => "integer",
            Get::Seconds(_) => "seconds",
        }
    }
}

const fn text(
    name: &'static str,
    meaning: &'static str,
    get: fn(&Row<'_>) -> Option<String>,
) -> Fixed {
    let get = Get::Text(get);
    Fixed { name, meaning, get }
}

const fn count(
    name: &'static str,
    meaning: &'static str,
    get: fn(&Row<'_>) -> Option<u64>,
) -> Fixed {
    let get = Get::Count(get);
    Fixed { name, meaning, get }
}

const fn seconds(
    name: &'static str,
    meaning: &'static str,
    get: fn(&Row<'_>) -> Option<f64>,
) -> Fixed {
    let get = Get::Seconds(get);
    Fixed { name, meaning, get }
}

fn times<T>(row: &Row<'_>, get: impl Fn(&Times) -> Option<T>) -> Option<T> {
    row.thread.times.as_ref().and_then(get)
}

fn class(row: &Row<'_>, get: impl Fn(&Overhead) -> Option<f64>) -> Option<f64> {
    row.overhead.and_then(|o| get(&o.overhead))
}

fn name(construct: Option<Construct>) -> Option<String> {
    construct.map(|c| c.name().to_owned())
}

/// All of them. Who a row is about comes first, then the thread's own numbers, then those of the whole region.
pub(super) const COLUMNS: &[Fixed] = &[
    count("region", "Number of the region in the report.", |r| {
        Some(u64::from(r.region.id))
    }),
    text(
        "type",
        "Address of the construct, as in the table of units.",
        |r| Some(r.region.name.clone()),
    ),
    text(
        "module",
        "Build id of the file with that address, or its path.",
        |r| r.region.module.clone(),
    ),
    text("construct", "Such as `parallel`, `loop`, `barrier`.", |r| {
        name(r.region.construct)
    }),
    text(
        "combined_with",
        "`loop` or `sections` that is one construct with a parallel region.",
        |r| name(r.region.combined_with),
    ),
    text(
        "function",
        "Linkage name of the function with the construct.",
        |r| r.region.function.clone(),
    ),
    text(
        "function_demangled",
        "The function's name in the source, without parameters.",
        |r| r.region.function_demangled.clone(),
    ),
    text("source_file", "Source file of the construct.", |r| {
        r.region.source.as_ref().map(|s| s.file.clone())
    }),
    count("source_line", "Source line of the construct.", |r| {
        r.region.source.as_ref().map(|s| u64::from(s.line))
    }),
    text("detail", "Schedule, or name of a critical section.", |r| {
        r.region.detail.clone()
    }),
    count("process", "Process id.", |r| {
        r.thread.process.map(u64::from)
    }),
    count("mpi_rank", "Rank of the process in an MPI program.", |r| {
        r.thread.mpi_rank.map(u64::from)
    }),
    count("thread", "Number of the thread in its process.", |r| {
        Some(u64::from(r.thread.thread))
    }),
    count("xus", "Execution units that began on the thread.", |r| {
        Some(r.thread.xus)
    }),
    seconds(
        "time_s",
        "Own time: the sum of `work_s`, `wait_s` and `runtime_s`.",
        |r| Some(r.thread.work_s + r.thread.wait_s + r.thread.runtime_s),
    ),
    seconds("work_s", "The program's code.", |r| Some(r.thread.work_s)),
    seconds("wait_s", "Waiting for other threads.", |r| {
        Some(r.thread.wait_s)
    }),
    seconds("runtime_s", "Other time in the OpenMP runtime.", |r| {
        Some(r.thread.runtime_s)
    }),
    seconds(
        "inclusive_s",
        "Own time with everything executed inside, on whichever thread.",
        |r| r.thread.inclusive_s,
    ),
    count(
        "exec_count",
        "How often the thread came to the region.",
        |r| times(r, |t| Some(t.exec_count)),
    ),
    seconds("exec_s", "Time of the whole construct with its end.", |r| {
        times(r, |t| t.exec_s)
    }),
    seconds(
        "startup_s",
        "Parallel regions: from the fork to the thread's part.",
        |r| times(r, |t| t.startup_s),
    ),
    seconds(
        "enter_s",
        "Constructs that admit one thread at a time: waiting to enter.",
        |r| times(r, |t| t.enter_s),
    ),
    seconds(
        "body_s",
        "Time in the code that the construct encloses.",
        |r| times(r, |t| t.body_s),
    ),
    seconds("section_s", "Sections: the executed sections.", |r| {
        times(r, |t| t.section_s)
    }),
    count("section_count", "Sections: how many.", |r| {
        times(r, |t| t.section_count)
    }),
    seconds("single_s", "Single: the executed block.", |r| {
        times(r, |t| t.single_s)
    }),
    count(
        "single_count",
        "Single: blocks that the thread executed.",
        |r| times(r, |t| t.single_count),
    ),
    seconds("management_s", "Sections: distributing them.", |r| {
        times(r, |t| t.management_s)
    }),
    seconds(
        "exit_barrier_s",
        "Waiting at the construct's end, without `task_s`.",
        |r| times(r, |t| t.exit_barrier_s),
    ),
    seconds(
        "waiting_s",
        "Barriers, `taskwait` and `taskgroup`: waiting, without `task_s`.",
        |r| times(r, |t| t.waiting_s),
    ),
    seconds(
        "task_s",
        "Tasks executed while the thread waited in this construct.",
        |r| times(r, |t| t.task_s),
    ),
    seconds(
        "exit_s",
        "Constructs that admit one thread at a time: leaving.",
        |r| times(r, |t| t.exit_s),
    ),
    seconds(
        "shutdown_s",
        "Parallel regions: from the team's last work to the join.",
        |r| times(r, |t| t.shutdown_s),
    ),
    seconds("create_s", "Tasks: creating them.", |r| {
        times(r, |t| t.create_s)
    }),
    count("create_count", "Tasks: how many the thread created.", |r| {
        times(r, |t| t.create_count)
    }),
    count(
        "parts",
        "Outermost parallel regions: parts that the thread executed.",
        |r| r.parts.as_ref().map(|p| p.executed),
    ),
    count(
        "parts_read",
        "Parts whose processor time and counts were read.",
        |r| r.parts.as_ref().map(|p| p.covered),
    ),
    seconds(
        "parts_read_s",
        "Time of these parts from begin to end.",
        |r| r.parts.as_ref().map(|p| p.covered_wall_s),
    ),
    seconds("processor_s", "Processor time of these parts.", |r| {
        r.parts.as_ref().and_then(|p| p.processor_s)
    }),
    count(
        "region_executions",
        "Executions, a team's once; of a task construct its tasks.",
        |r| Some(r.region.executions),
    ),
    seconds(
        "region_wall_s",
        "Parallel regions: wall time from fork to join.",
        |r| r.region.wall_s,
    ),
    seconds(
        "region_total_s",
        "Parallel regions: wall time times team size.",
        |r| r.overhead.map(|o| o.total_s),
    ),
    seconds(
        "region_synchronization_s",
        "Parallel regions: class synchronization.",
        |r| class(r, |o| o.synchronization_s),
    ),
    seconds(
        "region_imbalance_s",
        "Parallel regions: class imbalance.",
        |r| class(r, |o| o.imbalance_s),
    ),
    seconds(
        "region_limited_parallelism_s",
        "Parallel regions: class limited parallelism.",
        |r| class(r, |o| o.limited_parallelism_s),
    ),
    seconds(
        "region_management_s",
        "Parallel regions: class management.",
        |r| class(r, |o| o.management_s),
    ),
];
