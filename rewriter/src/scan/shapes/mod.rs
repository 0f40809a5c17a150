//! Constructs for which compilers make no call: found from values and control flow.

mod again;
mod beyond;
mod chunked;
mod copies;
mod def_use;
mod division;
mod ends;
mod found;
mod fused;
mod kmpc_chunks;
mod loops;
mod masked;
mod master;
mod operands;
mod reach;
mod repeated;
mod several;
mod shares;
mod single;
mod ways;
mod why;

use super::Module;
use super::cfg::Body;
use super::draft::Draft;
use super::flow::dataflow::{self, Flow};
use super::flow::lift::Effect;
use super::flow::refinement::compare_before;
use super::flow::value::{State, Value};
use super::graph::{Dominators, NaturalLoop};
use ends::Closing;
use found::{Find, Found};
use iced_x86::{FlowControl, Instruction, Mnemonic};
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;

/// A function with what is known of it.
pub(crate) struct Analysis<'m, 'a> {
    pub module: &'m Module<'a>,
    pub body: &'m Body,
    pub flow: &'m Flow,
    pub dom: Dominators,
    pub post: Dominators,
    /// Its address is handed over as an outlined function.
    outlined: bool,
    /// Whether that was asked.
    asked: Cell<bool>,
    /// How many calls of the runtime there are. Static loops are numbered behind them.
    own: usize,
    /// These calls, and the static loops' begins, by address.
    pub calls: BTreeMap<u64, Mark>,
    /// Conditional branches by block, with the comparison that decides.
    pub decisions: Decisions,
    /// What else was noticed when every instruction was looked at once.
    pub noticed: Noticed,
    cycles: OnceCell<Vec<NaturalLoop>>,
    reducible: OnceCell<bool>,
    ways: ways::Ways,
}

/// A call of the runtime, or the begin of a loop.
#[derive(Debug)]
pub(crate) struct Mark {
    /// Number of its draft.
    draft: usize,
    /// What it is to constructs that are open.
    closing: Cell<Option<Closing>>,
}

/// Instructions that shapes are built on.
#[derive(Debug, Default)]
pub(crate) struct Noticed {
    /// Divisions by the number of threads or teams, ascending; of twins only the first.
    pub divisions: Vec<division::Division>,
    /// Pairs of compared values of which one comes from a query, with block and address, ascending.
    pub comparisons: Vec<(usize, u64, (Value, Value))>,
    /// Blocks in which a multiple of the number of threads is added to something, ascending.
    pub strides: Vec<usize>,
}

/// Conditional branches by block, with the comparison that decides.
type Decisions = BTreeMap<usize, Decision>;

/// A conditional branch at a block's end and the comparison that it depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decision {
    /// Number of the comparing instruction.
    pub compare: usize,
    /// The compared values.
    pub values: (Value, Value),
    /// The branch.
    pub branch: Instruction,
}

impl Decision {
    /// Whether it compares what was computed from the results of division `id`.
    fn is_of(&self, id: u64) -> bool {
        let (x, y) = self.values;
        x.division() == Some(id) || y.division() == Some(id)
    }

    /// Whether it asks for less or greater.
    fn is_ordering(&self) -> bool {
        matches!(
            self.branch.mnemonic(),
            Mnemonic::Jl
                | Mnemonic::Jle
                | Mnemonic::Jg
                | Mnemonic::Jge
                | Mnemonic::Jb
                | Mnemonic::Jbe
                | Mnemonic::Ja
                | Mnemonic::Jae
                | Mnemonic::Js
                | Mnemonic::Jns
        )
    }
}

/// The rules by which shapes are found, in the order in which they are looked for: begins of static loops end what is open.
const RULES: &[Rule] = &[
    loops::RULE,
    chunked::RULE,
    kmpc_chunks::RULE,
    kmpc_chunks::sections::RULE,
    single::RULE,
    master::RULE,
    masked::RULE,
];

/// Where a shape may be, and how it is found.
struct Rule {
    basis: Basis,
    /// Finds all of a function; the drafts: its runtime calls, and what the rules before this one have found.
    find: fn(&mut Analysis<'_, '_>, &[Draft]) -> Vec<Find>,
}

/// What a shape is built on.
enum Basis {
    /// Numbers that the function asks for; whether they are used as they would have to be.
    Numbers(fn(&Decisions, &Noticed) -> bool),
    /// A call that begins the construct: whether this is one.
    Call(fn(&Draft) -> bool),
}

/// Whether a function with these runtime calls can hold inlined constructs; `queried`: whether numbers that it asks for may be a
/// construct's that gcc computes itself.
pub(crate) fn possible(queried: bool, drafts: &[Draft]) -> bool {
    RULES.iter().any(|rule| match rule.basis {
        Basis::Numbers(_) => queried,
        Basis::Call(begins) => drafts.iter().any(begins),
    })
}

/// Finds the inlined constructs of a function and adds them to `drafts`, which hold its runtime calls already; `queried` as in
/// [`possible`]. Returns whether it matters that the function is `outlined`.
pub(crate) fn find(
    module: &Module<'_>,
    body: &Body,
    flow: &Flow,
    (outlined, queried): (bool, bool),
    drafts: &mut Vec<Draft>,
) -> bool {
    let (mut decisions, noticed) = look(module, body, flow);
    let may_be = |rule: &&Rule| match rule.basis {
        Basis::Numbers(used) => queried && used(&decisions, &noticed),
        Basis::Call(begins) => drafts.iter().any(begins),
    };
    // Most functions only ask for numbers.
    let possible: Vec<&Rule> = RULES.iter().filter(may_be).collect();
    if possible.is_empty() {
        return false;
    }
    for block in (0..body.blocks.len()).filter(|&b| !flow.is_queried(b)) {
        decisions.extend(decide(module, body, flow, block).map(|d| (block, d)));
    }
    let mut analysis = Analysis::new(module, body, flow, outlined, (decisions, noticed), drafts);
    for rule in possible {
        let found = (rule.find)(&mut analysis, drafts);
        found::add(&analysis, found, drafts);
    }
    analysis.asked.get()
}

/// Looks at every instruction once where values of queries may be met, and at the decisions there.
fn look(module: &Module<'_>, body: &Body, flow: &Flow) -> (Decisions, Noticed) {
    let mut decisions = BTreeMap::new();
    let mut noticed = Noticed::default();
    for block in (0..body.blocks.len()).filter(|&b| flow.is_queried(b)) {
        let mut strides = false;
        let branch = Branch::of(body, block);
        let mut decision = None;
        flow.visit(module, body, block, |i, insn, state| {
            let branch = branch.as_ref().filter(|b| b.compare == i);
            decision = decision.or_else(|| Some(branch?.decision(insn, state)));
            match insn.mnemonic() {
                Mnemonic::Cmp => {
                    let value = |op| dataflow::operand(state, insn, op);
                    let (x, y) = (value(0), value(1));
                    if x.is_queried() || y.is_queried() {
                        noticed.comparisons.push((block, insn.ip(), (x, y)));
                    }
                }
                Mnemonic::Div | Mnemonic::Idiv if !flow.is_twin(insn) => {
                    let division = division::Division::of(block, insn, state);
                    noticed.divisions.extend(division);
                }
                Mnemonic::Add | Mnemonic::Sub | Mnemonic::Imul | Mnemonic::Lea => {
                    strides = strides || chunked::adds_stride(insn, state);
                }
                _ => {}
            }
        });
        if strides {
            noticed.strides.push(block);
        }
        decisions.extend(decision.map(|d| (block, d)));
    }
    (decisions, noticed)
}

/// What the conditional branch at a block's end depends on.
fn decide(module: &Module<'_>, body: &Body, flow: &Flow, block: usize) -> Option<Decision> {
    let branch = Branch::of(body, block)?;
    let mut decision = None;
    flow.visit(module, body, block, |i, insn, state| {
        if i == branch.compare {
            decision = Some(branch.decision(insn, state));
        }
    });
    decision
}

/// A conditional branch at a block's end.
struct Branch<'x> {
    /// Number of the instruction whose flags it reads, and what that does.
    compare: usize,
    effect: Effect,
    branch: &'x Instruction,
}

impl<'x> Branch<'x> {
    fn of(body: &'x Body, block: usize) -> Option<Branch<'x>> {
        let branch = body
            .last(block)
            .filter(|b| b.flow_control() == FlowControl::ConditionalBranch)?;
        let (compare, effect) = compare_before(body, block)?;
        Some(Branch {
            compare,
            effect,
            branch,
        })
    }

    /// What it decides; `compare`, `state`: the comparing instruction, and what is known before it.
    fn decision(&self, compare: &Instruction, state: &State) -> Decision {
        let value = |part| dataflow::part(state, compare, part);
        Decision {
            compare: self.compare,
            values: (value(self.effect.a), value(self.effect.b)),
            branch: *self.branch,
        }
    }
}

impl<'m, 'a> Analysis<'m, 'a> {
    /// Of a function with these runtime calls.
    fn new(
        module: &'m Module<'a>,
        body: &'m Body,
        flow: &'m Flow,
        outlined: bool,
        (decisions, noticed): (Decisions, Noticed),
        drafts: &[Draft],
    ) -> Self {
        let mark = |(draft, of): (usize, &Draft)| {
            let closing = Cell::new(Closing::of(of));
            (of.address, Mark { draft, closing })
        };
        Analysis {
            module,
            body,
            flow,
            dom: body.dominators(),
            post: body.post_dominators(),
            outlined,
            asked: Cell::new(false),
            own: drafts.len(),
            calls: drafts.iter().enumerate().map(mark).collect(),
            decisions,
            noticed,
            cycles: OnceCell::new(),
            reducible: OnceCell::new(),
            ways: ways::Ways::default(),
        }
    }

    /// Whether its return ends what is open: its address is handed over as an outlined function.
    fn is_outlined(&self) -> bool {
        self.asked.set(true);
        self.outlined
    }

    /// Cycles of blocks, found when they are first asked for.
    fn cycles(&self) -> &[NaturalLoop] {
        self.cycles
            .get_or_init(|| self.body.natural_loops(&self.dom))
    }

    /// Whether all cycles are entered in one place.
    fn is_reducible(&self) -> bool {
        *self
            .reducible
            .get_or_init(|| self.body.is_reducible(&self.dom))
    }

    fn visit(&self, block: usize, f: impl FnMut(usize, &Instruction, &State)) {
        self.flow.visit(self.module, self.body, block, f);
    }

    /// Where the comparison stands that the branch at a block's end depends on.
    fn test_at(&self, block: usize) -> Option<u64> {
        let decision = self.decisions.get(&block)?;
        Some(self.body.insns[decision.compare].ip())
    }

    /// Whether control leaves a cycle at this block's end, other than for code that nothing comes back from: calls of
    /// `abort` and of what throws.
    fn leaves(&self, block: usize, cycle: &NaturalLoop) -> bool {
        let mut succs = self.body.blocks[block].succs.iter();
        succs.any(|&s| !cycle.blocks.contains(&s) && self.post.parent(s).is_some())
    }

    /// The drafts of the calls, and of loops' begins, that are at these addresses.
    fn drafts_at(&self, places: &[u64]) -> Vec<usize> {
        let marks = places.iter().filter_map(|at| self.calls.get(at));
        marks.map(|mark| mark.draft).collect()
    }

    /// Remembers a static loop's begin, which ends open constructs if it is recorded.
    fn mark(&mut self, n: usize, found: &Found) {
        let closing = Cell::new(found.why().is_none().then_some(Closing::Begin));
        let draft = self.own + n;
        self.calls.insert(found.at, Mark { draft, closing });
    }

    /// Forgets that what a draft is, at an address, ends open constructs.
    fn unmark(&self, at: u64, draft: usize) {
        if let Some(mark) = self.calls.get(&at).filter(|mark| mark.draft == draft) {
            mark.closing.set(None);
        }
    }

    /// Name of the function.
    fn function(&self) -> Option<u32> {
        Some(self.body.function as u32)
    }
}
