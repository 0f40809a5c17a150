//! Registers that a call of a function in the same file changes. Calling conventions let a callee change nine of them; gcc
//! looks into the callee (`-fipa-ra`) and keeps values in those that it leaves alone.

use super::Module;
use super::flow::uses;
use crate::thunk::returns;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory};
use rustc_hash::FxHashMap;
use std::sync::RwLock;

/// A set of general registers, by x86 number.
pub(crate) type Registers = u16;

/// All of them: of a callee that isn't known.
const ALL: Registers = !0;

/// Calls within calls that are followed.
const MAX_DEPTH: usize = 3;
/// The longest function that is looked into, in bytes.
const MAX_LEN: u64 = 4096;

/// What is known of functions, by address.
#[derive(Debug, Default)]
pub(crate) struct Clobbers {
    known: RwLock<FxHashMap<u64, Registers>>,
}

impl Clobbers {
    /// The registers that a call of `target` may change.
    pub(crate) fn of(&self, module: &Module<'_>, target: u64) -> Registers {
        let known = self.known.read().ok();
        if let Some(&known) = known.as_deref().and_then(|k| k.get(&target)) {
            return known;
        }
        drop(known);
        let found = changed(module, target, 0);
        if let Ok(mut known) = self.known.write() {
            known.insert(target, found);
        }
        found
    }
}

fn changed(module: &Module<'_>, target: u64, depth: usize) -> Registers {
    let function = module.functions.at(target).map(|i| module.functions.get(i));
    let Some(function) = function.filter(|f| f.start == target && f.end - f.start <= MAX_LEN)
    else {
        return ALL;
    };
    let runtime = module.entries.targets.contains_key(&target);
    let Some(code) = module
        .image
        .rest(target)
        .filter(|_| !runtime && depth < MAX_DEPTH)
    else {
        return ALL;
    };
    let mut info = InstructionInfoFactory::new();
    let mut decoder = Decoder::with_ip(64, code, target, DecoderOptions::NONE);
    let mut out = 0;
    while decoder.can_decode() && decoder.ip() < function.end {
        let insn = decoder.decode();
        let inside = (function.start..function.end).contains(&insn.near_branch_target());
        out |= match insn.flow_control() {
            // `-mfunction-return=thunk`: the function's end, which changes nothing.
            _ if returns(&module.image, &insn) => 0,
            FlowControl::Next | FlowControl::Return => uses::written(&mut info, &insn),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch if inside => 0,
            FlowControl::Call | FlowControl::UnconditionalBranch => {
                changed(module, insn.near_branch_target(), depth + 1)
            }
            _ => ALL,
        };
        if insn.is_invalid() || out == ALL {
            return ALL;
        }
    }
    out
}
