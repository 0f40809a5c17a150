//! Where control arrives from patched code, and how it goes on to the original target.
//!
//! A thunk saves what the original callee would have seen into a [`Call`] and hands it to a handler; it is reached as
//! the callee would be (see `ompfuse_format::abi`), so its caller's frame looks as always, and its unwind information
//! lets exceptions and debuggers through. `naked` functions would serve as well; `global_asm` lets us write the
//! call-frame information ourselves.

use crate::{probes, process};
use core::arch::global_asm;
use core::mem::offset_of;
use core::ptr::addr_of;
use ompfuse_format::abi::{Constants, FLAG_INDIRECT, FLAG_UNSIGNED, ModuleHeader, Probe, SiteDesc};
use ompfuse_format::record::site_ref;

// At entry: rsp = return address; r10 = site. Pushes build a `Call`; after 8 + 1 of them rsp is a multiple of 16.
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
    max_block = const MAX_STACK_BLOCK,
    max_align = const MAX_STACK_ALIGN,
    header = const probes::tasks::HEADER_LEN,
);

/// Largest task argument block that is copied on the stack; below the smallest usual guard distance.
pub(crate) const MAX_STACK_BLOCK: usize = 16 << 10;
/// Its largest alignment.
pub(crate) const MAX_STACK_ALIGN: usize = 4096;

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
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
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
    inline = sym INLINE,
    probe = const offset_of!(SiteDesc, probe),
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

unsafe extern "C" {
    #[link_name = "ompfuse_call_thunk"]
    pub(crate) fn call_thunk();
    #[link_name = "ompfuse_task_thunk"]
    pub(crate) fn task_thunk();
    #[link_name = "ompfuse_inline_thunk"]
    pub(crate) fn inline_thunk();
}

/// What the original callee would have seen; built by the thunks.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Call {
    regs: [u64; 6],
    rax: u64,
    site: *const SiteDesc,
    rbp: u64,
    return_address: u64,
    /// First of the stack arguments; the others follow.
    stack: [u64; 0],
}

impl Call {
    /// The site that control came from.
    #[inline(always)]
    pub(crate) fn site(&self) -> &'static SiteDesc {
        // SAFETY: the stub has put the address of its site into r10; sites stay as long as their module, whose code
        // is running.
        unsafe { &*self.site }
    }

    /// The program's stack pointer at the call: what it has on its stack lies above.
    #[inline(always)]
    pub(crate) fn stack_pointer(&self) -> usize {
        addr_of!(self.return_address) as usize
    }

    /// Argument by position.
    #[inline(always)]
    pub(crate) fn arg(&self, position: usize) -> u64 {
        match self.regs.get(position) {
            Some(&reg) => reg,
            // SAFETY: the pattern tables say that the target takes this argument, so its caller has put it there.
            None => unsafe { addr_of!(self.stack).cast::<u64>().add(position - 6).read() },
        }
    }

    /// The argument that the probe's kind documents as its `nth`, if the entry point has it.
    #[inline(always)]
    pub(crate) fn known(&self, nth: usize) -> Option<u64> {
        let position = self.site().args[nth];
        (position != ompfuse_format::abi::NO_ARG).then(|| self.arg(usize::from(position)))
    }

    /// Address of the original target.
    #[inline(always)]
    pub(crate) fn target(&self) -> usize {
        let site = self.site();
        let address = (addr_of!(site.target_rel) as usize).wrapping_add(site.target_rel as usize);
        if site.flags & FLAG_INDIRECT != 0 {
            // SAFETY: the module's GOT slot that the original instruction would have read.
            return unsafe { (address as *const usize).read() };
        }
        address
    }

    /// Calls the original target as the program did.
    #[inline(always)]
    pub(crate) fn forward(&self) -> u64 {
        // SAFETY: the arguments are the program's own.
        unsafe { self.forward_with(&self.regs) }
    }

    /// As [`Call::forward`], where nothing is recorded: apart, so that its registers needn't be saved where something is.
    #[inline(never)]
    pub(crate) fn forward_only(&self) -> u64 {
        self.forward()
    }

    /// The arguments in registers, to be changed and handed to [`Call::forward_with`].
    pub(crate) fn regs(&self) -> [u64; 6] {
        self.regs
    }

    /// Calls the original target with other register arguments; those on the stack are the program's.
    ///
    /// # Safety
    /// The arguments must mean to the target what the program's meant.
    #[inline(always)]
    pub(crate) unsafe fn forward_with(&self, r: &[u64; 6]) -> u64 {
        type F0 = unsafe extern "C-unwind" fn(u64, u64, u64, u64, u64, u64) -> u64;
        type F3 = unsafe extern "C-unwind" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u64;
        type F6 = unsafe extern "C-unwind" fn(
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
        ) -> u64;
        let target = self.target();
        let s = |n: usize| self.arg(6 + n);
        // SAFETY: the target is the function that the program called; integer arguments that it doesn't take are
        // ignored by it, and reading stack words above a call's arguments reads the caller's frame, which exists.
        unsafe {
            match self.site().nargs() {
                0..=6 => {
                    core::mem::transmute::<usize, F0>(target)(r[0], r[1], r[2], r[3], r[4], r[5])
                }
                7..=9 => {
                    let f = core::mem::transmute::<usize, F3>(target);
                    f(r[0], r[1], r[2], r[3], r[4], r[5], s(0), s(1), s(2))
                }
                _ => {
                    let f = core::mem::transmute::<usize, F6>(target);
                    f(
                        r[0],
                        r[1],
                        r[2],
                        r[3],
                        r[4],
                        r[5],
                        s(0),
                        s(1),
                        s(2),
                        s(3),
                        s(4),
                        s(5),
                    )
                }
            }
        }
    }
}

/// Number of a site's module in the process.
#[inline(always)]
fn module(site: &SiteDesc) -> u32 {
    let header = (addr_of!(site.header_rel) as usize).wrapping_add(site.header_rel as usize)
        as *const ModuleHeader;
    // SAFETY: the rewriter's relative address of the header, in the same module.
    unsafe { (*header).module }
}

/// The constants of a site's probe.
#[inline(always)]
pub(crate) fn constants(site: &SiteDesc) -> Constants {
    if site.constants_rel == 0 {
        return Constants::default();
    }
    let at = (addr_of!(site.constants_rel) as usize).wrapping_add(site.constants_rel as usize)
        as *const Constants;
    // SAFETY: the rewriter's relative address of this site's constants, in the same table.
    unsafe { at.read_unaligned() }
}

/// A site as records name it.
#[inline(always)]
pub(crate) fn this(site: &SiteDesc) -> u32 {
    site_ref(module(site), site.site)
}

/// The site that began a site's construct.
#[inline(always)]
pub(crate) fn region(site: &SiteDesc) -> u32 {
    site_ref(module(site), site.region)
}

/// A loop bound of the program, sign- or zero-extended from the site's width.
#[inline(always)]
pub(crate) fn bound(site: &SiteDesc, value: u64) -> i64 {
    match (site.width(), site.flags & FLAG_UNSIGNED != 0) {
        (4, false) => i64::from(value as i32),
        (4, true) => i64::from(value as u32),
        _ => value as i64,
    }
}

/// A loop bound behind a pointer of the program.
///
/// # Safety
/// The pointer must be the one that the program handed to the runtime for a value of the site's width.
#[inline(always)]
pub(crate) unsafe fn bound_at(site: &SiteDesc, pointer: u64) -> i64 {
    // SAFETY: the caller's promise.
    unsafe {
        if site.width() == 4 {
            bound(site, u64::from((pointer as *const u32).read_unaligned()))
        } else {
            (pointer as *const i64).read_unaligned()
        }
    }
}

/// Number of the stack pointer among the registers.
const RSP: usize = 4;

/// What a thunk leads to, by the site's probe: so each handler knows what it is for.
macro_rules! by_probe {
    ($handler:ident: $type:ty) => {{
        let mut table = [$handler::<0> as $type; 256];
        by_probe!(table $handler 0x00 0x08 0x10 0x18 0x20 0x28 0x30 0x38 0x40 0x48);
        table
    }};
    ($table:ident $handler:ident $($first:literal)*) => {
        $(
            $table[$first] = $handler::<$first>;
            $table[$first + 1] = $handler::<{ $first + 1 }>;
            $table[$first + 2] = $handler::<{ $first + 2 }>;
            $table[$first + 3] = $handler::<{ $first + 3 }>;
            $table[$first + 4] = $handler::<{ $first + 4 }>;
            $table[$first + 5] = $handler::<{ $first + 5 }>;
            $table[$first + 6] = $handler::<{ $first + 6 }>;
            $table[$first + 7] = $handler::<{ $first + 7 }>;
        )*
    };
}

const _: () = {
    let mut number = 0x50;
    while number < 256 {
        assert!(
            Probe::from_number(number as u8).is_none(),
            "a probe without handler"
        );
        number += 1;
    }
};

type CallHandler = unsafe extern "C-unwind" fn(*const Call) -> u64;
static CALLS: [CallHandler; 256] = by_probe!(handle_call: CallHandler);

type InlineHandler = unsafe extern "C" fn(*const [u64; 16], *const SiteDesc);
static INLINE: [InlineHandler; 256] = by_probe!(handle_inline: InlineHandler);

unsafe extern "C-unwind" fn handle_call<const PROBE: u8>(call: *const Call) -> u64 {
    // SAFETY: the thunk's own structure, on the stack below us.
    let call = unsafe { &*call };
    match process::current() {
        Some(thread) => {
            thread.recover(call.stack_pointer());
            thread.watch_creation(call.stack_pointer(), PROBE);
            let result = probes::call(const { Probe::from_number(PROBE) }, thread, call);
            thread.rest();
            result
        }
        None => call.forward_only(),
    }
}

unsafe extern "C-unwind" fn handle_task(call: *const Call, block: *mut u8) -> u64 {
    // SAFETY: the thunk's own structure, on the stack below us.
    let call = unsafe { &*call };
    match process::current() {
        Some(thread) => {
            thread.recover(call.stack_pointer());
            thread.watch_creation(call.stack_pointer(), call.site().probe);
            let result = probes::task(thread, call, block);
            thread.rest();
            result
        }
        None => call.forward_only(),
    }
}

unsafe extern "C" fn handle_inline<const PROBE: u8>(
    registers: *const [u64; 16],
    site: *const SiteDesc,
) {
    // SAFETY: the thunk's own array; the trampoline's site.
    let (registers, site) = unsafe { (&*registers, &*site) };
    let thread = process::known().or_else(|| {
        // A thread's first probe, or one of a thread that doesn't record.
        if !process::may_begin() {
            return None;
        }
        protected(begin, 0);
        process::known()
    });
    if let Some(thread) = thread {
        thread.recover(registers[RSP] as usize);
        thread.watch_creation(registers[RSP] as usize, PROBE);
        let probe = const { Probe::from_number(PROBE) };
        probes::inline::inline(probe, thread, registers, site);
        thread.rest();
    }
}

extern "C" fn begin(_: u64) -> u64 {
    process::current();
    0
}
