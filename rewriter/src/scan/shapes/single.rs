//! gcc's `single`: its begin is a call, its end isn't.

use super::ends::{End, Own};
use super::found::Find;
use super::why::Endless;
use super::{Analysis, Basis, Rule};
use crate::scan::draft::Draft;
use crate::scan::flow::value::Value;
use ompfuse_format::abi::Probe;

pub(super) const RULE: Rule = Rule {
    basis: Basis::Call(lacks_end),
    find,
};

/// The ends of a function's `single` constructs.
fn find(a: &mut Analysis<'_, '_>, drafts: &[Draft]) -> Vec<Find> {
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
        Find::End(begin, end)
    };
    all.map(end).collect()
}

/// Whether it is a `single` whose end is no call: KMPC ends it with one.
fn lacks_end(draft: &Draft) -> bool {
    draft.probe() == Some(Probe::SingleStart) && draft.is_gomp()
}
