//! OpenMP constructs and waits, by number (in records) and name (in JSON, tables and pattern files).

use serde::{Deserialize, Serialize};

macro_rules! constructs {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Kind of an OpenMP thing. Numbers are never reused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
}
