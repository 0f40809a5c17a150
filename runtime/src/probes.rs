//! What each kind of probe does (`ompfuse_format::abi::Probe`), by family.

mod depend;
mod divide;
pub(crate) mod inline;
pub(crate) mod locks;
pub(crate) mod loops;
pub(crate) mod messages;
pub(crate) mod parallel;
pub(crate) mod started;
pub(crate) mod sync;
pub(crate) mod taskloop;
pub(crate) mod tasks;

pub(crate) use tasks::empty as empty_task;

use crate::entry::Call;
use crate::thread::Thread;
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;

/// The probe of a call site, which is the site's. Returns what the original target returned.
#[inline(always)]
pub(crate) fn call(probe: Option<Probe>, thread: &Thread, call: &Call) -> u64 {
    match probe {
        Some(Probe::Parallel) => parallel::gomp(thread, call, None, Construct::Loop),
        Some(Probe::ParallelLoop) => parallel::gomp_loop(thread, call),
        Some(Probe::ParallelSections) => {
            parallel::gomp(thread, call, Some((0, 1)), Construct::Sections)
        }
        Some(Probe::Fork) => parallel::fork(thread, call),
        Some(Probe::SerializedBegin) => started::serialized_begin(thread, call),
        Some(Probe::SerializedEnd) => started::end(thread, call),
        Some(Probe::LoopStart) => loops::start(thread, call),
        Some(Probe::LoopNext) => loops::next(thread, call),
        Some(Probe::LoopEnd) => loops::end(thread, call),
        Some(Probe::LoopEndNowait) => loops::end_nowait(thread, call),
        Some(Probe::SectionsStart) => loops::sections_start(thread, call),
        Some(Probe::SectionsNext) => loops::sections_next(thread, call),
        Some(Probe::DispatchInit) => loops::dispatch_init(thread, call),
        Some(Probe::DispatchNext) => loops::dispatch_next(thread, call),
        Some(Probe::StaticInit) => loops::static_init(thread, call),
        Some(Probe::StaticFini) => loops::static_fini(thread, call),
        Some(Probe::SingleStart) => sync::single_start(thread, call),
        Some(Probe::SingleCopyStart) => sync::single_copy_start(thread, call),
        Some(Probe::SingleEnd) => sync::block_end(thread, call),
        Some(Probe::MasterStart) => sync::master_start(thread, call),
        Some(Probe::MasterQuery) => sync::master_query(thread, call),
        Some(Probe::MasterEnd) => sync::block_end(thread, call),
        Some(Probe::MutexEnter) => sync::mutex_enter(thread, call),
        Some(Probe::MutexExit) => sync::mutex_exit(thread, call),
        Some(Probe::Barrier) => sync::barrier(thread, call),
        Some(Probe::Taskwait) => sync::taskwait(thread, call),
        Some(Probe::TaskgroupStart) => depend::group(thread, call),
        Some(Probe::TaskEvent) => tasks::event(thread, call),
        Some(Probe::EventFulfill) => depend::fulfill(thread, call),
        Some(Probe::TaskAlloc) => tasks::alloc(thread, call),
        Some(Probe::TaskEnqueue) => tasks::enqueue(thread, call),
        Some(Probe::TaskBeginIf0) => tasks::begin_if0(thread, call),
        Some(Probe::TaskCompleteIf0) => tasks::complete_if0(thread, call),
        Some(Probe::TaskloopPattern) => taskloop::pattern(thread, call),
        Some(Probe::Service) => sync::service(thread, call),
        Some(Probe::Cancel) => sync::cancel(thread, call),
        Some(Probe::ParallelReductions) => parallel::gomp(thread, call, None, Construct::Loop),
        Some(Probe::Enclosed) => sync::enclosed(thread, call),
        Some(Probe::DoacrossPost) => sync::doacross(thread, call, false),
        Some(Probe::DoacrossWait) => sync::doacross(thread, call, true),
        Some(Probe::DoacrossInit) => sync::doacross_init(thread, call),
        Some(Probe::LockSet) => locks::set(thread, call),
        Some(Probe::LockTest) => locks::test(thread, call),
        Some(Probe::LockUnset) => locks::unset(thread, call),
        Some(Probe::MutexTake) => locks::take(thread, call),
        Some(Probe::MutexTry) => locks::attempt(thread, call),
        Some(Probe::ConditionWait) => locks::condition(thread, call),
        Some(Probe::ReduceBegin) => sync::reduce_begin(thread, call),
        Some(Probe::ReduceEnd) => sync::reduce_end(thread, call),
        Some(Probe::BarrierMaster) => sync::barrier_master(thread, call),
        Some(Probe::ForkIf) => parallel::fork_if(thread, call),
        Some(Probe::ParallelStart) => started::start(thread, call),
        Some(Probe::ParallelEnd) => started::end(thread, call),
        Some(Probe::Message) => messages::message(thread, call),
        Some(Probe::TeamNext) => started::team_next(thread, call),
        // A probe of another slot, or one of a later version: the program's call and nothing else.
        _ => call.forward_only(),
    }
}

/// The probe of a call with an argument block to copy. `space`: room for the copy, null if there is none.
pub(crate) fn task(thread: &Thread, call: &Call, space: *mut u8) -> u64 {
    match Probe::from_number(call.site().probe) {
        Some(Probe::TaskCreate) => tasks::create(thread, call, space),
        Some(Probe::Taskloop) => taskloop::create(thread, call, space),
        _ => call.forward_only(),
    }
}
