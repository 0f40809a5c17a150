//! Which line or function most of the work behind a loss is in, by samples.

use crate::model::sampled::LEAST;
use crate::model::{
    Behind, Cause, Loss, MostIn, Region, Sampled, SampledFunction, SampledLine, SampledWork,
};
use ompfuse_format::site::Source;
use ompfuse_fuse::names::readable;

/// From this share of a construct's turns on it is what is in it that others wait for.
const MOSTLY: f64 = 0.5;

/// Functions of a serial part that are named.
const NAMED: usize = 3;

/// Adds what samples tell of each loss.
pub(crate) fn add(losses: &mut [Loss], sampled: &Sampled, regions: &[Region]) {
    for loss in losses {
        loss.behind = behind(sampled, regions, loss);
    }
}

/// What is executed while others wait.
enum Work {
    /// Of a region, or outside of all.
    Of(Option<u32>),
    /// What threads execute in a construct that admits one at a time.
    In(u32),
}

fn work(loss: &Loss, cause: &Cause) -> Option<Work> {
    match cause {
        Cause::SerialPart { function: None, .. } => Some(Work::Of(None)),
        Cause::UnevenUnits { at, .. }
        | Cause::UnevenDistribution { at, .. }
        | Cause::FewUnits { at, .. }
        | Cause::OneThread { at }
        | Cause::FewTasks { at, .. }
        | Cause::UnevenTasks { at, .. }
        | Cause::Dependences { at, .. }
        | Cause::WaitsForTasks { at, .. }
        | Cause::AtOnce { at, .. } => Some(Work::Of(Some(*at))),
        Cause::OneByOne { tasks, .. } => Some(Work::Of(Some(*tasks))),
        Cause::UnevenCode => loss.region.map(|id| Work::Of(Some(id))),
        Cause::Held { at, .. } => Some(Work::In(*at)),
        Cause::InOrder {
            slow: Some(slow), ..
        } => work(loss, slow),
        Cause::InOrder { at, in_block, .. } if *in_block >= Some(MOSTLY) => Some(Work::In(*at)),
        _ => None,
    }
}

fn behind(sampled: &Sampled, regions: &[Region], loss: &Loss) -> Option<Behind> {
    let work = work(loss, &loss.cause)?;
    let (list, id) = match work {
        Work::Of(id) => (&sampled.regions, id),
        Work::In(id) => (&sampled.held, Some(id)),
    };
    let own = regions.iter().find(|r| Some(r.id) == id);
    // A compiler's copies of a line are one place.
    let is_copy = |other: &Region| {
        let place = |r: &Region| (r.source.clone(), r.construct);
        own.is_some_and(|own| own.source.is_some() && place(own) == place(other))
    };
    let is_meant = |found: Option<u32>| {
        let copy = || regions.iter().any(|r| Some(r.id) == found && is_copy(r));
        found == id || copy()
    };
    let mut all = SampledWork::default();
    for one in list.iter().filter(|one| is_meant(one.region)) {
        all.absorb(one);
    }
    let most_in = most_in(&all, own);
    let is_named = |f: &&SampledFunction| f.function.is_some() && f.samples >= LEAST;
    let functions = match (id, &most_in) {
        (None, None) => all
            .functions
            .iter()
            .filter(is_named)
            .take(NAMED)
            .cloned()
            .collect(),
        _ => vec![],
    };
    let is_uneven = matches!(
        loss.cause,
        Cause::UnevenUnits { .. }
            | Cause::UnevenDistribution { .. }
            | Cause::UnevenTasks { .. }
            | Cause::FewUnits { .. }
    );
    Some(Behind {
        samples: all.work,
        most_in,
        functions,
        importing: (id.is_none() && all.importing >= LEAST).then_some(all.importing),
        uneven: all.uneven.filter(|_| is_uneven),
    })
}

/// `own`: the region, of which what it says itself isn't said again.
fn most_in(work: &SampledWork, own: Option<&Region>) -> Option<MostIn> {
    let most = |n: u64| is_most(n, work.work);
    let line = work
        .lines
        .iter()
        .find(|l| l.line.is_some() && most(l.samples));
    if let Some(line) = line {
        let SampledLine {
            function,
            inlined_into: _,
            file,
            line,
            object: _,
            callee: _,
            samples,
        } = line;
        let source = own.and_then(|own| own.source.as_ref());
        // A directive's loop is in the line below it.
        let own_lines = |s: &Source| [Some(s.line), s.line.checked_add(1)];
        let is_own = |s: &Source| Some(&s.file) == file.as_ref() && own_lines(s).contains(line);
        return (!source.is_some_and(is_own)).then(|| MostIn {
            function: function.clone().filter(|f| !is_of(own, f)),
            object: None,
            file: file.clone(),
            line: *line,
            samples: *samples,
        });
    }
    let named = |f: &&SampledFunction| f.function.is_some() || f.object.is_some();
    let function = work.functions.iter().filter(named);
    let mut function = function.filter(|f| most(f.samples));
    let SampledFunction {
        function,
        object,
        samples,
        total: _,
    } = function.next()?;
    let is_own = function.as_ref().is_some_and(|f| is_of(own, f));
    (!is_own).then(|| MostIn {
        function: function.clone(),
        object: object.clone(),
        file: None,
        line: None,
        samples: *samples,
    })
}

/// Whether more than half is certain: by two standard errors, of at least ten samples.
fn is_most(n: u64, of: u64) -> bool {
    let share = n as f64 / of.max(1) as f64;
    let error = (share * (1.0 - share) / of.max(1) as f64).sqrt();
    n >= LEAST && share - 2.0 * error > 0.5
}

/// Whether a function is that of the region, or a part that the compiler made of it.
fn is_of(own: Option<&Region>, function: &str) -> bool {
    let part = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let own = own.and_then(|own| own.function.as_deref());
    own.is_some_and(|own| part(&readable(own)) == part(function))
}
