//! What an instruction counts as, for each event.

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use ompfuse_format::event::exact;
use std::ops::{Add, Sub};

/// A number for each event of [`exact::EVENTS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weights(pub(super) [i64; exact::COUNT]);

impl Add for Weights {
    type Output = Weights;

    fn add(self, other: Weights) -> Weights {
        Weights(std::array::from_fn(|n| self.0[n].wrapping_add(other.0[n])))
    }
}

impl Sub for Weights {
    type Output = Weights;

    fn sub(self, other: Weights) -> Weights {
        Weights(std::array::from_fn(|n| self.0[n].wrapping_sub(other.0[n])))
    }
}

impl Weights {
    pub(super) fn is_zero(&self) -> bool {
        self.0 == [0; exact::COUNT]
    }

    /// What is executed in these instructions, of the events of a set, in parts.
    pub(super) fn of(insns: &[Instruction], set: u32) -> Weights {
        let mut info = InstructionInfoFactory::new();
        let one = |insn| weights(insn, set, &mut info);
        let sum = insns.iter().map(one).fold(Weights::default(), Weights::add);
        let wanted = |n: usize| {
            if set >> n & 1 != 0 {
                sum.0[n] * exact::PARTS
            } else {
                0
            }
        };
        Weights(std::array::from_fn(wanted))
    }
}

/// In the order of [`exact::EVENTS`].
fn weights(insn: &Instruction, set: u32, info: &mut InstructionInfoFactory) -> Weights {
    if set == 1 {
        return Weights(std::array::from_fn(|n| i64::from(n == 0)));
    }
    let accesses = info.info(insn).used_memory().iter().map(|m| m.access());
    let (mut loads, mut stores) = (0, 0);
    for access in accesses {
        let (reads, writes) = match access {
            OpAccess::Read | OpAccess::CondRead => (1, 0),
            OpAccess::Write | OpAccess::CondWrite => (0, 1),
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => (1, 1),
            _ => (0, 0),
        };
        loads += reads;
        stores += writes;
    }
    let flow = insn.flow_control();
    let jumps = matches!(
        flow,
        FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
    );
    let calls = super::live::is_call(insn);
    Weights([
        1,
        loads,
        stores,
        i64::from(jumps),
        flops(insn),
        i64::from(calls),
    ])
}

/// Floating-point operations: additions, subtractions, multiplications, divisions and square roots, of all elements, whatever a mask says.
fn flops(insn: &Instruction) -> i64 {
    let name = format!("{:?}", insn.mnemonic()).to_ascii_lowercase();
    if let Some(of_x87) = x87(insn.mnemonic()) {
        return of_x87;
    }
    let name = name.strip_prefix('v').unwrap_or(&name);
    let Some((operation, element)) = name.split_at_checked(name.len().wrapping_sub(2)) else {
        return 0;
    };
    let bytes = match element {
        "ss" | "ps" => 4,
        "sd" | "pd" => 8,
        "sh" | "ph" => 2,
        _ => return 0,
    };
    let elements = match element.starts_with('s') {
        true => 1,
        false => vector_bytes(insn) / bytes,
    };
    let each = match operation {
        "add" | "sub" | "mul" | "div" | "sqrt" | "addsub" | "hadd" | "hsub" => 1,
        _ if is_fused(operation) => 2,
        _ => 0,
    };
    each * elements
}

/// A multiplication and an addition in one: `fmadd213`, `fnmsub`, `fmaddsub132`.
fn is_fused(operation: &str) -> bool {
    let all = ["fmadd", "fmsub", "fnmadd", "fnmsub"];
    all.iter().any(|start| operation.starts_with(start))
}

/// Length of the vector that is computed.
fn vector_bytes(insn: &Instruction) -> i64 {
    match insn.op_kind(0) {
        OpKind::Register if insn.op0_register() != Register::None => {
            insn.op0_register().size() as i64
        }
        _ => 0,
    }
}

fn x87(mnemonic: Mnemonic) -> Option<i64> {
    use Mnemonic::*;
    let computes = matches!(
        mnemonic,
        Fadd | Faddp
            | Fiadd
            | Fsub
            | Fsubp
            | Fisub
            | Fsubr
            | Fsubrp
            | Fisubr
            | Fmul
            | Fmulp
            | Fimul
            | Fdiv
            | Fdivp
            | Fidiv
            | Fdivr
            | Fdivrp
            | Fidivr
            | Fsqrt
    );
    computes.then_some(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// Of one instruction: instructions, loads, stores, branches, flops, calls.
    fn of(code: &[u8]) -> [i64; exact::COUNT] {
        let insn = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode();
        Weights::of(&[insn], 0x3f).0.map(|n| n / exact::PARTS)
    }

    #[test]
    fn operands_in_memory_are_loads_and_stores() {
        assert_eq!(of(&[0x48, 0x8b, 0x07]), [1, 1, 0, 0, 0, 0]); // mov rax, [rdi]
        assert_eq!(of(&[0x48, 0x89, 0x07]), [1, 0, 1, 0, 0, 0]); // mov [rdi], rax
        assert_eq!(of(&[0x48, 0x01, 0x07]), [1, 1, 1, 0, 0, 0]); // add [rdi], rax
        assert_eq!(of(&[0x48, 0x8d, 0x07]), [1, 0, 0, 0, 0, 0]); // lea rax, [rdi]
        assert_eq!(of(&[0x50]), [1, 0, 1, 0, 0, 0]); // push rax
        assert_eq!(of(&[0x58]), [1, 1, 0, 0, 0, 0]); // pop rax
        assert_eq!(of(&[0xe8, 0, 0, 0, 0]), [1, 0, 1, 0, 0, 1]); // call
        assert_eq!(of(&[0xc3]), [1, 1, 0, 0, 0, 0]); // ret
        assert_eq!(of(&[0x0f, 0x18, 0x0f]), [1, 0, 0, 0, 0, 0]); // prefetcht0 [rdi]
        assert_eq!(of(&[0x48, 0x0f, 0x44, 0x07]), [1, 1, 0, 0, 0, 0]); // cmovz rax, [rdi]
        assert_eq!(of(&[0xf3, 0xa4]), [1, 1, 1, 0, 0, 0]); // rep movsb
        assert_eq!(of(&[0x0f, 0x1f, 0x00]), [1, 0, 0, 0, 0, 0]); // nop [rax]
    }

    #[test]
    fn jumps_are_branches() {
        assert_eq!(of(&[0x74, 0x10]), [1, 0, 0, 1, 0, 0]); // jz
        assert_eq!(of(&[0xeb, 0x10]), [1, 0, 0, 1, 0, 0]); // jmp
        assert_eq!(of(&[0xff, 0xe0]), [1, 0, 0, 1, 0, 0]); // jmp rax
        assert_eq!(of(&[0xff, 0x20]), [1, 1, 0, 1, 0, 0]); // jmp [rax]
    }

    #[test]
    fn elements_are_operations() {
        assert_eq!(of(&[0xf2, 0x0f, 0x58, 0xc1])[4], 1); // addsd xmm0, xmm1
        assert_eq!(of(&[0x0f, 0x59, 0xc1])[4], 4); // mulps xmm0, xmm1
        assert_eq!(of(&[0xc5, 0xfd, 0x58, 0xc1])[4], 4); // vaddpd ymm0, ymm0, ymm1
        assert_eq!(of(&[0xc4, 0xe2, 0xf5, 0xb8, 0xc2])[4], 8); // vfmadd231pd ymm0, ymm1, ymm2
        assert_eq!(of(&[0xc4, 0xe2, 0xf1, 0xb9, 0xc2])[4], 2); // vfmadd231sd xmm0, xmm1, xmm2
        assert_eq!(of(&[0xf2, 0x0f, 0x58, 0x07]), [1, 1, 0, 0, 1, 0]); // addsd xmm0, [rdi]
        assert_eq!(of(&[0x66, 0x0f, 0xfe, 0xc1])[4], 0); // paddd xmm0, xmm1
        assert_eq!(of(&[0x0f, 0x28, 0xc1])[4], 0); // movaps xmm0, xmm1
        assert_eq!(of(&[0xd8, 0xc1])[4], 1); // fadd st, st(1)
    }
}
