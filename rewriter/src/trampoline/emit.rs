//! A trampoline's bytes, and how deep the stack is in them.

use super::{Anchors, Step, To, Trampoline, count};
use crate::model::LinkVa;
use crate::stubs::{Code64, JUMP_LEN, STUB_LEN, load_site, load_slot};

impl Trampoline {
    /// Where the way back to the caller's frame changes, for unwinders.
    pub(crate) fn marks(&self) -> Vec<Mark> {
        let anchors = Anchors::default();
        let mut code = Code64::new(LinkVa(0));
        let mut marks = Vec::new();
        let mut returning = 0;
        let mut ends = self.way_len();
        for (step, &origin) in self.steps.iter().zip(&self.origins) {
            let start = code.here() as u32;
            let mark = |(offset, depth)| Mark {
                offset: start + offset,
                origin,
                depth,
            };
            match step {
                Step::Probe(_) => marks.extend(PROBE_DEPTHS.map(mark)),
                Step::Count(increment) => {
                    marks.extend(count::depths(increment).into_iter().map(mark))
                }
                Step::PushReturn(_) => {
                    marks.extend(PUSH_DEPTHS.map(mark));
                    returning = 8;
                }
                _ => marks.push(mark((0, returning))),
            }
            emit_step(&mut code, step, &anchors, &mut ends);
        }
        if let Some(origin) = self.back {
            marks.push(Mark {
                offset: code.here() as u32,
                origin,
                depth: 0,
            });
            code.relative(&[0xe9], origin);
        }
        for (increment, to, step) in self.ends() {
            let start = code.here() as u32;
            let mark = |(offset, depth)| Mark {
                offset: start + offset,
                origin: self.origins[step],
                depth,
            };
            marks.extend(count::depths(increment).into_iter().map(mark));
            count::emit(&mut code, increment, 0);
            code.relative(&[0xe9], to);
        }
        marks
    }
}

/// `ends`: where the next jump leads that adds a constant if it is taken.
pub(super) fn emit_step(code: &mut Code64, step: &Step, anchors: &Anchors, ends: &mut u64) {
    match step {
        Step::Probe(entry) => probe(code, *entry, anchors),
        Step::Count(increment) => count::emit(code, increment, anchors.count_slot),
        Step::Verbatim(bytes) => code.raw(bytes),
        Step::RipRelative { head, target, tail } => code.relative_with(head, *target, tail),
        Step::Branch { opcode, to } => {
            let to = match to {
                To::Address(to) => *to,
                To::Stub(n) => anchors.stubs + STUB_LEN * u64::from(*n),
            };
            code.relative(opcode, to);
        }
        Step::Counted {
            opcode, increment, ..
        } => {
            code.relative(opcode, *ends);
            *ends += count::len(increment) + u64::from(JUMP_LEN);
        }
        Step::PushReturn(to) => push_return(code, *to),
    }
}

/// From this offset in a trampoline on, the stack is `depth` bytes deeper than at the original's `origin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub offset: u32,
    pub origin: u64,
    pub depth: u32,
}

/// Depths in a probe block, from the offset behind each instruction that changes the stack pointer.
const PROBE_DEPTHS: [(u32, u32); 11] = [
    (0, 0),
    (5, 128),
    (7, 136),
    (9, 144),
    (10, 152),
    (15, 160),
    (38, 152),
    (42, 144),
    (44, 136),
    (46, 128),
    (54, 0),
];

/// The same for a pushed return address.
const PUSH_DEPTHS: [(u32, u32); 4] = [(0, 0), (5, 8), (7, 16), (21, 8)];

/// The probe block of `ompfuse_format::abi`.
fn probe(code: &mut Code64, entry: u32, anchors: &Anchors) {
    use ompfuse_format::abi::SiteDesc;
    code.raw(&[0x48, 0x8d, 0x64, 0x24, 0x80]); // lea rsp, [rsp - 128]
    code.raw(&[0x41, 0x53, 0x41, 0x52, 0x50]); // push r11; push r10; push rax
    code.raw(&[0x9f, 0x0f, 0x90, 0xc0, 0x50]); // lahf; seto al; push rax
    load_slot(code, anchors.inline_slot);
    code.raw(&[0x74, 10]); // jz skip
    load_site(
        code,
        anchors.sites + SiteDesc::LEN as u64 * u64::from(entry),
    );
    code.raw(&[0x41, 0xff, 0xd3]); // call r11
    code.raw(&[0x58, 0x04, 127, 0x9e, 0x58]); // skip: pop rax; add al, 127; sahf; pop rax
    code.raw(&[0x41, 0x5a, 0x41, 0x5b]); // pop r10; pop r11
    code.raw(&[0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]); // lea rsp, [rsp + 128]
}

/// Pushes an address without touching a register, a flag or memory below the stack pointer.
fn push_return(code: &mut Code64, to: u64) {
    code.raw(&[0x48, 0x8d, 0x64, 0x24, 0xf8]); // lea rsp, [rsp - 8]
    code.raw(&[0x41, 0x53]); // push r11
    code.relative(&[0x4c, 0x8d, 0x1d], to); // lea r11, [to]
    code.raw(&[0x4c, 0x89, 0x5c, 0x24, 0x08]); // mov [rsp + 8], r11
    code.raw(&[0x41, 0x5b]); // pop r11
}
