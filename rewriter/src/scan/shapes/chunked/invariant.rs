//! What chunks' starts are compared with comes from no thread's number. What a chunk's iterations are compared with, its end, does,
//! even where compilers compute it in a way that values don't tell: as the smaller of two, say.

use super::super::Analysis;
use crate::scan::flow::lazy::{Def, Lazy, Visit};
use crate::scan::flow::uses::{Place, of_operand};
use iced_x86::{InstructionInfoFactory, Mnemonic, Register};
use ompfuse_patterns::Query;

/// Whether an operand of the comparing instruction of a block may come from a thread's number. `values`: of the function.
pub(super) fn is_of_thread(
    a: &Analysis<'_, '_>,
    values: &mut Lazy<'_>,
    block: usize,
    operand: u32,
) -> bool {
    let Some(decision) = a.decisions.get(&block) else {
        return true;
    };
    let mut place = None;
    let mut info = InstructionInfoFactory::new();
    a.visit(block, |i, insn, state| {
        // Others compare with a constant that no operand is.
        if i == decision.compare && matches!(insn.mnemonic(), Mnemonic::Cmp | Mnemonic::Sub) {
            place = of_operand(&mut info, insn, operand, state);
        }
    });
    let asks = |values: &mut Lazy<'_>, def: Def| {
        let is_result = def.place() == Place::Register(Register::RAX);
        Some(match values.call(def).flatten().filter(|_| is_result) {
            Some(Query::ThreadNum | Query::TeamNum) => Visit::Found,
            _ => Visit::On,
        })
    };
    let number = decision.compare - a.body.blocks[block].insns.start;
    place.is_some_and(|place| {
        let def = values.before(block, number, place);
        def.and_then(|def| values.depends(def, asks)) != Some(false)
    })
}
