//! What samples tell.

use crate::model::sampled::{EndedThread, SampledEnding, SampledLast};
use crate::model::{Sampled, SampledFunction, SampledLine, SampledWork, UncountedWork};
use ompfuse_fuse::samples::{Ending, SampledPlace, SampledSum, SampledSums};
use ompfuse_fuse::summary::Summary;

/// The samples of a summary. `ids`: the regions' numbers by site.
pub(super) fn sampled(summary: &Summary, ids: &[u32]) -> Option<Sampled> {
    let SampledSums {
        rate,
        samples,
        tells_counted,
        regions,
        held,
        ending,
    } = summary.sampled.as_ref()?;
    let all = |sums: &[SampledSum]| {
        let sums = sums.iter().map(|sum| SampledWork {
            region: sum.site.and_then(|site| ids.get(site as usize).copied()),
            work: sum.work,
            uncounted: tells_counted.then(|| of_region(sum)),
            functions: sum.functions.iter().map(function).collect(),
            lines: sum.lines.iter().map(line).collect(),
            importing: sum.importing,
            uneven: sum.uneven.clone(),
            asleep: sum.asleep.clone(),
        });
        sums.collect()
    };
    Some(Sampled {
        rate: *rate,
        samples: *samples,
        work: regions.iter().map(|sum| sum.work).sum(),
        uncounted: uncounted(summary.sampled.as_ref()?),
        regions: all(regions),
        held: all(held),
        endings: ending.iter().map(of_process).collect(),
    })
}

/// Threads of an ending that are kept.
const THREADS: usize = 20;

fn of_process(ending: &Ending) -> SampledEnding {
    let Ending { silent_s, threads } = ending;
    let threads = threads.iter().take(THREADS).map(|thread| EndedThread {
        tid: thread.tid,
        is_main: thread.is_main,
        last: SampledLast::new(&thread.last, thread.construct.as_ref()),
    });
    SampledEnding {
        rank: None,
        silent_s: *silent_s,
        threads: threads.collect(),
    }
}

/// How much of the regions' work isn't counted; `None`: it is not known.
pub fn uncounted(sampled: &SampledSums) -> Option<UncountedWork> {
    of_sites(sampled, |_| true)
}

/// The same of regions at some sites.
pub fn of_sites(sampled: &SampledSums, is_meant: impl Fn(u32) -> bool) -> Option<UncountedWork> {
    let meant = |sum: &&SampledSum| sum.site.is_some_and(&is_meant);
    let mut all = UncountedWork::default();
    for sum in sampled.regions.iter().filter(meant) {
        all.add(&of_region(sum));
    }
    sampled.tells_counted.then_some(all)
}

fn of_region(sum: &SampledSum) -> UncountedWork {
    let mut found = UncountedWork::default();
    let functions = sum.functions.iter().filter(|(place, _)| !place.is_counted);
    let functions = functions.map(|of| {
        let mut function = function(of);
        let path = function.object.as_deref();
        let name = path.and_then(|path| path.rsplit('/').next());
        function.object = name.map(str::to_owned);
        function
    });
    found.add(&UncountedWork {
        work: sum.work,
        uncounted: sum.uncounted,
        functions: functions.collect(),
    });
    found
}

fn function((place, samples): &(SampledPlace, u64)) -> SampledFunction {
    SampledFunction {
        function: place.function.clone(),
        object: place.object.clone(),
        samples: *samples,
        total: 0,
    }
}

fn line((place, samples): &(SampledPlace, u64)) -> SampledLine {
    SampledLine {
        function: place.function.clone(),
        inlined_into: place.inlined_into.clone(),
        file: place.file.clone(),
        line: place.line,
        object: place.object.clone(),
        callee: None,
        samples: *samples,
    }
}
