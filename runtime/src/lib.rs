//! The library that lives in the process of a patched program: it numbers execution units, reads counters and stores
//! records in shared mappings.
//!
//! * [`recording`]: its start, modules that come later; [`modules`]: what is patched.
//! * [`process`]: the threads that record, fork, the end; [`host`], [`kernel`], [`libraries`]: who is asked.
//! * [`arrival`]: where control arrives from the patched code; [`entry`]: what came with it, and the way on to the original target.
//! * [`probes`]: what each kind of probe does, in terms of
//! * [`thread`]: a thread's accounts (what is being charged) and frames (where in the program it is).
//! * [`program`], [`names`]: what the program itself asks for.
//! * [`control`]: what is changed while the program runs.
//! * [`buffer`], [`counters`] (simulated ones too), [`tls`], [`heap`], [`syscall`], [`undisturbed`], [`unwind`], [`python`]: the ground that
//!   these stand on.
//!
//! Rules of a probe: no allocation, no lock, no libc call that could set `errno`, no panic, no unwinding. Everything
//! that a thread owns is in `Cell`s behind shared references, because probes nest: a task that runs inside a barrier
//! finds the same thread that its caller is working on.
//!
//! Without `OMPFUSE_DIR` in the environment the library does nothing: the slots of the patched modules stay 0 and their
//! stubs lead to the original targets.

// No loop becomes a call of the C library's memset or memcpy: those use vector registers that an inline probe doesn't save
// (see [`arrival`]; a test looks at the machine code).
#![no_builtins]

mod arrival;
mod buffer;
mod control;
mod counters;
mod entry;
mod files;
mod heap;
mod host;
mod imports;
mod kernel;
mod libraries;
mod locks;
mod modules;
mod mpi;
mod names;
mod probes;
mod process;
mod program;
mod python;
mod recording;
mod syscall;
mod thread;
mod tls;
mod undisturbed;
mod unwind;

use core::sync::atomic::{AtomicBool, Ordering};

/// This library has been initialised.
static READY: AtomicBool = AtomicBool::new(false);

extern "C" fn constructor() {
    READY.store(true, Ordering::Relaxed);
    recording::attach();
}

extern "C" fn destructor() {
    process::finish();
}

/// The loader initialises a module whose start-up code knows this name (see [`modules`]).
// SAFETY: `void __gmon_start__(void)` belongs to profilers; the C library calls it and defines it nowhere but in
// programs that are built for gprof, whose definition comes first.
#[unsafe(no_mangle)]
extern "C" fn __gmon_start__() {
    // Libraries that don't need this one may be initialised before it. Until its own turn has come the loader may still
    // set its thread-local variables to their first values (glibc's update_tls_slotinfo, when a constructor calls dlopen).
    if READY.load(Ordering::Relaxed) {
        recording::attach();
    }
}

#[used]
// SAFETY: the section is the list of functions that the loader calls once, without arguments that we need.
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[used]
// SAFETY: the section is the list of functions that the loader calls at exit or dlclose.
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;
