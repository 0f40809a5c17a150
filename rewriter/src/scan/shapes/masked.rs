//! gcc's `masked` with a filter that is computed: a comparison of the thread's number with another value, or code that looks the same.

use super::ends::Own;
use super::found::{Find, Found, Place};
use super::{Analysis, Basis, Decision, Rule, master, operands};
use crate::model::ProbeSpec;
use crate::scan::draft::Draft;
use crate::scan::flow::value::Value;
use iced_x86::Mnemonic;
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_patterns::Query;

pub(super) const RULE: Rule = Rule {
    basis: Basis::Numbers(|decisions, _| decisions.values().any(|d| asks(d).is_some())),
    find,
};

/// Those of a function. In a cycle such comparisons choose elements, mostly.
fn find(a: &mut Analysis<'_, '_>, _: &[Draft]) -> Vec<Find> {
    let all = a.decisions.iter().filter_map(|(&block, decision)| {
        let number_at = asks(decision)?;
        let entered = master::entered(a, block, decision)?;
        let is_passed = a.post.parent(block) != Some(entered);
        let once = a.cycles().iter().all(|c| !c.blocks.contains(&block));
        (is_passed && once).then(|| Find::Begin(found(a, block, decision, number_at)))
    });
    all.collect()
}

/// Which operand is the thread's number, if the branch depends on whether it is one that isn't known.
fn asks(decision: &Decision) -> Option<u32> {
    let is_equality = matches!(decision.branch.mnemonic(), Mnemonic::Je | Mnemonic::Jne);
    match decision.values {
        (Value::Query(Query::ThreadNum), Value::Unknown) if is_equality => Some(0),
        (Value::Unknown, Value::Query(Query::ThreadNum)) if is_equality => Some(1),
        _ => None,
    }
}

/// It begins before the comparison.
fn found(a: &Analysis<'_, '_>, block: usize, decision: &Decision, number_at: u32) -> Found {
    let compare = &a.body.insns[decision.compare];
    let order = (true, number_at == 0, false);
    let place = operands::probe(compare, number_at, order).map(|probe| {
        Place::Inline(ProbeSpec {
            probe: Probe::InlineMaster,
            ..probe
        })
    });
    let own = Own {
        construct: Construct::Master,
        division: None,
    };
    let mut found = Found::begin(own.construct, "or equivalent", compare.ip(), place);
    found.ends(a.end_of(block, block, &own));
    found
}
