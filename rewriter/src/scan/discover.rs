//! Functions that neither symbols nor unwind information tell: in stripped programs of flang's, functions that can't throw
//! have none. Only what is certain to be a function's beginning counts: what an instruction calls that is executed if its
//! function is, what a call hands over to the runtime as an outlined function, and `main`. The rest stays unknown.

use super::Module;
use super::bytes::u64_at;
use super::calls;
use super::cfg::Body;
use super::decode::Scratch;
use super::decode::made;
use super::image::Kind;
use super::search::{self, Hit};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind, Register};
use std::collections::BTreeSet;

/// Bytes between two instructions of a function that compilers fill, to align the second; more are another function's.
const MAX_FILLING: u64 = 15;

/// Bytes that do nothing in front of a loop's first instruction, which newer compilers align to a line of the cache.
const LINE: u64 = 64;

/// The C library is started within so many instructions.
const MAX_START: usize = 32;

/// Compilers align functions to multiples of so many bytes.
const ALIGNMENT: u64 = 16;

/// Functions of functions of functions are looked for so often.
const MAX_ROUNDS: usize = 64;

/// Adds functions that known functions lead to, if some candidate is in none. Those of others are not decoded for that.
pub(crate) fn extend(module: &mut Module<'_>, candidates: &[u64]) {
    let known = |va: &u64| module.functions.at(*va).is_some();
    if candidates.iter().all(known) {
        return;
    }
    let mut scratch = Scratch::default();
    let mut found: BTreeSet<u64> = BTreeSet::new();
    for function in leading(module, candidates) {
        let body = Body::build(module, &mut scratch, function, &[]);
        found.extend(beginnings(module, &body));
        scratch.recycle(body);
    }
    found.extend(main_function(module));
    for _ in 0..MAX_ROUNDS {
        found.retain(|&va| module.functions.at(va).is_none());
        if found.is_empty() {
            return;
        }
        let new = std::mem::take(&mut found);
        module.functions.add(&module.image, &new);
        for &start in &new {
            let Some(function) = module.functions.at(start) else {
                continue;
            };
            // What was found out of functions may have changed.
            let mut scratch = Scratch::default();
            let body = Body::build(module, &mut scratch, function, &[]);
            module.functions.cut(function, end(module, &body, start));
            scratch.recycle(body);
            // What was decoded behind the end is none of it.
            let body = Body::build(module, &mut scratch, function, &[]);
            found.extend(beginnings(module, &body));
        }
    }
}

/// The address of `main`, which the program's first instructions hand to the C library.
fn main_function(module: &Module<'_>) -> Option<u64> {
    const ENTRY: usize = 24;
    let entry = u64_at(module.image.bytes, ENTRY)?;
    let starts = |&(_, name): &&(u64, &str)| name.split('@').next() == Some("__libc_start_main");
    let slot = module.dynamic.slots.iter().find(starts)?.0;
    let code = module
        .image
        .rest(entry)
        .filter(|_| module.image.is_code(entry))?;
    let mut decoder = Decoder::with_ip(64, code, entry, DecoderOptions::NONE);
    let mut first = None;
    for insn in decoder.iter().take(MAX_START) {
        let calls = insn.flow_control() == FlowControl::IndirectCall;
        if calls && insn.is_ip_rel_memory_operand() && insn.ip_rel_memory_address() == slot {
            return first.filter(|&va| is_unknown(module, va));
        }
        if insn.is_invalid() || insn.flow_control() != FlowControl::Next {
            return None;
        }
        if insn.op0_kind() == OpKind::Register
            && insn.op0_register().full_register() == Register::RDI
        {
            let absolute = module.image.kind == Kind::Executable;
            first = made::made(&insn, absolute);
        }
    }
    None
}

/// Numbers of functions that call the runtime, or something that is in no known function.
fn leading(module: &Module<'_>, candidates: &[u64]) -> BTreeSet<usize> {
    let functions = &module.functions;
    let mut out: BTreeSet<usize> = candidates
        .iter()
        .filter_map(|&va| functions.at(va))
        .collect();
    for (va, code) in module.image.code() {
        let leads = |opcode: usize, hit: Hit| {
            let here = va.wrapping_add((hit.at - opcode) as u64);
            let calls = code.get(hit.at - opcode) == Some(&0xe8);
            (calls && is_unknown(module, hit.to)).then(|| functions.at(here))?
        };
        out.extend(search::branches(code, va, leads));
    }
    out.retain(|&f| !functions.get(f).fragment);
    out
}

/// Whether an address may be that of a function that isn't known.
fn is_unknown(module: &Module<'_>, va: u64) -> bool {
    module.image.is_code(va)
        && module.functions.at(va).is_none()
        && !module.entries.stubs.contains(&va)
        && !module.entries.is_target(va)
}

/// Where unknown functions begin that a function calls, or hands over to the runtime.
fn beginnings(module: &Module<'_>, body: &Body) -> Vec<u64> {
    // Behind an unknown instruction nothing is known.
    if body.unknown.is_some() {
        return Vec::new();
    }
    let called = body
        .insns
        .iter()
        .filter(|insn| {
            insn.flow_control() == FlowControl::Call && insn.op0_kind() == OpKind::NearBranch64
        })
        .map(|insn| insn.near_branch_target());
    let handed = calls::handed_over(module, body);
    let mut all: Vec<u64> = called.chain(handed).collect();
    // A call of what the function itself executes pushes an address, as thunks do.
    all.retain(|&va| is_unknown(module, va) && body.insn_at(va).is_none());
    all
}

/// Where the code ends that a function begins with: at the first gap that no compiler leaves in a function, or behind a call
/// that doesn't come back. Such a call is followed by filling to which no branch leads, and another function begins there.
fn end(module: &Module<'_>, body: &Body, start: u64) -> u64 {
    let mut end = start;
    // Behind the last call, if nothing but filling followed.
    let mut called = None;
    let first = body.insns.partition_point(|insn| insn.ip() < start);
    for insn in &body.insns[first..] {
        let gap = insn.ip().saturating_sub(end);
        if gap > MAX_FILLING && !(gap < LINE && does_nothing(module, end, insn.ip())) {
            break;
        }
        if let Some(behind) = called {
            let filled = insn.ip() > behind && insn.ip().is_multiple_of(ALIGNMENT);
            if filled && !body.targets.contains(&insn.ip()) {
                return behind;
            }
        }
        end = end.max(insn.next_ip());
        called = match insn.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => Some(insn.next_ip()),
            _ => called.filter(|_| insn.mnemonic() == Mnemonic::Nop),
        };
    }
    end
}

/// Whether there is nothing but filling between two addresses.
fn does_nothing(module: &Module<'_>, from: u64, to: u64) -> bool {
    let code = (module.image.rest(from)).and_then(|c| c.get(..usize::try_from(to - from).ok()?));
    code.is_some_and(|code| {
        let mut decoder = Decoder::with_ip(64, code, from, DecoderOptions::NONE);
        decoder.iter().all(|insn| insn.mnemonic() == Mnemonic::Nop)
    })
}
