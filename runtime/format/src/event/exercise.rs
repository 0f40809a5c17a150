//! Work that every hardware counter must notice.
#![allow(unsafe_code)] // no safe function empties a line of a cache

use core::arch::x86_64::{_mm_clflush, _mm_mfence, _rdtsc};
use core::hint::black_box;

/// Rounds of [`exercise`]: some 0.1 ms.
const ROUNDS: u64 = 512;

/// Causes some of every hardware event: branches that nothing can predict, accesses that no cache can serve.
pub fn exercise() {
    let mut lines = [0u64; 64];
    // Another sequence each time: predictors learn one of a few hundred branches that comes again.
    // SAFETY: every x86-64 has the instruction.
    let mut random = (0x9e37_79b9_7f4a_7c15 ^ unsafe { _rdtsc() }) | 1;
    for _ in 0..ROUNDS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let at = (random >> 20) as usize % lines.len();
        // SAFETY: an address of a local variable, whose contents stay; every x86-64 has the instructions.
        unsafe {
            _mm_clflush(lines.as_ptr().wrapping_add(at).cast());
            _mm_mfence();
        }
        // The black box keeps the compiler from doing without the branch.
        lines[at] = if random & 1 == 0 {
            black_box(lines[at])
        } else {
            lines[at].wrapping_add(1)
        };
    }
    black_box(lines);
}
