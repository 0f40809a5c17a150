//! The thread pointer of a probe: one word of initial-exec TLS, a single load away (counters.md: 2.8 ns a call against
//! 7.0 with `__tls_get_addr`, which stable Rust's `thread_local!` uses in a shared library).

use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".globl ompfuse_thread",
    ".hidden ompfuse_thread",
    ".type ompfuse_thread,@object",
    ".size ompfuse_thread,8",
    ".p2align 3",
    "ompfuse_thread:",
    ".zero 8",
    ".popsection",
);

/// The word of this thread, 0 at first.
#[inline(always)]
pub(crate) fn get() -> usize {
    let value: usize;
    // SAFETY: reads this thread's own word of static TLS.
    unsafe {
        asm!("mov {v}, qword ptr [rip + ompfuse_thread@GOTTPOFF]", "mov {v}, qword ptr fs:[{v}]",
             v = out(reg) value, options(nostack, preserves_flags, readonly));
    }
    value
}

/// Sets the word of this thread.
#[inline(always)]
pub(crate) fn set(value: usize) {
    // SAFETY: writes this thread's own word of static TLS.
    unsafe {
        asm!("mov {t}, qword ptr [rip + ompfuse_thread@GOTTPOFF]", "mov qword ptr fs:[{t}], {v}",
             t = out(reg) _, v = in(reg) value, options(nostack, preserves_flags));
    }
}

/// Base of this thread's TLS (`fs:0` points to itself, psABI).
#[inline(always)]
pub(crate) fn base() -> usize {
    let value: usize;
    // SAFETY: the psABI reserves the first word for this.
    unsafe {
        asm!("mov {v}, qword ptr fs:[0]", v = out(reg) value, options(nostack, preserves_flags, readonly));
    }
    value
}
