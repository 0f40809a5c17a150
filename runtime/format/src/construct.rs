//! OpenMP constructs and waits, by number (in records) and name (in JSON, tables and pattern files).

use serde::{Deserialize, Serialize};
use zerocopy::FromZeros;

macro_rules! constructs {
    ($($(#[$doc:meta])* $name:ident = $number:tt, $text:literal, $group:ident, $charge:ident;)*) => {
        /// Kind of an OpenMP thing. Numbers are never reused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, FromZeros)]
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

            /// What it is like, in which all else agrees.
            pub const fn group(self) -> Group {
                match self { $(Construct::$name => Group::$group,)* }
            }

            /// What a thread does in this construct's own time.
            pub const fn charges_to(self) -> Charge {
                match self { $(Construct::$name => Charge::$charge,)* }
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

// The one table of constructs: number, name, group, and what own time is spent on. `docs/design/adding-a-construct.md` says what a
// new row needs besides.
constructs! {
    /// The thread's code outside every construct: the root of the labels.
    Program = 0, "program", Root, Work;
    /// A parallel region (combined forms too); its record is the encountering thread's fork to join.
    Parallel = 1, "parallel", Fork, Runtime;
    /// One thread's part of a parallel region, from begin to end of its outlined function.
    ImplicitTask = 2, "implicit-task", Part, Work;
    /// A work-sharing loop as one thread sees it.
    Loop = 3, "loop", Loop, Work;
    /// An executed range of loop iterations: an XU.
    Range = 4, "range", Share, Work;
    /// A `sections` construct.
    Sections = 5, "sections", Sections, Work;
    /// One executed section: an XU.
    Section = 6, "section", Share, Work;
    /// A `single` construct, on the thread that executes it.
    Single = 7, "single", Block, Work;
    /// A `master` or `masked` construct, or code that compiles to the same instructions.
    Master = 8, "master", Block, Work;
    /// A `critical` construct.
    Critical = 9, "critical", Mutex, Entry;
    /// An atomic operation that needs the runtime.
    Atomic = 10, "atomic", Exclusion, Entry;
    /// An `ordered` block.
    Ordered = 11, "ordered", Exclusion, Entry;
    /// A barrier written by the user, or one that can't be told from such.
    Barrier = 12, "barrier", Barrier, Wait;
    /// A barrier at the end of a work-sharing construct or a parallel region.
    ImplicitBarrier = 13, "implicit-barrier", Barrier, Wait;
    /// An explicit task's execution: an XU.
    Task = 14, "task", Task, Work;
    /// The creation of a task, inside the runtime.
    TaskCreate = 15, "task-create", Creation, Runtime;
    /// A `taskwait`.
    Taskwait = 16, "taskwait", TaskWait, Wait;
    /// A `taskgroup`.
    Taskgroup = 17, "taskgroup", TaskWait, Wait;
    /// A `taskyield`.
    Taskyield = 18, "taskyield", Other, Runtime;
    /// A `taskloop`.
    Taskloop = 19, "taskloop", Creation, Runtime;
    /// An OpenMP lock.
    Lock = 20, "lock", Mutex, Entry;
    /// A `flush`.
    Flush = 21, "flush", Other, Wait;
    /// `cancel` and cancellation points.
    Cancel = 22, "cancel", Other, Runtime;
    /// A host `teams` construct.
    Teams = 23, "teams", Fork, Runtime;
    /// A `distribute` loop.
    Distribute = 24, "distribute", Loop, Work;
    /// A `scope` construct.
    Scope = 25, "scope", Other, Runtime;
    /// The combination of a reduction's parts.
    Reduction = 26, "reduction", Exclusion, Entry;
    /// The host side of a `target` construct.
    Target = 27, "target", Other, Work;
    /// Fetching the next range of a loop, inside the runtime.
    Dispatch = 28, "dispatch", Other, Runtime;
    /// Memory, threadprivate and other services of the runtime that are no construct.
    Service = 29, "service", Other, Runtime;
    /// One team's part of a `teams` region, from begin to end of its outlined function.
    Team = 30, "team", Part, Work;
    /// A region that the program names itself (`include/ompfuse.h`).
    UserRegion = 31, "user-region", User, Work;
    /// A call of MPI in which the process may wait for others.
    Mpi = 32, "mpi", Call, Wait;
    /// One call of a function of the program (`--functions`), from its entry to its exit.
    Function = 33, "function", Code, Work;
    /// One execution of a loop of the program that is no construct (`--loops`), from its first iteration to its exit; its extent
    /// is a [`trips`] word.
    NaturalLoop = 34, "natural-loop", Code, Work;
    /// A call of POSIX or C11 threads in which the thread may wait for others (`--calls pthread`).
    Pthread = 35, "pthread", Call, Wait;
    /// A call that reads or writes files or connections, or waits for them (`--calls io`).
    Io = 36, "io", Call, Work;
    /// A call of CUDA in which the host waits for the device (`--calls cuda`).
    Cuda = 37, "cuda", Call, Wait;
    /// A call of HIP in which the host waits for the device (`--calls hip`).
    Hip = 38, "hip", Call, Wait;
    /// A call of OpenCL in which the host waits for the device (`--calls opencl`).
    OpenCl = 39, "opencl", Call, Wait;
}

/// Constructs that everything treats alike, but for their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// Code outside every construct.
    Root,
    /// It hands its body to several threads or teams.
    Fork,
    /// The part of such a body that one thread or team executes.
    Part,
    /// A work-sharing construct that divides iterations.
    Loop,
    /// A work-sharing construct that divides blocks.
    Sections,
    /// An execution unit that a work-sharing construct hands out, by number.
    Share,
    /// A block that one thread executes, while others may wait.
    Block,
    /// It is entered by one thread at a time, through a lock that has a number.
    Mutex,
    /// It is entered by one thread at a time, without such a lock.
    Exclusion,
    /// A barrier of the team.
    Barrier,
    /// An explicit task.
    Task,
    /// Creating tasks, inside the runtime.
    Creation,
    /// Waiting for tasks.
    TaskWait,
    /// Code that the program's author names.
    User,
    /// Code that is chosen by its function's name.
    Code,
    /// A call of another library.
    Call,
    /// None of these.
    Other,
}

/// The constructs of some groups, as bits of their numbers.
const fn members(groups: &[Group]) -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < Construct::ALL.len() {
        let construct = Construct::ALL[at];
        let mut of = 0;
        while of < groups.len() {
            if construct.group() as u8 == groups[of] as u8 {
                bits |= 1 << construct as u8;
            }
            of += 1;
        }
        at += 1;
    }
    bits
}

/// Questions about a construct that its group answers, each by one test of a bit.
macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident: $($group:ident)|+;)*) => {
        impl Construct {
            $($(#[$doc])*
            #[inline(always)]
            pub const fn $name(self) -> bool {
                const MEMBERS: u64 = members(&[$(Group::$group),+]);
                MEMBERS & (1 << self as u8) != 0
            })*
        }
    };
}

questions! {
    /// Whether an executed instance of it is an execution unit ([XU] section 4).
    is_xu: Share | Task;
    /// Whether it is an execution unit that a work-sharing construct hands out.
    is_share: Share;
    /// Whether it divides iterations among threads or teams.
    is_loop: Loop;
    /// Whether it divides iterations or sections.
    is_divided: Loop | Sections;
    /// Whether one thread executes it while others may wait.
    is_block: Block;
    /// Whether it is the program's own code that was chosen by name, and no construct: labels don't know of it.
    is_code: Code;
    /// Whether it hands its body to several threads or teams, each of which has a part of it.
    is_fork: Fork;
    /// Whether it is such a part.
    is_part: Part;
    /// Whether its intervals tell, as their extent, how long a thread waited before it got in.
    is_exclusive: Mutex | Exclusion;
    /// Whether it is entered through a lock that has a number.
    is_mutex: Mutex;
    /// Whether it is a call of another library, which is known by the function that is called.
    is_call: Call;
    /// Whether it is a barrier of the team.
    is_barrier: Barrier;
    /// Whether it creates tasks.
    is_creation: Creation;
    /// Whether a thread in it waits for tasks.
    is_task_wait: TaskWait;
    /// Whether a thread in it waits for others (or works on other tasks meanwhile).
    is_wait: Barrier | TaskWait;
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

/// Which class of overhead own time is, which `docs/reference/classes.md` prints.
impl Construct {
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
        match self.is_barrier() && waits_for.is_limited() {
            true => Some(OverheadClass::LimitedParallelism),
            false => self.overhead_class(),
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
