//! The code that adds a constant to a thread's count of instructions, as `ompfuse_format::abi` documents it.

use crate::count::{Amounts, Increment};
use crate::model::LinkVa;
use crate::stubs::Code64;

/// rcx, for what has no free register.
const SAVED: u8 = 1;
/// Length of what loads the slot and tests it, up to the addition.
const TEST: u32 = 12;

/// Depths of the stack, from the offset behind each instruction that changes the stack pointer.
pub(super) fn depths(increment: &Increment) -> Vec<(u32, u32)> {
    if increment.scratch.is_some() {
        return vec![(0, 0)];
    }
    let restored = 11 + TEST + additions(SAVED, &increment.amounts).len() as u32 + 3;
    vec![
        (0, 0),
        (5, 128),
        (6, 136),
        (7, 144),
        (restored + 1, 136),
        (restored + 2, 128),
        (restored + 10, 0),
    ]
}

/// Length in bytes.
pub(super) fn len(increment: &Increment) -> u64 {
    let mut code = Code64::new(LinkVa(0));
    emit(&mut code, increment, 0);
    code.here()
}

/// Adds without changing anything that somebody reads.
pub(super) fn emit(code: &mut Code64, increment: &Increment, slot: u64) {
    if let Some(register) = increment.scratch {
        return add(code, register, &increment.amounts, slot);
    }
    code.raw(&[0x48, 0x8d, 0x64, 0x24, 0x80]); // lea rsp, [rsp - 128]
    code.raw(&[0x51, 0x50]); // push rcx; push rax
    code.raw(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
    add(code, SAVED, &increment.amounts, slot);
    code.raw(&[0x04, 127, 0x9e]); // add al, 127; sahf
    code.raw(&[0x58, 0x59]); // pop rax; pop rcx
    code.raw(&[0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]); // lea rsp, [rsp + 128]
}

/// Adds to the words that the slot leads to, if that isn't 0. Changes the register and the flags.
fn add(code: &mut Code64, register: u8, amounts: &Amounts, slot: u64) {
    let (high, low) = (register >> 3, register & 7);
    code.relative(&[0x48 | high << 2, 0x8b, 0x05 | low << 3], slot); // mov r, [slot]
    code.raw(&[0x48 | high << 2 | high, 0x85, 0xc0 | low << 3 | low]); // test r, r
    let additions = additions(register, amounts);
    code.raw(&[0x74, additions.len() as u8]); // jz behind
    code.raw(&additions);
}

/// `add qword ptr fs:[r + 8 n], amount` for each event n of which there is something, for registers whose form needs no further byte.
fn additions(register: u8, amounts: &Amounts) -> Vec<u8> {
    let (high, low) = (register >> 3, register & 7);
    let mut bytes = Vec::new();
    for (at, &amount) in (0u8..).step_by(8).zip(amounts).filter(|(_, a)| **a != 0) {
        let (form, place) = match at {
            0 => (low, vec![]),
            _ => (0x40 | low, vec![at]),
        };
        bytes.extend([0x64, 0x48 | high]);
        match i8::try_from(amount) {
            Ok(amount) => {
                bytes.extend([0x83, form]);
                bytes.extend(place);
                bytes.push(amount.cast_unsigned());
            }
            Err(_) => {
                bytes.extend([0x81, form]);
                bytes.extend(place);
                bytes.extend(amount.to_le_bytes());
            }
        }
    }
    bytes
}
