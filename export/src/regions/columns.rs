//! The columns of the table of regions that are no events.

use super::Row;
use ompfuse_account::model::{Overhead, Times};
use ompfuse_format::Construct;

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

/// A line a column.
macro_rules! columns {
    ($($kind:ident $name:literal: $meaning:literal = $get:expr;)*) => {
        &[$(Fixed { name: $name, meaning: $meaning, get: Get::$kind($get) }),*]
    };
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
pub(super) const COLUMNS: &[Fixed] = columns! {
    Count "region": "Number of the region in the report." = |r| Some(u64::from(r.region.id));
    Text "type": "Address of the construct, as in the table of units." = |r| Some(r.region.name.clone());
    Text "module": "Build id of the file with that address, or its path." = |r| r.region.module.clone();
    Text "construct": "Such as `parallel`, `loop`, `barrier`." = |r| name(r.region.construct);
    Text "combined_with": "`loop` or `sections` that is one construct with a parallel region."
        = |r| name(r.region.combined_with);
    Text "function": "Linkage name of the function with the construct." = |r| r.region.function.clone();
    Text "function_demangled": "The function's name in the source, without parameters."
        = |r| r.region.function_demangled.clone();
    Text "source_file": "Source file of the construct." = |r| r.region.source.as_ref().map(|s| s.file.clone());
    Count "source_line": "Source line of the construct." = |r| r.region.source.as_ref().map(|s| u64::from(s.line));
    Text "detail": "Schedule, or name of a critical section." = |r| r.region.detail.clone();
    Count "process": "Process id." = |r| r.thread.process.map(u64::from);
    Count "mpi_rank": "Rank of the process in an MPI program." = |r| r.thread.mpi_rank.map(u64::from);
    Count "thread": "Number of the thread in its process." = |r| Some(u64::from(r.thread.thread));
    Count "xus": "Execution units that began on the thread." = |r| Some(r.thread.xus);
    Seconds "time_s": "Own time: the sum of `work_s`, `wait_s` and `runtime_s`."
        = |r| Some(r.thread.work_s + r.thread.wait_s + r.thread.runtime_s);
    Seconds "work_s": "The program's code." = |r| Some(r.thread.work_s);
    Seconds "wait_s": "Waiting for other threads." = |r| Some(r.thread.wait_s);
    Seconds "runtime_s": "Other time in the OpenMP runtime." = |r| Some(r.thread.runtime_s);
    Seconds "inclusive_s": "Own time with everything executed inside, on whichever thread." = |r| r.thread.inclusive_s;
    Count "exec_count": "How often the thread came to the region." = |r| times(r, |t| Some(t.exec_count));
    Seconds "exec_s": "Time of the whole construct with its end." = |r| times(r, |t| t.exec_s);
    Seconds "startup_s": "Parallel regions: from the fork to the thread's part." = |r| times(r, |t| t.startup_s);
    Seconds "enter_s": "Constructs that admit one thread at a time: waiting to enter." = |r| times(r, |t| t.enter_s);
    Seconds "body_s": "Time in the code that the construct encloses." = |r| times(r, |t| t.body_s);
    Seconds "section_s": "Sections: the executed sections." = |r| times(r, |t| t.section_s);
    Count "section_count": "Sections: how many." = |r| times(r, |t| t.section_count);
    Seconds "single_s": "Single: the executed block." = |r| times(r, |t| t.single_s);
    Count "single_count": "Single: blocks that the thread executed." = |r| times(r, |t| t.single_count);
    Seconds "management_s": "Sections: distributing them." = |r| times(r, |t| t.management_s);
    Seconds "exit_barrier_s": "Waiting at the construct's end, without `task_s`." = |r| times(r, |t| t.exit_barrier_s);
    Seconds "waiting_s": "Barriers, `taskwait` and `taskgroup`: waiting, without `task_s`." = |r| times(r, |t| t.waiting_s);
    Seconds "task_s": "Tasks executed while the thread waited in this construct." = |r| times(r, |t| t.task_s);
    Seconds "exit_s": "Constructs that admit one thread at a time: leaving." = |r| times(r, |t| t.exit_s);
    Seconds "shutdown_s": "Parallel regions: from the team's last work to the join." = |r| times(r, |t| t.shutdown_s);
    Seconds "create_s": "Tasks: creating them." = |r| times(r, |t| t.create_s);
    Count "create_count": "Tasks: how many the thread created." = |r| times(r, |t| t.create_count);
    Count "parts": "Outermost parallel regions: parts that the thread executed." = |r| r.parts.as_ref().map(|p| p.executed);
    Count "parts_read": "Parts whose processor time and counts were read." = |r| r.parts.as_ref().map(|p| p.covered);
    Seconds "parts_read_s": "Time of these parts from begin to end." = |r| r.parts.as_ref().map(|p| p.covered_wall_s);
    Seconds "processor_s": "Processor time of these parts." = |r| r.parts.as_ref().and_then(|p| p.processor_s);
    Count "region_executions": "Executions, a team's once; of a task construct its tasks." = |r| Some(r.region.executions);
    Seconds "region_wall_s": "Parallel regions: wall time from fork to join." = |r| r.region.wall_s;
    Seconds "region_total_s": "Parallel regions: wall time times team size." = |r| r.overhead.map(|o| o.total_s);
    Seconds "region_synchronization_s": "Parallel regions: class synchronization." = |r| class(r, |o| o.synchronization_s);
    Seconds "region_imbalance_s": "Parallel regions: class imbalance." = |r| class(r, |o| o.imbalance_s);
    Seconds "region_limited_parallelism_s": "Parallel regions: class limited parallelism."
        = |r| class(r, |o| o.limited_parallelism_s);
    Seconds "region_management_s": "Parallel regions: class management." = |r| class(r, |o| o.management_s);
};
