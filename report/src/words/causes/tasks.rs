//! Causes among tasks, in words.

use super::places::place;
use super::{percent, times};
use ompfuse_account::model::{Cause, Report};
use ompfuse_account::units::{count, seconds};

/// Tasks with less parallelism run one after another.
const A_CHAIN: f64 = 1.2;

/// Of tasks.
pub(super) fn of_tasks(report: &Report, cause: &Cause) -> Option<String> {
    let plain = |id: &u32| place(report, *id);
    Some(match cause {
        Cause::FewTasks {
            at: id,
            parallelism,
            mean_s,
            longest_s,
            ..
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
            ..
        } => format!(
            "threads wait for the last of the tasks at {}, which could keep {} threads busy{}",
            plain(id),
            times(*parallelism),
            longest_task(*mean_s, *longest_s)
        ),
        Cause::UntakenTasks { at: id, .. } => format!(
            "threads sleep or look for tasks too late while those at {} are ready",
            plain(id)
        ),
        Cause::AtOnce {
            at: id,
            in_yield: true,
            ..
        } => format!(
            "the thread that creates tasks at {} executes them itself in a taskyield",
            plain(id)
        ),
        Cause::AtOnce {
            at: id,
            parallelism,
            ..
        } => {
            let busy = parallelism.map(|p| format!(", so {} threads are busy at most", times(p)));
            format!(
                "the thread that creates tasks at {} executes them at once (if or final clause){}",
                plain(id),
                busy.unwrap_or_default()
            )
        }
        Cause::AwaitsEvent {
            at: id,
            count: tasks,
        } => format!(
            "nobody works until an event is fulfilled (detach, {} at {})",
            match tasks {
                1 => "1 task".to_owned(),
                n => format!("{} tasks", count(*n)),
            },
            plain(id)
        ),
        Cause::Dependences {
            at: id,
            count: tasks,
            parallelism,
            excludes,
        } => {
            let tasks = format!(
                "threads wait for the {} tasks at {}",
                count(*tasks),
                plain(id)
            );
            match parallelism {
                _ if *excludes => {
                    format!("{tasks}, which exclude each other (mutexinoutset)")
                }
                None => {
                    format!("{tasks}, which depend on each other; in what order is not recorded")
                }
                Some(p) if *p < A_CHAIN => format!(
                    "{tasks}, which depend on each other: they are a chain, so more threads don't help"
                ),
                Some(p) => format!(
                    "{tasks}, which depend on each other: they could keep {} threads busy",
                    times(*p)
                ),
            }
        }
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
            "threads that wait for tasks at {} ({} each) execute no others, though some are ready",
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
        _ => return None,
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
