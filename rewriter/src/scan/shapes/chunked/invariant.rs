//! What chunks' starts are compared with comes from no thread's number. What a chunk's iterations are compared with, its end, does,
//! even where compilers compute it in a way that values don't tell: as the smaller of two, say.

use super::super::Analysis;
use super::super::def_use::changed;
use crate::scan::flow::dataflow;
use crate::scan::flow::uses::is_call;
use crate::scan::flow::uses::{Place, Uses, place};
use crate::scan::flow::value::State;
use crate::scan::graph::settle;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use ompfuse_patterns::Query;
use std::collections::{BTreeMap, BTreeSet};

/// What may come from a thread's number, in every block's beginning.
pub(in super::super) struct FromThread {
    starts: BTreeMap<usize, Places>,
}

/// Where it is.
type Places = BTreeSet<Place>;

impl FromThread {
    /// Follows it through a function.
    pub(super) fn of(a: &Analysis<'_, '_>) -> FromThread {
        let all = 0..a.body.blocks.len();
        let mut info = InstructionInfoFactory::new();
        let starts = settle(
            all.map(|block| (block, Places::new())).collect(),
            |block, places| {
                a.visit(block, |_, insn, state| {
                    step(places, a, insn, state, &mut info);
                });
                a.body.following(block)
            },
            |x, y| x | y,
        );
        FromThread { starts }
    }

    /// Whether an operand of the comparing instruction of a block may come from a thread's number.
    pub(super) fn is_compared(&self, a: &Analysis<'_, '_>, block: usize, operand: u32) -> bool {
        let Some(decision) = a.decisions.get(&block) else {
            return true;
        };
        let mut places = self.starts[&block].clone();
        let mut info = InstructionInfoFactory::new();
        let mut found = false;
        a.visit(block, |i, insn, state| {
            // Others compare with a constant that no operand is.
            let has_both = matches!(insn.mnemonic(), Mnemonic::Cmp | Mnemonic::Sub);
            if i == decision.compare && has_both {
                found = match insn.op_kind(operand) {
                    OpKind::Register => {
                        let register = insn.op_register(operand).full_register();
                        places.contains(&Place::Register(register))
                    }
                    OpKind::Memory => {
                        let used = info.info(insn).used_memory();
                        used.iter().any(|m| places.contains(&place(m, state)))
                    }
                    _ => false,
                };
            }
            step(&mut places, a, insn, state, &mut info);
        });
        found
    }
}

/// Executes an instruction.
fn step(
    places: &mut Places,
    a: &Analysis<'_, '_>,
    insn: &Instruction,
    state: &State,
    info: &mut InstructionInfoFactory,
) {
    if is_call(insn) {
        return call(places, a, insn, state);
    }
    let uses = Uses::of(info, insn, state);
    let reads = uses.reads.iter().any(|place| places.contains(place));
    for (place, access) in uses.writes {
        match place {
            Place::Memory => {}
            _ if reads => _ = places.insert(place),
            Place::Frame => {}
            // What is left of a longer one doesn't matter to who writes a part of it.
            _ if access != OpAccess::CondWrite => _ = places.remove(&place),
            _ => {}
        }
    }
}

/// What a call returns comes from it if it is that number.
fn call(places: &mut Places, a: &Analysis<'_, '_>, insn: &Instruction, state: &State) {
    let changed = changed(a.module, insn);
    for n in (0..16).filter(|n| changed & 1 << n != 0) {
        places.remove(&Place::Register(Register::RAX + n));
    }
    let query = dataflow::query(a.module, insn, Some(state));
    if matches!(query, Some(Query::ThreadNum | Query::TeamNum)) {
        places.insert(Place::Register(Register::RAX));
    }
}
