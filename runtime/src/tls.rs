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
    ".globl ompfuse_count",
    ".hidden ompfuse_count",
    ".type ompfuse_count,@object",
    ".size ompfuse_count,48",
    "ompfuse_count:",
    ".zero 48",
    ".popsection",
    ".pushsection .tdata,\"awT\",@progbits",
    ".globl ompfuse_unknown",
    ".hidden ompfuse_unknown",
    ".type ompfuse_unknown,@object",
    ".size ompfuse_unknown,4",
    ".p2align 2",
    "ompfuse_unknown:",
    ".long -1",
    ".popsection",
);

/// The word of a thread that does not record (no space, or finished).
pub(crate) const OFF: usize = 1;

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

const _: () = assert!(ompfuse_format::event::exact::COUNT * 8 == 48);

/// Where in a thread's TLS the words are in which patched code counts its events, each in its own.
pub(crate) fn count() -> usize {
    let offset: usize;
    // SAFETY: reads the offset that the loader has chosen.
    unsafe {
        asm!("mov {v}, qword ptr [rip + ompfuse_count@GOTTPOFF]",
             v = out(reg) offset, options(nostack, preserves_flags, readonly));
    }
    offset
}

/// Where in a thread's TLS a half word is that is -1 for ever; for [`word_at`].
pub(crate) fn unknown() -> usize {
    let offset: usize;
    // SAFETY: reads the offset that the loader has chosen.
    unsafe {
        asm!("mov {v}, qword ptr [rip + ompfuse_unknown@GOTTPOFF]",
             v = out(reg) offset, options(nostack, preserves_flags, readonly));
    }
    offset
}

/// What offsets in this thread's TLS count from.
pub(crate) fn base() -> usize {
    let base: usize;
    // SAFETY: by the ABI of x86-64 the first word there is its own address.
    unsafe {
        asm!("mov {v}, qword ptr fs:[0]", v = out(reg) base,
             options(nostack, preserves_flags, readonly));
    }
    base
}

/// A half word of this thread's TLS.
///
/// # Safety
/// Of static TLS, there must be one at this offset.
#[inline(always)]
pub(crate) unsafe fn word_at(offset: usize) -> u32 {
    let value: u32;
    // SAFETY: the caller's promise; the kernel may change it at any moment, so it is read here and now.
    unsafe {
        asm!("mov {v:e}, dword ptr fs:[{at}]", v = out(reg) value, at = in(reg) offset,
             options(nostack, preserves_flags, readonly));
    }
    value
}

/// About the stack pointer of this thread.
#[inline(never)]
pub(crate) fn stack_pointer() -> usize {
    let object = 0u8;
    core::hint::black_box(&raw const object) as usize
}
