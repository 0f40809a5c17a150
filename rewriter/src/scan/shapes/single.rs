//! gcc's `single`: its begin is a call, its end isn't.

use super::Analysis;
use super::ends::{End, Own};
use super::why::Endless;
use crate::scan::draft::Draft;
use crate::scan::flow::value::Value;
use ompfuse_format::abi::Probe;

/// The ends of a function's `single` constructs, with the numbers of the drafts that begin them.
pub(super) fn find(a: &Analysis<'_, '_>, drafts: &[Draft]) -> Vec<(usize, End)> {
    let all = drafts.iter().enumerate().filter(|(_, d)| lacks_end(d));
    let end = |(begin, draft): (usize, &Draft)| {
        let result = Value::Result(draft.address);
        let mut decisions = a.decisions.iter();
        let branch = decisions.find(|(_, d)| d.values.0 == result || d.values.1 == result);
        let own = Own {
            construct: draft.construct,
            division: None,
        };
        let end = match branch {
            Some((&block, _)) => a.end_of(block, block, &own),
            None => End::Nowhere(Endless::Undecided),
        };
        // Without probe it ends nothing.
        if matches!(end, End::Nowhere(_)) {
            a.unmark(draft.address, begin);
        }
        (begin, end)
    };
    all.map(end).collect()
}

/// Whether it is a `single` whose end is no call: KMPC ends it with one.
pub(super) fn lacks_end(draft: &Draft) -> bool {
    draft.probe() == Some(Probe::SingleStart) && draft.is_gomp()
}
