//! gcc's `single`: its begin is a call, its end isn't.

use super::Analysis;
use crate::scan::draft::Draft;
use crate::scan::flow::value::Value;
use ompfuse_format::abi::Probe;

/// Adds the ends of the `single` constructs of a function to `drafts`.
pub(super) fn find(a: &Analysis<'_, '_>, drafts: &mut Vec<Draft>) {
    let mut begins: Vec<usize> = a
        .calls
        .values()
        .copied()
        .filter(|&d| lacks_end(&drafts[d]))
        .collect();
    begins.sort_unstable();
    for begin in begins {
        let result = Value::Result(drafts[begin].address);
        let branch = a
            .decisions
            .iter()
            .find(|(_, d)| d.values.0 == result || d.values.1 == result);
        match branch {
            Some((&block, _)) => a.add_end(begin, block, block, drafts),
            None => drafts[begin].skip("no end: nothing branches on its result"),
        }
    }
}

/// Whether it is a `single` whose end is no call: KMPC ends it with one.
pub(super) fn lacks_end(draft: &Draft) -> bool {
    draft.probe() == Some(Probe::SingleStart) && draft.is_gomp()
}
