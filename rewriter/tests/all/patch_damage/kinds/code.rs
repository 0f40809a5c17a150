//! Damage to code: edited calls and windows, stubs, ways and trampolines.

use super::{CHANGED, Damage, call, flip, more};
use crate::patch_damage::Case;

/// Calls through the PLT (`direct`), or through the GOT.
pub(super) fn damages(case: &Case, direct: bool) -> Vec<Damage<'_>> {
    let new = &case.new;
    let call = call(case, direct);
    let at_call = case.plan.edits.iter().find(|e| {
        e.what == "call site"
            && e.bytes.len() as u32 == call.len
            && e.bytes[e.bytes.len() - 5] == 0xe8
    });
    let call_end = at_call.expect("an edited call").range().end as usize;
    let code = case.chunk("code").start;
    let stub = code + (call.stub.0 - case.plan.segments[1].va) as usize;
    let window = case.chunk("window").start;
    let trampoline = case.plan.detours[0].trampoline.0 - case.plan.segments[1].va;
    let trampoline = code + trampoline as usize;
    let way = i32::from_le_bytes(new[stub + 8..stub + 12].try_into().unwrap());
    let way = (stub + 12).wrapping_add_signed(way as isize);
    let edited = |at: u64| case.plan.edits.iter().any(|e| e.range().contains(&at));
    let neighbour = case.plan.edits.iter().filter(|e| e.what == "call site");
    let neighbour = neighbour
        .map(|e| e.range().end)
        .find(|&at| !edited(at))
        .unwrap() as usize;
    let mut all = kinds! {
        "call: displacement off by one" more(call_end - 4, 1) => "expected `lea r10";
        "call: leads to another stub" more(call_end - 4, 12) => "expected `lea r10";
        "call: opcode" flip(call_end - 5) => "expected `call to a stub`";
        "call: the byte behind it" flip(neighbour) => CHANGED;
        "stub: another site" more(stub + 3, 32) => "expected `lea r10";
        "stub: another register" flip(stub + 2) => "expected `lea r10";
        "stub: calls its way" flip(stub + 7) => "expected `jmp to a way`";
        "stub: another way" more(stub + 8, 32) => "expected `";
        "stub: into the middle of its way" more(stub + 8, 3) => "expected `mov r11";
        "way: another slot" more(way + 3, 8) => "expected `mov r11, qword ptr [0x";
        "way: tests another register" flip(way + 9) => "expected `test r11, r11`";
        "way: jumps elsewhere" flip(way + if direct { 16 } else { 12 }) => "expected `jmp r11`";
        "window: jump off by one" more(window + 1, -1) => "expected `jmp 0x";
        "window: its end" flip(window) => "expected `jmp 0x";
        "trampoline: steps over the red zone" flip(trampoline + 4) => "expected `lea rsp";
        "trampoline: saves flags" flip(trampoline + 10) => "expected `lahf";
        "trampoline: another site" more(trampoline + 30, 32) => "expected `a probe of the site";
    };
    if direct {
        all.push((
            "way: another original target",
            more(way + 12, 16),
            "expected `je 0x",
        ));
    } else {
        all.push((
            "way: another GOT slot",
            more(way + 17, 8),
            "expected `jmp qword ptr [0x",
        ));
        all.push(("way: past the thunk", flip(way + 11), "expected `je 0x"));
    }
    all
}
