//! The code that adds a constant to a thread's count of instructions, as `ompfuse_format::abi` documents it.

use crate::count::{Increment, Term};
use crate::model::LinkVa;
use crate::stubs::Code64;

/// lea rsp, [rsp - 128]: over the red zone.
const BELOW: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
/// lea rsp, [rsp + 128]
const ABOVE: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
/// rcx, for what has no free register.
const SAVED: u8 = 1;
/// Length of what loads the slot and tests it, up to the addition.
const TEST: u32 = 12;

/// Depths of the stack, from the offset behind each instruction that changes the stack pointer.
pub(super) fn depths(increment: &Increment) -> Vec<(u32, u32)> {
    if let Some(register) = increment.scratch {
        return depths_of_kept(increment, register);
    }
    let restored = 11 + TEST + additions(SAVED, increment).len() as u32 + 3;
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

/// The same where registers are kept on the stack, if at all.
fn depths_of_kept(increment: &Increment, register: u8) -> Vec<(u32, u32)> {
    let kept = increment.kept();
    let mut depths = vec![(0, 0)];
    if kept.is_empty() {
        return depths;
    }
    let len = |register: &u8| 1 + u32::from(*register >> 3);
    let (mut at, mut depth) = (5, 128);
    depths.push((at, depth));
    for register in &kept {
        (at, depth) = (at + len(register), depth + 8);
        depths.push((at, depth));
    }
    let mut code = Code64::new(LinkVa(0));
    add(&mut code, register, increment, 0);
    at += code.here() as u32;
    for register in kept.iter().rev() {
        (at, depth) = (at + len(register), depth - 8);
        depths.push((at, depth));
    }
    depths.push((at + 8, 0));
    depths
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
        let kept = increment.kept();
        if !kept.is_empty() {
            code.raw(&BELOW);
        }
        kept.iter()
            .for_each(|&register| code.raw(&stacked(0x50, register))); // push
        add(code, register, increment, slot);
        kept.iter()
            .rev()
            .for_each(|&register| code.raw(&stacked(0x58, register))); // pop
        if !kept.is_empty() {
            code.raw(&ABOVE);
        }
        return;
    }
    code.raw(&BELOW);
    code.raw(&[0x51, 0x50]); // push rcx; push rax
    code.raw(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
    add(code, SAVED, increment, slot);
    code.raw(&[0x04, 127, 0x9e]); // add al, 127; sahf
    code.raw(&[0x58, 0x59]); // pop rax; pop rcx
    code.raw(&ABOVE);
}

/// A push or a pop of a register.
fn stacked(opcode: u8, register: u8) -> Vec<u8> {
    let prefix = (register >= 8).then_some(0x41);
    prefix.into_iter().chain([opcode | register & 7]).collect()
}

/// Adds to the words that the slot leads to, if that isn't 0. Changes the register, a term's spare one, and the flags.
fn add(code: &mut Code64, register: u8, increment: &Increment, slot: u64) {
    let (high, low) = (register >> 3, register & 7);
    code.relative(&[0x48 | high << 2, 0x8b, 0x05 | low << 3], slot); // mov r, [slot]
    code.raw(&[0x48 | high << 2 | high, 0x85, 0xc0 | low << 3 | low]); // test r, r
    let additions = additions(register, increment);
    match u8::try_from(additions.len()) {
        Ok(len @ 0..=127) => code.raw(&[0x74, len]), // jz behind
        _ => {
            code.raw(&[0x0f, 0x84]);
            code.raw(&(additions.len() as u32).to_le_bytes());
        }
    }
    code.raw(&additions);
}

/// What is added for each event n of which there is something, for registers whose form needs no further byte.
fn additions(register: u8, increment: &Increment) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (n, &amount) in increment.amounts.iter().enumerate() {
        let at = 8 * n as u8;
        match increment.term.filter(|term| term.factors[n] != 0) {
            Some(term) => {
                multiply(&mut bytes, &term, term.factors[n]);
                if amount != 0 {
                    // add s, amount
                    bytes.extend([0x48 | term.spare >> 3, 0x81, 0xc0 | term.spare & 7]);
                    bytes.extend(amount.to_le_bytes());
                }
                // add qword ptr fs:[r + 8 n], s
                bytes.extend([0x64, 0x48 | (term.spare >> 3) << 2 | register >> 3, 0x01]);
                place(&mut bytes, register, (term.spare & 7) << 3, at);
            }
            None if amount != 0 => constant(&mut bytes, register, at, amount),
            None => {}
        }
    }
    bytes
}

/// `imul s, r, factor`, or `mov s, factor; imul s, r` where it is long.
fn multiply(bytes: &mut Vec<u8>, term: &Term, factor: i64) {
    let (spare, register) = (term.spare, term.register);
    let modrm = 0xc0 | (spare & 7) << 3 | register & 7;
    let prefix = 0x48 | (spare >> 3) << 2 | register >> 3;
    match i32::try_from(factor) {
        Ok(factor) => {
            bytes.extend([prefix, 0x69, modrm]);
            bytes.extend(factor.to_le_bytes());
        }
        Err(_) => {
            bytes.extend([0x48 | spare >> 3, 0xb8 | spare & 7]);
            bytes.extend(factor.to_le_bytes());
            bytes.extend([prefix, 0x0f, 0xaf, modrm]);
        }
    }
}

/// `add qword ptr fs:[r + at], amount`.
fn constant(bytes: &mut Vec<u8>, register: u8, at: u8, amount: i32) {
    bytes.extend([0x64, 0x48 | register >> 3]);
    match i8::try_from(amount) {
        Ok(amount) => {
            bytes.push(0x83);
            place(bytes, register, 0, at);
            bytes.push(amount.cast_unsigned());
        }
        Err(_) => {
            bytes.push(0x81);
            place(bytes, register, 0, at);
            bytes.extend(amount.to_le_bytes());
        }
    }
}

/// The operand `[r + at]`, beside another.
fn place(bytes: &mut Vec<u8>, register: u8, other: u8, at: u8) {
    match at {
        0 => bytes.push(other | register & 7),
        _ => bytes.extend([0x40 | other | register & 7, at]),
    }
}
