//! What usually helps.

use super::behind::is_importing;
use super::percent;
use ompfuse_account::causes::TINY_S;
use ompfuse_account::model::{Better, Cause, FewerThreads, Loss, Report, Sharing};
use ompfuse_format::Construct;
use ompfuse_fuse::span::replay::Schedule;
use ompfuse_fuse::summary::ProcessorLimit;

/// Waking a thread takes about as long as such tasks, in seconds.
const SHORT_S: f64 = 50e-6;

/// A thread that gets fewer ranges in an execution of a loop would not get larger ones.
const FEW_RANGES: f64 = 2.0;

/// Whether samples have told functions of the work.
fn is_named(loss: &Loss) -> bool {
    let behind = loss.behind.as_ref();
    behind.is_some_and(|b| b.most_in.is_some() || !b.functions.is_empty())
}

/// What usually helps; `None`: nothing in general.
pub fn remedy(report: &Report, loss: &Loss) -> Option<String> {
    let ranks = report.mpi.as_ref().map_or(1, |mpi| mpi.ranks.len() as u64);
    let cause = match &loss.cause {
        Cause::AtRank { cause, .. } => cause,
        cause => cause,
    };
    let text = match cause {
        // Modules are imported once, however long the program runs.
        Cause::SerialPart { .. } if is_importing(loss.behind.as_ref()) => return None,
        Cause::SerialPart { function: None, .. }
            if !has_functions(report) && !is_named(loss) && !is_interpreted(report) =>
        {
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
        } if *iterations >= 2.0 * *threads as f64 => "use smaller chunks",
        Cause::FewUnits { .. } => "parallelise a loop with more iterations, or collapse two",
        Cause::OneThread { .. } => "make tasks or a loop of it, or give the others work",
        Cause::FewTasks {
            mean_s: Some(mean), ..
        } if *mean < TINY_S => "create larger tasks, on several threads",
        Cause::FewTasks { mean_s: None, .. } | Cause::UnevenTasks { mean_s: None, .. } => {
            return None;
        }
        // Pieces of these would cost more than they do.
        Cause::UnevenTasks {
            mean_s: Some(mean), ..
        } if *mean < TINY_S => return None,
        Cause::FewTasks {
            began_late: true, ..
        }
        | Cause::UnevenTasks {
            began_late: true, ..
        } => "begin with the largest tasks, or divide them",
        Cause::FewTasks {
            iterations: Some(n),
            ..
        }
        | Cause::UnevenTasks {
            iterations: Some(n),
            ..
        } if *n >= 2.0 => "let the taskloop make more tasks (num_tasks or grainsize)",
        Cause::FewTasks { .. } | Cause::UnevenTasks { .. } => "divide the tasks",
        Cause::SlowCreation { .. } => "create larger tasks, or create them on several threads",
        Cause::UntakenTasks {
            mean_s: Some(mean), ..
        } if *mean < SHORT_S => "create larger tasks, or create them on several threads",
        Cause::UntakenTasks { .. } => return None,
        Cause::AtOnce { in_yield: true, .. } => "create them without taskyield",
        Cause::AtOnce { .. } => "check the conditions of its if and final clauses",
        Cause::AwaitsEvent { .. } => {
            "fulfil the events earlier, or give threads other tasks meanwhile"
        }
        // It may be divided already, as a loop that a compiler made arithmetic of.
        Cause::UnevenCode | Cause::Late => return None,
        Cause::Held {
            is_holder: true, ..
        } => "hold it for less time, or use a reduction, atomics or several locks",
        Cause::Held { .. } => return None,
        Cause::Reduction {
            joins,
            held_s: Some(held_s),
            ..
        } if *held_s >= SHORT_S * *joins as f64 => "make joining two parts cheaper",
        Cause::Reduction { .. } => return None,
        Cause::InOrder {
            in_block: Some(share),
            ..
        } if *share >= 0.5 => "move work out of the ordered part",
        Cause::InOrder { .. } => return None,
        Cause::ManyBarriers { .. } => "use fewer barriers (nowait), or more work between them",
        Cause::Dependences { .. } => return None,
        Cause::OneByOne { .. } => "create several tasks before waiting for them",
        Cause::WaitsForTasks { task_s, .. } if *task_s < TINY_S => {
            "create larger tasks: stop at a size (cut-off)"
        }
        Cause::WaitsForTasks { .. } => "divide the tasks",
        Cause::CostlyTasks {
            create_s, task_s, ..
        } if *task_s < 10.0 * create_s => {
            "create larger tasks: stop at a size (cut-off), or use taskloop grainsize"
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
        Cause::CostlyRanges { .. } => "use larger chunks",
        Cause::ShortRegions { executions, .. } if *executions > 1 => {
            "join regions, or leave small ones serial (if clause)"
        }
        Cause::ShortRegions { .. } => "run longer, because this is paid once",
        Cause::NoProcessor {
            sharing: Some(Sharing::Own) | None,
            limit,
            ..
        } => return more_processors(report, *limit),
        Cause::NoProcessor { .. } => "give the program processors of its own",
        // Nested teams of as many threads would be too many with a larger one.
        Cause::SmallerTeam {
            beside_nested: true,
            ..
        } => return None,
        // More of them would share as many processors.
        Cause::SmallerTeam { .. } if lacks_processors(report) => return None,
        Cause::SmallerTeam { .. } => {
            "let its team have more threads (num_threads, if, OMP_DYNAMIC)"
        }
        Cause::Unknown if report.runs.iter().any(|run| run.sums_only) => {
            "record without --units sums, which tells it"
        }
        Cause::Nested { .. } | Cause::Call { .. } | Cause::Unknown | Cause::AtRank { .. } => {
            return None;
        }
    };
    Some(text.to_owned())
}

/// Whether functions are on record.
fn has_functions(report: &Report) -> bool {
    let mut regions = report.regions.iter();
    regions.any(|r| r.construct == Some(Construct::Function))
}

/// Whether the program is Python: its file has hardly any functions, and those of the interpreter say little.
pub(in crate::words) fn is_interpreted(report: &Report) -> bool {
    let name = report.program.rsplit('/').next().unwrap_or_default();
    name.starts_with("python")
}

/// From this share of the work on, threads that sleep need no processor each.
const ASLEEP: f64 = 0.5;

/// Whether there are more threads than processors, and they compute.
fn lacks_processors(report: &Report) -> bool {
    let running = report.running.as_ref();
    running.is_some_and(|r| r.is_crowded() && r.asleep_share() < ASLEEP)
}

/// What helps where a program has more threads than processors; `None`: nothing that can't make it slower.
fn more_processors(report: &Report, limit: Option<ProcessorLimit>) -> Option<String> {
    let fewer = report.running.as_ref().and_then(|r| r.fewer);
    let fewer = fewer.map(|fewer| match fewer {
        FewerThreads::Variable { threads } => format!("set OMP_NUM_THREADS={threads}"),
        FewerThreads::Limit { threads } => format!(
            "set OMP_THREAD_LIMIT={threads}, or ask for fewer threads in the source (num_threads, omp_set_num_threads)"
        ),
        FewerThreads::Processes => "start fewer processes at once".to_owned(),
    });
    let more = match limit {
        Some(ProcessorLimit::Binding) => Some("bind them to more (OMP_PLACES, OMP_PROC_BIND)"),
        Some(ProcessorLimit::Quota) => Some("raise the quota"),
        Some(ProcessorLimit::Affinity) | None => None,
    };
    match (more, fewer) {
        (Some(more), Some(fewer)) => Some(format!("{more}, or {fewer}")),
        (more, fewer) => more.map(str::to_owned).or(fewer),
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
