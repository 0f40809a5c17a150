//! Which functions are looked at.

use super::Job;
use crate::scan::draft::Draft;
use crate::scan::functions::Function;
use crate::scan::{Module, calls, madvise, names};
use ompfuse_patterns::Runtime;
use rustc_hash::FxHashSet;

/// What compilers put into the names of outlined functions.
const OUTLINED_MARKS: [&str; 3] = ["_omp_fn", "omp_outlined", ".extracted"];

/// Functions with candidates; and sites at candidates outside of functions, which can't be patched.
pub(crate) fn jobs(module: &Module<'_>, candidates: Vec<u64>) -> (Vec<Job>, Vec<Draft>) {
    let settled = !module.entries.hand_over(Runtime::Kmpc);
    let mut jobs: Vec<Job> = Vec::new();
    let mut orphans = Vec::new();
    for va in candidates {
        let Some(function) = module.functions.at(va) else {
            let why = "in no known function: where instructions begin is unknown";
            let draft = calls::undecoded(module, va, why);
            orphans.push(draft);
            continue;
        };
        match jobs.last_mut() {
            Some(job) if job.function == function => job.candidates.push(va),
            _ => jobs.push(Job {
                function,
                candidates: vec![va],
                outlined: seems_outlined(module.functions.get(function)),
                trouble: None,
                settled,
            }),
        }
    }
    if jobs.is_empty() && orphans.is_empty() && !module.entries.callees.is_empty() {
        // Code of the large model calls through registers only: no bytes tell, so that all has to be decoded.
        jobs.extend((0..module.functions.count()).map(|function| Job {
            function,
            candidates: vec![module.functions.get(function).start],
            outlined: seems_outlined(module.functions.get(function)),
            trouble: None,
            settled,
        }));
    }
    // The whole code was searched for them.
    module.madvise.read(madvise::STEP);
    jobs.retain(|job| {
        let name = module.functions.get(job.function).base_name();
        !(module.entries.contains_runtime && name.is_some_and(names::is_runtime_internal))
    });
    let known: FxHashSet<usize> = jobs.iter().map(|job| job.function).collect();
    let all = module.wanted.len().max(module.looped.len());
    let others = (0..all).filter(|&n| module.is_wanted(n) && !known.contains(&n));
    jobs.extend(others.map(|function| Job {
        function,
        candidates: Vec::new(),
        outlined: seems_outlined(module.functions.get(function)),
        trouble: None,
        settled,
    }));
    (jobs, orphans)
}

/// Whether a function is likely to be an outlined one. What depends on it is corrected when all calls are known.
pub(super) fn seems_outlined(function: &Function<'_>) -> bool {
    let marked = |name: &str| OUTLINED_MARKS.iter().any(|mark| name.contains(mark));
    function.name.is_none_or(marked)
}
