//! gcc's chunked static loops: no division, but a start computed from the thread's number, a minimum with the bound,
//! and a stride computed from the number of threads. A probe stands before each comparison of a chunk's start with the
//! bound.

mod anew;
mod around;
mod asked;
mod bound;
mod compare;
mod entered;
mod forms;
pub(super) mod lone;
mod multiple;
mod uncompared;

use super::{Analysis, NaturalLoop};
use crate::model::ProbeSpec;
use crate::scan::Module;
use crate::scan::checked;
use crate::scan::dataflow;
use crate::scan::draft::Draft;
use crate::scan::value::{State, Value};
use around::Listed;
use bound::FromThread;
use compare::UNCOMPARED;
use forms::{Dealt, Found, dealt};
use iced_x86::{ConditionCode, Instruction, Mnemonic};
use multiple::Multiples;
use ompfuse_format::Construct;
use ompfuse_format::site::Edge;
use ompfuse_patterns::Query;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Adds the chunked static loops of a function to `drafts`.
pub(super) fn find(a: &Analysis<'_, '_>, drafts: &mut Vec<Draft>) {
    let mut found: BTreeMap<u64, Vec<Found<'_>>> = BTreeMap::new();
    let mut apart = BTreeMap::new();
    let before = drafts.len();
    // The cycles behind a comparison.
    let mut compared: BTreeMap<u64, Vec<&NaturalLoop>> = BTreeMap::new();
    let mut strides = Vec::new();
    let lone = lone::find(a);
    let mut several = around::of_single_iterations(a);
    let candidates = candidates(a, &lone, &mut several);
    // Others in them are their iterations', or another form.
    let headers = candidates.iter().map(|c| c.cycles[0].header);
    let headers: BTreeSet<usize> = headers.chain(lone.iter().map(|l| l.cycle.header)).collect();
    let firsts: BTreeSet<usize> = candidates.iter().filter_map(|c| c.first(a)).collect();
    let (several, mut hidden): (Vec<_>, Vec<_>) = several.into_iter().partition(|l| match l.why {
        around::ENTERED => l.cycle.blocks.is_disjoint(&headers),
        _ => l.cycle.blocks.is_disjoint(&firsts),
    });
    let begin = |l: &Listed| a.body.blocks[l.cycle.header].start;
    let mut several: BTreeMap<u64, &str> = several.iter().map(|l| (begin(l), l.why)).collect();
    // Cycles of one thread, by the question that chooses it; on which of its ways.
    let mut one_sided: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for candidate in candidates {
        let cycle = candidate.cycles[0];
        let Some(at) = candidate.at else {
            apart.insert(a.body.blocks[cycle.header].start, None);
            continue;
        };
        let asked = asked::before(a, at, cycle, &firsts).filter(|_| !candidate.minimum);
        match is_apart(a, at, cycle, drafts) {
            _ if !candidate.is_loop => {}
            true => _ = apart.insert(a.body.blocks[cycle.header].start, asked),
            false => {
                let others = compared.entry(at).or_default();
                // Another loop with the same bounds, which follows: nothing is compared in front of it.
                let is_behind = |x: &NaturalLoop, y: &NaturalLoop| follows(a, at, x, y);
                let cycles = candidate.cycles.iter().rev();
                let mut cycles = cycles.filter(|c| others.iter().any(|o| is_behind(c, o)));
                if let Some(outermost) = cycles.next() {
                    apart.insert(a.body.blocks[outermost.header].start, asked);
                    continue;
                }
                for other in others.iter().filter(|o| is_behind(o, cycle)) {
                    apart.insert(a.body.blocks[other.header].start, asked);
                }
                others.push(cycle);
                strides.push((at, cycle, candidate.stride));
                // What is around the loop's own cycle is known with it; what is beside it is another form.
                let has = |f: &Found<'_>, c: &NaturalLoop| f.0.iter().any(|o| o.header == c.header);
                let forms = found.entry(at).or_default();
                let new = (candidate.cycles, candidate.minimum, asked);
                if !forms.iter().any(|f| has(f, cycle)) {
                    forms.retain(|f| !has(&new, f.0[0]));
                    forms.push(new);
                }
            }
        }
        if let Some((question, way)) = asked {
            one_sided.entry(question).or_default().insert(way);
        }
    }
    // What is around another loop's cycle is none itself: the stride is that loop's, or in a cycle that is no natural loop.
    for (at, cycle, stride) in strides {
        let is_inside =
            |c: &&NaturalLoop| c.header != cycle.header && cycle.blocks.contains(&c.header);
        if compared[&at].iter().any(is_inside) {
            let entered = around::of_stride(a, stride);
            let entered = entered.filter(|l| l.cycle.blocks.is_disjoint(&headers));
            several.extend(entered.map(|l| (begin(&l), l.why)));
        }
    }
    // Threads that go on in different forms of a loop come to one of them all the same.
    let all = |question: usize| one_sided[&question].len() > 1;
    let is_shared = |asked: Option<(usize, usize)>| asked.is_none_or(|(question, _)| all(question));
    found.retain(|_, forms| forms.iter().all(|(_, _, asked)| is_shared(*asked)));
    apart.retain(|_, asked| is_shared(*asked));
    let loops = found.iter().map(|(&at, forms)| (at, dealt(a, at, forms)));
    let lone = lone.into_iter();
    let lone = lone.map(|l| (l.at, l.dealt.map(|(cycle, probes)| (vec![cycle], probes))));
    let mut loops: Vec<(u64, Dealt<'_>)> = loops.chain(lone).collect();
    uncompared::resolve(a, (&mut loops, &mut apart), &found, drafts);
    // Work-sharing constructs aren't nested in one another: what is compared in another loop's chunk begins no loop.
    let in_chunk = |at: u64| {
        let block = a.body.block_at(at);
        let others = loops.iter().filter(|(other, _)| *other != at);
        let mut cycles = others
            .filter_map(|(_, l)| l.as_ref().ok())
            .flat_map(|l| &l.0);
        cycles.any(|c| block.is_some_and(|b| c.blocks.contains(&b)))
    };
    let mut behind = BTreeMap::new();
    let construct = match is_dealt_to_teams(a) {
        true => Construct::Distribute,
        false => Construct::Loop,
    };
    let recorded = || loops.iter().filter_map(|(_, l)| l.as_ref().ok());
    let recorded: Vec<&NaturalLoop> = recorded().flat_map(|l| l.0.iter().copied()).collect();
    let begins = |at: u64| loops.iter().any(|(other, l)| *other == at && l.is_ok());
    for (at, dealt) in &loops {
        match dealt {
            // But for a loop behind that one, which is asked for by its way out: it is listed where its own cycle begins.
            Err(why) if in_chunk(*at) || begins(*at) => {
                let forms = found.get(at).into_iter().flatten().map(|f| f.0[0]);
                let is_apart = |c: &&NaturalLoop| {
                    let mut others = recorded.iter();
                    others.all(|r| r.blocks.is_disjoint(&c.blocks))
                };
                for cycle in forms.filter(is_apart) {
                    behind.insert(a.body.blocks[cycle.header].start, *why);
                }
            }
            Ok(_) if in_chunk(*at) => {}
            Ok((_, probes)) => add(a, construct, *at, Ok(probes), drafts),
            Err(why) => add(a, construct, *at, Err(why), drafts),
        }
    }
    for at in apart.keys().copied().filter(|&at| !in_chunk(at)) {
        add(a, construct, at, Err(UNCOMPARED), drafts);
    }
    let is_new = |at: u64| !in_chunk(at) && !apart.contains_key(&at);
    for (&at, why) in behind.iter().filter(|(at, _)| is_new(**at)) {
        add(a, construct, at, Err(why), drafts);
    }
    let is_new = |at: u64| is_new(at) && !behind.contains_key(&at);
    for (&at, why) in several.iter().filter(|(at, _)| is_new(**at)) {
        add(a, construct, at, Err(why), drafts);
    }
    // Where nothing came of what is in it, the cycle around is told.
    hidden.retain(|l| l.why == around::ENTERED);
    if let Some(l) = hidden.first().filter(|_| drafts.len() == before) {
        add(a, construct, begin(l), Err(l.why), drafts);
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

/// Where what is compared comes from, found when it is first asked for.
#[derive(Default)]
pub(super) struct Sources {
    from_thread: OnceCell<FromThread>,
    multiples: OnceCell<Multiples>,
    named_multiples: OnceCell<Multiples>,
}

impl Sources {
    fn threads_own(&self, a: &Analysis<'_, '_>) -> &FromThread {
        self.from_thread.get_or_init(|| FromThread::of(a))
    }

    fn multiples(&self, a: &Analysis<'_, '_>) -> &Multiples {
        self.multiples.get_or_init(|| Multiples::of(a))
    }

    fn named_multiples(&self, a: &Analysis<'_, '_>) -> &Multiples {
        self.named_multiples.get_or_init(|| Multiples::of_named(a))
    }
}

/// A cycle that may be one of chunks.
struct Candidate<'x> {
    /// The cycles that its stride is in, innermost first: of the iterations, of the chunks.
    cycles: Vec<&'x NaturalLoop>,
    /// The block of the stride.
    stride: usize,
    /// Its first comparison with the bound; `None` if the first chunk has none.
    at: Option<u64>,
    /// A smaller of two values is chosen.
    minimum: bool,
    /// It is one.
    is_loop: bool,
}

impl Candidate<'_> {
    /// The block of its first comparison.
    fn first(&self, a: &Analysis<'_, '_>) -> Option<usize> {
        self.at
            .filter(|_| self.is_loop)
            .and_then(|at| a.body.block_at(at))
    }
}

/// The cycles with strides of a function, but for those of single iterations. `several` gets others that have no probe.
fn candidates<'x>(
    a: &'x Analysis<'_, '_>,
    lone: &[lone::Lone<'_>],
    several: &mut Vec<Listed>,
) -> Vec<Candidate<'x>> {
    let mut out = Vec::new();
    for &block in &a.noticed.strides {
        let all = a.cycles().iter();
        let mut cycles: Vec<&NaturalLoop> = all.filter(|l| l.blocks.contains(&block)).collect();
        cycles.sort_by_key(|l| l.blocks.len());
        let is_lone = |c: &&NaturalLoop| lone.iter().any(|l| l.cycle.header == c.header);
        if cycles.iter().any(is_lone) {
            continue;
        }
        let Some(&cycle) = cycles.first() else {
            several.extend(around::of_stride(a, block));
            continue;
        };
        let (at, minimum, is_loop) = match bound_check(a, cycle) {
            Some((at, unscaled)) => {
                let minimum = has_minimum(a, cycle);
                // What an earlier loop's first chunk is compared with decides nothing if this one's start is computed anew.
                let anew = check_inside(a, cycle).filter(|_| !minimum && !unscaled);
                match anew {
                    Some((at, true)) => (Some(at), false, true),
                    _ => (Some(at), minimum, minimum || unscaled),
                }
            }
            None if asked::goes_around(a, cycle) => (None, false, true),
            None => {
                several.extend(around::of_stride(a, block));
                continue;
            }
        };
        if !is_loop {
            several.extend(around::of_stride(a, block));
        }
        out.push(Candidate {
            cycles,
            stride: block,
            at,
            minimum,
            is_loop,
        });
    }
    out
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

/// Adds a loop that begins at `at`, with its probes or the reason why it has none.
fn add(
    a: &Analysis<'_, '_>,
    construct: Construct,
    at: u64,
    probes: Result<&BTreeMap<u64, ProbeSpec>, &'static str>,
    drafts: &mut Vec<Draft>,
) {
    let draft = |at: u64, edge: Edge| {
        let mut draft = Draft::new(at, construct, edge);
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

/// Whether a multiple of the number of threads is added to something that changes.
pub(super) fn adds_stride(module: &Module<'_>, insn: &Instruction, state: &State) -> bool {
    match insn.mnemonic() {
        Mnemonic::Call => {
            let arguments = [7, 6].map(|register| state.reg(register));
            let strides = arguments.iter().any(|v| v.is_from_threads());
            strides && checked::called(module, insn).is_some()
        }
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
            decides && (!asked::is_another(a, **b, cycle) || has_minimum(a, cycle))
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
    a.decisions.iter().filter(|(_, d)| {
        let (x, y) = d.values;
        let bound = |v: Value| matches!(v, Value::Unknown | Value::Const(_));
        d.is_ordering() && (x.is_from_thread() && bound(y) || y.is_from_thread() && bound(x))
    })
}
