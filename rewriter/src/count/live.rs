//! Which registers and flags somebody may still read: what nobody reads can be used without saving it.
//!
//! At a function's end the calling convention says what is read. Compilers know more of functions in the same file (`-fipa-ra`),
//! and hand-written code may have conventions of its own. So it is looked whether any function of the file reads, behind a call, what
//! by the convention isn't kept ([`Live::odd`]); what is in that set is never free at a function's end.

use crate::scan::cfg::{Body, Exit};
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, RflagsBits,
};

/// General registers by x86 number, then six flags.
pub(crate) type Set = u32;

const REGISTERS: Set = 0xffff;
/// The carry, parity, zero, sign and overflow flag, and the auxiliary carry, whose value no compiler asks for.
const FLAGS: Set = 0x3f << 16;
const AUXILIARY: Set = 1 << 21;
/// All that there is: of code that isn't known.
pub(crate) const ALL: Set = REGISTERS | FLAGS;
/// What a function may return in, and what it keeps: rax, rdx, rbx, rsp, rbp, r12 to r15.
const RETURNED: Set = 0xf03d;
/// What a call doesn't keep and nothing is returned in: rcx, rsi, rdi, r8 to r11, flags.
const LOST: Set = REGISTERS & !RETURNED | FLAGS;
/// Registers that may be used where they are free. Not r10: unwinders may need it.
const SCRATCH: [u8; 8] = [1, 2, 6, 7, 8, 9, 11, 0];

/// Two registers that can be overwritten.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub scratch: u8,
    pub spare: u8,
    /// How many of them somebody reads: none, the second, or both.
    pub kept: u8,
}

/// What is live in a function.
pub(crate) struct Live {
    /// Behind each block.
    behind: Vec<Set>,
    /// What each instruction reads, and what it overwrites as a whole.
    effects: Vec<(Set, Set)>,
    /// What the function reads though by the convention it can't be kept: in its callees, or for it by its callers.
    pub(crate) odd: Set,
}

impl Live {
    /// Finds it out. `odd`: what functions of the file keep against the convention.
    pub(crate) fn of(body: &Body, odd: Set) -> Live {
        let mut info = InstructionInfoFactory::new();
        let effects = body.insns.iter().map(|insn| effect(&mut info, insn, odd));
        let mut live = Live {
            effects: effects.collect(),
            behind: vec![0; body.blocks.len()],
            odd: 0,
        };
        let mut before = vec![0; body.blocks.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for n in (0..body.blocks.len()).rev() {
                let block = &body.blocks[n];
                let after = block.succs.iter().chain(&block.pads);
                live.behind[n] = after.fold(leaving(block.exit, odd), |set, &to| set | before[to]);
                let set = live.before(body, n, block.insns.start);
                changed |= set != before[n];
                before[n] = set;
            }
        }
        if let Some(&entry) = body.roots.first() {
            live.odd |= before[entry] & FLAGS;
        }
        for (n, block) in body.blocks.iter().enumerate() {
            for at in block.insns.clone().filter(|&at| is_call(&body.insns[at])) {
                live.odd |= live.before(body, n, at + 1) & LOST;
            }
        }
        live
    }

    /// What is live before an instruction of a block, or behind its last.
    fn before(&self, body: &Body, block: usize, insn: usize) -> Set {
        let rest = insn..body.blocks[block].insns.end;
        rest.rev().fold(self.behind[block], |after, at| {
            let (reads, writes) = self.effects[at];
            after & !writes | reads
        })
    }

    /// A register that can be overwritten before an instruction, together with the flags.
    pub(crate) fn scratch(&self, body: &Body, block: usize, insn: usize) -> Option<u8> {
        free(self.before(body, block, insn))
    }

    /// As [`Live::scratch`], but not this one.
    pub(crate) fn scratch_but(
        &self,
        (body, block): (&Body, usize),
        insn: usize,
        except: u8,
    ) -> Option<u8> {
        free(self.before(body, block, insn) | 1 << except)
    }

    /// Two registers other than this one, where no flag is live.
    pub(crate) fn two(
        &self,
        (body, block): (&Body, usize),
        insn: usize,
        except: u8,
    ) -> Option<Pair> {
        let live = self.before(body, block, insn);
        let is_other = |register: &u8| *register != except;
        let is_free = |register: &u8| live & (1 << register) == 0;
        let all = SCRATCH.into_iter().filter(is_other);
        let free = all.clone().filter(is_free).take(2);
        let free: Vec<u8> = free.collect();
        let mut kept = all.filter(|register| !is_free(register));
        let is_possible = live & FLAGS == 0;
        is_possible.then_some(())?;
        let scratch = free.first().copied().or_else(|| kept.next())?;
        let spare = free.get(1).copied().or_else(|| kept.next())?;
        Some(Pair {
            scratch,
            spare,
            kept: 2 - free.len() as u8,
        })
    }
}

/// A register that isn't live, where no flag is.
fn free(live: Set) -> Option<u8> {
    let is_free = |register: &u8| live & (1 << register) == 0;
    let all = (live & FLAGS == 0).then_some(SCRATCH);
    all.and_then(|all| all.into_iter().find(is_free))
}

/// Whether control goes to another function and comes back.
pub(crate) fn is_call(insn: &Instruction) -> bool {
    let calls = matches!(
        insn.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    );
    calls && insn.mnemonic() != Mnemonic::Syscall
}

/// What is read when control leaves the function at a block's end.
fn leaving(exit: Exit, odd: Set) -> Set {
    match exit {
        Exit::None | Exit::Dead => 0,
        Exit::Return => RETURNED | odd,
        Exit::Tail(_) | Exit::TailIndirect => REGISTERS | odd,
    }
}

/// What an instruction reads, and what it overwrites as a whole.
fn effect(info: &mut InstructionInfoFactory, insn: &Instruction, odd: Set) -> (Set, Set) {
    match insn.flow_control() {
        _ if is_call(insn) => return (REGISTERS | odd & FLAGS, LOST),
        FlowControl::Call | FlowControl::Interrupt => return (ALL, 0),
        _ => {}
    }
    let (mut reads, mut writes) = (flags(insn.rflags_read()), 0);
    for used in info.info(insn).used_registers() {
        let full = used.register().full_register();
        if !full.is_gpr64() {
            continue;
        }
        let bit = 1 << full.number();
        match used.access() {
            // Four bytes: the upper ones become 0.
            OpAccess::Write if used.register().size() >= 4 => writes |= bit,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::None => {}
            _ => reads |= bit,
        }
    }
    if changes_flags_always(insn) {
        let sure = insn.rflags_written() | insn.rflags_cleared() | insn.rflags_set();
        writes |= flags(sure) | flags(insn.rflags_undefined()) & AUXILIARY;
    }
    reads &= ALL;
    (reads, writes)
}

/// Whether the flags that an instruction writes don't depend on a count that may be 0.
fn changes_flags_always(insn: &Instruction) -> bool {
    let repeats = insn.has_rep_prefix() || insn.has_repne_prefix();
    let last = insn.op_count().wrapping_sub(1);
    match insn.mnemonic() {
        Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar => {
            insn.op_kind(last) == OpKind::Immediate8 && insn.immediate8() & 31 != 0
        }
        Mnemonic::Shld
        | Mnemonic::Shrd
        | Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Rcl
        | Mnemonic::Rcr => false,
        _ => !repeats,
    }
}

/// The flags of a mask of iced's.
fn flags(bits: u32) -> Set {
    let order = [
        RflagsBits::CF,
        RflagsBits::PF,
        RflagsBits::ZF,
        RflagsBits::SF,
        RflagsBits::OF,
        RflagsBits::AF,
    ];
    let bits = order.iter().zip(16..).filter(|(flag, _)| bits & *flag != 0);
    bits.fold(0, |set, (_, at)| set | 1 << at)
}

/// A function of one block that returns.
#[cfg(test)]
pub(super) fn one_block(code: &[u8]) -> Body {
    use crate::scan::cfg::{Block, Blocks};
    use iced_x86::{Decoder, DecoderOptions};
    let insns: Vec<Instruction> = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE)
        .iter()
        .collect();
    Body {
        function: 0,
        parts: vec![0],
        blocks: vec![Block {
            start: 0x1000,
            insns: 0..insns.len(),
            succs: Blocks::new(),
            preds: Blocks::new(),
            pads: Blocks::new(),
            exit: Exit::Return,
        }],
        insns,
        roots: vec![0],
        targets: Vec::new(),
        leads: Vec::new(),
        atomics: false,
        throwers: Vec::new(),
        unknown: None,
        unknown_by_table: false,
        trouble: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is free before an instruction.
    fn free_at(code: &[u8], insn: usize) -> Option<u8> {
        let body = one_block(code);
        Live::of(&body, 0).scratch(&body, 0, insn)
    }

    #[test]
    fn what_is_read_later_is_not_free() {
        // add rcx, rdx; mov rax, rcx; ret
        let code = [0x48, 0x01, 0xd1, 0x48, 0x89, 0xc8, 0xc3];
        assert_eq!(free_at(&code, 0), Some(6));
        assert_eq!(free_at(&code, 2), Some(1));
        // adc rcx, rdx: flags are read; ret
        assert_eq!(free_at(&[0x48, 0x11, 0xd1, 0xc3], 0), None);
        // shl rcx, cl: flags stay if cl is 0; ret. Flags are free at the end.
        assert_eq!(free_at(&[0x48, 0xd3, 0xe1, 0xc3], 0), Some(6));
        // mov cl, 1 leaves most of rcx; mov eax, ecx; ret
        assert_eq!(free_at(&[0xb1, 1, 0x89, 0xc8, 0xc3], 0), Some(6));
        // mov ecx, 1 does not.
        assert_eq!(free_at(&[0xb9, 1, 0, 0, 0, 0x89, 0xc8, 0xc3], 0), Some(1));
        // cmovz rcx, rdx may leave rcx; mov rax, rcx; ret
        let code = [
            0x48, 0x39, 0xd0, 0x48, 0x0f, 0x44, 0xca, 0x48, 0x89, 0xc8, 0xc3,
        ];
        assert_eq!(free_at(&code, 0), Some(6));
    }

    #[test]
    fn what_others_keep_is_seen_behind_calls() {
        // call; mov rax, r8; ret
        let call = [0xe8, 0, 0, 0, 0];
        let code = [&call[..], &[0x4c, 0x89, 0xc0, 0xc3]].concat();
        let of = one_block(&code);
        let live = Live::of(&of, 0);
        assert_eq!(live.odd, 1 << 8);
        assert_eq!(live.scratch(&of, 0, 0), None); // a call may take anything
        // call; setb al; ret: in the carry flag.
        let code = [&call[..], &[0x0f, 0x92, 0xc0, 0xc3]].concat();
        assert_eq!(Live::of(&one_block(&code), 0).odd, 1 << 16);
        // call; mov rbx, rax; ret: by the convention.
        let code = [&call[..], &[0x48, 0x89, 0xc3, 0xc3]].concat();
        assert_eq!(Live::of(&one_block(&code), 0).odd, 0);
        // What is kept is not free at a function's end.
        let of = one_block(&[0x90, 0xc3]);
        assert_eq!(Live::of(&of, 0).scratch(&of, 0, 0), Some(1));
        assert_eq!(Live::of(&of, 1 << 1 | 1 << 6).scratch(&of, 0, 0), Some(7));
        assert_eq!(Live::of(&of, FLAGS).scratch(&of, 0, 0), None);
    }

    #[test]
    fn an_entry_that_reads_flags_is_odd() {
        // adc rax, rax; ret
        assert_eq!(
            Live::of(&one_block(&[0x48, 0x11, 0xc0, 0xc3]), 0).odd,
            1 << 16
        );
    }
}
