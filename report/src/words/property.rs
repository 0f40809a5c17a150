//! What performance properties mean, and what usually helps.

use ompfuse_account::model::PropertyKind;

/// Its name in a table.
pub(crate) fn name(kind: PropertyKind) -> &'static str {
    match kind {
        PropertyKind::WaitAtBarrier => "waiting at a barrier",
        PropertyKind::ImbalanceInParallelRegion => "imbalance in a parallel region",
        PropertyKind::ImbalanceInLoop => "imbalance in a loop",
        PropertyKind::ImbalanceInWorkshare => "imbalance at an implicit barrier",
        PropertyKind::ImbalanceInSections => "imbalance in sections",
        PropertyKind::UnevenSectionDistribution => "unevenly distributed sections",
        PropertyKind::NotEnoughSections => "not enough sections",
        PropertyKind::CriticalSectionContention => "contention for a critical section",
        PropertyKind::LockContention => "contention for a lock",
        PropertyKind::OrderedWait => "waiting for ordered",
        PropertyKind::FrequentAtomic => "frequent atomic operations",
        PropertyKind::ReductionWait => "waiting to reduce",
        PropertyKind::UnparallelizedInSingle => "one thread alone in single",
        PropertyKind::UnparallelizedInMaster => "one thread alone in master",
        PropertyKind::WaitForTasks => "waiting for tasks",
        PropertyKind::TaskCreation => "creating tasks",
        PropertyKind::LoopScheduling => "distributing iterations",
        PropertyKind::ThreadManagement => "waking and joining threads",
        #[allow(unreachable_patterns)]
        _ => "loss",
    }
}

/// What it means and what usually helps, in a sentence.
pub(crate) fn advice(kind: PropertyKind) -> &'static str {
    match kind {
        PropertyKind::WaitAtBarrier => {
            "threads wait there for slower ones: distribute the work before it evenly, or remove the barrier"
        }
        PropertyKind::ImbalanceInParallelRegion => {
            "threads are done early and wait for the slowest: give them equal shares, or smaller ones dynamically"
        }
        PropertyKind::ImbalanceInLoop => {
            "threads wait at the loop's end: use schedule(dynamic) or guided, other chunks, or nowait if the following code \
                 permits"
        }
        PropertyKind::ImbalanceInWorkshare => {
            "threads wait for slower ones: distribute the work before it evenly, or use nowait if the following code permits"
        }
        PropertyKind::ImbalanceInSections => {
            "the sections take different times: divide the longest, or use tasks"
        }
        PropertyKind::UnevenSectionDistribution => {
            "some threads got more sections than others: make one per thread or many more, or use tasks"
        }
        PropertyKind::NotEnoughSections => {
            "there are fewer sections than threads: divide them, or use tasks or a loop"
        }
        PropertyKind::CriticalSectionContention => {
            "threads queue for it: do less inside, give unrelated sections different names, or use a reduction"
        }
        PropertyKind::LockContention => {
            "threads queue for it: hold it for a shorter time, or use a lock for each part of the data"
        }
        PropertyKind::OrderedWait => {
            "iterations wait for their turn: move work out of the ordered block, and use schedule(static,1)"
        }
        PropertyKind::FrequentAtomic => {
            "many updates of shared data: let each thread sum up its own part (reduction)"
        }
        PropertyKind::ReductionWait => {
            "threads queue to combine their parts: reduce in fewer regions, or fewer variables"
        }
        PropertyKind::UnparallelizedInSingle => {
            "the others wait while one thread works: create tasks in it, use nowait, or move it elsewhere"
        }
        PropertyKind::UnparallelizedInMaster => {
            "the others have nothing to do while one thread works: share the block out, or overlap it with other work"
        }
        PropertyKind::WaitForTasks => {
            "no task is left to execute: create more or smaller ones, or wait later"
        }
        PropertyKind::TaskCreation => {
            "creating tasks takes long compared with their work: create fewer and larger \
                 ones, with a cut-off (if, final) or a grain size"
        }
        PropertyKind::LoopScheduling => {
            "fetching iterations takes long compared with their work: use larger chunks, or schedule(static)"
        }
        PropertyKind::ThreadManagement => {
            "regions are short compared with what starting them costs: merge regions, or use fewer threads"
        }
        #[allow(unreachable_patterns)]
        _ => "threads lose time there",
    }
}
