//! Which local functions never return: their calls end a path as `abort` does.

use super::Module;
use crate::thunk::{returns, thunk};
use iced_x86::{Decoder, DecoderOptions, FlowControl, OpKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// A function in which no end is found within so many instructions is taken to return.
const MAX_INSNS: usize = 2000;
/// Calls of calls of calls are looked into, no deeper.
const MAX_DEPTH: u32 = 3;

/// What is known of local functions. The answers don't depend on the order of the questions, so that every thread may
/// ask its own.
#[derive(Debug, Default)]
pub(crate) struct NoReturn {
    /// By address and depth.
    known: FxHashMap<(u64, u32), bool>,
    /// By address: for most questions that is all.
    answers: FxHashMap<u64, bool>,
}

impl NoReturn {
    /// Whether a call to this address never comes back.
    pub(crate) fn check(&mut self, module: &Module<'_>, target: u64) -> bool {
        if let Some(&known) = self.answers.get(&target) {
            return known;
        }
        let answer = self.check_at(module, target, 0);
        self.answers.insert(target, answer);
        answer
    }

    fn check_at(&mut self, module: &Module<'_>, target: u64, depth: u32) -> bool {
        if module.entries.no_return.contains(&target) {
            return true;
        }
        if depth > MAX_DEPTH || module.entries.targets.contains_key(&target) {
            return false;
        }
        if let Some(&known) = self.known.get(&(target, depth)) {
            return known;
        }
        let function = module.functions.at(target).map(|i| module.functions.get(i));
        let result = function
            .filter(|f| f.start == target && thunk(&module.image, target).is_none())
            .and_then(|f| self.ends_nowhere(module, f.start, f.end, depth))
            .unwrap_or(false);
        self.known.insert((target, depth), result);
        result
    }

    /// Follows branches until something returns; `None` when that isn't known.
    fn ends_nowhere(
        &mut self,
        module: &Module<'_>,
        start: u64,
        end: u64,
        depth: u32,
    ) -> Option<bool> {
        let mut seen: FxHashSet<u64> = FxHashSet::default();
        let mut work = vec![start];
        while let Some(from) = work.pop() {
            let code = module.image.rest(from)?;
            let len = usize::try_from(end.checked_sub(from)?)
                .ok()?
                .min(code.len());
            let mut decoder = Decoder::with_ip(64, &code[..len], from, DecoderOptions::NONE);
            while decoder.can_decode() && seen.insert(decoder.ip()) {
                if seen.len() > MAX_INSNS {
                    return None;
                }
                let insn = decoder.decode();
                match insn.flow_control() {
                    // `-mfunction-return=thunk`.
                    _ if returns(&module.image, &insn) => return None,
                    FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => {
                        let target = insn.near_branch_target();
                        if (start..end).contains(&target) {
                            work.push(target);
                        } else if !self.check_at(module, target, depth + 1) {
                            return None;
                        }
                        if insn.flow_control() == FlowControl::UnconditionalBranch {
                            break;
                        }
                    }
                    FlowControl::Call
                        if insn.op0_kind() == OpKind::NearBranch64
                            && self.check_at(module, insn.near_branch_target(), depth + 1) =>
                    {
                        break;
                    }
                    FlowControl::IndirectCall
                        if insn.is_ip_rel_memory_operand()
                            && module
                                .entries
                                .no_return_slots
                                .contains(&insn.ip_rel_memory_address()) =>
                    {
                        break;
                    }
                    FlowControl::IndirectBranch | FlowControl::Return => return None,
                    FlowControl::Exception => break,
                    FlowControl::Interrupt if insn.op_count() == 0 => break,
                    _ if insn.is_invalid() => return None,
                    _ => {}
                }
            }
        }
        Some(true)
    }
}
