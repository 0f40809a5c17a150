//! The clock that the runtime library records by.
#![allow(unsafe_code)] // no safe function reads it

use core::arch::x86_64::_rdtsc;

/// Time stamp counter.
pub fn tsc() -> u64 {
    // SAFETY: every x86-64 has the instruction. Where a process may not execute it (PR_SET_TSC), no program could be recorded.
    unsafe { _rdtsc() }
}
