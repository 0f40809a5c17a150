//! Calls of code of others from where any register of the program may be live.

use core::arch::global_asm;

global_asm!(
    ".pushsection .text",
    // Calls rdi(rsi) with all vector state saved around it; returns what that returns.
    ".globl ompfuse_protected",
    ".hidden ompfuse_protected",
    ".type ompfuse_protected,@function",
    "ompfuse_protected:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "push rbx",
    ".cfi_offset rbx, -24",
    "sub rsp, 8",
    "mov rbx, rdi",
    "and rsp, -64",
    "sub rsp, {area}",
    "cmp byte ptr [rip + ompfuse_has_xsave], 0",
    "je 1f",
    "xor eax, eax",
    "lea rdi, [rsp + 512]",
    "mov ecx, 8",
    "rep stosq", // the header of the area must be zero but for what xsave writes
    "mov eax, {components}",
    "xor edx, edx",
    "xsave64 [rsp]",
    "mov rdi, rsi",
    "call rbx",
    "mov rbx, rax",
    "mov eax, {components}",
    "xor edx, edx",
    "xrstor64 [rsp]",
    "jmp 2f",
    "1:",
    "fxsave64 [rsp]",
    "mov rdi, rsi",
    "call rbx",
    "mov rbx, rax",
    "fxrstor64 [rsp]",
    "2:",
    "mov rax, rbx",
    "mov rbx, [rbp - 8]",
    ".cfi_restore rbx",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size ompfuse_protected, . - ompfuse_protected",
    ".popsection",
    ".pushsection .data",
    ".globl ompfuse_has_xsave",
    ".hidden ompfuse_has_xsave",
    "ompfuse_has_xsave: .byte 0",
    ".popsection",
    area = const XSAVE_AREA,
    components = const XSAVE_COMPONENTS,
);

/// x87, SSE, AVX, opmask, ZMM_Hi256, Hi16_ZMM: what library code may change. (AMX tiles it doesn't.)
const XSAVE_COMPONENTS: u32 = 0xe7;
/// Standard-format area of these components: at most 2,688 bytes on any processor; a multiple of 64.
const XSAVE_AREA: usize = 2752;

/// Calls code of others (the C library, an OpenMP runtime) from an inline probe, where any register of the program may be
/// live.
#[cold]
#[inline(never)]
pub(crate) fn protected(function: extern "C" fn(u64) -> u64, argument: u64) -> u64 {
    unsafe extern "C" {
        fn ompfuse_protected(function: extern "C" fn(u64) -> u64, argument: u64) -> u64;
    }
    // SAFETY: it does nothing but call the function, on the same stack.
    unsafe { ompfuse_protected(function, argument) }
}

/// Finds out how vector state is saved. Before any slot is filled.
pub(crate) fn prepare() {
    // SAFETY: every x86-64 has cpuid leaf 1.
    let leaf = core::arch::x86_64::__cpuid(1);
    let os_xsave = leaf.ecx >> 27 & 1;
    unsafe extern "C" {
        static mut ompfuse_has_xsave: u8;
    }
    // SAFETY: the byte above; nobody reads it yet.
    unsafe { (&raw mut ompfuse_has_xsave).write(os_xsave as u8) };
}
