//! gcc's chunked static loops: no division, but a start computed from the thread's number, a minimum with the bound,
//! and a stride computed from the number of threads. A probe stands before each comparison of a chunk's start with the
//! bound.

mod compare;
mod forms;
mod invariant;
mod listed;
mod rank_tests;

use super::found::{Find, Found, Place};
use super::why::Why;
use super::{Analysis, Basis, NaturalLoop, Rule};
use crate::model::ProbeSpec;
use crate::scan::flow::dataflow;
use crate::scan::flow::leads::query;
use crate::scan::flow::value::{self, State, Value};
use forms::{Dealt, Form, Question, dealt};
use iced_x86::{ConditionCode, Instruction, Mnemonic};
use ompfuse_format::Construct;
use ompfuse_patterns::Query;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const RULE: Rule = Rule {
    basis: Basis::Numbers(|_, noticed| !noticed.strides.is_empty()),
    find: |a, _| find(a).into_iter().map(Find::Begin).collect(),
};

/// The chunked static loops of a function.
fn find(a: &Analysis<'_, '_>) -> Vec<Found> {
    let candidates = candidates(a);
    let cycles = Cycles::of(a, &candidates);
    let loops: Vec<(u64, Dealt<'_>)> = cycles
        .compared
        .iter()
        .map(|(&at, forms)| (at, dealt(a, at, forms)))
        .collect();
    let recorded = loops
        .iter()
        .filter_map(|(at, l)| Some((*at, l.as_ref().ok()?)));
    // Work-sharing constructs aren't nested in one another: what is compared in another loop's chunk begins no loop.
    let in_chunk = |at: u64| {
        let block = a.body.block_at(at);
        let others = recorded.clone().filter(|(other, _)| *other != at);
        let mut cycles = others.flat_map(|(_, l)| &l.0);
        cycles.any(|c| block.is_some_and(|b| c.blocks.contains(&b)))
    };
    let construct = match is_dealt_to_teams(a) {
        true => Construct::Distribute,
        false => Construct::Loop,
    };
    let mut listed: BTreeMap<u64, Why> = BTreeMap::new();
    let of_loops = |listed: &mut BTreeMap<u64, Why>, cycle: &NaturalLoop, why| {
        let begin = a.body.blocks[cycle.header].start;
        listed.entry(begin).or_insert(why);
    };
    for (cycle, _) in &cycles.uncompared {
        of_loops(&mut listed, cycle, Why::Uncompared);
    }
    let all = loops.iter().filter(|(at, _)| !in_chunk(*at));
    let mut out: Vec<Found> = all
        .map(|(at, dealt)| match dealt {
            Ok((_, probes)) => found(construct, *at, Ok(probes)),
            Err(why) => found(construct, *at, Err(*why)),
        })
        .collect();
    // A loop behind the one whose chunks it is compared in is asked for by that one's way out: it is listed where its own cycle begins.
    for (at, dealt) in loops.iter().filter(|(at, _)| in_chunk(*at)) {
        let Err(why) = *dealt else { continue };
        let forms = cycles.compared[at].iter().map(|f| f.0[0]);
        let is_apart = |c: &&NaturalLoop| {
            let mut all = recorded.clone().flat_map(|(_, l)| &l.0);
            all.all(|r| r.blocks.is_disjoint(&c.blocks))
        };
        for cycle in forms.filter(is_apart) {
            of_loops(&mut listed, cycle, why);
        }
    }
    for (cycle, why) in others(a, &candidates, &cycles) {
        of_loops(&mut listed, &cycle, why);
    }
    let listed = listed.into_iter().filter(|(at, _)| !in_chunk(*at));
    out.extend(listed.map(|(at, why)| found(construct, at, Err(why))));
    out
}

/// Cycles of chunks.
#[derive(Default)]
struct Cycles<'x> {
    /// The forms of each loop, by the comparison of its first chunk.
    compared: BTreeMap<u64, Vec<Form<'x>>>,
    /// Those whose first chunk isn't compared in front of them, and the question that chooses the threads that come to them.
    uncompared: Vec<(&'x NaturalLoop, Option<Question>)>,
}

impl<'x> Cycles<'x> {
    fn of(a: &'x Analysis<'_, '_>, candidates: &[Candidate<'x>]) -> Cycles<'x> {
        let mut out = Cycles::default();
        let firsts = candidates.iter().filter(|c| c.is_loop);
        let firsts: BTreeSet<usize> = firsts.filter_map(|c| a.body.block_at(c.at)).collect();
        // The cycles behind a comparison.
        let mut compared: BTreeMap<u64, Vec<&NaturalLoop>> = BTreeMap::new();
        // Cycles of one thread, by the question that chooses it; on which of its ways.
        let mut one_sided: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for candidate in candidates {
            let cycle = candidate.cycles[0];
            let at = candidate.at;
            let asked =
                rank_tests::before(a, Some(at), cycle, &firsts).filter(|_| !candidate.minimum);
            if candidate.is_loop && is_apart(a, at, cycle) {
                out.uncompared.push((cycle, asked));
            } else if candidate.is_loop {
                let others = compared.entry(at).or_default();
                out.add(a, at, candidate, others, asked);
            }
            if let Some((question, way)) = asked {
                one_sided.entry(question).or_default().insert(way);
            }
        }
        // Threads that go on in different forms of a loop come to one of them all the same.
        let is_shared =
            |asked: Option<Question>| asked.is_none_or(|(q, _)| one_sided[&q].len() > 1);
        let are_shared = |forms: &[Form<'_>]| forms.iter().all(|f| is_shared(f.2));
        out.compared.retain(|_, forms| are_shared(forms));
        out.uncompared.retain(|(_, asked)| is_shared(*asked));
        out
    }

    /// Adds a cycle that is compared at `at`, as are `others`.
    fn add(
        &mut self,
        a: &Analysis<'_, '_>,
        at: u64,
        candidate: &Candidate<'x>,
        others: &mut Vec<&'x NaturalLoop>,
        asked: Option<Question>,
    ) {
        // Another loop with the same bounds, which follows: nothing is compared in front of it.
        let is_behind = |x: &NaturalLoop, y: &NaturalLoop| follows(a, at, x, y);
        let mut cycles = candidate.cycles.iter().rev();
        let outermost = cycles.find(|c| others.iter().any(|o| is_behind(c, o)));
        if let Some(outermost) = outermost {
            self.uncompared.push((outermost, asked));
            return;
        }
        let cycle = candidate.cycles[0];
        let behind = others.iter().filter(|o| is_behind(o, cycle));
        self.uncompared.extend(behind.map(|o| (*o, asked)));
        others.push(cycle);
        // What is around the loop's own cycle is known with it; what is beside it is another form.
        let has = |f: &Form<'_>, c: &NaturalLoop| f.0.iter().any(|o| o.header == c.header);
        let forms = self.compared.entry(at).or_default();
        let new = (candidate.cycles.clone(), candidate.minimum, asked);
        if !forms.iter().any(|f| has(f, cycle)) {
            forms.retain(|f| !has(&new, f.0[0]));
            forms.push(new);
        }
    }
}

/// Whether a cycle comes behind another one, and apart from it, where control doesn't pass the comparison at `at` between them. Where
/// it comes back from the one to the other, they are forms of one loop.
fn follows(a: &Analysis<'_, '_>, at: u64, cycle: &NaturalLoop, other: &NaturalLoop) -> bool {
    let first = a.body.block_at(at);
    let leads = |x: &NaturalLoop, y: &NaturalLoop| {
        let between = first.into_iter().filter(|&f| f != x.header).collect();
        a.leads_to(x.header, y.header, &between)
    };
    cycle.blocks.is_disjoint(&other.blocks) && leads(other, cycle) && !leads(cycle, other)
}

/// A cycle that may be one of chunks.
struct Candidate<'x> {
    /// The cycles that its stride is in, innermost first: of the iterations, of the chunks.
    cycles: Vec<&'x NaturalLoop>,
    /// The block of the stride.
    stride: usize,
    /// Its first comparison with the bound.
    at: u64,
    /// A smaller of two values is chosen.
    minimum: bool,
    /// It is one.
    is_loop: bool,
}

/// The cycles with strides of a function.
fn candidates<'x>(a: &'x Analysis<'_, '_>) -> Vec<Candidate<'x>> {
    let mut out = Vec::new();
    for &stride in &a.noticed.strides {
        let all = a.cycles().iter();
        let mut cycles: Vec<&NaturalLoop> = all.filter(|l| l.blocks.contains(&stride)).collect();
        cycles.sort_by_key(|l| l.blocks.len());
        let first = cycles.first().copied();
        let Some((cycle, (at, unscaled))) = first.and_then(|c| Some((c, bound_check(a, c)?)))
        else {
            continue;
        };
        let minimum = has_minimum(a, cycle);
        // What an earlier loop's first chunk is compared with decides nothing if this one's start is computed once more.
        let inside = check_inside(a, cycle).filter(|_| !minimum && !unscaled);
        let (at, is_loop) = match inside {
            Some((at, true)) => (at, true),
            _ => (at, minimum || unscaled),
        };
        out.push(Candidate {
            cycles,
            stride,
            at,
            minimum,
            is_loop,
        });
    }
    out
}

/// Other cycles of chunks: those that strides are in of which no loop was made, and why.
fn others(
    a: &Analysis<'_, '_>,
    candidates: &[Candidate<'_>],
    cycles: &Cycles<'_>,
) -> Vec<(NaturalLoop, Why)> {
    let is_known = |stride: usize| {
        let mut of_it = candidates
            .iter()
            .filter(|c| c.stride == stride && c.is_loop);
        // What is around another loop's cycle is none itself: the stride is that loop's, or in a cycle that is no natural loop.
        of_it.any(|c| {
            let forms = cycles.compared.get(&c.at);
            let mut all = forms.into_iter().flatten().map(|f| f.0[0]);
            let own = c.cycles[0];
            !all.any(|o| o.is_inside(own))
        })
    };
    // Who doesn't ask which thread it is deals nothing out.
    let deals = asks(a, Query::ThreadNum) || asks(a, Query::TeamNum);
    let strides = a.noticed.strides.iter().copied().filter(|_| deals);
    let found = strides
        .filter(|&s| !is_known(s))
        .filter_map(|s| listed::of_stride(a, s));
    let none = BTreeSet::new();
    let is_apart = |(cycle, _): &(NaturalLoop, _)| {
        let mut headers = candidates.iter().map(|c| c.cycles[0].header);
        let is_shared = rank_tests::before(a, None, cycle, &none).is_none();
        is_shared && !headers.any(|h| cycle.blocks.contains(&h))
    };
    found.filter(is_apart).collect()
}

/// Whether something that ends work-sharing constructs stands between a comparison and a cycle: it is another loop's, and
/// compilers know of those that pass it, of the first thread say, that they have a chunk here too.
fn is_apart(a: &Analysis<'_, '_>, at: u64, cycle: &NaturalLoop) -> bool {
    let Some(from) = a.body.block_at(at).filter(|b| !cycle.blocks.contains(b)) else {
        return false;
    };
    let mut ends = false;
    a.body.backwards([cycle.header], |block| {
        ends |= block != from && a.closing_in(block).is_some();
        !ends && block != from
    });
    ends
}

/// Whether the function asks which team it is of, and not which thread it is: its loops are dealt to teams.
fn is_dealt_to_teams(a: &Analysis<'_, '_>) -> bool {
    asks(a, Query::TeamNum) && !asks(a, Query::ThreadNum)
}

/// Whether the function asks the runtime for this number.
fn asks(a: &Analysis<'_, '_>, wanted: Query) -> bool {
    let mut leads = a.body.leads.iter().map(|&i| &a.body.insns[i]);
    leads.any(|insn| query(a.module, insn, None) == Some(wanted))
}

/// A loop that begins at `at`, with its probes or the reason why it has none.
fn found(construct: Construct, at: u64, probes: Result<&BTreeMap<u64, ProbeSpec>, Why>) -> Found {
    let first = probes.and_then(|all| all.get(&at).ok_or(Why::Unclear));
    let next = probes.into_iter().flatten().filter(|p| *p.0 != at);
    let first = first.map(|probe| Place::Inline(*probe));
    let next = next.map(|(at, probe)| (*at, *probe)).collect();
    Found {
        next,
        ..Found::begin(construct, "static, chunk", at, first)
    }
}

/// Whether a multiple of the number of threads is added to something that changes.
pub(super) fn adds_stride(insn: &Instruction, state: &State) -> bool {
    match insn.mnemonic() {
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::Imul => (0..insn.op_count().min(2))
            .any(|op| dataflow::operand(state, insn, op).is_from_threads()),
        Mnemonic::Lea => [insn.memory_base(), insn.memory_index()]
            .iter()
            .filter_map(|&r| value::number(r))
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
    let is_rank = |v| matches!(v, Value::Query(Query::ThreadNum | Query::TeamNum));
    let address = |(_, d): (&usize, &super::Decision)| {
        (
            a.body.insns[d.compare].ip(),
            is_rank(d.values.0) || is_rank(d.values.1),
        )
    };
    checks(a)
        .rfind(|(b, _)| {
            let before = !cycle.blocks.contains(b) && a.dom.dominates(**b, cycle.header);
            // Another loop's doesn't decide about this one.
            let decides = before && !a.post.dominates(cycle.header, **b);
            decides && (!rank_tests::is_another(a, **b, cycle) || has_minimum(a, cycle))
        })
        .map(address)
        .or_else(|| check_inside(a, cycle))
}

/// The first such comparison in the cycle; and whether the start is computed from both numbers there: unoptimised code does so
/// in every round.
fn check_inside(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> Option<(u64, bool)> {
    let (_, d) = checks(a).find(|(b, _)| cycle.blocks.contains(b))?;
    let both = d.values.0 == Value::FromBoth || d.values.1 == Value::FromBoth;
    Some((a.body.insns[d.compare].ip(), both))
}

/// Comparisons of what comes from the thread's number with what may be a bound.
fn checks<'x>(
    a: &'x Analysis<'_, '_>,
) -> impl DoubleEndedIterator<Item = (&'x usize, &'x super::Decision)> {
    let all = a.decisions.iter();
    all.filter(|(_, d)| rank_tests::compares(d, Value::is_from_thread))
}
