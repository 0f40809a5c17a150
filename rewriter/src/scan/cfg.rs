//! A function's instructions and basic blocks, found by following its branches.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use smallvec::SmallVec;
use std::ops::Range;

/// Numbers of blocks: seldom more than two.
pub(crate) type Blocks = SmallVec<[usize; 2]>;

/// How control leaves the function at a block's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It doesn't.
    None,
    /// `ret`.
    Return,
    /// A jump to another function.
    Tail(u64),
    /// A jump to another function through memory or a register.
    TailIndirect,
    /// Control doesn't get here (behind a call that doesn't return), or nobody knows where it goes.
    Dead,
}

impl Exit {
    /// Whether it is a jump to a known function.
    pub(crate) fn is_direct_tail(self) -> bool {
        matches!(self, Exit::Tail(_))
    }
}

/// A basic block.
#[derive(Debug)]
pub(crate) struct Block {
    pub start: u64,
    /// Numbers of its instructions.
    pub insns: Range<usize>,
    /// Following blocks; the fall-through first.
    pub succs: Blocks,
    pub preds: Blocks,
    /// Landing pads that its last call may lead to.
    pub pads: Blocks,
    pub exit: Exit,
}

/// Whether an operand is memory that a string instruction implies.
fn is_implied(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI
    )
}

/// A function's code.
#[derive(Debug)]
pub(crate) struct Body {
    /// Number of the function.
    pub function: usize,
    /// Functions (parts) whose code belongs to it, itself first.
    pub parts: Vec<usize>,
    /// Instructions by address, ascending.
    pub insns: Vec<Instruction>,
    /// Blocks by address, ascending.
    pub blocks: Vec<Block>,
    /// Blocks where control arrives in ways that no branch shows: the beginning, and code that nothing leads to.
    pub roots: Vec<usize>,
    /// Addresses that control comes to other than from the instruction before; unordered.
    pub targets: Vec<u64>,
    /// Numbers of the instructions that may call, or jump to, the runtime; ascending.
    pub leads: Vec<usize>,
    /// Some instruction may be an atomic one, or a fence.
    pub atomics: bool,
    /// Where instructions that are no calls may throw what the function catches; ascending.
    pub throwers: Vec<Range<u64>>,
    /// Address of the first instruction that the decoder doesn't know.
    pub unknown: Option<u64>,
    /// That may be no instruction: a jump table of unknown length led there.
    pub unknown_by_table: bool,
    /// Why not every branch of it is known.
    pub trouble: Option<&'static str>,
}

impl Body {
    /// The block that holds this address.
    pub(crate) fn block_at(&self, va: u64) -> Option<usize> {
        let i = self
            .blocks
            .partition_point(|b| b.start <= va)
            .checked_sub(1)?;
        let last = self.insns.get(self.blocks[i].insns.end.checked_sub(1)?)?;
        (va < last.next_ip()).then_some(i)
    }

    /// The number of the instruction at this address.
    pub(crate) fn insn_at(&self, va: u64) -> Option<usize> {
        self.insns.binary_search_by_key(&va, Instruction::ip).ok()
    }

    /// Whether the function may catch what an instruction throws that is no call: it must be where its exception table has it.
    pub(crate) fn throws(&self, insn: &Instruction) -> bool {
        let at = self.throwers.partition_point(|r| r.start <= insn.ip());
        let inside = at
            .checked_sub(1)
            .is_some_and(|i| insn.ip() < self.throwers[i].end);
        let is_memory = |op| insn.op_kind(op) == OpKind::Memory;
        let is_own = matches!(
            insn.memory_base().full_register(),
            Register::RSP | Register::RBP | Register::RIP
        ) && insn.memory_index() == Register::None;
        let is_integer = |op| {
            insn.op_kind(op) != OpKind::Register || insn.op_register(op).full_register().is_gpr64()
        };
        let mut ops = 0..insn.op_count();
        let harmless = ops
            .clone()
            .all(|op| is_integer(op) && (is_own || !is_memory(op)))
            && ops.all(|op| !is_implied(insn.op_kind(op)))
            && !matches!(insn.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
        inside && !harmless && insn.mnemonic() != Mnemonic::Lea
    }

    /// A block's instructions.
    pub(crate) fn block_insns(&self, block: usize) -> &[Instruction] {
        &self.insns[self.blocks[block].insns.clone()]
    }

    /// A block's last instruction.
    pub(crate) fn last(&self, block: usize) -> Option<&Instruction> {
        self.block_insns(block).last()
    }
}
