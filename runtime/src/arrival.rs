//! Where control arrives from patched code: the thunks, and the handlers that they hand over to.
//!
//! A thunk saves what the original callee would have seen into a [`Call`] and hands it to a handler. It is reached as
//! the callee would be (see `ompfuse_format::abi`), so its caller's frame looks as always, and its unwind information
//! lets exceptions and debuggers through. `naked` functions would serve as well; `global_asm` lets us write the
//! call-frame information ourselves.

mod thunks;

pub(crate) use thunks::addresses;

use crate::entry::{Call, protected};
use crate::probes;
use crate::process::{current, known, may_begin};
use crate::thread::Thread;
use ompfuse_format::abi::{Probe, SiteDesc};

/// Number of the stack pointer among the registers.
const RSP: usize = 4;

/// What a thunk leads to, by the site's probe: so each handler knows what it is for.
macro_rules! by_probe {
    ($handler:ident: $type:ty) => {{
        let mut table = [$handler::<0> as $type; 256];
        by_probe!(table $handler 0x00 0x08 0x10 0x18 0x20 0x28 0x30 0x38 0x40 0x48 0x50 0x58);
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
    let mut number = 0x60;
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

type ShortHandler = unsafe extern "C" fn(usize, *const SiteDesc);
static SHORT: [ShortHandler; 256] = by_probe!(handle_inline_short: ShortHandler);

unsafe extern "C-unwind" fn handle_call<const PROBE: u8>(call: *const Call) -> u64 {
    // SAFETY: the thunk's own structure, on the stack below us.
    let call = unsafe { &*call };
    match current() {
        Some(thread) => {
            thread.look_below(call.stack_pointer());
            thread.watch_creation(call.stack_pointer(), PROBE);
            let probe = const { Probe::from_number(PROBE) };
            let result = probes::call(probe, thread, call);
            if matches!(
                probe,
                Some(
                    Probe::MutexExit
                        | Probe::ReduceEnd
                        | Probe::TaskCompleteIf0
                        | Probe::SerializedEnd
                        | Probe::ParallelEnd
                )
            ) {
                thread.leave_behind(call.stack_pointer());
            }
            thread.rest();
            result
        }
        None => call.forward_only(),
    }
}

unsafe extern "C-unwind" fn handle_task(call: *const Call, block: *mut u8) -> u64 {
    // SAFETY: the thunk's own structure, on the stack below us.
    let call = unsafe { &*call };
    match current() {
        Some(thread) => {
            thread.look_below(call.stack_pointer());
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
    if let Some(thread) = inline_thread() {
        thread.look_below(behind(registers[RSP] as usize));
        thread.watch_creation(registers[RSP] as usize, PROBE);
        let probe = const { Probe::from_number(PROBE) };
        probes::inline::inline(probe, thread, registers, site);
        thread.rest();
    }
}

/// As [`handle_inline`], of a probe that reads no register; `sp`: what the stack pointer was.
unsafe extern "C" fn handle_inline_short<const PROBE: u8>(sp: usize, site: *const SiteDesc) {
    // SAFETY: the trampoline's site.
    let site = unsafe { &*site };
    if let Some(thread) = inline_thread() {
        match const { Probe::from_number(PROBE) } {
            // Its return address is there now, in the place of whatever call was there.
            Some(Probe::FunctionEnter) => {
                thread.look_below(sp);
                thread.watch_creation(behind(sp), PROBE);
                probes::inline::enter(thread, site, sp);
            }
            Some(Probe::FunctionLeave) => {
                thread.look_below(behind(sp));
                thread.watch_creation(behind(sp), PROBE);
                probes::inline::leave(thread, site, sp);
            }
            Some(Probe::LoopIterate) => {
                thread.look_below(behind(sp));
                thread.watch_creation(behind(sp), PROBE);
                probes::inline::iterate(thread, site, sp);
            }
            Some(Probe::LoopLeave) => {
                thread.look_below(behind(sp));
                thread.watch_creation(behind(sp), PROBE);
                probes::inline::leave_loop(thread, site, sp);
            }
            _ => {
                thread.look_below(behind(sp));
                thread.watch_creation(sp, PROBE);
                probes::inline::end(thread, site);
            }
        }
        thread.rest();
    }
}

/// In the midst of a function the stack pointer may lead to its return address: the call goes on.
#[inline(always)]
fn behind(sp: usize) -> usize {
    sp.wrapping_sub(1)
}

/// The thread's state, where any register of the program may be live.
#[inline(always)]
fn inline_thread<'a>() -> Option<&'a Thread> {
    known().or_else(|| {
        // A thread's first probe, or one of a thread that doesn't record.
        if !may_begin() {
            return None;
        }
        protected(begin, 0);
        known()
    })
}

extern "C" fn begin(_: u64) -> u64 {
    current();
    0
}
