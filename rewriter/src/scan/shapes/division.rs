//! Divisions by the number of threads, and what is done with their results.

use super::found::{Found, Place};
use super::why::Why;
use super::{Analysis, NaturalLoop};
use crate::model::ProbeSpec;
use crate::scan::flow::dataflow;
use crate::scan::flow::leads::query;
use crate::scan::flow::value::{State, Value};
use crate::scan::graph::post_order;
use iced_x86::{Instruction, Mnemonic, OpKind};
use ompfuse_format::Construct;
use ompfuse_format::abi::{NO_ARG, Probe};
use ompfuse_patterns::Query;
use std::collections::BTreeSet;

/// A division by the number of threads or teams.
#[derive(Debug, Clone)]
pub(crate) struct Division {
    pub insn: Instruction,
    pub block: usize,
    /// What it divides by.
    pub by: Query,
    /// Width of the operands in bytes.
    pub size: usize,
}

impl Division {
    /// The division, if it is one by such a number.
    pub(super) fn of(block: usize, insn: &Instruction, state: &State) -> Option<Division> {
        let Value::Query(by @ (Query::NumThreads | Query::NumTeams)) =
            dataflow::operand(state, insn, 0)
        else {
            return None;
        };
        let size = match insn.op0_kind() {
            OpKind::Register => insn.op0_register().size(),
            _ => insn.memory_size().size(),
        };
        Some(Division {
            insn: *insn,
            block,
            by,
            size,
        })
    }
}

/// The own number among what is counted.
pub(super) fn rank(by: Query) -> Query {
    match by {
        Query::NumTeams => Query::TeamNum,
        _ => Query::ThreadNum,
    }
}

/// Blocks that end in a branch on an order of values of this division, other than the comparison with the remainder;
/// in an order in which dominating ones come first.
pub(super) fn diverging<'x>(
    a: &'x Analysis<'_, '_>,
    id: u64,
    block: usize,
    rank: Query,
) -> impl Iterator<Item = usize> + 'x {
    let blocks = &a.body.blocks;
    let edge = |b: usize, n: usize| blocks[b].succs.get(n).copied();
    let mut order = post_order(blocks.len(), &[block], edge);
    order.reverse();
    order.into_iter().filter(move |&b| {
        let Some(decision) = a.decisions.get(&b) else {
            return false;
        };
        let (x, y) = decision.values;
        let related = |v: Value| v.division() == Some(id);
        let other = |v: Value| related(v) || matches!(v, Value::Const(0));
        // Where nothing can overflow, the range is empty when the quotient is 0.
        let asks_zero = matches!(decision.branch.mnemonic(), Mnemonic::Je | Mnemonic::Jne)
            && (x == Value::Const(0) || y == Value::Const(0));
        // Where the thread is known to be the first, this is the comparison with the remainder.
        let asks_remainder =
            [x, y].contains(&Value::Remainder(id)) && [x, y].contains(&Value::Const(0));
        (decision.is_ordering() || asks_zero)
            && !asks_remainder
            && (related(x) && other(y) || related(y) && other(x))
            && x != Value::Query(rank)
            && y != Value::Query(rank)
            && a.dom.dominates(block, b)
            && (b != block || a.body.insns[decision.compare].ip() > id)
    })
}

/// Why the division doesn't stand right before its loop, if the compiler moved it away. The loop begins at the branch of block
/// `origin`, and is tested at that of block `test`; its bounds are computed in the blocks `divides`.
pub(super) fn displaced(
    a: &Analysis<'_, '_>,
    division: &Division,
    (origin, test): (usize, usize),
    divides: &BTreeSet<usize>,
) -> Option<Why> {
    let is_once = |block: usize| {
        let once =
            |l: &NaturalLoop| !l.blocks.contains(&block) || l.blocks.contains(&division.block);
        a.cycles().iter().all(once)
    };
    // Cycles that are entered in several places are none of these.
    let comes_back = |block: usize| {
        let mut succs = a.body.blocks[block].succs.iter();
        !divides.contains(&block) && succs.any(|&s| a.leads_to(s, block, divides))
    };
    let twice = |block: usize| !is_once(block) || !a.is_reducible() && comes_back(block);
    if twice(origin) || twice(test) {
        return Some(Why::HoistedDivision);
    }
    let first = origin;
    let compare = a.test_at(first).unwrap_or(0);
    let mut others = false;
    a.body.forwards([division.block], |block| {
        if block != division.block && !a.dom.dominates(division.block, block) {
            return false;
        }
        let between = |ip: u64| {
            (block != division.block || ip > division.insn.ip()) && (block != first || ip < compare)
        };
        let mut insns = a.body.block_insns(block).iter().map(Instruction::ip);
        others |= insns.any(|ip| between(ip) && a.calls.contains_key(&ip));
        !others && block != first
    });
    others.then_some(Why::OthersBetween)
}

/// The loop that begins at a division.
pub(super) fn begin(a: &Analysis<'_, '_>, division: &Division) -> Found {
    let insn = &division.insn;
    let construct = match division.by {
        Query::NumTeams => Construct::Distribute,
        _ => Construct::Loop,
    };
    let mut args = [NO_ARG; 8];
    let width = division.size;
    if insn.op0_kind() == OpKind::Register {
        args[0] = insn.op0_register().full_register().number() as u8;
    }
    let probe = ProbeSpec {
        probe: Probe::InlineLoopBegin,
        args,
        nargs: 0,
        width: width as u8,
        unsigned: insn.mnemonic() == Mnemonic::Div,
        param: 0,
        second: 0,
        chunks: false,
    };
    let mut found = Found::begin(construct, "static", insn.ip(), Ok(Place::Inline(probe)));
    found.line_at = query_call(a, division).unwrap_or(insn.ip());
    found
}

/// The last call of a query function before the division in its block: it has the loop's line.
fn query_call(a: &Analysis<'_, '_>, division: &Division) -> Option<u64> {
    let mut found = None;
    a.visit(division.block, |_, insn, state| {
        if insn.ip() < division.insn.ip() && query(a.module, insn, Some(state)).is_some() {
            found = Some(insn.ip());
        }
    });
    found
}

/// Whether the thread's (team's) number is compared with the remainder of division `id`.
pub(super) fn asks_for_remainder((x, y): (Value, Value), id: u64, rank: Query) -> bool {
    let is = |x, y| x == Value::Query(rank) && y == Value::Remainder(id);
    is(x, y) || is(y, x)
}

/// Whether the division is hoisted out of a cycle that asks for the remainder in every round: gcc multiplies before it asks
/// then, so that the product doesn't tell; code written by hand has its range before the cycle.
pub(super) fn asks_again(a: &Analysis<'_, '_>, division: &Division, id: u64) -> bool {
    let rank = rank(division.by);
    let others = BTreeSet::from([division.block]);
    let asking = a.decisions.iter();
    let mut asking = asking.filter(|(_, d)| asks_for_remainder(d.values, id, rank));
    asking.any(|(&b, _)| {
        let succs = &a.body.blocks[b].succs;
        succs.iter().any(|&s| a.leads_to(s, b, &others))
    })
}

/// Whether a block's branch leaves a cycle behind the division's block.
pub(super) fn leaves_cycle(a: &Analysis<'_, '_>, branch: usize, division: usize) -> bool {
    a.cycles()
        .iter()
        .any(|c| c.blocks.contains(&branch) && !c.blocks.contains(&division) && a.leaves(branch, c))
}
