//! Code that control comes to without a branch: behind calls that come back after all, at addresses that a function makes, and in landing
//! pads of what throws and is no call.

use super::decoded::{Flow, Targets};
use super::reaching::Ways;
use super::{Builder, MAX_PARTS, MAX_ROOTS};
use crate::scan::cfg::Exit;
use crate::scan::lsda::Pad;
use iced_x86::{FlowControl, Instruction, OpKind};

impl Builder<'_, '_> {
    /// Whether the code at this address stands behind a call that comes back as far as the compiler knew. The compiler
    /// made code for that, which nothing else leads to, though the called function, of another source file, never returns.
    /// The flow of control is the compiler's from now on.
    pub(super) fn comes_back_to(&mut self, at: u64) -> bool {
        let decoded = &mut self.decoded;
        let Some(number) = decoded.grid.insn_before(at) else {
            return false;
        };
        let insn = &decoded.insns[number];
        let direct = insn.flow_control() == FlowControl::Call
            && insn.op0_kind() == OpKind::NearBranch64
            && insn.next_ip() == at;
        // Of those that never come back by their names every compiler knows it.
        if !direct || (self.module.entries.no_return).contains(&insn.near_branch_target()) {
            return false;
        }
        let mut flows = decoded.flows.iter_mut().rev();
        let Some(flow) = flows.find(|f| f.insn as usize == number) else {
            return false;
        };
        let dead = flow.exit.take() == Some(Exit::Dead);
        flow.falls = dead;
        decoded.ways = Ways::default();
        dead
    }

    /// Follows what no branch leads to and begins at addresses in the function's midst that it makes itself: `__builtin_setjmp` and jumps out of nested
    /// functions come back there.
    pub(super) fn come_back(&mut self, roots: &mut Vec<u64>) {
        let module = self.module;
        for _ in 0..MAX_PARTS {
            let made = self.decoded.makes.list.iter().map(|&(va, _)| va);
            let inside = |va: &u64| self.holds(*va) && !module.functions.starts_at(*va);
            // What is known already, as the beginnings of code that reckons tables' addresses from its own, is nothing new.
            let is_new = |va: &u64| inside(va) && self.decoded.grid.insn(*va).is_none();
            let mut new: Vec<u64> = made
                .filter(|va| is_new(va) && !roots.contains(va))
                .collect();
            new.sort_unstable();
            new.dedup();
            if new.is_empty() {
                return;
            }
            if roots.len() + new.len() > MAX_ROOTS {
                break;
            }
            roots.extend(&new);
            new.into_iter().for_each(|va| self.follow(va));
        }
        self.trouble
            .get_or_insert("it is entered in very many places");
    }

    /// Whether a range reaches from the one before to the one behind: clang's tables say of all code between two ranges that nothing
    /// catches what it throws. gcc's ranges begin and end with what throws.
    fn fills_gap(&self, n: usize) -> bool {
        let before = n.checked_sub(1).map(|n| self.pads[n].to);
        let behind = self.pads.get(n + 1).map(|pad| pad.from);
        let Pad { from, to, .. } = self.pads[n];
        before.is_none_or(|end| end == from) && behind.is_none_or(|begin| begin == to)
    }

    /// Adds the ways to landing pads of instructions that are no calls, where some have been decoded since. Compilers that expect
    /// none to throw have each range end with a call.
    pub(super) fn throw(&mut self) -> bool {
        let mut any = false;
        for n in 0..self.pads.len() {
            let Pad { from, to, pad } = self.pads[n];
            if pad.is_none() && self.fills_gap(n) {
                continue;
            }
            let Some(last) = to.checked_sub(1).filter(|&last| last >= from) else {
                continue;
            };
            let Some(number) = self.decoded.grid.insn_before(last) else {
                continue;
            };
            let insn = &self.decoded.insns[number];
            let is_call = match insn.flow_control() {
                FlowControl::Call | FlowControl::IndirectCall => true,
                // A call at a function's end.
                FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => pad.is_none(),
                _ => false,
            };
            if insn.ip() < from || is_call || !self.thrown.insert(from) {
                continue;
            }
            // The last one that is no branch.
            let insns = self.decoded.before(to).take_while(|i| i.ip() >= from);
            let is_plain = |i: &&Instruction| i.flow_control() == FlowControl::Next;
            let plain: Option<u64> = { insns }.find(is_plain).map(Instruction::ip);
            let place = plain.and_then(|ip| self.decoded.grid.insn(ip));
            if let (Some(number), Some(pad)) = (place, pad)
                && self.stays(pad, true)
            {
                self.add_flow(
                    number,
                    Flow {
                        falls: true,
                        pads: Targets::from_buf([pad]),
                        ..Flow::default()
                    },
                );
                any = true;
            }
        }
        any
    }
}
