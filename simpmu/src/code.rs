//! What a block of code counts whenever it is executed.

use crate::modules::Class;
use crate::options::LINE;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
};
use ompfuse_format::simulated::index;

/// Counts by event that are the same at every execution: `index::COUNT` of them, most 0.
type Counts = [u32; index::COUNT];

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It runs into the next one, or jumps to a fixed address.
    Fixed,
    /// A conditional branch at this address, which otherwise goes on at the next.
    Conditional {
        /// Its address.
        at: u64,
        /// The next instruction's.
        next: u64,
    },
    /// A call that returns here.
    Call {
        /// The next instruction's address.
        back: u64,
    },
    /// A call through a register or memory.
    IndirectCall {
        /// Its address.
        at: u64,
        /// The next instruction's.
        back: u64,
    },
    /// A jump through a register or memory.
    IndirectJump {
        /// Its address.
        at: u64,
    },
    /// A return.
    Return,
}

/// A block as the simulator translates it: instructions one behind the other, control only leaves it at the end.
#[derive(Debug)]
pub struct Block {
    /// Whom it is charged to.
    pub class: Class,
    /// Address of its first instruction.
    pub start: u64,
    /// Cache lines that it lies in.
    pub lines: core::ops::RangeInclusive<u64>,
    /// Its instructions.
    pub instructions: u32,
    /// What it counts, event by event where it counts anything.
    pub counts: Box<[(u8, u32)]>,
    /// How it ends.
    pub end: End,
    /// The string instruction with a repeat prefix that it consists of or ends with: the simulator executes it once per round.
    pub repeated: u64,
    /// Whether it is nothing but that instruction.
    pub only_repeated: bool,
}

impl Block {
    /// Takes in the instructions of a block: address and bytes of each. Which of them access memory is told by `accesses`,
    /// in order.
    pub fn decode<'b>(
        class: Class,
        instructions: impl IntoIterator<Item = (u64, &'b [u8])>,
        accesses: &mut Vec<bool>,
    ) -> Block {
        let mut counts: Counts = [0; index::COUNT];
        let mut info = InstructionInfoFactory::new();
        let (mut start, mut last_byte, mut number) = (None, 0, 0);
        let mut end = End::Fixed;
        let mut repeated = 0;
        let mut leads_on = true;
        accesses.clear();
        for (address, bytes) in instructions {
            start.get_or_insert(address);
            last_byte = address + (bytes.len() as u64).max(1) - 1;
            number += 1;
            let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
            accesses.push(
                info.info(&instruction)
                    .used_memory()
                    .iter()
                    .any(|m| !matches!(m.access(), OpAccess::None | OpAccess::NoMemAccess))
                    // What iced can't decode, qemu may.
                    || instruction.is_invalid(),
            );
            count(&instruction, &mut counts);
            end = ending(&instruction);
            leads_on &= instruction.mnemonic() == Mnemonic::Endbr64
                || (matches!(end, End::IndirectJump { .. })
                    && instruction.is_ip_rel_memory_operand());
            repeated = if instruction.is_string_instruction()
                && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
            {
                address
            } else {
                0
            };
        }
        let class = match class {
            Class::Own if leads_on => Class::Linkage,
            other => other,
        };
        let start = start.unwrap_or(0);
        let counts = counts.into_iter().enumerate().filter(|&(_, n)| n > 0);
        Block {
            class,
            start,
            lines: start / LINE..=last_byte.max(start) / LINE,
            instructions: number,
            counts: counts.map(|(event, n)| (event as u8, n)).collect(),
            end,
            repeated,
            only_repeated: repeated != 0 && number == 1,
        }
    }
}

fn ending(i: &Instruction) -> End {
    let (at, back) = (i.ip(), i.next_ip());
    match i.flow_control() {
        FlowControl::ConditionalBranch => End::Conditional { at, next: back },
        FlowControl::Call if i.mnemonic() == Mnemonic::Call => End::Call { back },
        FlowControl::IndirectCall => End::IndirectCall { at, back },
        FlowControl::IndirectBranch => End::IndirectJump { at },
        FlowControl::Return if i.mnemonic() == Mnemonic::Ret => End::Return,
        _ => End::Fixed,
    }
}

fn count(i: &Instruction, counts: &mut Counts) {
    let mut add = |event: usize| counts[event] += 1;
    add(index::INSTRUCTIONS);
    match ending(i) {
        End::Conditional { .. } => add(index::BRANCHES),
        End::Call { .. } => add(index::CALLS),
        End::IndirectCall { .. } => {
            add(index::CALLS);
            add(index::INDIRECT);
        }
        End::IndirectJump { .. } => add(index::INDIRECT),
        End::Return => add(index::RETURNS),
        End::Fixed => {}
    }
    let has_memory = (0..i.op_count()).any(|op| i.op_kind(op) == iced_x86::OpKind::Memory);
    if i.has_lock_prefix() || (i.mnemonic() == Mnemonic::Xchg && has_memory) {
        add(index::ATOMICS);
    }
    let name = format!("{:?}", i.mnemonic()).to_ascii_lowercase();
    let kind = Arithmetic::of(&name);
    if kind.is_floating_point {
        add(index::FP);
    }
    if kind.multiplies {
        add(index::MULTIPLICATIONS);
    }
    if kind.divides {
        add(index::DIVISIONS);
    }
}

/// What an instruction computes, told by its name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Arithmetic {
    is_floating_point: bool,
    multiplies: bool,
    divides: bool,
}

impl Arithmetic {
    fn of(name: &str) -> Arithmetic {
        let plain = name.strip_prefix('v').unwrap_or(name);
        let starts = |words: &[&str]| words.iter().any(|w| plain.starts_with(w));
        let on_floats = ["ss", "sd", "ps", "pd"].iter().any(|s| plain.ends_with(s))
            && starts(&[
                "add", "sub", "mul", "div", "sqrt", "min", "max", "fmadd", "fmsub", "fnmadd",
                "fnmsub", "hadd", "hsub", "dp", "round", "rcp", "rsqrt",
            ]);
        let on_x87 = starts(&[
            "fadd", "fiadd", "fsub", "fisub", "fmul", "fimul", "fdiv", "fidiv", "fsqrt",
        ]);
        let fused = starts(&["fmadd", "fmsub", "fnmadd", "fnmsub"]);
        Arithmetic {
            is_floating_point: on_floats || on_x87,
            multiplies: fused || starts(&["mul", "imul", "fmul", "fimul", "pmul", "pmadd", "dpp"]),
            divides: starts(&["div", "idiv", "fdiv", "fidiv", "sqrt", "fsqrt"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(code: &[&[u8]]) -> (Block, Vec<bool>) {
        let mut accesses = Vec::new();
        let mut at = 0x40_103c;
        let mut list = Vec::new();
        for bytes in code {
            list.push((at, *bytes));
            at += bytes.len() as u64;
        }
        let block = Block::decode(Class::Own, list, &mut accesses);
        (block, accesses)
    }

    fn counted(block: &Block, event: usize) -> u32 {
        let found = block.counts.iter().find(|(e, _)| usize::from(*e) == event);
        found.map_or(0, |(_, n)| *n)
    }

    #[test]
    fn a_block_counts_its_instructions() {
        let (block, accesses) = decode(&[
            &[0x48, 0x8b, 0x07],             // mov rax, [rdi]
            &[0x48, 0x8d, 0x44, 0x00, 0x08], // lea rax, [rax+rax+8]
            &[0xf0, 0x48, 0x0f, 0xc1, 0x07], // lock xadd [rdi], rax
            &[0xf2, 0x0f, 0x59, 0xc1],       // mulsd xmm0, xmm1
            &[0xc5, 0xfb, 0x5e, 0xc1],       // vdivsd xmm0, xmm0, xmm1
            &[0x48, 0x0f, 0xaf, 0xc3],       // imul rax, rbx
            &[0x75, 0xfe],                   // jne
        ]);
        assert_eq!(accesses, [true, false, true, false, false, false, false]);
        let expected = [
            (index::INSTRUCTIONS, 7),
            (index::BRANCHES, 1),
            (index::FP, 2),
            (index::MULTIPLICATIONS, 2),
            (index::DIVISIONS, 1),
            (index::ATOMICS, 1),
            (index::CALLS, 0),
        ];
        for (event, n) in expected {
            assert_eq!(counted(&block, event), n, "event {event}");
        }
        assert_eq!(block.lines, 0x1_0040..=0x1_0041);
        let next = 0x40_103c + 27;
        assert_eq!(block.end, End::Conditional { at: next - 2, next });
    }

    #[test]
    fn ends_are_told_apart() {
        let end = |bytes: &[u8]| decode(&[bytes]).0.end;
        let at = 0x40_103c;
        assert_eq!(end(&[0xe8, 0, 0, 0, 0]), End::Call { back: at + 5 });
        assert_eq!(end(&[0xff, 0xd0]), End::IndirectCall { at, back: at + 2 });
        assert_eq!(end(&[0xff, 0xe0]), End::IndirectJump { at });
        assert_eq!(end(&[0xc3]), End::Return);
        assert_eq!(end(&[0xeb, 0x00]), End::Fixed);
        assert_eq!(end(&[0x0f, 0x05]), End::Fixed, "syscall is no call");
    }

    #[test]
    fn steps_to_other_modules_are_known() {
        let jump: &[u8] = &[0xff, 0x25, 0, 0, 0, 0]; // jmp [rip]
        let bound: &[u8] = &[0xf2, 0xff, 0x25, 0, 0, 0, 0];
        let endbr: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
        for code in [&[jump][..], &[endbr, jump], &[endbr, bound]] {
            assert_eq!(decode(code).0.class, Class::Linkage);
        }
        for code in [
            &[&[0x90][..], jump][..],
            &[&[0xff, 0xe0]],
            &[&[0xff, 0x15, 0, 0, 0, 0]],
        ] {
            assert_eq!(decode(code).0.class, Class::Own);
        }
    }

    #[test]
    fn repeated_instructions_are_marked() {
        let (block, accesses) = decode(&[&[0xf3, 0xa4]]); // rep movsb
        assert!(block.only_repeated && block.repeated == block.start && accesses == [true]);
        let (block, _) = decode(&[&[0x90], &[0xf3, 0xa4]]);
        assert!(!block.only_repeated && block.repeated == block.start + 1);
        assert_eq!(
            decode(&[&[0xf3, 0x0f, 0x1e, 0xfa]]).0.repeated,
            0,
            "endbr64"
        );
        assert_eq!(decode(&[&[0xf3, 0xc3]]).0.end, End::Return, "rep ret");
    }

    #[test]
    fn arithmetic_is_told_by_name() {
        let is = |name| {
            let a = Arithmetic::of(name);
            (a.is_floating_point, a.multiplies, a.divides)
        };
        assert_eq!(is("vfnmadd213sd"), (true, true, false));
        assert_eq!(is("sqrtps"), (true, false, true));
        assert_eq!(is("pmulld"), (false, true, false));
        assert_eq!(is("movss"), (false, false, false));
        assert_eq!(is("comisd"), (false, false, false));
        assert_eq!(is("fdivrp"), (true, false, true));
        assert_eq!(is("idiv"), (false, false, true));
        assert_eq!(is("add"), (false, false, false));
    }
}
