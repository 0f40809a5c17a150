//! What usually helps.

use super::percent;
use crate::causes::TINY_S;
use crate::model::{Better, Cause, Loss, Report};
use ompfuse_fuse::span::replay::Schedule;
use ompfuse_fuse::summary::ProcessorLimit;

/// A thread that gets fewer ranges in an execution of a loop would not get larger ones.
const FEW_RANGES: f64 = 2.0;

/// What usually helps; `None`: nothing in general.
pub fn remedy(report: &Report, loss: &Loss) -> Option<String> {
    let ranks = report.mpi.as_ref().map_or(1, |mpi| mpi.ranks.len() as u64);
    let cause = match &loss.cause {
        Cause::AtRank { cause, .. } => cause,
        cause => cause,
    };
    let text = match cause {
        Cause::SerialPart { function: None, .. } => {
            "parallelise that code; --functions '*' names its functions"
        }
        Cause::SerialPart { .. } => "parallelise that code",
        // Each rank calls it once, as MPI_Init.
        Cause::Communication { calls, .. } if *calls <= ranks => return None,
        Cause::Communication { .. } => {
            "give all ranks equal work, send less often, or work while messages are on their way"
        }
        Cause::LateSender { .. } => "send earlier, or receive without blocking and work meanwhile",
        Cause::UnevenUnits {
            is_sections: true, ..
        } => "divide that section",
        Cause::UnevenUnits {
            better, if_first, ..
        } => {
            let divided = better
                .as_ref()
                .map_or_else(|| "divide that work".to_owned(), better_schedule);
            let first = if_first.map_or("", |_| ", or let it begin first");
            return Some(divided + first);
        }
        Cause::UnevenDistribution {
            better: Some(better),
            ..
        } => return Some(better_schedule(better)),
        Cause::UnevenDistribution { .. } => return None,
        Cause::FewUnits {
            is_sections: true, ..
        } => "use tasks or a loop, which go by the number of threads",
        Cause::FewUnits {
            iterations,
            threads,
            ..
        } if *iterations >= 2.0 * *threads as f64 => "use smaller chunks (`ompfuse try`)",
        Cause::FewUnits { .. } => "parallelise a loop with more iterations, or collapse two",
        Cause::OneThread { .. } => "make tasks or a loop of it, or give the others work",
        Cause::FewTasks {
            mean_s: Some(mean), ..
        } if *mean < TINY_S => "create larger tasks, on several threads",
        Cause::FewTasks {
            mean_s: Some(_), ..
        } => "divide the tasks, or create them earlier",
        Cause::FewTasks { .. } => return None,
        Cause::SlowCreation { .. } | Cause::UntakenTasks { .. } => {
            "create larger tasks, or create them on several threads"
        }
        Cause::UnevenTasks { .. } => "begin with the largest tasks, or divide them",
        Cause::UnevenCode => "divide it by a work-sharing construct",
        Cause::Late => return None,
        Cause::Held { .. } => "hold it for less time, or use a reduction, atomics or several locks",
        Cause::InOrder { .. } => "move work out of the ordered part",
        Cause::ManyBarriers { .. } => "use fewer barriers (nowait), or more work between them",
        Cause::Dependences { .. } => return None,
        Cause::OneByOne { .. } => "create several tasks before waiting for them",
        Cause::WaitsForTasks { task_s, .. } if *task_s < TINY_S => {
            "create larger tasks: stop at a size (cut-off, `ompfuse try`)"
        }
        Cause::WaitsForTasks { .. } => "give the waiting thread work, or divide the tasks",
        Cause::CostlyTasks {
            create_s, task_s, ..
        } if *task_s < 10.0 * create_s => {
            "create larger tasks: stop at a size (cut-off, `ompfuse try`), or use taskloop grainsize"
        }
        Cause::CostlyTasks { .. } => return None,
        // Where a thread gets all of its iterations at once there is no larger chunk.
        Cause::CostlyRanges {
            ranges: Some(ranges),
            ..
        } if *ranges < FEW_RANGES => return None,
        // The others would wait for a whole chunk.
        Cause::CostlyRanges {
            is_ordered: true, ..
        } => return None,
        Cause::CostlyRanges { .. } => "use larger chunks (`ompfuse try`)",
        Cause::ShortRegions { executions, .. } if *executions > 1 => {
            "join regions, or leave small ones serial (if clause)"
        }
        Cause::ShortRegions { .. } => "run longer, because this is paid once",
        Cause::NoProcessor {
            threads,
            processors: Some(n),
            limit,
        } if *threads as f64 > *n => return Some(more_processors(report, *n, *limit)),
        Cause::NoProcessor { .. } => "give the program processors of its own",
        Cause::SmallerTeam { .. } => {
            "let its team have more threads (num_threads, if, OMP_DYNAMIC)"
        }
        Cause::Unknown if report.runs.iter().any(|run| run.sums_only) => {
            "record without --summary, which tells it"
        }
        Cause::Nested { .. } | Cause::Call { .. } | Cause::Unknown | Cause::AtRank { .. } => {
            return None;
        }
    };
    Some(text.to_owned())
}

/// What helps where so many processors are too few for the threads.
fn more_processors(report: &Report, processors: f64, limit: Option<ProcessorLimit>) -> String {
    let processes = report.running.as_ref().map_or(1, |r| r.processes.max(1));
    let fewer = match processors.floor() as u64 / processes {
        0 if processes > 1 => "start fewer processes at once".to_owned(),
        n => format!("set OMP_NUM_THREADS={}", n.max(1)),
    };
    match limit {
        Some(ProcessorLimit::Binding) => {
            format!("bind them to more (OMP_PLACES, OMP_PROC_BIND), or {fewer}")
        }
        Some(ProcessorLimit::Quota) => format!("raise the quota, or {fewer}"),
        Some(ProcessorLimit::Affinity) | None => fewer,
    }
}

fn better_schedule(better: &Better) -> String {
    let assumed = match better.assumes_equal {
        true => ", if iterations of a range are equal",
        false => "",
    };
    let variable = if better.by_variable {
        "OMP_SCHEDULE="
    } else {
        ""
    };
    format!(
        "{variable}{} would take {} of this time{assumed}",
        schedule(better.schedule),
        percent(better.of_now)
    )
}

/// A schedule as the source writes it.
pub fn schedule(schedule: Schedule) -> String {
    match schedule {
        Schedule::Static => "static".to_owned(),
        Schedule::StaticChunk(n) => format!("static,{n}"),
        Schedule::Dynamic(n) => format!("dynamic,{n}"),
        Schedule::Guided(n) => format!("guided,{n}"),
    }
}
