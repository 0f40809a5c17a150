//! What a probe at a site does.

use super::{SLOT_CALL, SLOT_INLINE, SLOT_TASK};
use serde::Serialize;

macro_rules! probes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// What a probe does. Numbers are never reused (47 was one), those from 40 to 59 are for inline probes; names are those of
        /// the pattern files.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[repr(u8)]
        pub enum Probe {
            $($(#[$doc])* #[serde(rename = $text)] $name = $number,)*
        }
        impl Probe {
            /// Every probe.
            pub const ALL: &[Probe] = &[$(Probe::$name),*];
            /// The name in pattern files.
            pub const fn name(self) -> &'static str {
                match self { $(Probe::$name => $text,)* }
            }
            /// The probe with this number.
            #[inline(always)]
            pub const fn from_number(number: u8) -> Option<Probe> {
                match number { $($number => Some(Probe::$name),)* _ => None }
            }
        }
    };
}

probes! {
    /// `args = [fn, data]`: the body follows into other threads (`GOMP_parallel`), or is executed for every team of a league.
    Parallel = 1, "parallel";
    /// `args = [fn, data, start, end, incr]`: as [`Probe::Parallel`], and each thread is in a loop from the start.
    ParallelLoop = 2, "parallel-loop";
    /// `__kmpc_fork_call(loc, argc, microtask, ...)`, `__kmpc_fork_teams` likewise.
    Fork = 3, "fork";
    /// A serialised parallel region begins; the program calls the body itself.
    SerializedBegin = 4, "serialized-begin";
    /// A serialised parallel region ends.
    SerializedEnd = 5, "serialized-end";
    /// `args = [start, incr, *istart, *iend, dimensions]`, the last of doacross loops; a true result says that a range was fetched.
    LoopStart = 6, "loop-start";
    /// `args = [*istart, *iend]`; result as in [`Probe::LoopStart`].
    LoopNext = 7, "loop-next";
    /// The end of a loop with its barrier inside.
    LoopEnd = 8, "loop-end";
    /// The end of a loop without barrier.
    LoopEndNowait = 9, "loop-end-nowait";
    /// `args = [lb, ub, st]`.
    DispatchInit = 10, "dispatch-init";
    /// `args = [*lb, *ub]`; a true result says that a range was fetched.
    DispatchNext = 11, "dispatch-next";
    /// `args = [loc, schedule, *lower, *upper, *stride, incr, chunk, *last]`. Without a schedule it deals chunks. `*last`: where
    /// the part ends that the team got of a loop distributed to teams and threads at once.
    StaticInit = 12, "static-init";
    /// The end of a static loop.
    StaticFini = 13, "static-fini";
    /// A true result says that this thread executes the `single`.
    SingleStart = 14, "single-start";
    /// A null result says that this thread executes the `single`.
    SingleCopyStart = 15, "single-copy-start";
    /// The end of a `single`, on its executing thread. With `args = [data]`: the others wait for the data, and the barrier
    /// is inside (`GOMP_single_copy_end`).
    SingleEnd = 16, "single-end";
    /// A true result says that this thread executes the `master` or `masked` block.
    MasterStart = 17, "master-start";
    /// The end of a `master` or `masked` block.
    MasterEnd = 18, "master-end";
    /// Waits for a lock, then holds it (`critical` and others, by construct). `args = [lock]` where the construct names it.
    MutexEnter = 19, "mutex-enter";
    /// Releases the lock.
    MutexExit = 20, "mutex-exit";
    /// A barrier: `args = [loc]` for KMPC, whose flags tell implicit ones. With a `second`, the static loop of site `param`
    /// begins behind it, with the bounds that site `second - 1` has computed (as [`Probe::InlineLoopAgain`]).
    Barrier = 21, "barrier";
    /// Waits for tasks, executing others meanwhile. `args = [depend]`, or `[count, *list, count, *list, no wait]`, where it names dependences.
    Taskwait = 22, "taskwait";
    /// `GOMP_task`: `args = [fn, data, cpyfn, size, align, if, flags, depend]`. Uses [`SLOT_TASK`].
    TaskCreate = 23, "task-create";
    /// `args = [flags, sizeof_task, sizeof_shareds, entry]`; the result is the task.
    TaskAlloc = 24, "task-alloc";
    /// `args = [task, count, *list, count, *list]`: hands the task to the runtime, with lists of what it depends on.
    TaskEnqueue = 25, "task-enqueue";
    /// `args = [task]`: the program executes the task itself from here.
    TaskBeginIf0 = 26, "task-begin-if0";
    /// `args = [task]`: ... to here.
    TaskCompleteIf0 = 27, "task-complete-if0";
    /// The number (from 1) of the section to execute, 0 for none, is the result. With `args = [loc]` none is fetched yet.
    SectionsStart = 28, "sections-start";
    /// As [`Probe::SectionsStart`]. With `args = [count]` numbers are from 0, and one below that is a section.
    SectionsNext = 29, "sections-next";
    /// `args = [fn, data]`: as [`Probe::Parallel`], and each thread is in a `sections` construct from the start.
    ParallelSections = 30, "parallel-sections";
    /// `omp_get_thread_num` right before the test that makes a `master`: the result equal to `param`, the block is entered.
    MasterQuery = 31, "master-query";
    /// `args = [number of teams, first]`: a true result says that the caller executes the next team of a league itself, the
    /// first one if `first` is true. Else the league has ended (`GOMP_teams4`, on the host).
    TeamNext = 32, "team-next";
    /// Inline. `args = [divisor]`: the dividend (rax, of `width` bytes) is the trip count and register `divisor` (or
    /// nothing) the number of threads of a static loop that gcc computes itself. Register numbers are x86's (rax 0 ... r15 15).
    /// `second`: loops with the same bounds that a thread without iterations passes unseen ([`followers`]). Of a
    /// `distribute` loop the number of teams divides.
    InlineLoopBegin = 40, "inline-loop-begin";
    /// Inline. `args = [register, filter, base]`: if the register, which holds the thread number, is equal to the filter, the block is
    /// entered. The filter is in a register, or in memory at `base + param`, or else it is `param`.
    InlineMaster = 41, "inline-master";
    /// Inline. The construct of site `region` ends here, if this thread is in it.
    InlineEnd = 42, "inline-end";
    /// Inline. A static loop begins whose bounds the compiler has computed for site `param` (a loop's begin, or an
    /// [`Probe::InlineLoopShare`]), earlier in the same execution of the function. `second` as in
    /// [`Probe::InlineLoopBegin`].
    InlineLoopAgain = 43, "inline-loop-again";
    /// Inline. Before each comparison of a chunk's first iteration with the trip count, in a loop whose chunks gcc deals
    /// round itself: the loop (`region`) begins, or its next chunk, or it ends. `args = [start, bound, base]`: these registers
    /// hold the two; the chunk is executed if `start < bound + second` (without register: `start < second`). With `base`,
    /// one of the two is in memory at `base + param`: the start if it has no register, else the bound.
    InlineChunk = 44, "inline-chunk";
    /// Inline. The next chunk of the static loop of site `region` begins, if there is one. The first one counts.
    InlineNextChunk = 45, "inline-next-chunk";
    /// Inline. As [`Probe::InlineLoopBegin`], but no loop begins: each one that has these bounds says so itself
    /// ([`Probe::InlineLoopAgain`]).
    InlineLoopShare = 46, "inline-loop-share";
    /// Inline. A function of site `site` is entered: the stack pointer leads to its return address.
    FunctionEnter = 48, "function-enter";
    /// Inline. The function of site `region` is about to return, or to jump to another one: the stack pointer is what it was at the entry.
    FunctionLeave = 49, "function-leave";
    /// Inline. An iteration of the loop of site `site` begins: the first one, if none was going on at this stack pointer.
    LoopIterate = 50, "loop-iterate";
    /// Inline. Whoever is here has left the loop of site `region`, if it was in it at this stack pointer.
    LoopLeave = 51, "loop-leave";
    /// `GOMP_taskloop*`: `args = [fn, data, cpyfn, flags, start, end, step]`, size and alignment of the block where
    /// [`Probe::TaskCreate`] has them. Uses [`SLOT_TASK`].
    Taskloop = 60, "taskloop";
    /// `__kmpc_taskloop*`: `args = [task, *lower, *upper, step, nogroup]`; the task is the pattern of those to be made.
    TaskloopPattern = 61, "taskloop-pattern";
    /// A call that does a part of its construct and nothing else: it is timed.
    Service = 62, "service";
    /// A true result says that cancellation was activated, or seen, here.
    Cancel = 63, "cancel";
    /// As [`Probe::Parallel`]; the runtime reads the first word behind `data`.
    ParallelReductions = 64, "parallel-reductions";
    /// The call does all of the construct: its time, waiting where the construct is one that waits.
    Enclosed = 70, "enclosed";
    /// `args = [lock]`: waits for an OpenMP lock, then holds it until some [`Probe::LockUnset`].
    LockSet = 71, "lock-set";
    /// `args = [lock]`: a true result says that the lock is held now.
    LockTest = 72, "lock-test";
    /// `args = [lock]`: releases the lock.
    LockUnset = 73, "lock-unset";
    /// Combines a reduction: the result 1 says that this thread does it now, holding the reduction's lock.
    ReduceBegin = 74, "reduce-begin";
    /// ... to here; what waits inside is the barrier at the construct's end.
    ReduceEnd = 75, "reduce-end";
    /// `__kmpc_fork_call_if(loc, argc, microtask, condition, args)`.
    ForkIf = 76, "fork-if";
    /// A barrier that the master leaves first (a true result), to execute a block before the others go on.
    BarrierMaster = 77, "barrier-master";
    /// `args = [fn, data, start, incr]`: as [`Probe::Parallel`], but the caller executes its part itself between this call
    /// and [`Probe::ParallelEnd`]. With a start the threads are in a loop; with `args = [fn, data, -, count]` in `sections`.
    ParallelStart = 78, "parallel-start";
    /// The end of a region that [`Probe::ParallelStart`] began.
    ParallelEnd = 79, "parallel-end";
    /// As [`Probe::Enclosed`], of a call of MPI whose arguments tell what it hands over: `args` as in [`super::handed`].
    Message = 80, "message";
    /// `args = [*vector]`: an iteration of a doacross loop has come so far.
    DoacrossPost = 81, "doacross-post";
    /// Waits for an iteration of a doacross loop: `args = [*vector]`, else the arguments are its vector.
    DoacrossWait = 82, "doacross-wait";
    /// `args = [dimensions]` of the doacross loop that begins.
    DoacrossInit = 83, "doacross-init";
    /// `args = [lock]`: as [`Probe::LockSet`], of a function that gives back 0 if the lock is held now, or the number for one whose
    /// last owner died.
    MutexTake = 84, "mutex-take";
    /// `args = [lock]`: as [`Probe::LockTest`], with the result of [`Probe::MutexTake`].
    MutexTry = 85, "mutex-try";
    /// `args = [lock]`: as [`Probe::Enclosed`], and the lock is released meanwhile.
    ConditionWait = 86, "condition-wait";
    /// A taskgroup begins.
    TaskgroupStart = 87, "taskgroup-start";
    /// `args = [task]`: the result is the event that this task's end waits for.
    TaskEvent = 88, "task-event";
    /// `args = [event]`: it is fulfilled.
    EventFulfill = 89, "event-fulfill";
}

impl Probe {
    /// Whether control reaches it from a trampoline rather than from a call site.
    pub const fn is_inline(self) -> bool {
        matches!(self as u8, 40..60)
    }

    /// The slot that its stub uses.
    pub const fn slot(self) -> usize {
        match self {
            Probe::TaskCreate | Probe::Taskloop => SLOT_TASK,
            p if p.is_inline() => SLOT_INLINE,
            _ => SLOT_CALL,
        }
    }
}
