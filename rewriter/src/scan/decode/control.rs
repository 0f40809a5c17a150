//! What instructions do to the flow of control.

use super::Builder;
use super::decoded::{Flow, Targets};
use crate::scan::cfg::Exit;
use iced_x86::{FlowControl, Instruction, OpKind};
use std::cmp::Reverse;

impl Builder<'_, '_> {
    /// What an instruction does to the flow of control, if it ends a block.
    pub(super) fn flow(
        &mut self,
        insn: &Instruction,
        number: usize,
        control: FlowControl,
    ) -> Option<Flow> {
        match control {
            FlowControl::Next => None,
            // A transaction's beginning may lead to what is done instead of it.
            FlowControl::XbeginXabortXend if insn.op0_kind() != OpKind::NearBranch64 => None,
            FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                let target = insn.near_branch_target();
                let mut flow = Flow {
                    falls: true,
                    ..Flow::default()
                };
                if self.stays(target, true) {
                    flow.targets.push(target);
                } else {
                    flow.exit = Some(Exit::Tail(target));
                }
                Some(flow)
            }
            FlowControl::UnconditionalBranch => {
                let target = insn.near_branch_target();
                if self.through(insn).is_some() {
                    self.pending.push(Reverse((insn.ip(), number)));
                    return Some(Flow::default());
                }
                if let Some(leaves) = self.leaves_by_return(insn, number) {
                    return Some(leaves);
                }
                let no_return = self.no_return.check(self.module, target);
                Some(if self.stays(target, false) {
                    Flow {
                        targets: Targets::from_buf([target]),
                        ..Flow::default()
                    }
                } else if no_return {
                    Flow {
                        exit: Some(Exit::Dead),
                        ..Flow::default()
                    }
                } else {
                    Flow {
                        exit: Some(Exit::Tail(target)),
                        ..Flow::default()
                    }
                })
            }
            FlowControl::IndirectBranch => {
                self.pending.push(Reverse((insn.ip(), number)));
                Some(Flow::default())
            }
            FlowControl::Return => Some(Flow {
                exit: Some(Exit::Return),
                ..Flow::default()
            }),
            FlowControl::Call if self.through(insn).is_some() => {
                self.pending.push(Reverse((insn.ip(), number)));
                Some(Flow::default())
            }
            FlowControl::Call | FlowControl::IndirectCall => self
                .leaves_by_return(insn, number)
                .or_else(|| self.call(insn)),
            FlowControl::Interrupt | FlowControl::Exception => {
                let traps = insn.op_count() == 0;
                traps.then(|| Flow {
                    exit: Some(Exit::Dead),
                    ..Flow::default()
                })
            }
        }
    }

    fn call(&mut self, insn: &Instruction) -> Option<Flow> {
        let direct = insn.op0_kind() == OpKind::NearBranch64;
        let no_return = if direct {
            self.no_return.check(self.module, insn.near_branch_target())
        } else {
            insn.is_ip_rel_memory_operand()
                && self
                    .module
                    .entries
                    .no_return_slots
                    .contains(&insn.ip_rel_memory_address())
        };
        let before = self.pads.partition_point(|p| p.from <= insn.ip());
        let last = before.saturating_sub(1);
        let mut pads: Targets = self.pads[last..before]
            .iter()
            .filter(|p| insn.ip() < p.to)
            .filter_map(|p| p.pad)
            .collect();
        pads.retain(|&mut pad| self.stays(pad, true));
        if no_return {
            return Some(Flow {
                exit: Some(Exit::Dead),
                pads,
                ..Flow::default()
            });
        }
        (!pads.is_empty()).then(|| Flow {
            falls: true,
            pads,
            ..Flow::default()
        })
    }
}
