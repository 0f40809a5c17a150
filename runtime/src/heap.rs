//! This library's own memory. The program's heap is not used. There may be nothing left in it, and a failed allocation
//! ends a program of Rust's. A `fork` in a signal handler may leave it to the child half-changed, which is no harm to a
//! program that only calls `_exit` or `exec` there.
//!
//! Blocks have sizes that are powers of two, come from chunks that are never given back, and are used again. There is no lock:
//! whoever is interrupted anywhere, or is not there any more in the child of a fork, takes along a free block at most.

use crate::syscall;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Bytes of a chunk, which lies at a multiple of that.
const CHUNK: usize = 256 << 10;
/// Binary logarithms of the smallest block and the largest one; larger ones are mappings of their own.
const SMALLEST: u32 = 4;
const LARGEST: u32 = 15;
/// Largest alignment: a page's.
const MAX_ALIGN: usize = 4096;
/// What a thread's beginning or a child's announcement takes at most: paths of 4 KiB, some times.
const ROOM: usize = 96 << 10;

/// A free block, which contains where the next one is.
struct Free {
    next: *mut Free,
}

static FREE: [AtomicPtr<Free>; (LARGEST - SMALLEST + 1) as usize] =
    [const { AtomicPtr::new(null_mut()) }; (LARGEST - SMALLEST + 1) as usize];

/// Behind what is taken of the current chunk, so never at its beginning; 0: there is no chunk yet.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

/// Whether something that allocates may begin; false if the process can't get memory.
pub(crate) fn has_room() -> bool {
    let taken = TAKEN.load(Ordering::Acquire);
    rest(taken) >= ROOM || add_chunk(taken)
}

/// Bytes that are left in a chunk.
fn rest(taken: usize) -> usize {
    taken.wrapping_neg() & (CHUNK - 1)
}

/// Begins another chunk, if nobody else has; false without memory.
#[cold]
fn add_chunk(taken: usize) -> bool {
    let Some(at) = syscall::map_memory(2 * CHUNK) else {
        return false;
    };
    let begin = (at as usize).next_multiple_of(CHUNK);
    let (before, behind) = (begin - at as usize, at as usize + CHUNK - begin);
    // SAFETY: parts of the fresh mapping that nothing refers to: what lies around the chunk.
    unsafe {
        if before > 0 {
            syscall::unmap(at, before);
        }
        if behind > 0 {
            syscall::unmap(at.wrapping_add(before + CHUNK), behind);
        }
    }
    let first = begin + (1 << SMALLEST);
    let added = TAKEN.compare_exchange(taken, first, Ordering::AcqRel, Ordering::Acquire);
    if added.is_err() {
        // SAFETY: nobody knows of it.
        unsafe { syscall::unmap(at.wrapping_add(before), CHUNK) };
    }
    true
}

/// A block's binary logarithm; `None` if it gets a mapping of its own.
fn size_of_block(layout: Layout) -> Option<u32> {
    let size = layout.size().max(layout.align()).max(1 << SMALLEST);
    let log = size.checked_next_power_of_two()?.trailing_zeros();
    (log <= LARGEST).then_some(log)
}

/// A block that has been used before.
fn used(list: &AtomicPtr<Free>) -> *mut u8 {
    // All of them are taken at once: so none can come back meanwhile and have another one behind it.
    let block = list.swap(null_mut(), Ordering::AcqRel);
    if !block.is_null() {
        // SAFETY: blocks in the list are free, and now only this thread's.
        let others = unsafe { (*block).next };
        if !others.is_null() {
            give_back(list, others);
        }
    }
    block.cast()
}

/// Puts free blocks in front of a list.
fn give_back(list: &AtomicPtr<Free>, first: *mut Free) {
    let mut head = null_mut();
    while let Err(now) = list.compare_exchange(head, first, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: the blocks are this thread's until the exchange succeeds. Behind the last one comes null, or what this loop has
        // put there, from where on nothing is ours.
        unsafe {
            let mut last = first;
            while (*last).next != head {
                last = (*last).next;
            }
            (*last).next = now;
        }
        head = now;
    }
}

/// A new block of a chunk.
fn fresh(size: usize) -> *mut u8 {
    loop {
        let taken = TAKEN.load(Ordering::Acquire);
        let begin = taken.next_multiple_of(size.min(MAX_ALIGN));
        if begin - taken + size <= rest(taken) {
            let end = begin + size;
            let exchange = TAKEN.compare_exchange(taken, end, Ordering::AcqRel, Ordering::Acquire);
            if exchange.is_ok() {
                return begin as *mut u8;
            }
        } else if !add_chunk(taken) {
            return null_mut();
        }
    }
}

// SAFETY: blocks are as large as asked for and aligned as asked for, or null; none is handed out twice.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > MAX_ALIGN {
            return null_mut();
        }
        let Some(log) = size_of_block(layout) else {
            return syscall::map_memory(layout.size()).unwrap_or(null_mut());
        };
        let list = FREE.get((log - SMALLEST) as usize);
        match list.map_or(null_mut(), used) {
            block if block.is_null() => fresh(1 << log),
            block => block,
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let Some(log) = size_of_block(layout) else {
            // SAFETY: a mapping of its own, made for this layout.
            return unsafe { syscall::unmap(at, layout.size()) };
        };
        if let Some(list) = FREE.get((log - SMALLEST) as usize) {
            let block = at.cast::<Free>();
            // SAFETY: the caller gives the block back; it has room for a pointer, and is aligned for one.
            unsafe { (*block).next = null_mut() };
            give_back(list, block);
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise: no overflow when rounded up.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (log, new_log) = (size_of_block(layout), size_of_block(new));
        if log.is_some() && log == new_log {
            return at;
        }
        // SAFETY: as the caller's; the shorter of both is copied.
        unsafe {
            let to = self.alloc(new);
            if !to.is_null() {
                to.copy_from_nonoverlapping(at, size.min(layout.size()));
                self.dealloc(at, layout);
            }
            to
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_nobody_elses() {
        let threads: Vec<_> = (0..4u8)
            .map(|own| {
                std::thread::spawn(move || {
                    for round in 1..2000usize {
                        let blocks: Vec<Vec<u8>> = (0..8)
                            .map(|at| vec![own; (round * (at + 1) * 37) % 50_000])
                            .collect();
                        assert!(blocks.iter().flatten().all(|&byte| byte == own));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert!(has_room());
    }

    #[test]
    fn blocks_are_aligned_and_used_again() {
        for align in [1, 16, 64, 4096] {
            let layout = Layout::from_size_align(24, align).unwrap();
            // SAFETY: the layout is not empty, and each block is given back once.
            unsafe {
                let block = std::alloc::alloc(layout);
                assert!(!block.is_null() && (block as usize).is_multiple_of(align));
                std::alloc::dealloc(block, layout);
            }
        }
        let layout = Layout::from_size_align(8, 2 * MAX_ALIGN).unwrap();
        // SAFETY: the layout is not empty.
        assert!(unsafe { HEAP.alloc(layout) }.is_null());
        let list = AtomicPtr::new(null_mut());
        let mut blocks = [const { Free { next: null_mut() } }; 3];
        for block in &mut blocks {
            give_back(&list, block);
        }
        let expected = blocks.each_mut().map(|block| &raw mut *block);
        let taken = [used(&list), used(&list), used(&list)].map(|at| at.cast::<Free>());
        assert_eq!(taken, [expected[2], expected[1], expected[0]]);
        assert!(used(&list).is_null());
    }
}
