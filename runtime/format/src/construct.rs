//! OpenMP constructs and waits, by number (in records) and name (in JSON, tables and pattern files).

use serde::{Deserialize, Serialize};

macro_rules! constructs {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Kind of an OpenMP thing. Numbers are never reused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[repr(u8)]
        pub enum Construct {
            $($(#[$doc])* #[serde(rename = $text)] $name = $number,)*
        }
        impl Construct {
            /// Every construct, in the order of the numbers.
            pub const ALL: &[Construct] = &[$(Construct::$name),*];

            /// The name used in JSON, tables and pattern files.
            pub const fn name(self) -> &'static str {
                match self { $(Construct::$name => $text,)* }
            }

            /// The construct with this number in a record.
            #[inline]
            pub const fn from_number(number: u8) -> Option<Construct> {
                match number { $($number => Some(Construct::$name),)* _ => None }
            }

            /// As [`Construct::from_number`], without a branch; a service of the runtime, where there is no such construct.
            #[inline]
            pub const fn or_service(number: u8) -> Construct {
                const BY_NUMBER: [Construct; 256] = {
                    let mut table = [Construct::Service; 256];
                    $(table[$number] = Construct::$name;)*
                    table
                };
                BY_NUMBER[number as usize]
            }
        }
    };
}

constructs! {
    /// The thread's code outside every construct: the root of the labels.
    Program = 0, "program";
    /// A parallel region (combined forms too); its record is the encountering thread's fork to join.
    Parallel = 1, "parallel";
    /// One thread's part of a parallel region, from begin to end of its outlined function.
    ImplicitTask = 2, "implicit-task";
    /// A work-sharing loop as one thread sees it.
    Loop = 3, "loop";
    /// An executed range of loop iterations: an XU.
    Range = 4, "range";
    /// A `sections` construct.
    Sections = 5, "sections";
    /// One executed section: an XU.
    Section = 6, "section";
    /// A `single` construct, on the thread that executes it.
    Single = 7, "single";
    /// A `master` or `masked` construct, or code that compiles to the same instructions.
    Master = 8, "master";
    /// A `critical` construct.
    Critical = 9, "critical";
    /// An atomic operation that needs the runtime.
    Atomic = 10, "atomic";
    /// An `ordered` block.
    Ordered = 11, "ordered";
    /// A barrier written by the user, or one that can't be told from such.
    Barrier = 12, "barrier";
    /// A barrier at the end of a work-sharing construct or a parallel region.
    ImplicitBarrier = 13, "implicit-barrier";
    /// An explicit task's execution: an XU.
    Task = 14, "task";
    /// The creation of a task, inside the runtime.
    TaskCreate = 15, "task-create";
    /// A `taskwait`.
    Taskwait = 16, "taskwait";
    /// A `taskgroup`.
    Taskgroup = 17, "taskgroup";
    /// A `taskyield`.
    Taskyield = 18, "taskyield";
    /// A `taskloop`.
    Taskloop = 19, "taskloop";
    /// An OpenMP lock.
    Lock = 20, "lock";
    /// A `flush`.
    Flush = 21, "flush";
    /// `cancel` and cancellation points.
    Cancel = 22, "cancel";
    /// A host `teams` construct.
    Teams = 23, "teams";
    /// A `distribute` loop.
    Distribute = 24, "distribute";
    /// A `scope` construct.
    Scope = 25, "scope";
    /// The combination of a reduction's parts.
    Reduction = 26, "reduction";
    /// The host side of a `target` construct.
    Target = 27, "target";
    /// Fetching the next range of a loop, inside the runtime.
    Dispatch = 28, "dispatch";
    /// Memory, threadprivate and other services of the runtime that are no construct.
    Service = 29, "service";
    /// One team's part of a `teams` region, from begin to end of its outlined function.
    Team = 30, "team";
    /// A region that the program names itself (`include/ompfuse.h`).
    UserRegion = 31, "user-region";
    /// A call of MPI in which the process may wait for others.
    Mpi = 32, "mpi";
    /// One call of a function of the program (`--functions`), from its entry to its exit.
    Function = 33, "function";
    /// One execution of a loop of the program that is no construct (`--loops`), from its first iteration to its exit; its extent
    /// is a [`trips`] word.
    NaturalLoop = 34, "natural-loop";
    /// A call of POSIX or C11 threads in which the thread may wait for others (`--calls pthread`).
    Pthread = 35, "pthread";
    /// A call that reads or writes files or connections, or waits for them (`--calls io`).
    Io = 36, "io";
    /// A call of CUDA in which the host waits for the device (`--calls cuda`).
    Cuda = 37, "cuda";
    /// A call of HIP in which the host waits for the device (`--calls hip`).
    Hip = 38, "hip";
}

/// What a thread does in a construct's own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Charge {
    /// It executes the program's code.
    Work,
    /// It waits for other threads.
    Wait,
    /// It is in the OpenMP runtime.
    Runtime,
    /// It waits to enter, as long as the interval's extent says; for the rest it is in the OpenMP runtime.
    Entry,
}

impl Charge {
    /// As tables print it.
    pub const fn name(self) -> &'static str {
        match self {
            Charge::Work => "work",
            Charge::Wait => "wait",
            Charge::Runtime => "runtime",
            Charge::Entry => "wait to enter, then runtime",
        }
    }
}

/// Class of overhead, after ompP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OverheadClass {
    /// Barriers, taskwait, entering critical sections and locks, atomics, flush.
    Synchronization,
    /// Waiting at the end of parallel regions and work-sharing for slower threads.
    Imbalance,
    /// Waiting because there was not enough to do: behind what one thread executes, too few sections.
    LimitedParallelism,
    /// Starting and ending threads' parts, creating tasks, fetching ranges.
    Management,
}

impl OverheadClass {
    /// Every class in the order of tables.
    pub const ALL: [OverheadClass; 4] = [
        OverheadClass::Synchronization,
        OverheadClass::Imbalance,
        OverheadClass::LimitedParallelism,
        OverheadClass::Management,
    ];

    /// As tables print it.
    pub const fn name(self) -> &'static str {
        match self {
            OverheadClass::Synchronization => "synchronization",
            OverheadClass::Imbalance => "imbalance",
            OverheadClass::LimitedParallelism => "limited parallelism",
            OverheadClass::Management => "management",
        }
    }
}

/// Whom threads wait for at a barrier or a region's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitsFor {
    /// Others, that work as they did themselves.
    Others,
    /// One thread, that executes a block alone (`single`, `master`) while the others have nothing to do.
    OneThread,
    /// Others that execute sections, of which there are fewer than threads.
    FewSections,
}

impl WaitsFor {
    /// Whether there was not enough to do for all threads.
    const fn is_limited(self) -> bool {
        matches!(self, WaitsFor::OneThread | WaitsFor::FewSections)
    }
}

/// What a team's threads do between a parallel region's fork and join, before and after their parts of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AroundPart {
    /// They are created and woken.
    Startup,
    /// They wait for the end of the team's last work.
    End(WaitsFor),
    /// They are sent to sleep.
    Shutdown,
}

impl AroundPart {
    /// Its class of overhead.
    pub const fn overhead_class(self) -> OverheadClass {
        match self {
            AroundPart::Startup | AroundPart::Shutdown => OverheadClass::Management,
            AroundPart::End(waits_for) if waits_for.is_limited() => {
                OverheadClass::LimitedParallelism
            }
            AroundPart::End(_) => OverheadClass::Imbalance,
        }
    }
}

/// Own time by what the thread does, in the unit that it was given in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Split {
    /// The program's code.
    pub work: u64,
    /// Waiting.
    pub wait: u64,
    /// In the OpenMP runtime otherwise.
    pub runtime: u64,
}

impl core::ops::AddAssign for Split {
    fn add_assign(&mut self, other: Split) {
        self.work += other.work;
        self.wait += other.wait;
        self.runtime += other.runtime;
    }
}

/// What own time is spent on and which class of overhead it is: the one table, which `docs/reference/classes.md` prints.
impl Construct {
    /// What a thread does in this construct's own time.
    pub const fn charges_to(self) -> Charge {
        match self {
            Construct::Program
            | Construct::ImplicitTask
            | Construct::Loop
            | Construct::Range
            | Construct::Sections
            | Construct::Section
            | Construct::Single
            | Construct::Master
            | Construct::Task
            | Construct::Team
            | Construct::Distribute
            | Construct::Target
            | Construct::UserRegion
            | Construct::Function
            | Construct::NaturalLoop
            | Construct::Io => Charge::Work,
            Construct::Barrier
            | Construct::ImplicitBarrier
            | Construct::Taskwait
            | Construct::Taskgroup
            | Construct::Flush
            | Construct::Mpi
            | Construct::Pthread
            | Construct::Cuda
            | Construct::Hip => Charge::Wait,
            Construct::Critical
            | Construct::Atomic
            | Construct::Ordered
            | Construct::Lock
            | Construct::Reduction => Charge::Entry,
            Construct::Parallel
            | Construct::Teams
            | Construct::TaskCreate
            | Construct::Taskyield
            | Construct::Taskloop
            | Construct::Cancel
            | Construct::Scope
            | Construct::Dispatch
            | Construct::Service => Charge::Runtime,
        }
    }

    /// The class of the time in which it doesn't work; `None`: it only works. Of the time after entering ([`Charge::Entry`])
    /// see [`Construct::AFTER_ENTRY`].
    pub const fn overhead_class(self) -> Option<OverheadClass> {
        match (self, self.charges_to()) {
            (_, Charge::Work) => None,
            (Construct::ImplicitBarrier, _) => Some(OverheadClass::Imbalance),
            (_, Charge::Wait | Charge::Entry) => Some(OverheadClass::Synchronization),
            (_, Charge::Runtime) => Some(OverheadClass::Management),
        }
    }

    /// The same where it is known whom the thread waits for.
    pub const fn overhead_class_for(self, waits_for: WaitsFor) -> Option<OverheadClass> {
        match self {
            Construct::Barrier | Construct::ImplicitBarrier if waits_for.is_limited() => {
                Some(OverheadClass::LimitedParallelism)
            }
            _ => self.overhead_class(),
        }
    }

    /// The class of what is in the OpenMP runtime after entering ([`Charge::Entry`]).
    pub const AFTER_ENTRY: OverheadClass = OverheadClass::Management;

    /// Divides own time. `extent`: that of the intervals, in the same unit.
    pub fn split(self, own: u64, extent: u64) -> Split {
        let none = Split::default();
        match self.charges_to() {
            Charge::Work => Split { work: own, ..none },
            Charge::Wait => Split { wait: own, ..none },
            Charge::Runtime => Split {
                runtime: own,
                ..none
            },
            Charge::Entry => Split {
                wait: extent.min(own),
                runtime: own - extent.min(own),
                ..none
            },
        }
    }
}

impl Construct {
    /// Whether an executed instance of it is an execution unit ([XU] section 4).
    #[inline]
    pub const fn is_xu(self) -> bool {
        matches!(
            self,
            Construct::Range | Construct::Section | Construct::Task
        )
    }

    /// Whether it is the program's own code that was chosen by name, and no construct: labels don't know of it.
    #[inline(always)]
    pub const fn is_code(self) -> bool {
        matches!(self, Construct::Function | Construct::NaturalLoop)
    }

    /// Whether it hands its body to several threads or teams, each of which has a part of it.
    #[inline]
    pub const fn is_fork(self) -> bool {
        matches!(self, Construct::Parallel | Construct::Teams)
    }

    /// Whether it is such a part.
    #[inline]
    pub const fn is_part(self) -> bool {
        matches!(self, Construct::ImplicitTask | Construct::Team)
    }

    /// Whether its intervals tell, as their extent, how long a thread waited before it got in.
    #[inline]
    pub const fn is_exclusive(self) -> bool {
        matches!(
            self,
            Construct::Critical
                | Construct::Lock
                | Construct::Ordered
                | Construct::Atomic
                | Construct::Reduction
        )
    }

    /// Whether it is a call of another library, which is known by the function that is called.
    #[inline]
    pub const fn is_call(self) -> bool {
        matches!(
            self,
            Construct::Mpi | Construct::Pthread | Construct::Io | Construct::Cuda | Construct::Hip
        )
    }

    /// Whether a thread in it waits for others (or works on other tasks meanwhile).
    #[inline]
    pub const fn is_wait(self) -> bool {
        matches!(
            self,
            Construct::Barrier
                | Construct::ImplicitBarrier
                | Construct::Taskwait
                | Construct::Taskgroup
        )
    }
}

/// The extent of a natural loop's interval: its iterations, and whether the interval is inside another one of the same loop (recursion).
pub mod trips {
    /// Encodes both. `iterations`: how often the loop's header was executed.
    #[inline(always)]
    pub const fn encode(iterations: u64, is_inner: bool) -> u64 {
        iterations << 1 | is_inner as u64
    }

    /// The iterations.
    #[inline(always)]
    pub const fn iterations(extent: u64) -> u64 {
        extent >> 1
    }

    /// Whether another execution of the loop went on, whose time from begin to end has that of this one.
    #[inline(always)]
    pub const fn is_inner(extent: u64) -> bool {
        extent & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique_and_round_trip() {
        for (i, &c) in Construct::ALL.iter().enumerate() {
            assert_eq!(Construct::from_number(c as u8), Some(c));
            assert_eq!(Construct::or_service(c as u8), c);
            assert_eq!(
                serde_json::to_string(&c).unwrap(),
                format!("\"{}\"", c.name())
            );
            assert!(Construct::ALL[i + 1..].iter().all(|d| d.name() != c.name()));
        }
        assert_eq!(Construct::from_number(255), None);
        assert_eq!(Construct::or_service(255), Construct::Service);
    }

    /// The documentation's table, row by row: the constructs with one kind of time and one class.
    #[test]
    fn the_documentation_prints_the_table() {
        let text = include_str!("../../../docs/reference/classes.md");
        let mut rows: Vec<(String, Vec<String>)> = vec![];
        for c in Construct::ALL {
            let class = c.overhead_class().map_or("", OverheadClass::name);
            let kind = format!("| {} | {class} |", c.charges_to().name());
            let name = format!("`{}`", c.name());
            match rows.iter_mut().find(|(of, _)| *of == kind) {
                Some((_, names)) => names.push(name),
                None => rows.push((kind, vec![name])),
            }
        }
        for (kind, names) in rows {
            let row = format!("{kind} {} |", names.join(", "));
            let is_there = text.lines().any(|line| line == row);
            assert!(is_there, "docs/reference/classes.md should print: {row}");
        }
    }

    /// What the documentation says of limited parallelism.
    #[test]
    fn who_waits_for_one_thread_or_few_sections_has_too_little_to_do() {
        let limited = Some(OverheadClass::LimitedParallelism);
        for &c in Construct::ALL {
            let others = c.overhead_class_for(WaitsFor::Others);
            assert_eq!(others, c.overhead_class(), "{c:?}");
            for waits_for in [WaitsFor::OneThread, WaitsFor::FewSections] {
                let is_barrier = matches!(c, Construct::Barrier | Construct::ImplicitBarrier);
                let class = c.overhead_class_for(waits_for);
                assert_eq!(class == limited, is_barrier, "{c:?}");
            }
        }
        let end = |waits_for| Some(AroundPart::End(waits_for).overhead_class());
        assert_eq!(end(WaitsFor::OneThread), limited);
        assert_eq!(end(WaitsFor::Others), Some(OverheadClass::Imbalance));
    }

    #[test]
    fn own_time_is_divided_without_rest() {
        for &c in Construct::ALL {
            for (own, extent) in [(0, 0), (0, 7), (10, 3), (10, 30)] {
                let split = c.split(own, extent);
                assert_eq!(split.work + split.wait + split.runtime, own, "{c:?}");
                assert_eq!(split.work > 0, own > 0 && c.overhead_class().is_none());
            }
        }
    }
}
