//! Who has called: the chain of return addresses above a probe, by the program's unwind information.
//!
//! What a return address says of its caller's frame never changes, so each thread remembers it ([`Rules`]); the unwind information
//! is looked at when an address is met first. Then it is read where the loader has mapped it: glibc 2.35 and later tell its place
//! without a lock (`_dl_find_object`). Only two registers are followed, the stack pointer and the frame pointer, since compilers
//! describe frames by these. Where they don't, the chain ends.
//!
//! Crate `framehop` is made for profilers that look at threads from outside: without unwind information it goes on by frame
//! pointers and guesses, and it must be told of every module that comes and goes. In the process neither will do.
//!
//! Memory is read only between the stack pointer and the end of the thread's stack, and each frame lies above the one before.

mod object;
mod rule;

pub(crate) use object::{build_id, find, prepare, program};

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::sync::atomic::{Ordering, compiler_fence};
use ompfuse_format::record::context::{ChainEnd, MAX_DEPTH};
use rule::{Base, Kept, Rule};

/// Where a chain begins: a call of the program's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// Where the call returns to.
    pub(crate) address: u64,
    /// The stack pointer behind the return.
    pub(crate) sp: usize,
    /// The frame pointer's register.
    pub(crate) bp: usize,
}

/// Return addresses, innermost first.
pub(crate) struct Chain {
    addresses: [MaybeUninit<u64>; MAX_DEPTH],
    len: usize,
    pub(crate) end: ChainEnd,
    /// Of all addresses and the end; never 0.
    pub(crate) hash: u64,
    /// It came to the code before which it was to end.
    pub(crate) is_met: bool,
}

impl Chain {
    /// The addresses.
    pub(crate) fn addresses(&self) -> &[u64] {
        // SAFETY: `walk` has written so many, no more than there is room for.
        unsafe { core::slice::from_raw_parts(self.addresses.as_ptr().cast(), self.len) }
    }

    /// How many more there is room for.
    pub(crate) fn room(&self) -> usize {
        MAX_DEPTH - self.len
    }

    /// Continues it outwards, if there is room.
    pub(crate) fn push(&mut self, address: u64) {
        if let Some(place) = self.addresses.get_mut(self.len) {
            place.write(address);
            self.len += 1;
        }
    }

    /// It has another end, and another hash.
    pub(crate) fn set(&mut self, hash: u64, end: ChainEnd) {
        self.end = end;
        self.hash = (hash << 2 | end as u64).max(1);
    }
}

/// Addresses whose rules are remembered; a power of two.
const PLACES: usize = 1024;

/// A thread's rules, by return address.
#[derive(Debug)]
pub(crate) struct Rules([Entry; PLACES]);

#[derive(Debug)]
struct Entry {
    rule: Cell<Rule>,
    address: Cell<u64>,
}

impl Rules {
    /// What to do at a return address.
    #[inline(always)]
    fn get(&self, address: u64) -> Rule {
        let mixed = address ^ address >> 10 ^ address >> 20;
        // SAFETY: less than PLACES.
        let entry = unsafe { self.0.get_unchecked(mixed as usize % PLACES) };
        // A signal handler may take the place for another address: never between the rule and its address.
        let rule = entry.rule.get();
        compiler_fence(Ordering::SeqCst);
        match entry.address.get() == address {
            true => rule,
            false => look_up(entry, address),
        }
    }

    /// Forgets all: addresses may mean other code now.
    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|e| e.address.set(0));
    }
}

/// An address that isn't remembered.
#[cold]
#[inline(never)]
fn look_up(entry: &Entry, address: u64) -> Rule {
    let rule = rule::of(address);
    entry.address.set(0);
    compiler_fence(Ordering::SeqCst);
    entry.rule.set(rule);
    compiler_fence(Ordering::SeqCst);
    entry.address.set(address);
    rule
}

/// The chain of return addresses, at most `depth` (which is at most [`MAX_DEPTH`]). `stack`: lowest address and length of the
/// thread's stack. Code of this library ends it: what is below belongs to the construct around. So does code at an address in `before`, from
/// which on others know the callers.
#[inline(always)]
pub(crate) fn walk(
    rules: &Rules,
    (low, len): (usize, usize),
    caller: &Caller,
    depth: usize,
    before: &Range<u64>,
) -> Chain {
    let mut chain = Chain {
        addresses: [const { MaybeUninit::uninit() }; MAX_DEPTH],
        len: 0,
        end: ChainEnd::Whole,
        hash: 0,
        is_met: false,
    };
    let width = before.end - before.start;
    let depth = depth.min(MAX_DEPTH);
    let high = low.wrapping_add(len);
    let Caller {
        mut address,
        mut sp,
        mut bp,
    } = *caller;
    // SAFETY (of the reads below): aligned, and between the stack pointer and the stack's end, which is mapped.
    let is_readable = |at: usize, sp: usize| at.is_multiple_of(8) && sp <= at && at < high;
    let is_on_stack = sp.wrapping_sub(low) <= len && sp.is_multiple_of(8);
    let mut hash = 0u64;
    chain.end = loop {
        let rule = rules.get(address);
        if rule.is_own() {
            break ChainEnd::Whole;
        }
        if address.wrapping_sub(before.start) < width {
            chain.is_met = true;
            break ChainEnd::Whole;
        }
        if chain.len == depth {
            break ChainEnd::Depth;
        }
        // SAFETY: below `depth`, which is at most the array's length.
        unsafe { chain.addresses.get_unchecked_mut(chain.len) }.write(address);
        chain.len += 1;
        hash = (hash.rotate_left(5) ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if rule.is_last() {
            break ChainEnd::Whole;
        }
        if !rule.goes_on() || !is_on_stack {
            break ChainEnd::Unknown;
        }
        let base = match rule.base() {
            Base::Sp => sp,
            Base::Bp => bp,
            Base::BehindBp => {
                let at = bp.wrapping_add_signed(rule.base_at());
                if !is_readable(at, sp) {
                    break ChainEnd::Unknown;
                }
                // SAFETY: see above.
                unsafe { (at as *const usize).read() }
            }
        };
        let frame = base.wrapping_add_signed(rule.offset());
        // Strictly above the frame before, so that this ends.
        if !is_readable(frame.wrapping_sub(8), sp) {
            break ChainEnd::Unknown;
        }
        let kept = match rule.kept() {
            Kept::Same => None,
            Kept::At(offset) => Some(frame.wrapping_add_signed(offset)),
            Kept::BehindBp(offset) => Some(bp.wrapping_add_signed(offset)),
        };
        if let Some(at) = kept {
            if !is_readable(at, sp) {
                break ChainEnd::Unknown;
            }
            // SAFETY: see above.
            bp = unsafe { (at as *const usize).read() };
        }
        // SAFETY: see above.
        address = unsafe { ((frame - 8) as *const u64).read() };
        sp = frame;
        if address == 0 {
            break ChainEnd::Whole;
        }
    };
    hash ^= hash >> 32;
    chain.set(hash, chain.end);
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::arch::naked_asm;

    fn rules() -> Box<Rules> {
        // SAFETY: zeros are valid: no address is 0.
        unsafe { Box::<Rules>::new_zeroed().assume_init() }
    }

    fn stack() -> (usize, usize) {
        // SAFETY: as in `thread::recover`.
        unsafe {
            let mut attributes = core::mem::zeroed();
            assert_eq!(
                libc::pthread_getattr_np(libc::pthread_self(), &mut attributes),
                0
            );
            let (mut low, mut len) = (core::ptr::null_mut(), 0);
            libc::pthread_attr_getstack(&attributes, &mut low, &mut len);
            libc::pthread_attr_destroy(&mut attributes);
            (low as usize, len)
        }
    }

    /// Calls `f` with the place of the call.
    #[unsafe(naked)]
    unsafe extern "C" fn with_caller(f: extern "C" fn(&Caller, usize), with: usize) {
        naked_asm!(
            ".cfi_startproc",
            "mov rax, [rsp]",
            "lea rcx, [rsp + 8]",
            "sub rsp, 24",
            ".cfi_def_cfa_offset 32",
            "mov [rsp], rax",
            "mov [rsp + 8], rcx",
            "mov [rsp + 16], rbp",
            "mov rax, rdi",
            "mov rdi, rsp",
            "call rax",
            "add rsp, 24",
            ".cfi_def_cfa_offset 8",
            "ret",
            ".cfi_endproc",
        )
    }

    /// The C library's own unwinder, from the same place on.
    fn oracle() -> Vec<u64> {
        unsafe extern "C" {
            fn backtrace(buffer: *mut *mut core::ffi::c_void, size: i32) -> i32;
        }
        let mut all = [core::ptr::null_mut(); 256];
        // SAFETY: room for so many.
        let len = unsafe { backtrace(all.as_mut_ptr(), 256) };
        all[..len as usize].iter().map(|a| *a as u64).collect()
    }

    extern "C" fn compare(caller: &Caller, depth: usize) {
        prepare();
        let rules = rules();
        let first = walk(&rules, stack(), caller, depth, &(0..0));
        let again = walk(&rules, stack(), caller, depth, &(0..0));
        assert_eq!(
            (first.addresses(), first.hash),
            (again.addresses(), again.hash)
        );
        let expected = oracle();
        let at = expected
            .iter()
            .position(|a| *a == caller.address)
            .expect("it is in the chain");
        let expected = &expected[at..];
        let len = expected.len().min(depth);
        assert_eq!(first.addresses(), &expected[..len]);
        let end = if expected.len() > depth {
            ChainEnd::Depth
        } else {
            ChainEnd::Whole
        };
        assert_eq!(first.end, end);
        // Another stack: nothing but the first address, which needs no reading.
        let elsewhere = walk(&rules, (0x1000, 0x1000), caller, depth, &(0..0));
        assert_eq!(elsewhere.addresses(), &expected[..1]);
        assert_eq!(elsewhere.end, ChainEnd::Unknown);
    }

    #[inline(never)]
    fn nested(calls: usize, depth: usize) -> usize {
        if calls == 0 {
            // SAFETY: it calls `compare` and nothing else.
            unsafe { with_caller(compare, depth) };
            return 0;
        }
        core::hint::black_box(nested(calls - 1, depth)) + 1
    }

    #[test]
    fn chains_are_those_of_the_c_library() {
        object::own_is_nobody();
        for (calls, depth) in [(0, 100), (20, 100), (50, 10), (3, 1)] {
            std::thread::spawn(move || nested(calls, depth))
                .join()
                .expect("it compares");
        }
    }
}
