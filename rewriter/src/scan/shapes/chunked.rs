//! gcc's chunked static loops: no division, but a start computed from the thread's number, a minimum with the bound,
//! and a stride computed from the number of threads. A probe stands before each comparison of a chunk's start with the
//! bound.

use super::{Analysis, NaturalLoop};
use crate::model::ProbeSpec;
use crate::scan::dataflow;
use crate::scan::draft::Draft;
use crate::scan::value::{State, Value};
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register};
use ompfuse_format::Construct;
use ompfuse_format::abi::{NO_ARG, Probe};
use ompfuse_format::site::Edge;
use ompfuse_patterns::Query;
use std::collections::{BTreeMap, BTreeSet};

/// Adds the chunked static loops of a function to `drafts`.
pub(super) fn find(a: &Analysis<'_, '_>, drafts: &mut Vec<Draft>) {
    let mut found = BTreeMap::new();
    let mut apart = BTreeSet::new();
    for &block in &a.noticed.strides {
        // The cycles that it is in, innermost first: of the iterations, of the chunks.
        let mut cycles: Vec<&NaturalLoop> = a
            .cycles()
            .iter()
            .filter(|l| l.blocks.contains(&block))
            .collect();
        cycles.sort_by_key(|l| l.blocks.len());
        if let Some(cycle) = cycles.first()
            && let Some((at, unscaled)) = bound_check(a, cycle)
            && (unscaled || has_minimum(a, cycle))
        {
            match is_apart(a, at, cycle, drafts) {
                true => _ = apart.insert(a.body.blocks[cycle.header].start),
                false => _ = found.insert(at, cycles),
            }
        }
    }
    let loops: Vec<(u64, Dealt<'_>)> = found
        .iter()
        .map(|(&at, cycles)| (at, dealt(a, at, cycles)))
        .collect();
    // Work-sharing constructs aren't nested in one another: what is compared in another loop's chunk begins no loop.
    let in_chunk = |at: u64| {
        let block = a.body.block_at(at);
        let others = loops.iter().filter(|(other, _)| *other != at);
        let mut cycles = others.filter_map(|(_, l)| Some(l.as_ref().ok()?.0));
        cycles.any(|c| block.is_some_and(|b| c.blocks.contains(&b)))
    };
    let by_teams = is_dealt_to_teams(a);
    for (at, dealt) in &loops {
        match dealt {
            _ if by_teams => {
                add(a, *at, Err(TEAMS), drafts);
                if let Some(draft) = drafts.last_mut() {
                    draft.construct = Construct::Distribute;
                }
            }
            _ if in_chunk(*at) => {}
            Ok((_, probes)) => add(a, *at, Ok(probes), drafts),
            Err(why) => add(a, *at, Err(why), drafts),
        }
    }
    for at in apart.into_iter().filter(|&at| !in_chunk(at)) {
        add(a, at, Err(UNCOMPARED), drafts);
    }
}

/// Whether something that ends work-sharing constructs stands between a comparison and a cycle: it is another loop's, and
/// compilers know of those that pass it, of the first thread say, that they have a chunk here too.
fn is_apart(a: &Analysis<'_, '_>, at: u64, cycle: &NaturalLoop, drafts: &[Draft]) -> bool {
    let Some(from) = a.body.block_at(at).filter(|b| !cycle.blocks.contains(b)) else {
        return false;
    };
    let mut seen = BTreeSet::from([from]);
    let mut work = vec![cycle.header];
    while let Some(block) = work.pop() {
        if seen.insert(block) {
            if a.closing_in(block, drafts).is_some() {
                return true;
            }
            work.extend_from_slice(&a.body.blocks[block].preds);
        }
    }
    false
}

/// Whether the function asks which team it is of, and not which thread it is: its loops are dealt to teams.
fn is_dealt_to_teams(a: &Analysis<'_, '_>) -> bool {
    let asks = |wanted: Query| {
        let mut leads = a.body.leads.iter().map(|&i| &a.body.insns[i]);
        leads.any(|insn| match dataflow::callee(a.module, insn, None) {
            dataflow::Callee::Runtime(n) => a.module.entries.callees[n].query() == Some(wanted),
            dataflow::Callee::Other => false,
        })
    };
    asks(Query::TeamNum) && !asks(Query::ThreadNum)
}

/// Why `distribute` loops with chunks have no probe.
const TEAMS: &str = "the chunks of a distribute loop";

/// The cycle of a loop's chunks and its probes by address, or why there are none.
type Dealt<'x> = Result<(&'x NaturalLoop, BTreeMap<u64, ProbeSpec>), &'static str>;

/// The loop whose first comparison with the bound is at `at`; one of the cycles is that of its chunks.
fn dealt<'x>(a: &Analysis<'_, '_>, at: u64, cycles: &[&'x NaturalLoop]) -> Dealt<'x> {
    let mut why = UNCLEAR;
    for cycle in cycles {
        match comparisons(a, at, cycle) {
            Ok(probes) => return Ok((cycle, probes)),
            Err(reason) => why = reason,
        }
    }
    Err(why)
}

/// Adds a loop that begins at `at`, with its probes or the reason why it has none.
fn add(
    a: &Analysis<'_, '_>,
    at: u64,
    probes: Result<&BTreeMap<u64, ProbeSpec>, &'static str>,
    drafts: &mut Vec<Draft>,
) {
    let draft = |at: u64, edge: Edge| {
        let mut draft = Draft::new(at, Construct::Loop, edge);
        draft.function = a.function();
        draft.detail = Some("static, chunk".into());
        draft
    };
    let begin = drafts.len();
    drafts.push(draft(at, Edge::Begin));
    let probes = match probes {
        Ok(probes) => probes,
        Err(why) => return drafts[begin].skip(why),
    };
    for (&place, probe) in probes {
        if place == at {
            drafts[begin].inline(*probe);
        } else {
            let mut next = draft(place, Edge::Next);
            next.region = Some(begin);
            next.inline(*probe);
            drafts.push(next);
        }
    }
}

const UNCOMPARED: &str = "its first chunk begins without a comparison";

const UNCLEAR: &str = "its comparison with the bound is of a form without probe";

/// Every chunk passes one comparison: the first one, or the one that leaves the cycle. Their probes, by address.
fn comparisons(
    a: &Analysis<'_, '_>,
    at: u64,
    cycle: &NaturalLoop,
) -> Result<BTreeMap<u64, ProbeSpec>, &'static str> {
    let address = |block: usize| {
        a.decisions
            .get(&block)
            .map(|d| a.body.insns[d.compare].ip())
    };
    let leaves = |b: &usize| a.leaves(*b, cycle);
    let mut ways_out = cycle.blocks.iter().copied().filter(leaves);
    let (Some(way_out), None) = (ways_out.next(), ways_out.next()) else {
        return Err("its chunks end in several places");
    };
    let first = a
        .decisions
        .keys()
        .copied()
        .find(|&b| address(b) == Some(at))
        .ok_or(UNCLEAR)?;
    if !begins_chunks(a, first, cycle) {
        return Err(UNCOMPARED);
    }
    // gcc may have another form of the loop for a single thread, say, in which nothing is compared.
    let succs = &a.body.blocks[first].succs;
    let mut entered = succs.iter().filter(|&&s| leads_into(a, first, s, cycle));
    if !cycle.blocks.contains(&first) && !entered.all(|&s| a.post.dominates(cycle.header, s)) {
        return Err("it has other forms that its chunks may be executed in");
    }
    let bounds = [first, way_out].map(|b| bound(a, b));
    if bounds[0] != bounds[1] {
        return Err(UNCLEAR);
    }
    let mut out = BTreeMap::new();
    for block in [first, way_out] {
        out.insert(address(block).ok_or(UNCLEAR)?, comparison(a, block, cycle)?);
    }
    Ok(out)
}

/// Whether a comparison comes before every chunk that the cycle begins with: one before the cycle does; one in it if it
/// also comes before the iterations.
fn begins_chunks(a: &Analysis<'_, '_>, first: usize, cycle: &NaturalLoop) -> bool {
    if !cycle.blocks.contains(&first) {
        return a.dom.dominates(first, cycle.header);
    }
    let is_inner = |l: &&NaturalLoop| l.header != cycle.header && cycle.blocks.contains(&l.header);
    let mut inner = a.cycles().iter().filter(is_inner);
    let back = a.body.blocks[first].succs.contains(&cycle.header);
    !back && inner.all(|l| a.dom.dominates(first, l.header))
}

/// The constant that a chunk's start is compared with, as a first number that is no start; `None` if it is none.
fn bound(a: &Analysis<'_, '_>, block: usize) -> Option<u64> {
    use ConditionCode as C;
    let decision = a.decisions.get(&block)?;
    let (bound, start_first) = match decision.values {
        (x, Value::Const(c)) if x.is_from_thread() => (c, true),
        (Value::Const(c), y) if y.is_from_thread() => (c, false),
        _ => return None,
    };
    // `start <= c` and `start > c` split behind c, as do `c >= start` and `c < start`.
    let behind = match decision.branch.condition_code() {
        C::le | C::g | C::be | C::a => start_first,
        C::l | C::ge | C::b | C::ae => !start_first,
        _ => return None,
    };
    Some(bound.wrapping_add(u64::from(behind)) & 0xffff_ffff)
}

/// The probe before a comparison of a chunk's start with the bound, which decides whether the cycle is entered or left.
fn comparison(
    a: &Analysis<'_, '_>,
    block: usize,
    cycle: &NaturalLoop,
) -> Result<ProbeSpec, &'static str> {
    let decision = a.decisions.get(&block).ok_or(UNCLEAR)?;
    let insn = &a.body.insns[decision.compare];
    let with_zero = match insn.mnemonic() {
        Mnemonic::Cmp => false,
        Mnemonic::Test => true,
        _ => return Err(UNCLEAR),
    };
    let (start_at, bound_at) = match decision.values {
        (x, y) if x.is_from_thread() && !y.is_from_thread() => (0, 1),
        (x, y) if y.is_from_thread() && !x.is_from_thread() => (1, 0),
        _ => return Err(UNCLEAR),
    };
    let mut args = [NO_ARG; 8];
    let (mut param, mut second) = (0, 0);
    let ends_with_constant = match insn.op_kind(bound_at) {
        _ if with_zero => true,
        OpKind::Register | OpKind::Memory => false,
        _ => {
            second = insn.immediate(bound_at).cast_signed();
            true
        }
    };
    for (at, arg) in [(start_at, 0), (bound_at, 1)] {
        if at == bound_at && with_zero {
            continue;
        }
        if insn.op_kind(at) == OpKind::Memory {
            args[2] = base_alone(insn).ok_or("its bound is in memory that no register leads to")?;
            param = insn.memory_displacement64().cast_signed();
        } else if at == start_at || !ends_with_constant {
            args[arg] = dataflow::number(insn.op_register(at)).ok_or(UNCLEAR)? as u8;
        }
    }
    let width = match insn.op_kind(start_at) {
        OpKind::Memory => insn.memory_size().size(),
        _ => insn.op_register(start_at).size(),
    };
    // Is another chunk executed where the branch is taken, or where it is not?
    let target = decision.branch.near_branch_target();
    let enters = |start: u64| {
        let to = a.body.blocks.iter().position(|b| b.start == start);
        to.is_some_and(|to| leads_into(a, block, to, cycle))
    };
    let taken = match (enters(target), enters(decision.branch.next_ip())) {
        (true, false) => true,
        (false, true) => false,
        _ => return Err(UNCLEAR),
    };
    // The order `first operand ? second operand` under which it is.
    let condition = match taken {
        true => decision.branch.condition_code(),
        false => {
            let mut other = decision.branch;
            other.negate_condition_code();
            other.condition_code()
        }
    };
    use ConditionCode as C;
    let (strict, less, unsigned) = match condition {
        C::l => (true, true, false),
        C::le => (false, true, false),
        C::g => (true, false, false),
        C::ge => (false, false, false),
        C::b => (true, true, true),
        C::be => (false, true, true),
        C::a => (true, false, true),
        C::ae => (false, false, true),
        _ => return Err(UNCLEAR),
    };
    if less != (start_at == 0) {
        return Err(UNCLEAR);
    }
    // An immediate operand has no sign of its own.
    let unused = 64 - 8 * width.clamp(1, 8);
    second = match unsigned {
        true => ((second.cast_unsigned() << unused) >> unused).cast_signed(),
        false => (second << unused) >> unused,
    };
    Ok(ProbeSpec {
        probe: Probe::InlineChunk,
        args,
        nargs: 0,
        width: width as u8,
        unsigned,
        param,
        second: second + i64::from(!strict),
        chunks: false,
    })
}

/// The register that the memory operand is a constant distance from.
fn base_alone(insn: &Instruction) -> Option<u8> {
    let alone = insn.memory_index() == Register::None && insn.segment_prefix() == Register::None;
    let base = insn.memory_base();
    (alone && base.size() == 8)
        .then(|| dataflow::number(base))
        .flatten()
        .map(|n| n as u8)
}

/// Whether a block of the cycle follows on this side of a branch without leaving it for good: the side is in the cycle, or
/// leads to its header.
fn leads_into(a: &Analysis<'_, '_>, branch: usize, side: usize, cycle: &NaturalLoop) -> bool {
    if cycle.blocks.contains(&branch) {
        return cycle.blocks.contains(&side);
    }
    let mut seen = BTreeSet::from([branch]);
    let mut work = vec![side];
    while let Some(block) = work.pop() {
        if block == cycle.header {
            return true;
        }
        if seen.insert(block) {
            work.extend_from_slice(&a.body.blocks[block].succs);
        }
    }
    false
}

/// Whether a multiple of the number of threads is added to something that changes.
pub(super) fn adds_stride(insn: &Instruction, state: &State) -> bool {
    match insn.mnemonic() {
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::Imul => (0..insn.op_count().min(2))
            .any(|op| dataflow::operand(state, insn, op).is_from_threads()),
        Mnemonic::Lea => [insn.memory_base(), insn.memory_index()]
            .iter()
            .filter_map(|&r| dataflow::number(r))
            .any(|r| state.reg(r).is_from_threads()),
        _ => false,
    }
}

/// Whether a smaller of two values is chosen, one of them computed from the thread's number: in or before the cycle.
fn has_minimum(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> bool {
    let near = |b: usize| cycle.blocks.contains(&b) || a.dom.dominates(b, cycle.header);
    let mut found = false;
    for block in (0..a.body.blocks.len()).filter(|&b| near(b)) {
        a.visit(block, |_, insn, state| {
            let chooses = matches!(
                insn.condition_code(),
                ConditionCode::g
                    | ConditionCode::ge
                    | ConditionCode::l
                    | ConditionCode::le
                    | ConditionCode::a
                    | ConditionCode::ae
                    | ConditionCode::b
                    | ConditionCode::be
            ) && !insn.is_jcc_short_or_near()
                && insn.op_count() == 2;
            found |=
                chooses && (0..2).any(|op| dataflow::operand(state, insn, op).is_from_thread());
        });
    }
    found
}

/// The comparison of the start with the bound, before the cycle, else in it; and whether the start is the thread's
/// number itself: then chunks have one iteration, and need no minimum.
fn bound_check(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> Option<(u64, bool)> {
    let checks = || {
        a.decisions.iter().filter(|(_, d)| {
            let (x, y) = d.values;
            let bound = |v: Value| matches!(v, Value::Unknown | Value::Const(_));
            d.is_ordering() && (x.is_from_thread() && bound(y) || y.is_from_thread() && bound(x))
        })
    };
    let is_rank = |v| matches!(v, Value::Query(Query::ThreadNum | Query::TeamNum));
    let address = |(_, d): (&usize, &super::Decision)| {
        (
            a.body.insns[d.compare].ip(),
            is_rank(d.values.0) || is_rank(d.values.1),
        )
    };
    // Unoptimised code computes the start anew in every round.
    let anew = |(_, d): (&usize, &super::Decision)| {
        let both = d.values.0 == Value::FromBoth || d.values.1 == Value::FromBoth;
        (a.body.insns[d.compare].ip(), both)
    };
    checks()
        .rfind(|(b, _)| {
            let before = !cycle.blocks.contains(b) && a.dom.dominates(**b, cycle.header);
            // Another loop's doesn't decide about this one.
            before && !a.post.dominates(cycle.header, **b)
        })
        .map(address)
        .or_else(|| checks().find(|(b, _)| cycle.blocks.contains(b)).map(anew))
}
