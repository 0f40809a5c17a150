//! Frames that are gone without having been left: the program jumped out of them (`longjmp`), or ended the thread
//! inside of them. They lay on the thread's stack, which other functions use by now, so they may not be touched.

use super::{Cost, Frame, Thread, Work};
use core::cell::Cell;
use zerocopy::FromZeros;

/// Frames that are remembered; of deeper nesting the innermost ones.
pub(super) const REMEMBERED: usize = 64;

/// What has to be known of a frame when it can't be asked any more.
#[derive(Debug, FromZeros)]
pub(super) struct Entered {
    frame: Cell<*const Frame>,
    /// The frame around it, which may be a call's.
    up: Cell<*const Frame>,
    /// Number of frames around it: whether the place was taken by a deeper one since.
    depth: Cell<usize>,
    work_base: Cell<*const Work>,
    mutex_base: Cell<usize>,
}

/// The thread's stack: lowest address and length; unknown has length 0.
#[derive(Debug, FromZeros)]
pub(super) struct Stack {
    low: Cell<usize>,
    len: Cell<usize>,
}

impl Stack {
    /// Asks for the bounds. At a thread's first probe only: it may allocate, and read a file.
    pub(super) fn find(&self) {
        // SAFETY: the attributes are initialised by the first call and released by the last.
        unsafe {
            let mut attributes = core::mem::zeroed();
            if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
                return;
            }
            let (mut low, mut len) = (core::ptr::null_mut(), 0);
            if libc::pthread_attr_getstack(&attributes, &mut low, &mut len) == 0 {
                self.low.set(low as usize);
                self.len.set(len);
            }
            libc::pthread_attr_destroy(&mut attributes);
        }
    }

    /// Lowest address and length; unknown has length 0.
    #[inline(always)]
    pub(super) fn bounds(&self) -> (usize, usize) {
        (self.low.get(), self.len.get())
    }

    fn has(&self, object: usize) -> bool {
        object.wrapping_sub(self.low.get()) < self.len.get()
    }

    /// Whether an object on this stack is gone, when the stack pointer has this value. On any other stack (coroutines,
    /// signal handlers) nothing is known.
    #[inline(always)]
    fn is_gone(&self, object: usize, sp: usize) -> bool {
        let used = sp.wrapping_sub(self.low.get());
        used < self.len.get() && object.wrapping_sub(self.low.get()) < used
    }
}

impl Thread {
    /// At every probe: forgets what the program has jumped out of. `sp`: its stack pointer now, everything below isn't its own.
    #[inline(always)]
    pub(crate) fn look_below(&self, sp: usize) {
        if sp > self.here.floor.get() {
            self.recover(sp);
        }
    }

    /// Until further notice nothing of this thread's that is open lies below this address: neither the innermost frame nor the
    /// account that is charged. Returns what held before, for who sets it again when that has ended.
    #[inline(always)]
    pub(crate) fn set_floor(&self, floor: usize) -> usize {
        self.here.floor.replace(floor)
    }

    /// As [`Thread::look_below`], without knowing that there may be something.
    #[inline(never)]
    pub(crate) fn recover(&self, sp: usize) {
        let (frame, account) = (self.frame_place(), self.charging.account.get() as usize);
        if self.here.stack.is_gone(frame, sp) || self.here.stack.is_gone(account, sp) {
            self.forget(sp);
        }
        // What is not on this stack can't be missed.
        let place = |object: usize| match self.here.stack.has(object) {
            true => object,
            false => usize::MAX,
        };
        let frame = place(self.frame_place());
        self.set_floor(frame.min(place(self.charging.account.get() as usize)));
    }

    /// Where the current frame lies on the thread's stack, or what stands for it there.
    fn frame_place(&self) -> usize {
        let frame = self.here.frame.get();
        self.call_of(frame).map_or(frame as usize, |c| c.place())
    }

    #[cold]
    #[inline(never)]
    fn forget(&self, sp: usize) {
        self.forget_reading();
        let account = self.charging.account.get() as usize;
        if account.wrapping_sub(core::ptr::from_ref(self) as usize) < size_of::<Thread>() {
            self.charge(); // of a call, or of what is open in one: it lasts
        }
        while self.here.stack.is_gone(self.frame_place(), sp) {
            self.pop();
        }
        let account: *const Cost = self.innermost_cost();
        self.turn(account);
    }

    /// Remembers a frame that is entered; it is current already.
    #[inline(always)]
    pub(super) fn remember(&self, frame: &Frame) {
        let depth = self.depth.get();
        if let Some(entered) = self.entered.get(depth % REMEMBERED) {
            entered.frame.set(frame);
            entered.up.set(frame.up.get());
            entered.depth.set(depth);
            entered.work_base.set(frame.work_base.get());
            entered.mutex_base.set(frame.mutex_base.get());
        }
        self.depth.set(depth + 1);
    }

    /// A frame has another one around it than when it was entered.
    pub(super) fn remember_around(&self, frame: &Frame) {
        let own = self
            .entered
            .iter()
            .find(|e| core::ptr::eq(e.frame.get(), frame));
        if let Some(entered) = own {
            entered.up.set(frame.up.get());
        }
    }

    fn remembered(&self, depth: usize) -> Option<&Entered> {
        let entered = self.entered.get(depth % REMEMBERED)?;
        (entered.depth.get() == depth && !entered.frame.get().is_null()).then_some(entered)
    }

    /// Makes the frame around the current one current, without touching the latter.
    fn pop(&self) {
        if let Some(called) = self.call_of(self.here.frame.get()) {
            return self.end_call(called);
        }
        let depth = self.depth.get().saturating_sub(1);
        let current = self.remembered(depth);
        let current = current.filter(|e| core::ptr::eq(e.frame.get(), self.here.frame.get()));
        match current {
            Some(current) => {
                self.here.work_top.set(current.work_base.get());
                self.mutex_top.set(current.mutex_base.get());
                self.here.frame.set(current.up.get());
                self.depth.set(depth);
            }
            // Nested too deeply to know: what is still alive says so when it is left.
            _ => {
                self.here.work_top.set(self.work.as_ptr());
                self.mutex_top.set(0);
                self.here.frame.set(&raw const self.root);
                self.depth.set(0);
                self.forget_calls();
            }
        }
    }

    /// Makes `frame`, which is alive and about to be left, the current one, whatever was entered since.
    #[cold]
    pub(super) fn return_to(&self, frame: &Frame) {
        let is_wanted = |at| core::ptr::eq(at, frame) || core::ptr::eq(at, &raw const self.root);
        while !is_wanted(self.here.frame.get()) {
            self.pop();
        }
        self.here.frame.set(frame);
        self.here.work_top.set(frame.work_base.get());
        self.mutex_top.set(frame.mutex_base.get());
        self.turn(&raw const frame.cost);
    }
}
