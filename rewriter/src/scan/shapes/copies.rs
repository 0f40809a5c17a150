//! Paths that don't meet again: which code on them belongs to a construct, and which follows it in several copies.

use super::Analysis;
use super::ends::{Ways, is_plain_move};
use crate::scan::cfg::Exit;
use crate::scan::graph::BlockSet;
use iced_x86::{FlowControl, Instruction, Mnemonic};

/// The longest code behind a construct that is compared with its copies, in instructions.
const MAX_COPY: usize = 64;

impl Analysis<'_, '_> {
    /// Blocks that one side of a branch leads to.
    pub(super) fn side(&self, branch: usize, side: usize) -> BlockSet {
        self.body.forwards([side], |b| b != branch)
    }

    /// Whether a block (or another with the same exit) is reached on both sides of a branch: then it is behind what
    /// the branch enters.
    pub(super) fn is_shared(&self, branch: usize, block: usize) -> bool {
        let exit = self.body.blocks[block].exit;
        let same =
            |b: usize| b == block || (exit == self.body.blocks[b].exit && exit.is_direct_tail());
        self.body.blocks[branch]
            .succs
            .iter()
            .all(|&s| self.side(branch, s).iter().any(same))
    }

    /// Whether the side that passes the construct by does more than return, or than few instructions before that (gcc 14 has a copy of
    /// what `lastprivate` does on each side). Then the other side does it too, somewhere.
    pub(super) fn repeats_code(&self, branch: usize, ways: &Ways) -> bool {
        let ends = |s: &BlockSet| ways.returns.iter().chain(&ways.open).any(|b| s.contains(b));
        let sides: Vec<BlockSet> = self.body.blocks[branch]
            .succs
            .iter()
            .map(|&s| self.side(branch, s))
            .collect();
        let both_end = sides.len() > 1 && sides.iter().all(ends);
        let trivial = |s: &BlockSet| {
            s.iter().all(|b| {
                self.body.block_insns(b).iter().all(|i| {
                    is_plain_move(i)
                        || matches!(
                            i.flow_control(),
                            FlowControl::Return | FlowControl::UnconditionalBranch
                        )
                        || is_zeroing(i)
                })
            })
        };
        both_end && !sides.iter().any(|s| trivial(s) || self.is_brief(branch, s))
    }

    /// Whether a side of a branch is few instructions that call nothing, repeat nothing, and return.
    fn is_brief(&self, branch: usize, side: &BlockSet) -> bool {
        let calls = |i: &Instruction| {
            let control = i.flow_control();
            !matches!(
                control,
                FlowControl::Next
                    | FlowControl::ConditionalBranch
                    | FlowControl::UnconditionalBranch
                    | FlowControl::Return
            )
        };
        let insns = side.iter().map(|b| self.body.block_insns(b).len());
        insns.sum::<usize>() <= MAX_COPY
            && side.iter().all(|b| {
                let block = &self.body.blocks[b];
                let repeats = |&to: &usize| to == branch || self.side(branch, to).contains(&b);
                matches!(block.exit, Exit::None | Exit::Return)
                    && !self.body.block_insns(b).iter().any(calls)
                    && !block.succs.iter().any(repeats)
            })
    }
}

/// Whether it sets a register to 0, as for a result.
fn is_zeroing(insn: &Instruction) -> bool {
    matches!(
        insn.mnemonic(),
        Mnemonic::Xor
            | Mnemonic::Xorps
            | Mnemonic::Pxor
            | Mnemonic::Xorpd
            | Mnemonic::Vxorps
            | Mnemonic::Vpxor
    )
}
