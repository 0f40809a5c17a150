//! What went wrong in a run, in words.

use crate::units::bytes as bytes_of;
use ompfuse_fuse::{Health, Problem};

/// All that was lost or broken.
pub fn health(health: &Health) -> Vec<String> {
    told(health, |_| true)
}

/// What makes execution units of a run be missing: not what is only inexact.
pub fn losses(health: &Health) -> Vec<String> {
    told(health, Problem::is_loss)
}

fn told(health: &Health, wanted: impl Fn(&Problem) -> bool) -> Vec<String> {
    let numbers = [
        (
            health.lost_records,
            "records could not be written: their counts and times are missing",
        ),
        (
            health.unlabelled_xus,
            "XUs have no label: they match no other run",
        ),
        (health.unknown_sites, "intervals have no known place"),
    ];
    let numbers = numbers.into_iter().filter(|(number, _)| *number > 0);
    let numbers = numbers.map(|(number, what)| format!("{number} {what}"));
    let problems = health.problems.iter().filter(|p| wanted(p));
    let ended = |p: &&Problem| matches!(p, Problem::EndedAtSize { .. });
    let (first, others): (Vec<&Problem>, Vec<&Problem>) = problems.partition(ended);
    let first = first.into_iter().map(problem);
    first
        .chain(numbers)
        .chain(in_words(others.into_iter()))
        .collect()
}

/// A problem that stands for itself.
pub fn problem(problem: &Problem) -> String {
    match problem {
        Problem::Malformed { file, error } => format!("{file}: {error}"),
        Problem::NoProcess { file, process } => format!(
            "{file}: process {process} has no readable process-{process}.json, its records are left out"
        ),
        Problem::Killed { pid } => format!(
            "process {pid} did not end in an orderly way (it was killed, or became another program): its last records may be \
                 missing"
        ),
        Problem::Unfinished { pid } => format!(
            "process {pid} ended without the C library's exit (by _exit, by a signal, or by becoming another program): no \
                 construct is missing, only code around constructs, and a call that it was in"
        ),
        Problem::ThreadsLost { pid, threads } => {
            format!("process {pid}: {}", threads_lost(*threads))
        }
        Problem::NotPatched { told, .. } => told.clone(),
        Problem::Stopped { pid, reason } => {
            format!("process {pid} stopped recording early: {reason}")
        }
        Problem::EstimatedClock { pid } => format!(
            "times of process {pid} are estimates: it left no reading of the clock at its end"
        ),
        Problem::NoClock { pid } => format!(
            "times of process {pid} are ticks, not nanoseconds: the clock's rate is unknown"
        ),
        Problem::UnknownModule { pid, path } => format!(
            "process {pid}: {path} is not in run.json, its constructs have no names and no labels"
        ),
        Problem::NotCounted {
            pid,
            event,
            intervals,
        } => format!("process {pid}: {}", not_counted(event, *intervals)),
        Problem::WithoutCounters { pid, threads, of } => {
            format!("process {pid}: {}", without_counters(*threads, *of))
        }
        Problem::EndedAtSize { bytes } => format!(
            "recording ended when the records reached {}: the rest of the run is missing (see --max-size)",
            bytes_of(*bytes)
        ),
        Problem::OverlappingProcesses { count } => format!(
            "{count} processes with the same modules ran at the same time: units that several of them have can't be matched \
                 between runs"
        ),
    }
}

/// The problems, with those that say the same of several events of a process made one: the names are in a row then.
fn by_events<'p>(problems: impl Iterator<Item = &'p Problem>) -> Vec<Problem> {
    let mut out: Vec<Problem> = Vec::new();
    for problem in problems {
        let same = |known: &&mut Problem| match (&**known, problem) {
            (
                Problem::NotCounted { pid, intervals, .. },
                Problem::NotCounted {
                    pid: of,
                    intervals: so_many,
                    ..
                },
            ) => (pid, intervals) == (of, so_many),
            _ => false,
        };
        match (out.iter_mut().find(same), problem) {
            (Some(Problem::NotCounted { event, .. }), Problem::NotCounted { event: next, .. }) => {
                event.push_str(", ");
                event.push_str(next);
            }
            _ => out.push(problem.clone()),
        }
    }
    out
}

/// The problems in words. What is told of several processes alike is one line with their number.
fn in_words<'p>(problems: impl Iterator<Item = &'p Problem>) -> Vec<String> {
    let problems = by_events(problems);
    let mut alike: Vec<(&Problem, Vec<&Problem>)> = Vec::new();
    for problem in &problems {
        match alike
            .iter_mut()
            .find(|(first, _)| are_alike(first, problem))
        {
            Some((_, others)) => others.push(problem),
            None => alike.push((problem, Vec::new())),
        }
    }
    let words = |(first, others): (&Problem, Vec<&Problem>)| match others.is_empty() {
        true => problem(first),
        false => together(first, &others),
    };
    alike.into_iter().map(words).collect()
}

/// Whether both say the same, each of its process, numbers aside.
fn are_alike(one: &Problem, other: &Problem) -> bool {
    use Problem::*;
    match (one, other) {
        (Killed { .. }, Killed { .. })
        | (Unfinished { .. }, Unfinished { .. })
        | (EstimatedClock { .. }, EstimatedClock { .. })
        | (NoClock { .. }, NoClock { .. })
        | (ThreadsLost { .. }, ThreadsLost { .. })
        | (WithoutCounters { .. }, WithoutCounters { .. }) => true,
        (Stopped { reason: one, .. }, Stopped { reason: two, .. })
        | (UnknownModule { path: one, .. }, UnknownModule { path: two, .. })
        | (NotCounted { event: one, .. }, NotCounted { event: two, .. }) => one == two,
        _ => false,
    }
}

/// What is said of the first one's process and those of others like it.
fn together(first: &Problem, others: &[&Problem]) -> String {
    let all = || std::iter::once(&first).chain(others);
    let processes = all().count();
    match first {
        Problem::Killed { .. } => format!(
            "{processes} processes did not end in an orderly way (they were killed, or became other programs): their last \
                 records may be missing"
        ),
        Problem::Unfinished { .. } => format!(
            "{processes} processes ended without the C library's exit (by _exit, by a signal, or by becoming other programs): \
                 no construct is missing, only code around constructs, and calls that they were in"
        ),
        Problem::EstimatedClock { .. } => format!(
            "times of {processes} processes are estimates: they left no reading of the clock at their end"
        ),
        Problem::NoClock { .. } => format!(
            "times of {processes} processes are ticks, not nanoseconds: the clock's rate is unknown"
        ),
        Problem::ThreadsLost { .. } => {
            let of_each = all().map(|p| match p {
                Problem::ThreadsLost { threads, .. } => *threads,
                _ => 0,
            });
            let words = threads_lost(of_each.sum());
            format!("{processes} processes: {words}")
        }
        Problem::Stopped { reason, .. } => {
            format!("{processes} processes stopped recording early: {reason}")
        }
        Problem::UnknownModule { path, .. } => format!(
            "{processes} processes: {path} is not in run.json, its constructs have no names and no labels"
        ),
        Problem::NotCounted { event, .. } => {
            let of_each = all().map(|p| match p {
                Problem::NotCounted { intervals, .. } => *intervals,
                _ => 0,
            });
            let sum: u64 = of_each.sum();
            format!("{processes} processes: {}", not_counted(event, sum))
        }
        Problem::WithoutCounters { .. } => {
            let of_each = all().map(|p| match p {
                Problem::WithoutCounters { threads, of, .. } => (*threads, *of),
                _ => (0, 0),
            });
            let (threads, of) = of_each.fold((0, 0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
            format!("{processes} processes: {}", without_counters(threads, of))
        }
        other => problem(other),
    }
}

fn threads_lost(threads: u64) -> String {
    match threads {
        1 => "a thread could not be recorded: what it executed is missing".to_owned(),
        _ => format!("{threads} threads could not be recorded: what they executed is missing"),
    }
}

/// Of an event, or of several in a row.
fn not_counted(event: &str, intervals: u64) -> String {
    let were = if event.contains(", ") { "were" } else { "was" };
    format!(
        "{event} {were} not counted for {intervals} intervals (other programs had the processor's counters, or the program closed the \
         descriptors)"
    )
}

fn without_counters(threads: u32, of: u32) -> String {
    format!(
        "no event was counted in {threads} of {of} threads, whose counters could not be opened (the kernel refused, or had no \
         descriptors left but the program's own, see `ulimit -Hn`); counts that they have a part in are not known"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_were_not_recorded_are_a_loss() {
        let mut health = Health::default();
        health
            .problems
            .push(Problem::ThreadsLost { pid: 5, threads: 1 });
        health.problems.push(Problem::Unfinished { pid: 5 });
        let threads = "process 5: a thread could not be recorded: what it executed is missing";
        assert_eq!(losses(&health), [threads]);
    }

    /// The events of a program that closes their descriptors stop counting together.
    #[test]
    fn events_that_were_not_counted_alike_are_one_line() {
        let mut health = Health::default();
        for (event, intervals) in [("task-clock", 7), ("page-faults", 7), ("cycles", 5)] {
            let event = event.to_owned();
            let pid = 3;
            let problem = Problem::NotCounted {
                pid,
                event,
                intervals,
            };
            health.problems.push(problem);
        }
        let notes = super::health(&health);
        let starts = [
            "process 3: task-clock, page-faults were not counted for 7 intervals",
            "process 3: cycles was not counted for 5 intervals",
        ];
        assert_eq!(notes.len(), starts.len(), "{notes:?}");
        for (note, start) in notes.iter().zip(starts) {
            assert!(note.starts_with(start), "{note}");
        }
    }

    /// A program that goes on as another one leaves a process without end each time.
    #[test]
    fn what_many_processes_have_in_common_is_one_line() {
        let mut health = Health::default();
        for pid in 1..=3 {
            health.problems.push(Problem::EstimatedClock { pid });
            health.problems.push(Problem::Killed { pid });
            health.problems.push(Problem::NotCounted {
                pid,
                event: if pid < 3 { "cycles" } else { "branches" }.to_owned(),
                intervals: 5,
            });
        }
        let starts = [
            "times of 3 processes are estimates: they left",
            "3 processes did not end in an orderly way",
            "2 processes: cycles was not counted for 10 intervals",
            "process 3: branches was not counted for 5 intervals",
        ];
        let notes = super::health(&health);
        assert_eq!(notes.len(), starts.len(), "{notes:?}");
        for (note, start) in notes.iter().zip(starts) {
            assert!(note.starts_with(start), "{note}");
        }
        assert_eq!(losses(&health), [notes[1].clone()]);
    }
}
