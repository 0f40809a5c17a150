//! Losses, their causes and what usually helps, in words.

use super::units::{count, seconds};
use super::{kind, location};
use crate::model::{
    Better, BusiestRank, Cause, Loss, LossKind, Predicted, Report, Scaling, Silent,
};
use ompfuse_fuse::names::readable;
use ompfuse_fuse::span::LowerBound;
use ompfuse_fuse::span::replay::Schedule;

/// Predictions of a model that is off by more for the run itself are not told.
const MOST_ERROR: f64 = 0.3;

/// A program that more threads make less fast than so many times is told apart.
const NO_HELP: f64 = 1.2;

/// What is held for a smaller share of a region's time costs by being handed over.
const MUCH_HELD: f64 = 0.3;

/// A serial part with a smaller share of the work limits nobody yet.
const NEAR: f64 = 0.05;

/// Shorter tasks cost more than they do.
const TINY_S: f64 = 10e-6;

/// Why a loss is there: what, where, how much.
pub fn cause(report: &Report, loss: &Loss) -> String {
    let at = |id: &u32| named(report, *id);
    let plain = |id: &u32| place(report, *id);
    match &loss.cause {
        Cause::SerialPart {
            wall_s,
            of_work,
            function,
        } => {
            let mostly = function.as_ref().map_or_else(String::new, |(id, s)| {
                format!(", {} of it in {}", seconds(*s), plain(id))
            });
            // A limit far away says nothing.
            let near = |share: &f64| *share >= NEAR;
            let limit = of_work.filter(near).map(|share| {
                format!(
                    ": at most {} times as fast as one thread, with any number of threads",
                    times(1.0 / share)
                )
            });
            format!(
                "one thread works outside of parallel regions, for {}{mostly}{}",
                seconds(*wall_s),
                limit.unwrap_or_default()
            )
        }
        Cause::Communication {
            at: id,
            calls,
            call_s,
            busiest,
        } => format!(
            "a process waits in {}, {} of {}{}",
            at(id),
            if *calls == 1 {
                "1 call".to_owned()
            } else {
                format!("{} calls", count(*calls))
            },
            seconds(*call_s),
            busy(busiest)
        ),
        Cause::LateSender {
            at: id,
            receives,
            late,
            late_s,
            busiest,
        } => format!(
            "the sender is late for {} of {} receives in {}, by {}{}",
            count(*late),
            count(*receives),
            at(id),
            seconds(*late_s),
            busy(busiest)
        ),
        Cause::UnevenUnits {
            at: id,
            is_sections,
            first,
            iterations,
            times_mean,
            instructions_times_mean,
            misses_times_mean,
            misses_event,
            ..
        } => {
            let what = match (is_sections, iterations) {
                (true, _) => format!("section {first}"),
                (false, 0 | 1) => format!("iteration {first}"),
                (false, n) => format!("iterations {first}..{}", first + *n as i64 - 1),
            };
            let counts = match (instructions_times_mean, misses_times_mean, misses_event) {
                // What takes longer with as many more instructions has more to do.
                (Some(i), _, _) if *i >= 0.5 * times_mean => {
                    format!(", with {} times the instructions", times(*i))
                }
                (Some(i), Some(m), Some(event)) if *m >= 2.0 * i => format!(
                    ", with {} times the instructions and {} times the {event}",
                    times(*i),
                    times(*m)
                ),
                (Some(i), _, _) => format!(", with only {} times the instructions", times(*i)),
                _ => String::new(),
            };
            let each = if *iterations > 1 { " each" } else { "" };
            format!(
                "{what} of the {} take{} {} times the others' mean{each}{counts}",
                at(id),
                if *iterations > 1 { "" } else { "s" },
                times(*times_mean)
            )
        }
        Cause::UnevenDistribution {
            at: id,
            schedule,
            slowest_times_mean,
            ..
        } => {
            let by = schedule.as_ref().map(|s| format!(" (schedule {s})"));
            format!(
                "the {}{} gives the slowest thread {} times the mean work",
                at(id),
                by.unwrap_or_default(),
                times(*slowest_times_mean)
            )
        }
        Cause::FewUnits {
            at: id,
            is_sections,
            units,
            threads,
            ..
        } => format!(
            "the {} has {} {} for {threads} threads",
            at(id),
            times(*units),
            if *is_sections { "sections" } else { "ranges" }
        ),
        Cause::OneThread { at: id } => {
            format!("one thread executes the {} while the others wait", at(id))
        }
        Cause::FewTasks {
            at: id,
            parallelism,
            mean_s,
            longest_s,
        } => format!(
            "the tasks at {} keep {} threads busy at most (work / span){}",
            plain(id),
            times(*parallelism),
            longest_task(*mean_s, *longest_s)
        ),
        Cause::SlowCreation { at: id, share } => format!(
            "one thread creates the tasks at {} for {} of the time, and the others wait for more",
            plain(id),
            percent(*share)
        ),
        Cause::UnevenTasks {
            at: id,
            parallelism,
            mean_s,
            longest_s,
        } => format!(
            "the tasks at {} end at different times, though {} threads could be busy{}",
            plain(id),
            times(*parallelism),
            longest_task(*mean_s, *longest_s)
        ),
        Cause::UntakenTasks {
            at: id,
            parallelism,
        } => format!(
            "threads sleep or find no task, though the short tasks at {} could keep {} busy",
            plain(id),
            times(*parallelism)
        ),
        Cause::UnevenCode => "code that every thread executes takes longer on some".to_owned(),
        Cause::Late => "threads wait for one that began later".to_owned(),
        Cause::Nested { at: id } => {
            format!("threads wait for the nested {}", at(id))
        }
        Cause::Held {
            at: id,
            held_s,
            of_wall,
            entries,
        } => {
            let each = held_s.map(|s| s / (*entries).max(1) as f64);
            let held = match (of_wall, each) {
                (Some(share), _) if *share >= MUCH_HELD => format!(
                    ", which is held for {} of the region's time",
                    percent(share.min(1.0))
                ),
                (_, Some(each)) => format!(
                    ": {} times entered, {} inside each",
                    count(*entries),
                    seconds(each)
                ),
                _ => format!(": {} times entered", count(*entries)),
            };
            format!("threads wait for their turn at the {}{held}", at(id))
        }
        Cause::InOrder { at: id, entries } => format!(
            "iterations wait for their turn at the {}, {} times",
            at(id),
            count(*entries)
        ),
        Cause::ManyBarriers {
            count: times,
            wait_s,
            at: id,
        } => format!(
            "{} barriers{}, {} of waiting a thread at each",
            count(*times),
            id.as_ref()
                .map_or_else(String::new, |id| format!(" at {}", plain(id))),
            seconds(*wait_s)
        ),
        Cause::Dependences {
            at: id,
            count: tasks,
        } => format!(
            "threads wait for the {} tasks at {}, which depend on each other; in what order is not recorded",
            count(*tasks),
            plain(id)
        ),
        Cause::OneByOne {
            at: id,
            tasks,
            count: waits,
        } => format!(
            "the tasks at {} are waited for one by one at {}, {} times",
            plain(tasks),
            plain(id),
            count(*waits)
        ),
        Cause::WaitsForTasks { at: id, task_s } => format!(
            "threads wait for tasks at {}, {} each",
            plain(id),
            seconds(*task_s)
        ),
        Cause::CostlyTasks {
            at: id,
            create_s,
            task_s,
            count: tasks,
        } => format!(
            "creating a task takes {}, and it works for {} ({} at {})",
            seconds(*create_s),
            seconds(*task_s),
            count(*tasks),
            plain(id)
        ),
        Cause::CostlyRanges {
            at: id,
            fetch_s,
            range_s,
            ..
        } => format!(
            "fetching a range of the {} takes {}, and it lasts {}",
            at(id),
            seconds(*fetch_s),
            seconds(*range_s)
        ),
        Cause::ShortRegions {
            executions,
            wall_s,
            cost_s,
        } => {
            let how_often = match executions {
                1 => "starting and ending its threads takes".to_owned(),
                n => format!("it is started {} times:", count(*n)),
            };
            format!(
                "{how_often} {} a thread, of {}",
                seconds(*cost_s),
                seconds(*wall_s)
            )
        }
        Cause::NoProcessor {
            threads,
            processors,
        } => match processors {
            Some(n) if (*threads as f64) > *n => {
                let s = if *n == 1.0 { "" } else { "s" };
                format!("{threads} threads share {n} processor{s}")
            }
            _ => "other programs used its threads' processors".to_owned(),
        },
        Cause::SmallerTeam { team, threads } => format!(
            "its team has {} of the {threads} threads that the program has at other times",
            times(*team)
        ),
        Cause::Call {
            at: id,
            calls,
            call_s,
        } => format!(
            "threads are in {}, {} of {}",
            at(id),
            if *calls == 1 {
                "1 call".to_owned()
            } else {
                format!("{} calls", count(*calls))
            },
            seconds(*call_s)
        ),
        Cause::Unknown => match loss.loss {
            LossKind::Runtime => "in the OpenMP runtime".to_owned(),
            LossKind::TaskWait => "threads wait for tasks; the records don't tell which".to_owned(),
            LossKind::Waiting => {
                "threads wait at barriers; the records don't tell for what".to_owned()
            }
            _ => "the records don't tell why".to_owned(),
        },
    }
}

/// The rank that works most.
fn busy(busiest: &Option<BusiestRank>) -> String {
    busiest.as_ref().map_or_else(String::new, |b| {
        format!(
            "; rank {} has {} times the mean work",
            b.rank,
            times(b.times_mean)
        )
    })
}

/// The longest task, where it is much longer than the others.
fn longest_task(mean_s: Option<f64>, longest_s: Option<f64>) -> String {
    match (mean_s, longest_s) {
        (Some(mean), Some(longest)) if longest >= 3.0 * mean => format!(
            "; the longest takes {}, the mean {}",
            seconds(longest),
            seconds(mean)
        ),
        _ => String::new(),
    }
}

/// What usually helps; `None`: nothing in general.
pub fn remedy(report: &Report, loss: &Loss) -> Option<String> {
    let ranks = report.mpi.as_ref().map_or(1, |mpi| mpi.ranks.len() as u64);
    Some(match &loss.cause {
        Cause::SerialPart { function: None, .. } => {
            "parallelise that code; --functions '*' names its functions".to_owned()
        }
        Cause::SerialPart { .. } => "parallelise that code".to_owned(),
        // Each rank calls it once, as MPI_Init.
        Cause::Communication { calls, .. } if *calls <= ranks => return None,
        Cause::Communication { .. } => {
            "give all ranks equal work, send less often, or work while messages are on their way"
                .to_owned()
        }
        Cause::LateSender { .. } => {
            "send earlier, or receive without blocking and work meanwhile".to_owned()
        }
        Cause::UnevenUnits {
            is_sections: true, ..
        } => "divide that section".to_owned(),
        Cause::UnevenUnits { .. } => "divide that work, or let it begin first".to_owned(),
        Cause::UnevenDistribution {
            better: Some(better),
            ..
        } => better_schedule(better),
        Cause::UnevenDistribution { .. } => return None,
        Cause::FewUnits {
            is_sections: true, ..
        } => "use tasks or a loop, which go by the number of threads".to_owned(),
        Cause::FewUnits {
            iterations,
            threads,
            ..
        } if *iterations >= 2.0 * *threads as f64 => "use smaller chunks".to_owned(),
        Cause::FewUnits { .. } => {
            "parallelise a loop with more iterations, or collapse two".to_owned()
        }
        Cause::OneThread { .. } => "make tasks or a loop of it, or give the others work".to_owned(),
        Cause::FewTasks {
            mean_s: Some(mean), ..
        } if *mean < TINY_S => "create larger tasks, on several threads".to_owned(),
        Cause::FewTasks {
            mean_s: Some(_), ..
        } => "divide the tasks, or create them earlier".to_owned(),
        Cause::FewTasks { .. } => return None,
        Cause::SlowCreation { .. } => {
            "create larger tasks, or create them on several threads".to_owned()
        }
        Cause::UnevenTasks { .. } => "begin with the largest tasks, or divide them".to_owned(),
        Cause::UntakenTasks { .. } => {
            "create larger tasks, or create them on several threads".to_owned()
        }
        Cause::UnevenCode => "divide it by a work-sharing construct".to_owned(),
        Cause::Late => return None,
        Cause::Held { .. } => {
            "hold it for less time, or use a reduction, atomics or several locks".to_owned()
        }
        Cause::InOrder { .. } => "move work out of the ordered part".to_owned(),
        Cause::ManyBarriers { .. } => {
            "use fewer barriers (nowait), or more work between them".to_owned()
        }
        Cause::Dependences { .. } => return None,
        Cause::OneByOne { .. } => "create several tasks before waiting for them".to_owned(),
        Cause::WaitsForTasks { task_s, .. } if *task_s < TINY_S => {
            "create larger tasks: stop at a size (cut-off)".to_owned()
        }
        Cause::WaitsForTasks { .. } => {
            "give the waiting thread work, or divide the tasks".to_owned()
        }
        Cause::CostlyTasks {
            create_s, task_s, ..
        } if *task_s < 10.0 * create_s => {
            "create larger tasks: stop at a size (cut-off), or use taskloop grainsize".to_owned()
        }
        Cause::CostlyTasks { .. } => return None,
        Cause::CostlyRanges { .. } => "use larger chunks".to_owned(),
        Cause::ShortRegions { executions, .. } if *executions > 1 => {
            "join regions, or leave small ones serial (if clause)".to_owned()
        }
        Cause::ShortRegions { .. } => "run longer, because this is paid once".to_owned(),
        Cause::NoProcessor {
            threads,
            processors: Some(n),
        } if *threads as f64 > *n => format!("set OMP_NUM_THREADS={}", (n.floor() as u64).max(1)),
        Cause::NoProcessor { .. } => "give the program processors of its own".to_owned(),
        Cause::SmallerTeam { .. } => {
            "let its team have more threads (num_threads, if, OMP_DYNAMIC)".to_owned()
        }
        Cause::Nested { .. } | Cause::Call { .. } | Cause::Unknown => return None,
    })
}

fn better_schedule(better: &Better) -> String {
    let assumed = match better.assumes_equal {
        true => ", if iterations of a range are equal",
        false => "",
    };
    format!(
        "{} would take {} of this time{assumed}",
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

/// What is predicted for other numbers of threads, in a sentence; `None`: nothing.
pub fn prediction(report: &Report, scaling: &Scaling) -> Option<String> {
    if let Some(silent) = scaling.silent {
        let why = match silent {
            Silent::TaskDependences => "how tasks depend on each other is not recorded",
            Silent::Ordered => "iterations wait for each other",
            Silent::Locks => "locks put their holders in an order",
            Silent::LeftOut => "some units are not on record",
            Silent::EachThread => {
                "code that every thread executes may divide its work by the thread's number"
            }
        };
        return Some(format!(
            "No prediction for other numbers of threads: {why}; --threads 1,2,4 measures it"
        ));
    }
    if let Some(error) = scaling.model_error.filter(|e| (e - 1.0).abs() > MOST_ERROR) {
        return Some(format!(
            "No prediction for other numbers of threads: for the {} of this run the model is off by {}",
            scaling.threads,
            percent((error - 1.0).abs())
        ));
    }
    let more = |p: &&Predicted| u64::from(p.threads) > scaling.threads;
    let predicted = scaling.predicted.iter().filter(more);
    let next = predicted.clone().find(|p| p.threads >= 4)?;
    let what = match next.limited_by {
        Some(id) => place(report, id),
        None => "the serial part".to_owned(),
    };
    let now = (scaling.predicted.iter()).find(|p| u64::from(p.threads) == scaling.threads);
    let now = now
        .filter(|p| p.threads > 1)
        .map(|p| format!(" ({} with {})", times(p.speedup), p.threads));
    let error = scaling.model_error.map_or(String::new(), |e| {
        format!(
            "; at {} threads the model is off by {}",
            scaling.threads,
            percent((e - 1.0).abs())
        )
    });
    let most = predicted.map(|p| p.speedup).fold(0.0, f64::max);
    if most < NO_HELP {
        return Some(format!(
            "More threads would not make it faster than {} times one thread: {what} limits it{error}",
            times(most)
        ));
    }
    Some(format!(
        "With {} threads it would be about {} times as fast as with 1{}, limited by {what}{error}",
        next.threads,
        times(next.speedup),
        now.unwrap_or_default(),
    ))
}

/// Why a span is a lower bound.
pub fn lower_bound(because: LowerBound) -> &'static str {
    match because {
        LowerBound::TaskDependences => {
            "tasks depend on each other (depend), in what order is not recorded"
        }
        LowerBound::Ordered => "ordered blocks wait for each other",
        LowerBound::Locks => "locks put their holders in an order",
        LowerBound::WholeRanges => "ranges of several iterations count as one unit each",
        LowerBound::LeftOut => "some units were not recorded",
    }
}

/// The parallel region or other place that a loss is at.
pub(crate) fn loss_place(report: &Report, loss: &Loss) -> Option<String> {
    let id = loss.region?;
    let region = report.regions.iter().find(|r| r.id == id);
    match region {
        // Without a source line the cause's own place tells more.
        Some(region) if region.source.is_none() => match names_place(&loss.cause) {
            true => None,
            false => region.function.as_deref().map(|f| readable(f).into_owned()),
        },
        _ => Some(place(report, id)),
    }
}

/// `id` of the region that a cause names.
pub(crate) fn cause_place(cause: &Cause) -> Option<u32> {
    match cause {
        Cause::UnevenUnits { at, .. }
        | Cause::UnevenDistribution { at, .. }
        | Cause::FewUnits { at, .. }
        | Cause::OneThread { at }
        | Cause::Communication { at, .. }
        | Cause::LateSender { at, .. }
        | Cause::Call { at, .. }
        | Cause::FewTasks { at, .. }
        | Cause::SlowCreation { at, .. }
        | Cause::UnevenTasks { at, .. }
        | Cause::UntakenTasks { at, .. }
        | Cause::Nested { at }
        | Cause::Held { at, .. }
        | Cause::InOrder { at, .. }
        | Cause::Dependences { at, .. }
        | Cause::OneByOne { at, .. }
        | Cause::WaitsForTasks { at, .. }
        | Cause::CostlyTasks { at, .. }
        | Cause::CostlyRanges { at, .. } => Some(*at),
        Cause::ManyBarriers { at, .. } => *at,
        Cause::SerialPart { .. }
        | Cause::UnevenCode
        | Cause::Late
        | Cause::ShortRegions { .. }
        | Cause::NoProcessor { .. }
        | Cause::SmallerTeam { .. }
        | Cause::Unknown => None,
    }
}

/// Whether the words for a cause say where it is.
fn names_place(cause: &Cause) -> bool {
    !matches!(
        cause,
        Cause::ShortRegions { .. }
            | Cause::UnevenCode
            | Cause::Late
            | Cause::SmallerTeam { .. }
            | Cause::Unknown
    )
}

fn place(report: &Report, id: u32) -> String {
    let region = report.regions.iter().find(|r| r.id == id);
    region.map_or_else(|| format!("#{id}"), location)
}

fn named(report: &Report, id: u32) -> String {
    let region = report.regions.iter().find(|r| r.id == id);
    let of = |r| format!("{} at {}", kind(r), location(r));
    region.map_or_else(|| format!("#{id}"), of)
}

/// A factor: two digits are enough.
pub(crate) fn times(factor: f64) -> String {
    match factor {
        f if f >= 9.95 => format!("{f:.0}"),
        f if f < 1.1 => format!("{f:.2}"),
        f if f == f.round() => format!("{f:.0}"),
        f => format!("{f:.1}"),
    }
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p >= 9.95 => format!("{p:.0}%"),
        p => format!("{p:.1}%"),
    }
}
