//! Inline windows: the instructions that a jump displaces, copied into a trampoline with probes between them, or without,
//! where a window makes room for another's jump.

mod count;
mod emit;

pub(crate) use emit::Mark;

use crate::count::{Increment, Place};
use crate::image::Image;
use crate::model::{LinkVa, Window};
use crate::patch_error::PatchError;
use crate::stubs::{Code64, Decoded, JUMP_LEN, SHORT_JUMP_LEN, UNREACHABLE, decode};
use emit::emit_step;
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, Register};
use serde::Serialize;
use std::collections::BTreeMap;

/// A window that is replaced by a jump to its trampoline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detour {
    /// First byte of the window.
    pub start: LinkVa,
    /// Its length in bytes.
    pub len: u32,
    /// Address of the trampoline.
    pub trampoline: LinkVa,
    /// Length of the trampoline in bytes.
    pub trampoline_len: u32,
    /// Sites with a probe in it.
    pub sites: Vec<u32>,
    /// Where the jump to the trampoline stands, if not at the window's start.
    pub island: Option<LinkVa>,
}

/// Where a displaced branch leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Address(u64),
    /// The stub of a call site that lies in the window.
    Stub(u32),
}

/// An inline probe to be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placing {
    pub site: u32,
    /// Number of its entry in the site table.
    pub entry: u32,
    pub at: LinkVa,
}

/// A part of a trampoline, in the order of execution.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// The probe of this entry of the site table.
    Probe(u32),
    /// Adds a constant to the thread's count of instructions.
    Count(Increment),
    /// The same bytes do the same anywhere.
    Verbatim(Vec<u8>),
    /// `head`, a displacement that leads to `target`, `tail`.
    RipRelative {
        head: Vec<u8>,
        target: u64,
        tail: Vec<u8>,
    },
    /// A direct branch in its long form.
    Branch { opcode: Vec<u8>, to: To },
    /// A conditional one that adds a constant where it leads, if it is taken.
    Counted {
        opcode: Vec<u8>,
        to: u64,
        increment: Increment,
    },
    /// Pushes the original's return address: unwinding and `setjmp` see the original.
    PushReturn(u64),
}

/// A trampoline before its address is known.
#[derive(Debug)]
pub(crate) struct Trampoline {
    pub window: LinkVa,
    pub window_len: u32,
    pub sites: Vec<u32>,
    pub island: Option<LinkVa>,
    steps: Vec<Step>,
    /// For each step the address of the original instruction that it stands for or before.
    origins: Vec<u64>,
    back: Option<u64>,
}

/// Addresses that trampolines refer to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Anchors {
    /// The slot for inline probes.
    pub inline_slot: u64,
    /// The slot with the place of a thread's count of instructions.
    pub count_slot: u64,
    /// The site table.
    pub sites: u64,
    /// The first stub.
    pub stubs: u64,
}

impl Trampoline {
    /// Takes a window apart. `probes`: sites to place; `increments`: constants to add in it; `calls`: addresses of call sites whose
    /// call leads to the stub of this number.
    pub(crate) fn new(
        image: &Image<'_>,
        window: &Window,
        (probes, increments): (&[Placing], &[Increment]),
        calls: &BTreeMap<LinkVa, u32>,
    ) -> Result<Trampoline, PatchError> {
        let first = probes.first().map_or(window.start, |p| p.at);
        let error = |what: String| PatchError::Site {
            path: image.path.into(),
            at: first,
            what,
        };
        let needed = match window.island {
            Some(_) => SHORT_JUMP_LEN,
            None => JUMP_LEN,
        };
        if window.len < needed {
            return Err(PatchError::TooShort {
                path: image.path.into(),
                at: first,
                len: window.len,
            });
        }
        let end = window.start.0 + u64::from(window.len);
        let mut trampoline = Trampoline {
            window: window.start,
            window_len: window.len,
            sites: probes.iter().map(|p| p.site).collect(),
            island: window.island,
            steps: Vec::new(),
            origins: Vec::new(),
            back: Some(end),
        };
        let mut pending = probes.iter().peekable();
        let mut counts = increments.iter().peekable();
        let mut at = window.start.0;
        while at < end {
            let decoded = decode(image, LinkVa(at))
                .ok_or_else(|| error(format!("there is no instruction at {at:#x}")))?;
            let len = decoded.bytes.len() as u64;
            if at + len > end {
                return Err(error(format!(
                    "the instruction at {at:#x} is cut by the end of its window"
                )));
            }
            if trampoline.back.is_none() {
                // Behind an unconditional jump: never executed, and not copied.
                if !is_padding(&decoded.instruction) {
                    return Err(error(format!("the code at {at:#x} is no padding")));
                }
                at += len;
                continue;
            }
            while let Some(probe) = pending.next_if(|p| p.at.0 == at) {
                trampoline.push(Step::Probe(probe.entry), at);
            }
            while let Some(increment) = counts.next_if(|i| i.order() == (at, Place::Before)) {
                trampoline.push(Step::Count(*increment), at);
            }
            trampoline
                .displace(&decoded, calls.get(&LinkVa(at)).copied())
                .map_err(|what| error(format!("the instruction at {at:#x} {what}")))?;
            while let Some(increment) = counts.next_if(|i| i.at == at) {
                let placed = trampoline.count_behind(*increment);
                placed.map_err(|what| error(format!("the instruction at {at:#x} {what}")))?;
            }
            at += len;
        }
        let lost = pending.next().map(|p| p.at);
        match lost.or_else(|| counts.next().map(|i| LinkVa(i.at))) {
            None => Ok(trampoline),
            Some(at) => Err(error(format!(
                "{at} is not the start of an instruction in its window"
            ))),
        }
    }

    /// Whether it makes a call by pushing the return address, which no shadow stack notices.
    pub(crate) fn calls(&self) -> bool {
        let is_push = |step: &Step| matches!(step, Step::PushReturn(_));
        self.steps.iter().any(is_push)
    }

    fn push(&mut self, step: Step, origin: u64) {
        self.steps.push(step);
        self.origins.push(origin);
    }

    /// Adds a constant on one of the two ways from the conditional jump that was displaced last.
    fn count_behind(&mut self, increment: Increment) -> Result<(), &'static str> {
        const WHAT: &str = "is no conditional jump that can be counted";
        let is_count = |step: &Step| matches!(step, Step::Count(_));
        let jump = self.steps.iter().rposition(|step| !is_count(step));
        let jump = jump.ok_or(WHAT)?;
        let Step::Branch {
            opcode,
            to: To::Address(to),
        } = &self.steps[jump]
        else {
            return Err(WHAT);
        };
        if opcode[0] != 0x0f || self.origins[jump] != increment.at {
            return Err(WHAT);
        }
        match increment.place {
            Place::Taken => {
                self.steps[jump] = Step::Counted {
                    opcode: opcode.clone(),
                    to: *to,
                    increment,
                };
            }
            Place::Before | Place::Behind => self.push(Step::Count(increment), increment.at),
        }
        Ok(())
    }

    fn displace(&mut self, decoded: &Decoded<'_>, stub: Option<u32>) -> Result<(), &'static str> {
        let instruction = &decoded.instruction;
        let at = instruction.ip();
        let to = match stub {
            Some(site) => To::Stub(site),
            None => To::Address(instruction.near_branch_target()),
        };
        let flow = if instruction.mnemonic() == Mnemonic::Syscall {
            FlowControl::Next
        } else {
            instruction.flow_control()
        };
        match flow {
            FlowControl::Next | FlowControl::Interrupt => {
                self.push(plain(decoded, decoded.bytes)?, at)
            }
            FlowControl::Return | FlowControl::Exception => {
                self.push(Step::Verbatim(decoded.bytes.to_vec()), at);
                self.back = None;
            }
            FlowControl::UnconditionalBranch => {
                if !instruction.is_jmp_short_or_near() {
                    return Err("is a far jump");
                }
                self.push(
                    Step::Branch {
                        opcode: vec![0xe9],
                        to,
                    },
                    at,
                );
                self.back = None;
            }
            FlowControl::IndirectBranch => {
                let step = match stub {
                    Some(_) => Step::Branch {
                        opcode: vec![0xe9],
                        to,
                    },
                    None => plain(decoded, decoded.bytes)?,
                };
                self.push(step, at);
                self.back = None;
            }
            FlowControl::ConditionalBranch => {
                if !instruction.is_jcc_short_or_near() {
                    return Err("has no form that reaches far");
                }
                // iced numbers the conditions as the opcodes do, behind "none".
                let opcode = vec![0x0f, 0x7f + instruction.condition_code() as u8];
                self.push(Step::Branch { opcode, to }, at);
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                self.displace_call(decoded, to, stub.is_some())?;
            }
            FlowControl::XbeginXabortXend => return Err("belongs to a transaction"),
        }
        Ok(())
    }

    /// A call that ends its window: control comes back behind the window, in the original code.
    fn displace_call(
        &mut self,
        decoded: &Decoded<'_>,
        to: To,
        redirected: bool,
    ) -> Result<(), &'static str> {
        let instruction = &decoded.instruction;
        let at = instruction.ip();
        if instruction.next_ip() != self.window.0 + u64::from(self.window_len) {
            return Err("is a call that doesn't end its window");
        }
        let jump = if redirected || instruction.code() == Code::Call_rel32_64 {
            Step::Branch {
                opcode: vec![0xe9],
                to,
            }
        } else {
            if !can_move_call(instruction) {
                return Err("is a call that can't be moved");
            }
            let mut bytes = decoded.bytes.to_vec();
            let opcode = bytes
                .iter()
                .position(|&b| b == 0xff)
                .ok_or("is a call that can't be moved")?;
            // `ff /2` is call, `ff /4` jmp.
            let form = bytes.get_mut(opcode + 1).ok_or("is cut off")?;
            *form = *form & !0x38 | 0x20;
            plain(decoded, &bytes)?
        };
        self.push(Step::PushReturn(instruction.next_ip()), at);
        self.push(jump, at);
        self.back = None;
        Ok(())
    }

    fn emit(&self, at: LinkVa, anchors: &Anchors) -> Code64 {
        let mut code = Code64::new(at);
        let ends = at.0 + self.way_len();
        self.emit_way(&mut code, anchors, ends);
        for (increment, to, _) in self.ends() {
            count::emit(&mut code, increment, anchors.count_slot);
            code.relative(&[0xe9], to);
        }
        code
    }

    /// What stands behind the way through the window: constants of jumps that are taken, where those lead, and the number of the jump's step.
    fn ends(&self) -> impl Iterator<Item = (&Increment, u64, usize)> {
        let steps = self.steps.iter().enumerate();
        steps.filter_map(|(n, step)| match step {
            Step::Counted { to, increment, .. } => Some((increment, *to, n)),
            _ => None,
        })
    }

    /// The way through the window, and back. `ends`: address of the first of [`Trampoline::ends`].
    fn emit_way(&self, code: &mut Code64, anchors: &Anchors, mut ends: u64) {
        for step in &self.steps {
            emit_step(code, step, anchors, &mut ends);
        }
        if let Some(back) = self.back {
            code.relative(&[0xe9], back);
        }
    }

    fn way_len(&self) -> u64 {
        let mut code = Code64::new(LinkVa(0));
        self.emit_way(&mut code, &Anchors::default(), 0);
        code.here()
    }

    /// Length in bytes; it doesn't depend on addresses.
    pub(crate) fn len(&self) -> usize {
        self.emit(LinkVa(0), &Anchors::default()).bytes.len()
    }

    /// The code at its address, or what it can't reach.
    pub(crate) fn encode(&self, at: LinkVa, anchors: &Anchors) -> Result<Vec<u8>, LinkVa> {
        self.emit(at, anchors).finish()
    }

    /// Address behind the window.
    pub(crate) fn window_end(&self) -> u64 {
        self.window.0.saturating_add(u64::from(self.window_len))
    }

    /// What takes the window's place; what it can't reach.
    pub(crate) fn window_bytes(&self, at: LinkVa) -> Result<Vec<u8>, LinkVa> {
        let mut bytes = match self.island {
            None => jump(self.window, at)?,
            Some(island) => {
                let behind = self.window.0 + u64::from(SHORT_JUMP_LEN);
                let distance = i8::try_from(island.0.wrapping_sub(behind) as i64);
                vec![0xeb, distance.map_err(|_| island)?.cast_unsigned()]
            }
        };
        bytes.resize(self.window_len as usize, UNREACHABLE);
        Ok(bytes)
    }

    /// What stands in the island, if there is one.
    pub(crate) fn island_bytes(&self, at: LinkVa) -> Result<Option<(LinkVa, Vec<u8>)>, LinkVa> {
        let bytes = |island| Ok((island, jump(island, at)?));
        self.island.map(bytes).transpose()
    }
}

/// Whether an indirect call leads to the same function when its return address has been pushed before.
pub(crate) fn can_move_call(call: &Instruction) -> bool {
    let mut registers = [call.op0_register(), call.memory_base()].into_iter();
    let uses_stack = registers.any(|r| r.full_register() == Register::RSP);
    call.code() == Code::Call_rm64 && !uses_stack
}

/// A jump in its long form.
fn jump(from: LinkVa, to: LinkVa) -> Result<Vec<u8>, LinkVa> {
    let mut code = Code64::new(from);
    code.relative(&[0xe9], to.0);
    code.finish()
}

/// An instruction that only its address operand, if any, ties to its place.
fn plain(decoded: &Decoded<'_>, bytes: &[u8]) -> Result<Step, &'static str> {
    let instruction = &decoded.instruction;
    if !instruction.is_ip_rel_memory_operand() {
        return Ok(Step::Verbatim(bytes.to_vec()));
    }
    let target = instruction.memory_displacement64();
    match (instruction.memory_base(), decoded.displacement) {
        (Register::RIP, Some(at)) if at + 4 <= bytes.len() => Ok(Step::RipRelative {
            head: bytes[..at].to_vec(),
            target,
            tail: bytes[at + 4..].to_vec(),
        }),
        _ => Err("has an address that can't be moved"),
    }
}

fn is_padding(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
}

#[cfg(test)]
mod tests;
