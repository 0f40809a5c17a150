//! Functions of the program that are regions of their own, and loops: a frame for each call, or execution of a loop, that goes on, on a
//! stack of the thread's own. A call is told by where its return address is, a loop by what the stack pointer is in it. Whoever
//! has a stack pointer above that has left it, with an exit or without (by an exception, or `longjmp`): the next probe ends it.
//!
//! In labels there are neither: what is created in one has the rank, and the label, that it would have without.

use super::{Choice, Frame, Place, Thread};
use crate::entry;
use core::cell::Cell;
use ompfuse_format::Construct;
use ompfuse_format::abi::SiteDesc;
use ompfuse_format::construct::trips;
use ompfuse_format::record::Step;
use zerocopy::FromZeros;

/// Calls that go on at once on a thread; deeper ones are not recorded.
const MAX_CALLS: usize = 1 << 13;
/// Places for how many calls of a function go on; a power of two. Functions may share one.
const PLACES: usize = 256;

/// Added to the address of a return address of a call that lasts until the construct ends to whose end its last jump leads. No other
/// call has such an address.
const BEHIND: usize = 1;

/// A call that goes on.
#[derive(Debug, FromZeros)]
#[repr(C)]
pub(super) struct Called {
    pub(super) frame: Frame,
    /// Address of its return address; the stack pointer in a loop.
    at: Cell<usize>,
    /// Of a loop.
    iterations: Cell<u64>,
    /// Of a loop that goes on, the probe of its iterations; else null.
    probe: Cell<*const SiteDesc>,
}

/// Those of a thread that go on.
#[derive(Debug, FromZeros)]
pub(super) struct Calls {
    /// How many, by functions.
    open_of: [Cell<u32>; PLACES],
    /// Outermost first; [`Thread::calls_open`] of them.
    all: [Called; MAX_CALLS],
}

/// Offsets in bytes of what counts an iteration of the innermost loop, for the thunk.
pub(crate) mod offsets {
    use super::{Called, Thread};
    use core::mem::offset_of;

    /// In a thread: see [`Thread::set_floor`].
    pub(crate) const FLOOR: usize = offset_of!(Thread, here.floor);
    /// In a thread: a pointer to the innermost call or loop.
    pub(crate) const INNERMOST: usize = offset_of!(Thread, here.innermost);
    /// In that: the probe of its iterations.
    pub(crate) const PROBE: usize = offset_of!(Called, probe);
    /// In that: its stack pointer.
    pub(crate) const AT: usize = offset_of!(Called, at);
    /// In that: its iterations.
    pub(crate) const ITERATIONS: usize = offset_of!(Called, iterations);
}

impl Called {
    /// What stands for it on the thread's stack: the call is over for whoever has a stack pointer above.
    pub(super) fn place(&self) -> usize {
        self.at.get().wrapping_sub(1)
    }
}

impl Thread {
    /// A function is entered, whose return address is at `at`.
    #[inline(always)]
    pub(crate) fn enter_function(&self, site: u32, at: usize) {
        self.enter_code(Construct::Function, site, at, core::ptr::null());
    }

    #[inline(always)]
    fn enter_code(&self, construct: Construct, site: u32, at: usize, probe: *const SiteDesc) {
        let depth = self.calls_open.get();
        let Some(called) = self.calls.all.get(depth) else {
            return self.buffer.lose();
        };
        self.charge();
        let place = self.place_of_call();
        let node = self.new_node();
        let counted = self.open_of(site);
        let is_inner = counted.get() > 0 && self.is_called(site);
        let to = core::ptr::from_ref(called).cast_mut();
        // SAFETY: a place that no open call has: nobody looks at what is written. It was zero, which is a valid frame, or a call's.
        unsafe { Frame::set_call(&raw mut (*to).frame, (construct, site), node, place) };
        called.at.set(at);
        called.iterations.set(1);
        called.probe.set(probe);
        self.here.innermost.set(called);
        let frame = &called.frame;
        // One call of a function is in another: the time of the outer one has that of this one.
        frame.tid.set(i64::from(is_inner));
        counted.set(counted.get() + 1);
        self.calls_open.set(depth + 1);
        self.begin_frame(frame, called.place());
    }

    /// An iteration of the loop of this site begins; `at`: the stack pointer, which is the same in all of them. The thunk counts
    /// those of the innermost loop itself.
    #[inline(always)]
    pub(crate) fn iterate(&self, site: u32, at: usize, probe: *const SiteDesc) {
        match self.find_loop(site, at) {
            Some(called) => called.iterations.set(called.iterations.get() + 1),
            None => self.enter_code(Construct::NaturalLoop, site, at, probe),
        }
    }

    /// Control is behind the loop of this site.
    #[inline(always)]
    pub(crate) fn leave_loop(&self, site: u32, at: usize) {
        if let Some(called) = self.find_loop(site, at) {
            self.leave_code(called);
        }
    }

    /// The execution of a loop that goes on at this stack pointer. Calls and loops that began at higher ones are around it.
    #[inline(always)]
    fn find_loop(&self, site: u32, at: usize) -> Option<&Called> {
        let open = self.calls.all.get(..self.calls_open.get())?;
        let own = open.iter().rev().take_while(|c| c.at.get() <= at);
        let mut own = own.filter(|c| c.at.get() == at && c.frame.site == site);
        own.find(|c| c.frame.construct == Construct::NaturalLoop)
    }

    /// The function of this site is about to be left; `at`: its stack pointer, which leads to its return address.
    #[inline(always)]
    pub(crate) fn leave_function(&self, site: u32, at: usize) {
        let innermost = self.calls_open.get().checked_sub(1);
        let innermost = innermost.and_then(|n| self.calls.all.get(n));
        let is_it = |c: &&Called| c.at.get() == at && c.frame.site == site;
        let Some(called) = innermost.filter(is_it).or_else(|| self.find_call(site, at)) else {
            return; // it was entered before anything was recorded
        };
        let is_innermost = core::ptr::eq(self.here.frame.get(), &raw const called.frame);
        if !is_innermost && self.leave_beneath(called) {
            return;
        }
        if self.mutex_top.get() > called.frame.mutex_base.get()
            || !is_innermost && self.is_around(called)
        {
            // What begins in a function ends in it: it is left by a jump to the end of that.
            called.at.set(at + BEHIND);
            return;
        }
        self.leave_code(called);
    }

    /// Whether a task or region that began in a call goes on. What the stack pointer tells to be gone is forgotten by now.
    #[cold]
    #[inline(never)]
    fn is_around(&self, called: &Called) -> bool {
        !core::ptr::eq(self.task_frame(), called.frame.task())
    }

    /// Leaves the innermost call if only regions of the program's own go on in it, which may end anywhere: they go on in what is around
    /// the call.
    #[cold]
    #[inline(never)]
    fn leave_beneath(&self, called: &Called) -> bool {
        let frame = &called.frame;
        let mut above = self.frame();
        loop {
            let is_alone = above.work_base.get() == frame.work_base.get()
                && above.mutex_base.get() == frame.mutex_base.get();
            if above.construct != Construct::UserRegion || !is_alone {
                return false;
            }
            let up = above.up.get();
            if core::ptr::eq(up, frame) {
                break;
            }
            // SAFETY: a frame that was entered has one around it, which lasts longer.
            above = unsafe { &*up };
        }
        self.charge();
        self.write_call(called);
        above.up.set(frame.up.get());
        above.before.set(frame.before.get());
        above.floor.set(frame.floor.get());
        self.remember_around(above);
        self.forget_call(called);
        true
    }

    /// A construct has ended whose end may be the last jump of a function, which is left with it. `at`: the stack pointer there.
    #[inline(always)]
    pub(crate) fn leave_behind(&self, at: usize) {
        let innermost = self.calls_open.get().checked_sub(1);
        let innermost = innermost.and_then(|n| self.calls.all.get(n));
        if let Some(called) = innermost.filter(|c| c.at.get() == at + BEHIND) {
            self.leave_code(called);
        }
    }

    #[inline(always)]
    fn leave_code(&self, called: &Called) {
        self.charge();
        if !core::ptr::eq(self.here.frame.get(), &raw const called.frame) {
            self.return_to_call(called);
        }
        self.end_call(called);
        self.turn(called.frame.before.get());
    }

    /// A call that isn't the innermost one.
    #[cold]
    #[inline(never)]
    fn find_call(&self, site: u32, at: usize) -> Option<&Called> {
        let open = self.calls.all.get(..self.calls_open.get())?;
        let mut open = open.iter().rev();
        open.find(|c| c.at.get() == at && c.frame.site == site)
    }

    /// A call is about to be left whatever was entered since.
    #[cold]
    #[inline(never)]
    fn return_to_call(&self, called: &Called) {
        self.return_to(&called.frame);
    }

    /// Ends the current frame, which is a call's, at the last boundary. What is charged next is the caller's business.
    #[inline(always)]
    pub(super) fn end_call(&self, called: &Called) {
        let frame = &called.frame;
        self.close_all();
        if self.mutex_top.get() > frame.mutex_base.get() {
            self.drain_held(frame);
        }
        self.write_call(called);
        self.here.frame.set(frame.up.get());
        self.here.work_top.set(frame.work_base.get());
        self.set_floor(frame.floor.get());
        self.forget_call(called);
    }

    /// Writes the interval of a call that ends at the last boundary.
    #[inline(always)]
    fn write_call(&self, called: &Called) {
        let frame = &called.frame;
        if self.is_gone() {
            return;
        }
        let is_inner = frame.tid.get() != 0;
        let extent = match frame.construct {
            Construct::NaturalLoop => trips::encode(called.iterations.get(), is_inner),
            _ => u64::from(is_inner),
        };
        self.write_ended(frame, extent);
    }

    /// A call has ended: those around it go on.
    #[inline(always)]
    fn forget_call(&self, called: &Called) {
        let counted = self.open_of(called.frame.site);
        counted.set(counted.get().saturating_sub(1));
        let first = self.calls.all.as_ptr() as usize;
        let number = (core::ptr::from_ref(called) as usize - first) / size_of::<Called>();
        self.calls_open.set(number);
        called.probe.set(core::ptr::null());
        self.find_innermost();
    }

    /// For the thunk: without a call or loop it is one that has no probe.
    #[inline(always)]
    pub(super) fn find_innermost(&self) {
        let number = self.calls_open.get().saturating_sub(1);
        let innermost = self.calls.all.as_ptr().wrapping_add(number);
        self.here.innermost.set(innermost);
    }

    /// The call is left with mutexes that were entered in it. Any register of the program may be live.
    #[cold]
    #[inline(never)]
    fn drain_held(&self, frame: &Frame) {
        extern "C" fn drain(both: u64) -> u64 {
            // SAFETY: the pair below.
            unsafe {
                let (thread, frame) = *(both as *const (*const Thread, *const Frame));
                (*thread).drain_mutexes(&*frame);
            }
            0
        }
        let both = (core::ptr::from_ref(self), core::ptr::from_ref(frame));
        entry::protected(drain, &raw const both as u64);
    }

    /// The call whose frame this is, if it is one's. The frame itself need not be there any more.
    #[inline(always)]
    pub(super) fn call_of(&self, frame: *const Frame) -> Option<&Called> {
        let offset = (frame as usize).wrapping_sub(self.calls.all.as_ptr() as usize);
        match offset < size_of_val(&self.calls.all) {
            // SAFETY: only frames of this array lie in it; they are its entries' first fields.
            true => Some(unsafe { &*frame.cast::<Called>() }),
            false => None,
        }
    }

    /// No call is known any more.
    pub(super) fn forget_calls(&self) {
        self.calls_open.set(0);
        self.find_innermost();
        // SAFETY: an entry of `Calls::all`, which is initialised from the beginning.
        unsafe { &*self.here.innermost.get() }
            .probe
            .set(core::ptr::null());
        self.calls.open_of.iter().for_each(|open| open.set(0));
    }

    #[inline(always)]
    fn open_of(&self, site: u32) -> &Cell<u32> {
        &self.calls.open_of[site as usize % PLACES]
    }

    /// Whether a call of the function goes on.
    #[inline(never)]
    fn is_called(&self, site: u32) -> bool {
        let open = self.calls.all.get(..self.calls_open.get());
        let mut open = open.into_iter().flatten().rev();
        open.any(|c| c.frame.site == site)
    }

    /// Where a call stands in the tree: in the innermost construct, which it gives no child with a label.
    #[inline(always)]
    fn place_of_call(&self) -> Place {
        let (parent, path) = self.parent_of_call();
        Place {
            parent,
            step: Step::None,
            index: 0,
            path,
        }
    }

    /// The innermost task region: calls of functions are in it.
    #[inline(always)]
    pub(crate) fn task_frame(&self) -> &Frame {
        self.frame().task()
    }
}

impl Frame {
    /// The frame of a call.
    ///
    /// # Safety
    /// Nobody refers to what is there, which is a frame or zero.
    #[inline(always)]
    unsafe fn set_call(
        at: *mut Frame,
        (construct, site): (Construct, u32),
        node: u64,
        place: Place,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            (&raw mut (*at).construct).write(construct);
            (&raw mut (*at).site).write(site);
            (&raw mut (*at).node).write(node);
            (&raw mut (*at).place).write(place);
            let frame = &*at;
            frame.written.set(false);
            frame.cost.clear();
            frame.choice.set(Choice::NONE);
        }
    }

    /// The innermost frame around calls of functions, or this one.
    #[inline(always)]
    pub(super) fn task(&self) -> &Frame {
        match self.construct {
            c if c.is_code() => self.around_calls(),
            _ => self,
        }
    }

    #[inline(never)]
    fn around_calls(&self) -> &Frame {
        let mut frame = self;
        while frame.construct.is_code() {
            // SAFETY: a frame that was entered has one around it, which lasts longer.
            frame = unsafe { &*frame.up.get() };
        }
        frame
    }

    /// The same, if no work-sharing construct is open in between.
    #[inline(never)]
    pub(super) fn directly_around_calls(&self) -> Option<&Frame> {
        let mut frame = self;
        while frame.construct.is_code() {
            // SAFETY: as above.
            let around = unsafe { &*frame.up.get() };
            if frame.work_base.get() > around.work_base.get() {
                return None;
            }
            frame = around;
        }
        Some(frame)
    }

    /// Where the children of a call are counted: where they would be without it.
    #[inline(never)]
    pub(super) fn rank_around_calls(&self) -> &Cell<i64> {
        let mut frame = self;
        while frame.construct.is_code() {
            // SAFETY: as above.
            let around = unsafe { &*frame.up.get() };
            let base = frame.work_base.get();
            if base > around.work_base.get() {
                // SAFETY: the innermost construct that was open when the function was called, and is.
                return unsafe { &(*base.sub(1)).rank };
            }
            frame = around;
        }
        &frame.rank
    }
}
