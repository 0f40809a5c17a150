//! Frames whose bodies the program runs itself between two calls of the runtime, with the regions that they are parts of. They can't live
//! on a stack of ours, so the thread keeps them.

use super::sums::team::TeamSums;
use super::{Cost, Frame, Outermost, Place, Thread};
use crate::syscall;
use core::cell::Cell;
use core::sync::atomic::AtomicI64;
use ompfuse_format::Construct;
use zerocopy::FromZeros;

/// A region that is forked: what its parts and its record have in common.
#[derive(Debug)]
pub(crate) struct Forked {
    /// Parallel or teams.
    pub(crate) construct: Construct,
    pub(crate) site: u32,
    pub(crate) node: u64,
    pub(crate) place: Place,
    /// The outermost region around it, and the thread of its team that forks here; `None`: it is itself outermost.
    pub(crate) outermost: Option<Outermost>,
    /// Where the encountering thread is around it ([`Thread::team_word`]).
    pub(crate) around: u64,
    /// Size of the team (number of teams), as its first member finds it.
    pub(crate) team: AtomicI64,
    /// Where its parts are added up.
    pub(crate) sums: TeamSums,
}

/// What a team's threads need to know of a region of GOMP; on the stack of the encountering thread, which waits for them.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Region {
    /// The first word of the program's argument block, where the runtime looks for the description of task reductions.
    pub(crate) first_word: u64,
    pub(crate) function: u64,
    pub(crate) data: u64,
    pub(crate) forked: Forked,
    /// First value and increment of the loop that the threads are in from the start (combined constructs of GOMP).
    pub(crate) in_loop: Option<(i64, i64)>,
    /// What it is: a loop, or sections.
    pub(crate) work: Construct,
}

/// A frame that is kept between two calls.
pub(crate) struct Detached {
    pub(crate) frame: Frame,
    pub(crate) cost: Cost,
    pub(crate) t0: Cell<u64>,
    /// The region, unless it is a task.
    pub(crate) region: Option<Region>,
    next: Cell<*mut Detached>,
}

impl Detached {
    /// Keeps a task's frame, or that of a part of a region.
    pub(crate) fn new(frame: Frame, region: Option<Region>) -> Detached {
        Detached {
            frame,
            cost: Cost::new(),
            t0: Cell::new(0),
            region,
            next: Cell::new(core::ptr::null_mut()),
        }
    }
}

/// Those of a thread.
#[derive(Debug, FromZeros)]
pub(super) struct Kept {
    innermost: Cell<*mut Detached>,
    /// To be used again.
    free: Cell<*mut Detached>,
    /// For which there was no memory.
    lost: Cell<usize>,
}

impl Thread {
    /// Keeps a frame whose body the program runs between two calls. `None` without memory for it.
    pub(crate) fn detach(&self, detached: Detached) -> Option<&Detached> {
        let mut at = self.kept.free.get();
        if at.is_null() {
            at = new_detached();
            if at.is_null() {
                self.kept.lost.set(self.kept.lost.get() + 1);
                return None;
            }
        } else {
            // SAFETY: on the free list, so initialised and used by nobody.
            self.kept.free.set(unsafe { (*at).next.get() });
        }
        // SAFETY: room for one, from the free list or fresh pages; the list keeps it until `reattach`.
        let kept = unsafe {
            at.write(detached);
            &*at
        };
        kept.next.set(self.kept.innermost.replace(at));
        Some(kept)
    }

    /// The innermost detached frame, if it is of this construct and still the current task region.
    pub(crate) fn detached(&self, construct: Construct) -> Option<&Detached> {
        if self.kept.lost.get() > 0 {
            self.kept.lost.set(self.kept.lost.get() - 1);
            return None;
        }
        // SAFETY: on the list of detached frames, hence alive.
        let detached = unsafe { self.kept.innermost.get().as_ref()? };
        let current = core::ptr::eq(self.here.frame.get(), &raw const detached.frame);
        (current && detached.frame.construct == construct).then_some(detached)
    }

    /// Gives up the innermost detached frame, which has been left.
    pub(crate) fn reattach(&self, detached: &Detached) {
        let at = self.kept.innermost.get();
        self.kept.innermost.set(detached.next.get());
        detached.next.set(self.kept.free.replace(at));
    }
}

/// Memory for one more frame that is kept; null if there is none.
#[cold]
#[inline(never)]
fn new_detached() -> *mut Detached {
    syscall::map_memory(size_of::<Detached>()).map_or(core::ptr::null_mut(), <*mut u8>::cast)
}
