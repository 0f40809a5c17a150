//! Sites that are calls of the runtime.

use super::Module;
use super::candidates;
use super::cfg::Body;
use super::draft::{Draft, ONE_UNIT};
use super::flow::dataflow::Flow;
use super::flow::leads::callee;
use super::flow::nearby::{Nearby, Point};
use super::flow::value::{State, Value};
use super::ident::{Ident, Place};
use super::names::CRITICAL_PREFIX;
use crate::model::{Action, LinkVa, ProbeSpec, Target};
use crate::thunk::{returns, through};
use iced_x86::{FlowControl, Instruction, OpKind};
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::site::{Edge, Outcome};
use ompfuse_patterns::{
    Entry, IDENT_BARRIER_IMPLICIT, IDENT_WORK_SECTIONS, Runtime, ended_by_barrier, kmpc_schedule,
};
use std::borrow::Cow;
use std::cell::OnceCell;

/// Bytes that a jump to a stub takes.
const NEEDED: usize = 5;

/// Why a call has no place of its own to be changed in.
pub(crate) const THROUGH: &str = "called through a register or variable";

/// Position of the schedule among the arguments of KMPC's loop functions.
const SCHEDULE_ARG: u8 = 2;

/// KMPC's flag of `distribute` loops (`kmp.h`).
const IDENT_WORK_DISTRIBUTE: u32 = 0x800;

/// Registers of the first integer arguments, by x86 number.
const REGISTERS: [usize; 6] = [7, 6, 2, 1, 8, 9];

/// What is known of an integer argument in a register.
pub(crate) fn argument(state: &State, position: u8) -> Value {
    let register = REGISTERS.get(usize::from(position));
    register.map_or(Value::Unknown, |&r| state.reg(r))
}

/// Sites of a function.
#[derive(Default)]
pub(crate) struct Calls {
    /// Parts of constructs.
    pub drafts: Vec<Draft>,
    /// Calls that are no part of a construct.
    pub services: Vec<Draft>,
    /// The function asks the runtime for numbers that shapes are built on.
    pub queried: bool,
}

impl Calls {
    /// Whether one of them is a call of this interface.
    pub(crate) fn any_of(&self, runtime: Runtime) -> bool {
        let mut all = self.drafts.iter().chain(&self.services);
        all.any(|d| d.record.is_some_and(|e| e.runtime == runtime))
    }

    /// None of a function yet, with room for all.
    fn of(body: &Body) -> Calls {
        Calls {
            drafts: Vec::with_capacity(body.leads.len()),
            ..Calls::default()
        }
    }

    /// Takes in that control comes to an instruction that leads to `callee`.
    fn ask(&mut self, module: &Module<'_>, callee: Option<usize>) {
        let query = callee.and_then(|n| module.entries.callees[n].query());
        self.queried |= query.is_some();
    }

    /// Takes in what an instruction that leads to `callee` is, if that is a function of the runtime.
    fn look(
        &mut self,
        module: &Module<'_>,
        body: &Body,
        insn: &Instruction,
        callee: Option<usize>,
        value: Values<'_>,
    ) {
        let Some(callee) = callee else { return };
        let Some(draft) = site(module, body, insn, callee, value) else {
            return;
        };
        if draft.construct == Construct::Service && draft.outcome == Outcome::Service {
            self.services.push(draft);
        } else {
            self.drafts.push(draft);
        }
    }
}

/// Blocks with instructions that may lead to the runtime, and these.
fn leads(body: &Body) -> impl Iterator<Item = (usize, &[usize])> {
    let mut leads = &body.leads[..];
    std::iter::from_fn(move || {
        let &first = leads.first()?;
        let block = body.blocks.partition_point(|b| b.insns.end <= first);
        let end = body.blocks.get(block)?.insns.end;
        let (here, rest) = leads.split_at(leads.partition_point(|&i| i < end));
        leads = rest;
        Some((block, here))
    })
}

/// The runtime calls of a function. `flow`: the values of all its registers, which few functions need.
pub(crate) fn find<'f>(module: &Module<'_>, body: &Body, flow: impl FnOnce() -> &'f Flow) -> Calls {
    if let Some(calls) = find_nearby(module, body) {
        return calls;
    }
    let flow = flow();
    let mut calls = Calls::of(body);
    for (block, here) in leads(body) {
        let mut seen = false;
        let look = |calls: &mut Calls, insn: &Instruction, callee, state: &State| {
            let mut value = |position| argument(state, position);
            calls.look(module, body, insn, callee, &mut value);
        };
        flow.visit(module, body, block, |i, insn, state| {
            seen = true;
            if here.contains(&i) {
                let callee = callee(module, insn, Some(state));
                calls.ask(module, callee);
                look(&mut calls, insn, callee, state);
            }
        });
        if !seen {
            let state = State::unknown();
            for insn in here.iter().map(|&i| &body.insns[i]) {
                look(&mut calls, insn, callee(module, insn, Some(&state)), &state);
            }
        }
    }
    calls
}

/// The same, where it is enough to know what few registers hold.
fn find_nearby(module: &Module<'_>, body: &Body) -> Option<Calls> {
    let mut calls = Calls::of(body);
    let mut nearby = Nearby::of(module, body);
    for (block, here) in leads(body) {
        for &insn in here {
            let at = Point { block, insn };
            let callee = nearby.callee(at)?;
            if nearby.reaches(block) {
                calls.ask(module, callee);
            }
            let mut all_known = true;
            let mut value = |position: u8| {
                let register = REGISTERS.get(usize::from(position));
                let value = register.map(|&r| nearby.register(at, r));
                let value = value.unwrap_or(Some(Value::Unknown));
                all_known &= value.is_some();
                value.unwrap_or(Value::Unknown)
            };
            calls.look(module, body, &body.insns[insn], callee, &mut value);
            if !all_known {
                return None;
            }
        }
    }
    Some(calls)
}

/// Tells what is known of an integer argument, by its position.
type Values<'v> = &'v mut dyn FnMut(u8) -> Value;

/// What an integer argument in a register is, if that is a constant.
fn constant(value: Values<'_>, position: u8) -> Option<u64> {
    match value(position) {
        Value::Const(c) => Some(c),
        _ => None,
    }
}

/// A call or jump of the runtime's function with this number.
fn site(
    module: &Module<'_>,
    body: &Body,
    insn: &Instruction,
    number: usize,
    value: Values<'_>,
) -> Option<Draft> {
    let control = insn.flow_control();
    if matches!(control, FlowControl::Next | FlowControl::Return) {
        return None;
    }
    let callee = &module.entries.callees[number];
    let tail = matches!(
        control,
        FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::ConditionalBranch
    ) || through(&module.image, insn).is_some_and(|(_, jumps)| jumps)
        || returns(&module.image, insn);
    let Some(entry) = callee.entry else {
        let mut draft = Draft::new(insn.ip(), Construct::Service, Edge::Encloses);
        draft.function = Some(body.function as u32);
        draft.entry = Some(number as u32);
        draft.skip("unknown entry point of an OpenMP runtime");
        return Some(draft);
    };
    let mut draft = Draft::new(insn.ip(), entry.construct, entry.edge);
    draft.function = Some(body.function as u32);
    draft.entry = Some(number as u32);
    draft.record = Some(entry);
    draft.tail = tail;
    draft.detail = entry.detail.as_deref().map(Cow::Borrowed);
    describe(module, entry, value, &mut draft);
    place(module, insn, entry, &mut draft);
    Some(draft)
}

/// What bytes alone tell of a place that may be a call of the runtime. It has no probe for this reason, if it needs one.
pub(crate) fn undecoded(
    module: &Module<'_>,
    va: u64,
    reason: impl Into<Cow<'static, str>>,
) -> Draft {
    let number = candidates::callee(&module.image, &module.entries, va);
    let entry = number.and_then(|n| module.entries.callees[n].entry);
    let (construct, edge) = match entry {
        Some(entry) => (entry.construct, entry.edge),
        None => (Construct::Service, Edge::Encloses),
    };
    let mut draft = Draft::new(va, construct, edge);
    draft.entry = number.map(|n| n as u32);
    match entry.and_then(|e| e.no_probe.as_ref()) {
        Some(why) => draft.serve(format!("needs no probe: {why}")),
        None => draft.skip(reason),
    }
    draft
}

/// Addresses that a function hands over to the runtime as outlined functions.
pub(crate) fn handed_over(module: &Module<'_>, body: &Body) -> Vec<u64> {
    if body.leads.is_empty() {
        return Vec::new();
    }
    let flow = OnceCell::new();
    let calls = find(module, body, || {
        flow.get_or_init(|| Flow::compute(module, body))
    });
    calls.drafts.iter().filter_map(|d| d.outlined).collect()
}

/// Fills in what constant arguments tell.
fn describe(module: &Module<'_>, entry: &Entry, value: Values<'_>, draft: &mut Draft) {
    draft.outlined = entry
        .outlined_arg
        .and_then(|a| constant(value, a))
        .filter(|&va| module.image.is_code(va));
    let is_kmpc = entry.symbol.starts_with("__kmpc_");
    let ident = if is_kmpc {
        constant(value, 0).and_then(|va| Ident::read(module, va))
    } else {
        None
    };
    let flags = ident.as_ref().map_or(0, |i| i.flags);
    let threads = entry.set.threads.and_then(|at| constant(value, at));
    draft.threads = threads.map(|number| number as u32);
    let copier = entry.set.deferred.and(entry.set.copier);
    draft.copies = (copier.and_then(|at| constant(value, at))).is_some_and(|at| at != 0);
    match ident.and_then(|i| i.place) {
        Some(Place::Source(source)) => draft.source = Some(source),
        Some(Place::Line(line)) => draft.rare_mut().line = Some(line),
        None => {}
    }
    match entry.probe {
        Some(Probe::StaticInit | Probe::DispatchInit) => {
            if let Some(schedule) = constant(value, SCHEDULE_ARG) {
                draft.detail = kmpc_schedule(schedule as u32).map(Cow::Borrowed);
            }
            if flags & IDENT_WORK_SECTIONS != 0 {
                draft.construct = Construct::Sections;
                draft.detail = Some(ONE_UNIT.into());
            } else if flags & IDENT_WORK_DISTRIBUTE != 0 {
                draft.construct = Construct::Distribute;
            }
        }
        Some(Probe::StaticFini) if flags & IDENT_WORK_SECTIONS != 0 => {
            draft.construct = Construct::Sections;
        }
        Some(Probe::StaticFini) if flags & IDENT_WORK_DISTRIBUTE != 0 => {
            draft.construct = Construct::Distribute;
        }
        // Without a place for the first range it only registers the reductions of a loop that the program divides itself.
        Some(Probe::LoopStart) if constant(value, entry.args[2]) == Some(0) => {
            draft.construct = Construct::Reduction;
            draft.edge = Edge::Encloses;
        }
        Some(Probe::Barrier) if flags & IDENT_BARRIER_IMPLICIT != 0 => {
            draft.construct = Construct::ImplicitBarrier;
            draft.ends = ended_by_barrier(flags);
        }
        Some(Probe::Barrier) if entry.construct == Construct::ImplicitBarrier => {
            draft.ends = Some(Construct::Single);
        }
        Some(
            Probe::TaskEnqueue
            | Probe::TaskBeginIf0
            | Probe::TaskCompleteIf0
            | Probe::TaskloopPattern,
        ) => {
            if let Value::Result(call) = value(entry.args[0]) {
                draft.rare_mut().argument_of = Some(call);
            }
        }
        Some(Probe::LoopStart) if draft.is_doacross() => {
            draft.rare_mut().dimensions = constant(value, 0);
        }
        Some(Probe::MutexEnter) => {
            // In KMPC's calls source position and thread number stand before it.
            let first = if is_kmpc { 2 } else { 0 };
            draft.detail = (first..entry.nargs)
                .filter(|_| module.has_criticals())
                .filter_map(|a| constant(value, a))
                .find_map(|va| critical_name(module, va))
                .map(Cow::Owned);
        }
        // A lock of its own, no member of an array or structure.
        Some(Probe::LockSet | Probe::LockTest) => {
            let lock = constant(value, entry.args[0]);
            let name = lock.and_then(|va| module.object_name(va));
            draft.detail = name.map(|name| Cow::Owned(name.to_owned()));
        }
        _ => {}
    }
}

/// The name of a critical section, from the symbol of its variable.
fn critical_name(module: &Module<'_>, va: u64) -> Option<String> {
    let name = module.object_name(va)?.strip_prefix(CRITICAL_PREFIX)?;
    let name = name.strip_suffix(".var").unwrap_or(name);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Where a call or jump of the runtime leads, if the instruction itself says so.
pub(crate) fn target(module: &Module<'_>, insn: &Instruction) -> Option<Target> {
    match insn.op0_kind() {
        OpKind::NearBranch64 if !module.entries.is_target(insn.near_branch_target()) => None,
        OpKind::NearBranch64 => Some(Target::Direct(LinkVa(insn.near_branch_target()))),
        OpKind::Memory if insn.is_ip_rel_memory_operand() => {
            Some(Target::Slot(LinkVa(insn.ip_rel_memory_address())))
        }
        _ => None,
    }
}

/// Decides how the call can be patched.
fn place(module: &Module<'_>, insn: &Instruction, entry: &'static Entry, draft: &mut Draft) {
    let Some(probe) = entry.probe else {
        return match &entry.no_probe {
            Some(why) => draft.serve(format!("needs no probe: {why}")),
            None => draft.skip(format!("no probe for {} yet", entry.symbol)),
        };
    };
    let Some(target) = target(module, insn) else {
        return draft.skip(THROUGH);
    };
    if insn.flow_control() == FlowControl::ConditionalBranch {
        return draft.skip("conditional jump to the runtime");
    }
    if insn.len() < NEEDED {
        return draft.skip(format!("{} bytes free, {NEEDED} needed", insn.len()));
    }
    draft.call(insn.len() as u8, draft.tail, target, spec(entry, probe));
}

/// Gives a call through a register or variable the probe that its entry point has: a relay leads to it.
pub(crate) fn relay(body: &Body, target: Target, draft: &mut Draft) {
    let insn = body.insn_at(draft.address).map(|i| &body.insns[i]);
    let entry = draft.record.and_then(|e| Some((e, e.probe?)));
    if let (Some(insn), Some((entry, probe))) = (insn, entry) {
        draft.reason = None;
        draft.call(insn.len() as u8, draft.tail, target, spec(entry, probe));
        if let Some(Action::Call { relayed, .. }) = &mut draft.action {
            *relayed = true;
        }
    }
}

fn spec(entry: &Entry, probe: Probe) -> ProbeSpec {
    ProbeSpec {
        probe,
        args: entry.args,
        nargs: entry.nargs,
        width: entry.width,
        unsigned: entry.unsigned,
        param: 0,
        second: 0,
        chunks: false,
    }
}
