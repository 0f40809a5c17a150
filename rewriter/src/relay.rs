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

use crate::image::Image;
use crate::model::{LinkVa, Relay, Target};
use crate::patch_error::PatchError;
use crate::stubs::{Code64, Redirect, STUB_LEN, decode};
use iced_x86::{Code, FlowControl, OpKind, Register};

/// A relay before its address is known.
#[derive(Debug)]
pub(crate) struct RelayCode {
    target: Target,
    pub loads: Vec<LinkVa>,
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
            _ => {
                return Err(error(
                    "the instruction doesn't make the address that is called",
                ));
            }
        }
        let mut code = Code64::new(load);
        code.relative(&bytes[..3], relay.0);
        code.finish().map_err(|to| PatchError::TooFar {
            path: image.path.into(),
            at: load,
            to,
        })
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
        insn.flow_control() == control
            && matches!(insn.op0_kind(), OpKind::Register | OpKind::Memory)
            && !insn.is_ip_rel_memory_operand()
            && insn.len() == usize::from(len)
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
            calls: Vec::new(),
            tail: Some(0),
        };
        let code = relay.encode(LinkVa(0x2000), 0x1000).unwrap();
        assert_eq!(code[4..], [0xe9, 0xf7, 0xef, 0xff, 0xff]);
    }
}
