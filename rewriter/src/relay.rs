//! Relays: the code that calls through a register or variable arrive at, as their return addresses tell which of them
//! it was, and the changed instructions that lead to it.
//!
//! ```text
//! load:        lea  rbx, [rip + relay]          ; was: mov rbx, [rip + GOT slot]
//!              ...
//!              call rbx                         ; as it was
//! behind_17:
//! relay:       endbr64
//!              lea  r11, [rip + behind_17] ; cmp [rsp], r11 ; je stub_17
//!              ...the other calls that `rbx` is for...
//!              jmp  [rip + GOT slot]            ; or `jmp stub`, of the one jump among them
//! ```
//!
//! Where calls go through a register by way of a thunk (`call thunk_rbx`, a retpoline), that stays too: it leads to the relay.
//!
//! Position-independent code of the large model reads the address from a table, `call [r15 + rax]`: `movabs rax, distance`
//! becomes `lea rax, [relay]` and a `nop`, the call `nop` and `call rax`.

use crate::image::Image;
use crate::model::{LinkVa, Read, Relay, Target};
use crate::patch_error::PatchError;
use crate::stubs::{Code64, Redirect, STUB_LEN, decode};
use crate::thunk::through;
use iced_x86::{Code, FlowControl, Instruction, OpKind, Register};

/// A relay before its address is known.
#[derive(Debug)]
pub(crate) struct RelayCode {
    target: Target,
    pub loads: Vec<LinkVa>,
    pub reads: Vec<Read>,
    /// Return addresses of calls, and the numbers of their stubs.
    calls: Vec<(u64, u32)>,
    /// The stub of the jump among them.
    tail: Option<u32>,
}

impl RelayCode {
    /// `calls`: stub numbers and what leads to them.
    pub(crate) fn new<'c>(
        relay: &Relay,
        calls: impl Iterator<Item = (u32, &'c Redirect)>,
    ) -> RelayCode {
        let mut code = RelayCode {
            target: relay.target,
            loads: relay.loads.clone(),
            reads: relay.reads.clone(),
            calls: Vec::new(),
            tail: None,
        };
        for (stub, call) in calls {
            match call.tail {
                true => code.tail = Some(stub),
                false => code.calls.push((call.at.0 + u64::from(call.len), stub)),
            }
        }
        code
    }

    /// Addresses of all instructions that are changed.
    pub(crate) fn changed(&self) -> impl Iterator<Item = LinkVa> {
        let reads = self.reads.iter().map(|r| r.at);
        self.loads.iter().copied().chain(reads)
    }

    /// The code at its address, or what it can't reach.
    pub(crate) fn encode(&self, at: LinkVa, stubs: u64) -> Result<Vec<u8>, LinkVa> {
        self.emit(at, stubs).finish()
    }

    /// Length in bytes; it doesn't depend on addresses.
    pub(crate) fn len(&self) -> u64 {
        self.emit(LinkVa(0), 0).bytes.len() as u64
    }

    fn emit(&self, at: LinkVa, stubs: u64) -> Code64 {
        let stub = |n: u32| stubs + STUB_LEN * u64::from(n);
        let mut code = Code64::new(at);
        code.raw(&[0xf3, 0x0f, 0x1e, 0xfa]); // endbr64
        for &(behind, n) in &self.calls {
            code.relative(&[0x4c, 0x8d, 0x1d], behind); // lea r11, [behind]
            code.raw(&[0x4c, 0x39, 0x1c, 0x24]); // cmp [rsp], r11
            code.relative(&[0x0f, 0x84], stub(n)); // je stub
        }
        match (self.tail, self.target) {
            (Some(n), _) => code.relative(&[0xe9], stub(n)),
            (None, Target::Direct(to)) => code.relative(&[0xe9], to.0),
            (None, Target::Slot(slot)) => code.relative(&[0xff, 0x25], slot.0),
        }
        code
    }

    /// The instruction at `load`, changed to make the address of the relay at `relay`.
    pub(crate) fn load(
        &self,
        image: &Image<'_>,
        load: LinkVa,
        relay: LinkVa,
    ) -> Result<Vec<u8>, PatchError> {
        let error = |what: &str| PatchError::Site {
            path: image.path.into(),
            at: load,
            what: what.into(),
        };
        let too_far = |to| PatchError::TooFar {
            path: image.path.into(),
            at: load,
            to,
        };
        let decoded = decode(image, load).ok_or_else(|| error("there is no instruction"))?;
        let insn = &decoded.instruction;
        let relative = insn.memory_base() == Register::RIP
            && insn.segment_prefix() == Register::None
            && decoded.bytes.len() == 7;
        let address = LinkVa(insn.memory_displacement64());
        let mut bytes = decoded.bytes.to_vec();
        match (insn.code(), self.target) {
            (Code::Mov_r64_rm64, Target::Slot(slot)) if relative && address == slot => {
                bytes[1] = 0x8d;
            }
            (Code::Lea_r64_m, Target::Direct(to)) if relative && address == to => {}
            (Code::Mov_r64_imm64, Target::Direct(to)) if bytes.len() == 10 => {
                let number = insn.immediate64().wrapping_sub(to.0).wrapping_add(relay.0);
                bytes[2..].copy_from_slice(&number.to_le_bytes());
                return Ok(bytes);
            }
            (Code::Mov_r64_imm64, Target::Slot(_)) if bytes.len() == 10 => {
                // A distance isn't needed any more: those who read the table with it take the address itself.
                let to = insn.op0_register().number() as u8;
                let mut code = Code64::new(load);
                code.relative_with(
                    &[0x48 | (to >> 3) << 2, 0x8d, 0x05 | (to & 7) << 3],
                    relay.0,
                    &[],
                );
                code.raw(nop(3));
                return code.finish().map_err(too_far);
            }
            _ => {
                return Err(error(
                    "the instruction doesn't make the address that is called",
                ));
            }
        }
        let mut code = Code64::new(load);
        code.relative(&bytes[..3], relay.0);
        code.finish().map_err(too_far)
    }

    /// The instruction that read the table, changed to take the relay's address from the register.
    pub(crate) fn read(image: &Image<'_>, read: Read) -> Result<Vec<u8>, PatchError> {
        let decoded = decode(image, read.at);
        let bytes = decoded.and_then(|d| without_table(&d.instruction, read.register));
        bytes.ok_or_else(|| PatchError::Site {
            path: image.path.into(),
            at: read.at,
            what: "the instruction doesn't read a table with that register".into(),
        })
    }
}

/// An instruction that takes what a table holds at two registers' sum, changed to take what the register with this number
/// holds; of the same length.
fn without_table(insn: &Instruction, register: u8) -> Option<Vec<u8>> {
    let reads = insn.segment_prefix() == Register::None
        && insn.memory_index_scale() == 1
        && insn.memory_displacement64() == 0
        && [insn.memory_base(), insn.memory_index()]
            .iter()
            .all(|r| r.is_gpr64())
        && [insn.memory_base(), insn.memory_index()]
            .iter()
            .any(|r| r.number() == usize::from(register));
    let (low, high) = (register & 7, register >> 3);
    let prefix: &[u8] = if high == 1 { &[0x41] } else { &[] };
    let taken = match insn.code() {
        Code::Mov_r64_rm64 => {
            let to = insn.op0_register().number() as u8;
            vec![
                0x48 | (to >> 3) << 2 | high,
                0x8b,
                0xc0 | (to & 7) << 3 | low,
            ]
        }
        Code::Call_rm64 => [prefix, &[0xff, 0xd0 | low]].concat(),
        Code::Jmp_rm64 => [prefix, &[0xff, 0xe0 | low]].concat(),
        _ => return None,
    };
    let left = insn
        .len()
        .checked_sub(taken.len())
        .filter(|&n| reads && n <= 3)?;
    // The call's end stays where it is.
    Some([nop(left), &taken].concat())
}

/// An instruction of so many bytes that does nothing, or none.
fn nop(len: usize) -> &'static [u8] {
    match len {
        0 => &[],
        1 => &[0x90],
        2 => &[0x66, 0x90],
        _ => &[0x0f, 0x1f, 0x00],
    }
}

/// Checks that the code at a site is a call, or a jump, through a register or variable.
pub(crate) fn check_site(
    image: &Image<'_>,
    at: LinkVa,
    len: u8,
    tail: bool,
) -> Result<(), PatchError> {
    let insn = decode(image, at).map(|d| d.instruction);
    let is_through = insn.is_some_and(|insn| {
        let control = match tail {
            true => FlowControl::IndirectBranch,
            false => FlowControl::IndirectCall,
        };
        let plain = insn.flow_control() == control
            && matches!(insn.op0_kind(), OpKind::Register | OpKind::Memory)
            && !insn.is_ip_rel_memory_operand();
        let by_thunk = through(image, &insn).is_some_and(|(_, jumps)| jumps == tail);
        (plain || by_thunk) && insn.len() == usize::from(len)
    });
    match is_through {
        true => Ok(()),
        false => Err(PatchError::Site {
            path: image.path.into(),
            at,
            what: "the instruction there is not the call that was found".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_is_the_documented_one() {
        let relay = RelayCode {
            target: Target::Slot(LinkVa(0x4000)),
            loads: Vec::new(),
            reads: Vec::new(),
            calls: vec![(0x500, 1)],
            tail: None,
        };
        let code = relay.encode(LinkVa(0x2000), 0x1000).unwrap();
        assert_eq!(
            code,
            [
                0xf3, 0x0f, 0x1e, 0xfa, // endbr64
                0x4c, 0x8d, 0x1d, 0xf5, 0xe4, 0xff, 0xff, // lea r11, [rip - 0x1b0b]
                0x4c, 0x39, 0x1c, 0x24, // cmp [rsp], r11
                0x0f, 0x84, 0xf7, 0xef, 0xff, 0xff, // je 0x100c
                0xff, 0x25, 0xe5, 0x1f, 0, 0, // jmp [rip + 0x1fe5]
            ]
        );
        assert_eq!(relay.len(), code.len() as u64);
    }

    #[test]
    fn jumps_are_what_is_left() {
        let relay = RelayCode {
            target: Target::Direct(LinkVa(0x4000)),
            loads: Vec::new(),
            reads: Vec::new(),
            calls: Vec::new(),
            tail: Some(0),
        };
        let code = relay.encode(LinkVa(0x2000), 0x1000).unwrap();
        assert_eq!(code[4..], [0xe9, 0xf7, 0xef, 0xff, 0xff]);
    }
}
