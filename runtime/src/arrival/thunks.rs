//! The thunks: what saves the program's registers, hands over to a handler and restores them.

use super::{CALLS, INLINE, SHORT, handle_task};
use crate::thread::called::offsets;
use crate::thread::state;
use crate::{probes, tls};
use core::arch::global_asm;
use core::mem::offset_of;
use ompfuse_format::abi::{self, Probe, SiteDesc};

// At entry: rsp = return address; r10 = site. Pushes build a `Call`; after 8 + 1 of them rsp is a multiple of 16 where callers
// keep to the ABI. Those that don't may come as far as into libomp, which minds little.
global_asm!(
    ".pushsection .text",
    ".macro OMPFUSE_SAVE_CALL",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "push r10",
    "push rax",
    "push r9",
    "push r8",
    "push rcx",
    "push rdx",
    "push rsi",
    "push rdi",
    "mov rdi, rsp",
    "and rsp, -16",
    ".endm",
    ".globl ompfuse_call_thunk",
    ".hidden ompfuse_call_thunk",
    ".type ompfuse_call_thunk,@function",
    "ompfuse_call_thunk:",
    ".cfi_startproc",
    "endbr64",
    "OMPFUSE_SAVE_CALL",
    "movzx eax, byte ptr [r10 + {probe}]",
    "lea r11, [rip + {calls}]",
    "call [r11 + rax * 8]",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size ompfuse_call_thunk, . - ompfuse_call_thunk",
    // The same with room on the stack for a task's argument block: size in rcx, alignment in r8.
    ".globl ompfuse_task_thunk",
    ".hidden ompfuse_task_thunk",
    ".type ompfuse_task_thunk,@function",
    "ompfuse_task_thunk:",
    ".cfi_startproc",
    "endbr64",
    "OMPFUSE_SAVE_CALL",
    "xor esi, esi",
    "cmp rcx, {max_block}",
    "ja 1f",
    "cmp r8, {max_align}",
    "ja 1f",
    "lea rax, [rcx + r8 * 2 + {header} + 15]",
    "and rax, -16",
    "sub rsp, rax",
    "mov rsi, rsp",
    "1:",
    "call {task}",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size ompfuse_task_thunk, . - ompfuse_task_thunk",
    ".purgem OMPFUSE_SAVE_CALL",
    ".popsection",
    calls = sym CALLS,
    probe = const offset_of!(SiteDesc, probe),
    task = sym handle_task,
    max_block = const probes::tasks::MAX_STACK_BLOCK,
    max_align = const probes::tasks::MAX_STACK_ALIGN,
    header = const probes::tasks::HEADER_LEN,
);

// Called from a trampoline in the middle of a function: everything but the flags, rax, r10 and r11 (saved there, from rsp+8 on)
// may be live, vector registers included. The handler gets the registers in x86's numbering.
//
// This library is compiled for the baseline: its code uses the lower halves of vector registers, by instructions that leave the
// rest as it is, and what can be reached from here needs no more than the first four, for copies. So these are saved here, and a
// test looks whether that is all (tests/tests/e2e/probes.rs). What calls code of others does it through `protected`, which saves
// everything.
global_asm!(
    ".pushsection .text",
    ".globl ompfuse_inline_thunk",
    ".hidden ompfuse_inline_thunk",
    ".type ompfuse_inline_thunk,@function",
    "ompfuse_inline_thunk:",
    ".cfi_startproc",
    "endbr64",
    // Another iteration of the innermost loop, which is the same whatever else the program does: nothing but a count.
    "cmp byte ptr [r10 + {probe}], {iterate}",
    "jne 9f",
    "mov rax, qword ptr [rip + ompfuse_thread@GOTTPOFF]",
    "mov rax, qword ptr fs:[rax]",
    "cmp rax, {off}",
    "jbe 9f",
    "cmp dword ptr [rax - {state}], {busy}",
    "jne 9f",
    "lea r11, [rsp + 8 + 32 + 128 - 1]", // below what the stack pointer was, see `behind`
    "cmp r11, [rax + {floor}]",
    "ja 9f",
    "inc r11",
    "mov rax, [rax + {innermost}]",
    "cmp r10, [rax + {its_probe}]",
    "jne 9f",
    "cmp r11, [rax + {its_at}]",
    "jne 9f",
    "inc qword ptr [rax + {its_iterations}]",
    "ret",
    "9:",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    // An end, and entries and exits of functions and loops, need no registers but to keep them: those that a function may change.
    "movzx eax, byte ptr [r10 + {probe}]",
    "cmp eax, {end}",
    "je 2f",
    "cmp eax, {enter}",
    "jb 1f",
    "2:",
    "push rcx",
    "push rdx",
    "push rsi",
    "push rdi",
    "push r8",
    "push r9",
    "lea rdi, [rbp + 48 + 128]", // as below
    "mov rsi, r10",
    "sub rsp, 64",
    "and rsp, -16",
    "movaps [rsp], xmm0",
    "movaps [rsp + 16], xmm1",
    "movaps [rsp + 32], xmm2",
    "movaps [rsp + 48], xmm3",
    "lea r11, [rip + {short}]",
    "call [r11 + rax * 8]",
    "movaps xmm0, [rsp]",
    "movaps xmm1, [rsp + 16]",
    "movaps xmm2, [rsp + 32]",
    "movaps xmm3, [rsp + 48]",
    "mov rcx, [rbp - 8]",
    "mov rdx, [rbp - 16]",
    "mov rsi, [rbp - 24]",
    "mov rdi, [rbp - 32]",
    "mov r8, [rbp - 40]",
    "mov r9, [rbp - 48]",
    ".cfi_remember_state",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_restore_state",
    "1:",
    "push r15",
    "push r14",
    "push r13",
    "push r12",
    "push [rbp + 40]", // r11
    "push [rbp + 32]", // r10
    "push r9",
    "push r8",
    "push rdi",
    "push rsi",
    "push [rbp]", // rbp
    "push rsp",   // replaced below
    "push rbx",
    ".cfi_offset rbx, -120",
    "push rdx",
    "push rcx",
    "push [rbp + 24]", // rax
    // What rsp was: above the return address, the flags, rax, r10, r11 and the red zone.
    "lea rax, [rbp + 48 + 128]",
    "mov [rsp + 32], rax",
    "mov rbx, rsp",
    "mov rdi, rsp",
    "mov rsi, r10",
    "and rsp, -16",
    "sub rsp, 64",
    "movaps [rsp], xmm0",
    "movaps [rsp + 16], xmm1",
    "movaps [rsp + 32], xmm2",
    "movaps [rsp + 48], xmm3",
    "movzx eax, byte ptr [r10 + {probe}]",
    "lea r11, [rip + {inline}]",
    "call [r11 + rax * 8]",
    "movaps xmm0, [rsp]",
    "movaps xmm1, [rsp + 16]",
    "movaps xmm2, [rsp + 32]",
    "movaps xmm3, [rsp + 48]",
    "mov rsp, rbx",
    // The trampoline restores rax, r10 and r11; the handler has kept what a function has to keep.
    "mov rcx, [rsp + 8]",
    "mov rdx, [rsp + 16]",
    "mov rbx, [rsp + 24]",
    ".cfi_restore rbx",
    "mov rsi, [rsp + 48]",
    "mov rdi, [rsp + 56]",
    "mov r8, [rsp + 64]",
    "mov r9, [rsp + 72]",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size ompfuse_inline_thunk, . - ompfuse_inline_thunk",
    ".popsection",
    inline = sym INLINE,
    short = sym SHORT,
    end = const Probe::InlineEnd as u8,
    // No other inline probe has a higher number.
    enter = const Probe::FunctionEnter as u8,
    probe = const offset_of!(SiteDesc, probe),
    iterate = const Probe::LoopIterate as u8,
    off = const tls::OFF,
    state = const state::PAGE,
    busy = const state::BUSY,
    floor = const offsets::FLOOR,
    innermost = const offsets::INNERMOST,
    its_probe = const offsets::PROBE,
    its_at = const offsets::AT,
    its_iterations = const offsets::ITERATIONS,
);

unsafe extern "C" {
    #[link_name = "ompfuse_call_thunk"]
    fn call_thunk();
    #[link_name = "ompfuse_task_thunk"]
    fn task_thunk();
    #[link_name = "ompfuse_inline_thunk"]
    fn inline_thunk();
}

/// The addresses of the thunks, by the slots of a module that lead to them.
pub(crate) fn addresses() -> [(usize, u64); 3] {
    [
        (abi::SLOT_CALL, call_thunk as *const () as u64),
        (abi::SLOT_TASK, task_thunk as *const () as u64),
        (abi::SLOT_INLINE, inline_thunk as *const () as u64),
    ]
}
