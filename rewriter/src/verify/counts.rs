//! The code that adds a constant to a thread's count of instructions.

use super::code::Checker;
use super::cursor::{Cursor, mismatch};
use super::error::VerifyError;
use super::tables::{IncrementEntry, TermEntry};
use super::unwind::Place;
use ompfuse_format::abi::SLOT_COUNT;

/// Registers that may be free, by x86 number.
const NAMES: [&str; 12] = [
    "rax", "rcx", "rdx", "", "", "", "rsi", "rdi", "r8", "r9", "", "r11",
];
/// Places of constants: before an instruction, behind a jump, and where one leads.
pub(super) const BEFORE: u64 = 0;
pub(super) const BEHIND: u64 = 1;
pub(super) const TAKEN: u64 = 2;
/// rcx, where none is free.
const SAVED: u8 = 1;

impl Checker<'_, '_, '_> {
    /// The constant that belongs to a place of the instruction at `site`, if the table has one.
    pub(super) fn increment_at(&self, site: u64, place: u64) -> Option<IncrementEntry> {
        let all = &self.tables.increments;
        let n = all.binary_search_by_key(&(site, place), |i| (i.at, i.place));
        n.ok().map(|n| all[n])
    }

    /// A constant is added at `to`, and nothing else is done. Returns the address behind it.
    pub(super) fn increment(&mut self, entry: IncrementEntry, to: u64) -> Result<u64, VerifyError> {
        let site = entry.at;
        self.found.increments += 1;
        let slot = self.tables.slot(SLOT_COUNT);
        let mut marks = vec![(to, 0)];
        let mut code = self.cursor(to);
        match entry.scratch {
            Some(register) => {
                let both = entry
                    .term
                    .map_or([register; 2], |term| [term.spare, register]);
                let kept = &both[..entry.term.map_or(0, |term| term.kept)];
                let mut depth = 128;
                if !kept.is_empty() {
                    code.expect(&[0x48, 0x8d, 0x64, 0x24, 0x80], "lea rsp, [rsp - 0x80]")?;
                    marks.push((code.at, depth));
                }
                for &register in kept {
                    stacked(&mut code, 0x50, "push", register)?;
                    depth += 8;
                    marks.push((code.at, depth));
                }
                add(&mut code, &entry, register, slot)?;
                for &register in kept.iter().rev() {
                    stacked(&mut code, 0x58, "pop", register)?;
                    depth -= 8;
                    marks.push((code.at, depth));
                }
                if !kept.is_empty() {
                    let back = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
                    code.expect(&back, "lea rsp, [rsp + 0x80]")?;
                }
            }
            None => {
                code.expect(&[0x48, 0x8d, 0x64, 0x24, 0x80], "lea rsp, [rsp - 0x80]")?;
                marks.push((code.at, 128));
                code.expect(&[0x51], "push rcx")?;
                marks.push((code.at, 136));
                code.expect(&[0x50], "push rax")?;
                marks.push((code.at, 144));
                code.expect(&[0x9f], "lahf")?;
                code.expect(&[0x0f, 0x90, 0xc0], "seto al")?;
                add(&mut code, &entry, SAVED, slot)?;
                code.expect(&[0x04, 0x7f], "add al, 0x7f")?;
                code.expect(&[0x9e], "sahf")?;
                code.expect(&[0x58], "pop rax")?;
                marks.push((code.at, 136));
                code.expect(&[0x59], "pop rcx")?;
                marks.push((code.at, 128));
                let back = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
                code.expect(&back, "lea rsp, [rsp + 0x80]")?;
            }
        }
        let behind = code.at;
        let place = |(at, depth)| Place {
            at,
            origin: Some(site),
            depth,
        };
        self.found.places.extend(marks.into_iter().map(place));
        Ok(behind)
    }
}

/// A register is pushed or popped.
fn stacked(
    code: &mut Cursor<'_, '_, '_>,
    opcode: u8,
    verb: &str,
    register: u8,
) -> Result<(), VerifyError> {
    let name = ALL_NAMES.get(usize::from(register)).copied();
    let name = name.ok_or_else(|| mismatch(code.at, "a register", "none"))?;
    let low = opcode + register % 8;
    let bytes = [0x41, low];
    let bytes = &bytes[usize::from(register < 8)..];
    code.expect(bytes, &format!("{verb} {name}")).map(|_| ())
}

/// Adds to what the slot leads to, if it isn't 0.
fn add(
    code: &mut Cursor<'_, '_, '_>,
    entry: &IncrementEntry,
    register: u8,
    slot: u64,
) -> Result<(), VerifyError> {
    let name = NAMES.get(usize::from(register)).filter(|n| !n.is_empty());
    let name = name.ok_or_else(|| mismatch(code.at, "a register that may be free", "another"))?;
    let (high, low) = (register / 8, register % 8);
    let load = [0x48 + 4 * high, 0x8b, 0x05 + 8 * low];
    code.expect_at(&load, &format!("mov {name}, qword ptr [@]"), slot)?;
    let test = [0x48 + 5 * high, 0x85, 0xc0 + 9 * low];
    code.expect(&test, &format!("test {name}, {name}"))?;
    // To each event's word, of which the first one is where the slot leads.
    let mut expected: Vec<(Vec<u8>, String)> = Vec::new();
    for (n, &amount) in entry.amounts.iter().enumerate() {
        let place = 8 * n as u8;
        match entry.term.filter(|term| term.factors[n] != 0) {
            Some(term) => expected.extend(multiples(register, place, amount, &term, n, code.at)?),
            None if amount != 0 => expected.push(addition(register, name, place, amount)),
            None => {}
        }
    }
    let len: usize = expected.iter().map(|(bytes, _)| bytes.len()).sum();
    match len {
        0..=127 => {
            let behind = code.at + 2 + len as u64;
            code.expect_short(&[0x74, len as u8], "je @", behind)?;
        }
        _ => {
            let behind = code.at + 6 + len as u64;
            code.expect_at(&[0x0f, 0x84], "je @", behind)?;
        }
    }
    for (bytes, shape) in expected {
        let insn = code.next()?;
        if insn.bytes() != bytes || !insn.shape().starts_with(shape.as_bytes()) {
            return Err(mismatch(insn.at, &shape, &insn.text()));
        }
    }
    Ok(())
}

/// By x86 number.
const ALL_NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// The addition of a multiple of a register, and of an amount, to the word at a place, and how the instructions read.
fn multiples(
    base: u8,
    place: u8,
    amount: i32,
    term: &TermEntry,
    event: usize,
    at: u64,
) -> Result<Vec<(Vec<u8>, String)>, VerifyError> {
    let name = |register: u8| ALL_NAMES.get(usize::from(register)).copied();
    let odd = || mismatch(at, "two free registers and another", "others");
    let is_free = NAMES
        .get(usize::from(term.spare))
        .is_some_and(|n| !n.is_empty());
    let three = [base, term.spare, term.register];
    let is_own = |n: usize| three.iter().filter(|&&r| r == three[n]).count() == 1;
    if !is_free || term.register == 4 || !(0..3).all(is_own) {
        return Err(odd());
    }
    let [Some(to), Some(spare), Some(from)] = three.map(name) else {
        return Err(odd());
    };
    let (spare_high, spare_low) = (term.spare / 8, term.spare % 8);
    let (from_high, from_low) = (term.register / 8, term.register % 8);
    let factor = term.factors[event];
    let mut out = Vec::new();
    let mut push = |parts: &[&[u8]], shape: String| out.push((parts.concat(), shape));
    let wide = 0x48 + 4 * spare_high + from_high;
    let both = 0xc0 + 8 * spare_low + from_low;
    if factor == i64::from(factor as i32) {
        let number = (factor as i32).to_le_bytes();
        push(
            &[&[wide, 0x69, both], &number],
            format!("imul {spare}, {from}, "),
        );
    } else {
        let number = factor.to_le_bytes();
        let head = [0x48 + spare_high, 0xb8 + spare_low];
        push(&[&head, &number], format!("movabs {spare}, "));
        push(
            &[&[wide, 0x0f, 0xaf, both]],
            format!("imul {spare}, {from}"),
        );
    }
    if amount != 0 {
        let head = [0x48 + spare_high, 0x81, 0xc0 + spare_low];
        push(&[&head, &amount.to_le_bytes()], format!("add {spare}, "));
    }
    let (to_high, to_low) = (base / 8, base % 8);
    let head = [0x64, 0x48 + 4 * spare_high + to_high, 0x01];
    match place {
        0 => push(
            &[&head, &[8 * spare_low + to_low]],
            format!("add qword ptr fs:[{to}], {spare}"),
        ),
        place => push(
            &[&head, &[0x40 + 8 * spare_low + to_low, place]],
            format!("add qword ptr fs:[{to} + {}], {spare}", hexadecimal(place)),
        ),
    }
    Ok(out)
}

/// The addition of an amount to the word at a place, and how it reads up to the amount.
fn addition(register: u8, name: &str, place: u8, amount: i32) -> (Vec<u8>, String) {
    let (high, low) = (register / 8, register % 8);
    let (operation, number) = match amount {
        -128..=127 => (0x83, vec![amount as u8]),
        amount => (0x81, amount.to_le_bytes().to_vec()),
    };
    let mut bytes = vec![0x64, 0x48 + high, operation];
    let shape = match place {
        0 => {
            bytes.push(low);
            format!("add qword ptr fs:[{name}], ")
        }
        place => {
            bytes.extend([0x40 + low, place]);
            format!("add qword ptr fs:[{name} + {}], ", hexadecimal(place))
        }
    };
    bytes.extend(number);
    (bytes, shape)
}

/// As the disassembler has it.
fn hexadecimal(number: u8) -> String {
    match number {
        0..=9 => number.to_string(),
        _ => format!("{number:#x}"),
    }
}
