//! What went wrong in a run, as values: reports print it, nothing is passed over in silence.

use serde::{Deserialize, Serialize};

/// What a run's reader found missing or broken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Records that could not be written while the program ran.
    pub lost_records: u64,
    /// XUs whose chain of parents is broken: they have no label.
    pub unlabelled_xus: u64,
    /// Intervals that refer to a site which the run's header does not have.
    pub unknown_sites: u64,
    /// Everything else.
    pub problems: Vec<Problem>,
}

impl Health {
    /// All of it in words.
    pub fn notes(&self) -> Vec<String> {
        self.told(|_| true)
    }

    /// What makes execution units of the run be missing, in words: not what is only inexact.
    pub fn losses(&self) -> Vec<String> {
        self.told(|problem| {
            !matches!(
                problem,
                Problem::EstimatedClock { .. }
                    | Problem::NoClock { .. }
                    | Problem::NotCounted { .. }
                    | Problem::WithoutCounters { .. }
                    | Problem::OverlappingProcesses { .. }
                    | Problem::Unfinished { .. }
            )
        })
    }

    fn told(&self, wanted: impl Fn(&Problem) -> bool) -> Vec<String> {
        let numbers = [
            (
                self.lost_records,
                "records could not be written: counts and times are too low by what they held",
            ),
            (
                self.unlabelled_xus,
                "XUs have no label: they match no other run",
            ),
            (self.unknown_sites, "intervals have no known place"),
        ];
        let numbers = numbers.into_iter().filter(|(number, _)| *number > 0);
        let numbers = numbers.map(|(number, what)| format!("{number} {what}"));
        let problems = self.problems.iter().filter(|p| wanted(p));
        let ended = |p: &&Problem| matches!(p, Problem::EndedAtSize { .. });
        let (first, others): (Vec<&Problem>, Vec<&Problem>) = problems.partition(ended);
        let first = first.into_iter().map(Problem::to_string);
        first
            .chain(numbers)
            .chain(in_words(others.into_iter()))
            .collect()
    }

    /// Whether nothing was lost or broken.
    pub fn is_good(&self) -> bool {
        *self == Health::default()
    }
}

/// Something that makes a run less than complete or exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "problem", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Problem {
    /// A file that can't be read; what came before the error is used.
    #[error("{file}: {error}")]
    Malformed {
        /// Name in the run folder.
        file: String,
        /// What is wrong.
        error: String,
    },
    /// A record file whose process left no readable header: its records are not used.
    #[error(
        "{file}: process {process} has no readable process-{process}.json, its records are left out"
    )]
    NoProcess {
        /// Name in the run folder.
        file: String,
        /// The process as file names have it: its number, and how many had that number before.
        process: String,
    },
    /// The process did not end in an orderly way.
    #[error(
        "process {pid} did not end in an orderly way (killed, or it became another program): what it recorded last may be missing"
    )]
    Killed {
        /// The process.
        pid: u32,
    },
    /// The process did not say that it ends, but no construct on record went on then.
    #[error(
        "process {pid} ended without the C library's exit (_exit, as workers of a pool do, a signal, or another program in its \
         place), outside of all constructs on record: none of these is missing, only the code around them"
    )]
    Unfinished {
        /// The process.
        pid: u32,
    },
    /// Threads that found no room for their records.
    #[error("process {pid}: {}", threads_lost(*threads))]
    ThreadsLost {
        /// The process.
        pid: u32,
        /// How many there were.
        threads: u64,
    },
    /// Recording stopped before the process ended.
    #[error("process {pid} stopped recording early: {reason}")]
    Stopped {
        /// The process.
        pid: u32,
        /// Why, in the runtime library's words.
        reason: String,
    },
    /// The rate of the time stamp counter had to be estimated from readings at the begin, or the run's duration.
    #[error("times of process {pid} are estimates: it left no reading of the clock at its end")]
    EstimatedClock {
        /// The process.
        pid: u32,
    },
    /// The rate of the time stamp counter is not known.
    #[error("times of process {pid} are ticks, not nanoseconds: nothing tells the clock's rate")]
    NoClock {
        /// The process.
        pid: u32,
    },
    /// A module whose sites are not in the run's header.
    #[error("process {pid}: {path} is not in run.json, its constructs have no names and no labels")]
    UnknownModule {
        /// The process.
        pid: u32,
        /// The module's path.
        path: String,
    },
    /// A counter was not running all the time: the counts of these intervals are left out.
    #[error("process {pid}: {}", not_counted(event, *intervals))]
    NotCounted {
        /// The process.
        pid: u32,
        /// The event.
        event: String,
        /// How many intervals have no count.
        intervals: u64,
    },
    /// Threads whose counters could not be opened.
    #[error("process {pid}: {}", without_counters(*threads, *of))]
    WithoutCounters {
        /// The process.
        pid: u32,
        /// How many threads count nothing.
        threads: u32,
        /// How many threads it has.
        of: u32,
    },
    /// Recording was ended before the program did, so that its records don't fill the disk.
    #[error(
        "recording ended when the records had {}: what the program did afterwards is not in here (see --max-size)",
        size(*bytes)
    )]
    EndedAtSize {
        /// How many bytes they had.
        bytes: u64,
    },
    /// Several processes ran at once.
    #[error(
        "{count} processes with the same modules ran at the same time: what several of them have in common can't be matched between runs"
    )]
    OverlappingProcesses {
        /// How many.
        count: u32,
    },
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
        match alike.iter_mut().find(|(first, _)| first.is_like(problem)) {
            Some((_, others)) => others.push(problem),
            None => alike.push((problem, Vec::new())),
        }
    }
    let words = |(first, others): (&Problem, Vec<&Problem>)| match others.is_empty() {
        true => first.to_string(),
        false => first.with(&others),
    };
    alike.into_iter().map(words).collect()
}

impl Problem {
    /// Whether the other one says the same of another process, numbers aside.
    fn is_like(&self, other: &Problem) -> bool {
        use Problem::*;
        match (self, other) {
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

    /// What is said of this one's process and those of others like it.
    fn with(&self, others: &[&Problem]) -> String {
        let all = || std::iter::once(&self).chain(others);
        let processes = all().count();
        match self {
            Problem::Killed { .. } => format!(
                "{processes} processes did not end in an orderly way (killed, or they became other programs): what they recorded last \
                 may be missing"
            ),
            Problem::Unfinished { .. } => format!(
                "{processes} processes ended without the C library's exit (_exit, as workers of a pool do, a signal, or another program \
                 in their place), outside of all constructs on record: none of these is missing, only the code around them"
            ),
            Problem::EstimatedClock { .. } => format!(
                "times of {processes} processes are estimates: they left no reading of the clock at their end"
            ),
            Problem::NoClock { .. } => format!(
                "times of {processes} processes are ticks, not nanoseconds: nothing tells the clock's rate"
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
            _ => self.to_string(),
        }
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

/// A number of bytes, with a unit.
fn size(bytes: u64) -> String {
    let unit = |power: i32| bytes as f64 / 1e3f64.powi(power);
    match bytes {
        0..1_000_000 => format!("{:.0} kB", unit(1)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", unit(2)),
        _ => format!("{:.1} GB", unit(3)),
    }
}
