//! Calls of functions with any number of arguments.

use core::arch::global_asm;

unsafe extern "C-unwind" {
    /// Calls `function(first, second, args[0], ..., args[argc - 1])`, as one calls variadic functions without floating-point
    /// arguments. Microtasks get the two numbers of their thread first.
    #[link_name = "ompfuse_invoke_microtask"]
    pub(crate) fn invoke(
        function: u64,
        first: u64,
        second: u64,
        argc: usize,
        args: *const u64,
    ) -> u64;
}

global_asm!(
    ".pushsection .text",
    ".globl ompfuse_invoke_microtask",
    ".hidden ompfuse_invoke_microtask",
    ".type ompfuse_invoke_microtask,@function",
    "ompfuse_invoke_microtask:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov r11, rdi", // microtask
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov r10, rcx", // argc
    "mov rax, r8",  // args
    // The arguments from the fifth on go to the stack, last one first; it stays aligned to 16.
    "cmp r10, 4",
    "jbe 2f",
    "test r10, 1",
    "jz 1f",
    "sub rsp, 8",
    "1:",
    "push [rax + r10 * 8 - 8]",
    "dec r10",
    "cmp r10, 4",
    "ja 1b",
    "2:",
    // Argument registers that are not used may hold anything, but memory behind the last argument is not read.
    "test r10, r10",
    "jz 3f",
    "mov rdx, [rax]",
    "cmp r10, 1",
    "je 3f",
    "mov rcx, [rax + 8]",
    "cmp r10, 2",
    "je 3f",
    "mov r8, [rax + 16]",
    "cmp r10, 3",
    "je 3f",
    "mov r9, [rax + 24]",
    "3:",
    "xor eax, eax",
    "call r11",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size ompfuse_invoke_microtask, . - ompfuse_invoke_microtask",
    ".popsection",
);
