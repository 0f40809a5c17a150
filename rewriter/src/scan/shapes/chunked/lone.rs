//! gcc's chunked static loops of one iteration whose variable is unsigned: as no number is below 0, a chunk's start is
//! asked to be 0, which looks like a `master` where the start is the thread's number.
//!
//! ```text
//! if (thread != 0) goto end;
//! do body; while (threads == 0);               the next start, or what the optimiser has made of it
//! ```
//!
//! What tells them from a `master`, and from all other code, is the cycle: each way out is taken unless a number computed
//! from that of threads is 0, and from nothing that is read anew in each round (`anew.rs`): `do left = threads - busy; while (left
//! == 0)` waits for others. It is a sum of multiples of these numbers (`multiple.rs`), as no `n + threads` is. Nobody repeats something as long as there are no threads; a start that is a sum with the
//! thread's number is asked for in this way by a loop by hand of the same ranges (`for (i = thread; i == 0; i += threads)`) only.

use super::super::{Analysis, Decision, NaturalLoop, is_call, master};
use super::anew;
use super::compare::{self, SEVERAL, UNCLEAR, UNCOMPARED, leads_into};
use super::forms::Form;
use crate::model::ProbeSpec;
use crate::scan::dataflow;
use crate::scan::value::Value;
use iced_x86::{Instruction, Mnemonic, OpKind};
use ompfuse_patterns::Query;
use std::collections::BTreeSet;

/// Such a loop.
pub(super) struct Lone<'x> {
    /// Of its chunks.
    pub cycle: &'x NaturalLoop,
    /// Its first comparison, or the cycle's beginning.
    pub at: u64,
    /// Its probes.
    pub dealt: Form<'x>,
}

/// The loops of this form, in the order of their cycles.
pub(super) fn find<'x>(a: &'x Analysis<'_, '_>) -> Vec<Lone<'x>> {
    if !a.decisions.values().any(asks) {
        return Vec::new();
    }
    let loops = a.cycles().iter().filter_map(|c| Some((c, ways_out(a, c)?)));
    loops.map(|(c, ways_out)| lone(a, c, &ways_out)).collect()
}

/// Whether it asks if a number that comes from that of threads is 0.
pub(in super::super) fn asks(decision: &Decision) -> bool {
    start(decision).is_some_and(|(value, _)| value.is_from_threads())
}

/// Whether a block's question, which looks like a `master`'s, is that of such a loop's first chunk.
pub(in super::super) fn enters(a: &Analysis<'_, '_>, block: usize, entered: usize) -> bool {
    let mut cycles = a.cycles().iter().filter(|c| !c.blocks.contains(&block));
    cycles.any(|c| {
        a.post.dominates(c.header, entered) && ways_out(a, c).is_some() && is_quiet(a, entered, c)
    })
}

/// The value that is asked to be 0, and which operand it is.
pub(super) fn start(decision: &Decision) -> Option<(Value, u32)> {
    let equality = matches!(decision.branch.mnemonic(), Mnemonic::Je | Mnemonic::Jne);
    match decision.values {
        (value, Value::Const(0)) if equality => Some((value, 0)),
        (Value::Const(0), value) if equality => Some((value, 1)),
        _ => None,
    }
}

/// The blocks whose branches leave the cycle, if the cycle is a loop's of this form.
fn ways_out(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> Option<Vec<usize>> {
    let ways_out = compare::ways_out(a, cycle);
    let found = !ways_out.is_empty() && ways_out.iter().all(|&b| goes_on(a, cycle, b));
    found.then_some(ways_out)
}

/// Whether a block's branch stays in the cycle where a multiple of the number of threads is 0.
pub(super) fn goes_on(a: &Analysis<'_, '_>, cycle: &NaturalLoop, block: usize) -> bool {
    let decision = a.decisions.get(&block).filter(|d| asks(d));
    let again = decision.and_then(|d| master::entered(a, block, d));
    again.is_some_and(|b| cycle.blocks.contains(&b))
        && !anew::compares(a, cycle, block)
        && compares_multiple(a, block)
}

/// Whether a block's comparison asks for a multiple of the numbers of the thread and of threads.
pub(super) fn compares_multiple(a: &Analysis<'_, '_>, block: usize) -> bool {
    let operand = a.decisions.get(&block).and_then(start);
    operand.is_some_and(|(_, operand)| a.sources.multiples(a).is_compared(a, block, operand))
}

/// The loop with this cycle.
fn lone<'x>(a: &Analysis<'_, '_>, cycle: &'x NaturalLoop, ways_out: &[usize]) -> Lone<'x> {
    let apart = |why| Lone {
        cycle,
        at: a.body.blocks[cycle.header].start,
        dealt: Err(why),
    };
    let way_out = match ways_out {
        [way_out] => Some(*way_out),
        several if !compare::are_alike(a, several, cycle) => return apart(SEVERAL),
        _ => None,
    };
    let Some(first) = first(a, cycle, way_out) else {
        return apart(UNCOMPARED);
    };
    let probes = std::iter::once(&first).chain(ways_out);
    let probes = probes
        .map(|&block| probe(a, block))
        .collect::<Result<_, _>>();
    Lone {
        cycle,
        at: place(a, first).ip(),
        dealt: probes.map(|probes| (cycle, probes)),
    }
}

/// The instruction that the probe of a block's comparison stands before: where the start is compared by being computed, it
/// is known behind that only.
fn place<'x>(a: &'x Analysis<'_, '_>, block: usize) -> &'x Instruction {
    let compare = a.decisions[&block].compare;
    let mnemonic = a.body.insns[compare].mnemonic();
    let behind = matches!(mnemonic, Mnemonic::Add | Mnemonic::Shl);
    &a.body.insns[compare + usize::from(behind)]
}

/// The probe of the comparison of a block, and its address.
fn probe(a: &Analysis<'_, '_>, block: usize) -> Result<(u64, ProbeSpec), &'static str> {
    let decision = &a.decisions[&block];
    let compare = &a.body.insns[decision.compare];
    let (_, at) = start(decision).ok_or(UNCLEAR)?;
    // What is at most 0, of numbers without sign, is 0.
    let probe = compare::probe(compare, at, (false, true, true))?;
    Ok((place(a, block).ip(), probe))
}

/// The block whose branch decides whether there is a first chunk, which all threads come by: that of the cycle if they all come to
/// the cycle (only one executes the iteration, so it is behind the branch; `way_out`, if there is one only), else one before the cycle that nothing else
/// depends on.
fn first(a: &Analysis<'_, '_>, cycle: &NaturalLoop, way_out: Option<usize>) -> Option<usize> {
    if is_met_by_all(a, cycle.header) {
        let way_out = way_out?;
        // Then it has to stand before the body, and to know which thread it is.
        let is_start =
            start(&a.decisions[&way_out]).is_some_and(|(value, _)| value.is_from_thread());
        return (is_start && compare::begins_chunks(a, way_out, cycle)).then_some(way_out);
    }
    let decides = |block: usize, decision: &Decision| {
        let entered = master::entered(a, block, decision)?;
        let from_thread = start(decision)?.0.is_from_thread();
        let only = |&s: &usize| s == entered || !leads_into(a, block, s, cycle);
        (from_thread
            && !cycle.blocks.contains(&block)
            && a.dom.dominates(block, cycle.header)
            && is_met_by_all(a, block)
            && compare::is_met_again(a, block, cycle)
            && a.post.dominates(cycle.header, entered)
            && a.body.blocks[block].succs.iter().all(only)
            && (is_quiet(a, entered, cycle) || is_peeled(a, block, entered, cycle)))
        .then_some(block)
    };
    let mut found = a.decisions.iter().filter_map(|(&b, d)| decides(b, d));
    // With two of them, something else was asked too.
    let (first, None) = (found.next()?, found.next()) else {
        return None;
    };
    Some(first)
}

/// Whether every thread that asks for its number comes to a block then.
fn is_met_by_all(a: &Analysis<'_, '_>, block: usize) -> bool {
    let mut leads = a.body.leads.iter().map(|&i| &a.body.insns[i]);
    leads.any(|insn| {
        let asks = match dataflow::callee(a.module, insn, None) {
            dataflow::Callee::Runtime(n) => matches!(
                a.module.entries.callees[n].query(),
                Some(Query::ThreadNum | Query::TeamNum)
            ),
            dataflow::Callee::Other => false,
        };
        let from = a.body.block_at(insn.ip()).filter(|_| asks);
        from.is_some_and(|b| a.dom.dominates(b, block) && a.post.dominates(block, b))
    })
}

/// Whether the first chunk's iteration stands before the cycle, which begins with the next chunk's comparison: what comes into the
/// cycle is compared first, and computed from the number of threads. `question`: the block that decides about the first chunk, which
/// asks for a multiple of the thread's number, as no `master` does.
fn is_peeled(a: &Analysis<'_, '_>, question: usize, entered: usize, cycle: &NaturalLoop) -> bool {
    let is_multiple = |d| start(d).is_some_and(|(value, _)| !matches!(value, Value::Query(_)));
    let header = &a.body.blocks[cycle.header];
    let compared = a.decisions.get(&cycle.header).and_then(|d| {
        let insn = &a.body.insns[d.compare];
        let plain = matches!(insn.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
        let first = d.compare == header.insns.start && insn.op0_kind() == OpKind::Register;
        dataflow::number(insn.op0_register()).filter(|_| plain && first)
    });
    let Some(register) = compared.filter(|_| a.leaves(cycle.header, cycle)) else {
        return false;
    };
    let mut before = header.preds.iter().filter(|p| !cycle.blocks.contains(p));
    a.decisions.get(&question).is_some_and(is_multiple)
        && before.all(|&p| brings_next(a, p, register))
        && is_straight(a, entered, cycle)
}

/// Whether a register holds what is computed from the number of threads at a block's end, which jumps or branches.
fn brings_next(a: &Analysis<'_, '_>, block: usize, register: usize) -> bool {
    let mut brings = false;
    a.visit(block, |_, insn, state| {
        let jumps = insn.is_jmp_short_or_near() || insn.is_jcc_short_or_near();
        brings = jumps && state.reg(register).is_from_threads();
    });
    brings
}

/// Whether control goes from a block to the cycle without calling anything or going round elsewhere.
fn is_straight(a: &Analysis<'_, '_>, from: usize, cycle: &NaturalLoop) -> bool {
    let mut seen = BTreeSet::from([cycle.header]);
    let mut work = vec![from];
    while let Some(block) = work.pop() {
        if !seen.insert(block) {
            continue;
        }
        let mut others = a.cycles().iter().filter(|c| c.blocks.contains(&block));
        if !others.all(|c| c.blocks.contains(&cycle.header))
            || a.body.block_insns(block).iter().any(is_call)
        {
            return false;
        }
        work.extend_from_slice(&a.body.blocks[block].succs);
    }
    true
}

/// Whether nothing is done from a block's beginning to the cycle that somebody else could see: no call, no store but
/// to the stack, no other cycle. What is done there may be a `master` that asks the same question.
fn is_quiet(a: &Analysis<'_, '_>, from: usize, cycle: &NaturalLoop) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = vec![from];
    let mut quiet = true;
    while let Some(block) = work.pop().filter(|_| quiet) {
        if block == cycle.header || !seen.insert(block) {
            continue;
        }
        let mut others = a.cycles().iter().filter(|c| c.blocks.contains(&block));
        quiet &= others.all(|c| c.blocks.contains(&cycle.header));
        a.visit(block, |_, insn, state| {
            // String instructions among them, whose place is in a register.
            let kinds = (0..insn.op_count()).map(|n| insn.op_kind(n));
            let string = |k: OpKind| {
                use OpKind as K;
                matches!(k, K::MemoryESDI | K::MemoryESEDI | K::MemoryESRDI)
            };
            let system = matches!(
                insn.mnemonic(),
                Mnemonic::Syscall | Mnemonic::Int | Mnemonic::Out
            );
            quiet &= !system && !kinds.into_iter().any(string);
            let memory = insn.op_count() > 0 && insn.op0_kind() == OpKind::Memory;
            let reads = matches!(
                insn.mnemonic(),
                Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Nop
            );
            let base = dataflow::number(insn.memory_base());
            let own = base.is_some_and(|r| matches!(state.reg(r), Value::Stack(_)));
            quiet &= !is_call(insn) && (!memory || reads || own);
        });
        work.extend_from_slice(&a.body.blocks[block].succs);
    }
    quiet
}
