//! Explicit tasks: the label is made where the task is created and travels with it.

mod kmpc;

pub(super) use kmpc::tag;
pub(crate) use kmpc::{alloc, begin_if0, complete_if0, enqueue, event};

use super::{depend, sync};
use crate::entry::{self, Call};
use crate::process::current;
use crate::thread::{Cost, Frame, Place, Thread};
use ompfuse_format::Construct;
use ompfuse_format::record::{NO_SITE, Step};

/// Largest task argument block that is copied on the stack; below the smallest usual guard distance.
pub(crate) const MAX_STACK_BLOCK: usize = 16 << 10;
/// Its largest alignment.
pub(crate) const MAX_STACK_ALIGN: usize = 4096;

/// What travels with a task.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Tag {
    /// The task's own function.
    pub(super) function: u64,
    pub(super) node: u64,
    pub(super) parent: u64,
    pub(super) index: i64,
    path: u64,
    pub(super) site: u32,
    ranked_by_tid: bool,
}

impl Tag {
    /// For a task created here.
    #[inline(always)]
    fn new(thread: &Thread, site: u32, function: u64) -> Tag {
        let place = thread.place_task();
        Tag {
            function,
            node: thread.new_node(),
            parent: place.parent,
            index: place.index,
            path: place.path,
            site,
            ranked_by_tid: place.step == Step::TidRanked,
        }
    }

    pub(super) fn place(&self) -> Place {
        let step = if self.ranked_by_tid {
            Step::TidRanked
        } else {
            Step::Ranked
        };
        Place {
            parent: self.parent,
            step,
            index: self.index,
            path: self.path,
        }
    }

    fn frame(&self) -> Frame {
        Frame::new(Construct::Task, self.site, self.node, self.place(), 0, 1)
    }
}

/// Executes a task's body (or a part of it) in its frame. `extent`: iterations of a taskloop's task.
#[inline(always)]
pub(super) fn run(thread: &Thread, frame: &Frame, extent: u64, body: impl FnOnce()) {
    let is_behind = thread.begin_behind();
    thread.enter(frame);
    body();
    thread.leave_as(frame, extent, false);
    if is_behind {
        thread.end_behind(frame.t0.get());
    }
    thread.rest();
}

/// In front of GOMP's argument block. `arg_size` grows by the header (rounded up to the alignment), so the runtime copies
/// both together.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Header {
    /// With `detach` the runtime stores the event's handle into the first word of the block, which is this one instead
    /// of the program's.
    event: u64,
    tag: Tag,
    /// The program's block, for the copy function.
    block: u64,
    /// The program's copy function, 0 if there is none.
    copy: u64,
    /// Distance from the header to the copied block.
    distance: u64,
    /// The program expects the event's handle in the first word of its block.
    detach: bool,
    /// Address of the header that the call was made with.
    made_at: u64,
}

/// Bytes that a header may need in front of a block.
pub(crate) const HEADER_LEN: usize = {
    let largest = if size_of::<Header>() > super::taskloop::LARGEST_HEADER {
        size_of::<Header>()
    } else {
        super::taskloop::LARGEST_HEADER
    };
    largest.next_multiple_of(16)
};

/// Room for a header, and behind it for a block of the program: on the thunk's stack, or allocated.
pub(super) struct Room {
    /// Where the header goes.
    pub(super) header: *mut u8,
    /// From there to the block.
    pub(super) distance: usize,
    /// Alignment of both.
    pub(super) align: usize,
    /// Bytes of the block.
    size: usize,
    allocated: *mut u8,
}

impl Room {
    /// For a header of at most [`HEADER_LEN`] bytes. `space`: room on the thunk's stack, null if the block is too large for
    /// that. `None` for what no compiler asks for, and without memory.
    #[inline(always)]
    pub(super) fn new(space: *mut u8, header: usize, size: u64, align: u64) -> Option<Room> {
        let (size, align) = (size as usize, (align as usize).max(1));
        if align > 16 || !align.is_power_of_two() || space.is_null() {
            return Room::any(space, header, size, align);
        }
        Some(Room {
            header: space.map_addr(|at| at.next_multiple_of(16)),
            distance: header.next_multiple_of(16),
            align: 16,
            size,
            allocated: core::ptr::null_mut(),
        })
    }

    /// As [`Room::new`], of any alignment, or not on the stack.
    #[inline(never)]
    fn any(space: *mut u8, header: usize, size: usize, align: usize) -> Option<Room> {
        if align > MAX_STACK_ALIGN || !align.is_power_of_two() {
            return None;
        }
        let align = align.max(16);
        // Of a power of two, which the compiler doesn't know.
        let aligned = |n: usize| (n + align - 1) & !(align - 1);
        let distance = aligned(header);
        let mut allocated: *mut u8 = core::ptr::null_mut();
        let mut base = space;
        if space.is_null() {
            allocated = allocate(distance + size + align);
            base = allocated;
        }
        (!base.is_null()).then(|| Room {
            header: base.map_addr(aligned),
            distance,
            align,
            size,
            allocated,
        })
    }

    /// Copies the program's block behind the header.
    ///
    /// # Safety
    /// `block` is the program's, of the size that the room was made for.
    pub(super) unsafe fn copy_block(&self, block: u64) {
        if self.size > 0 {
            // SAFETY: the caller's promise; the thunk reserved size + 2 * align + HEADER_LEN, malloc `align` more than
            // distance + size, so both fit behind the next aligned address.
            unsafe {
                core::ptr::copy_nonoverlapping(
                    block as *const u8,
                    self.header.add(self.distance),
                    self.size,
                );
            }
        }
    }

    /// Header and block together.
    pub(super) fn len(&self) -> u64 {
        (self.distance + self.size) as u64
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if !self.allocated.is_null() {
            release(self.allocated);
        }
    }
}

/// Room for a block that is too large for the stack; null if there is none. libgomp allocates for every deferred task as well.
#[cold]
#[inline(never)]
fn allocate(len: usize) -> *mut u8 {
    // SAFETY: plain allocation.
    unsafe { libc::malloc(len) }.cast()
}

#[cold]
#[inline(never)]
fn release(allocated: *mut u8) {
    // SAFETY: from `allocate`; the runtime has copied the block, or executed the task.
    unsafe { libc::free(allocated.cast()) };
}

/// gomp-constants.h, GOMP_TASK_FLAG_DETACH.
const FLAG_DETACH: u64 = 1 << 13;
/// gomp-constants.h, GOMP_TASK_FLAG_DEPEND.
const FLAG_DEPEND: u64 = 1 << 3;

/// `GOMP_task(fn, data, cpyfn, size, align, if, flags, ...)`. `space`: room on the thunk's stack, null if the block is too
/// large for that.
#[inline(never)]
pub(crate) fn create(thread: &Thread, call: &Call, space: *mut u8) -> u64 {
    let mut regs = call.regs();
    let [function, data, copy, size, align, _] = regs;
    let Some(room) = Room::new(space, size_of::<Header>(), size, align) else {
        return call.forward();
    };
    let tag = Tag::new(thread, entry::this(call.site()), function);
    let flags = call.known_late(6).unwrap_or(0);
    let detach = flags & FLAG_DETACH != 0 && size >= 8;
    // SAFETY: there is room for the header and the block, which is the program's.
    unsafe {
        room.header.cast::<Header>().write(Header {
            event: 0,
            tag,
            block: data,
            copy,
            distance: room.distance as u64,
            detach,
            made_at: room.header as u64,
        });
        if copy == 0 {
            room.copy_block(data);
        }
    }
    regs[0] = gomp_enter as *const () as u64;
    regs[1] = room.header as u64;
    if copy != 0 {
        regs[2] = gomp_copy as *const () as u64;
    }
    regs[3] = room.len();
    regs[4] = room.align as u64;
    if flags & FLAG_DEPEND != 0 {
        let list = call.known_late(7).unwrap_or(0);
        // SAFETY: the call's argument, which its flags say is there.
        unsafe { depend::task(thread, (tag.node, tag.site), list) };
    }
    let cost = Cost::new();
    // SAFETY: gomp_enter(header) does what function(data) does; the runtime copies the block or calls gomp_copy.
    let (result, t0) = sync::timed(thread, &cost, || unsafe { call.forward_with(&regs) });
    if detach {
        // SAFETY: our header, into which the runtime has stored the event's handle.
        let event = unsafe { (&raw const (*room.header.cast::<Header>()).event).read() };
        depend::detached(thread, (tag.node, tag.site), event);
    }
    // A creation's extent says whether the task depends on others.
    let depends = u64::from(flags & FLAG_DEPEND != 0);
    thread.write_wait(Construct::TaskCreate, tag.site, t0, depends, &cost);
    result
}

/// Executes a task that does nothing, as libgomp would: whatever is counted is the probes'. `node`: its node.
pub(crate) fn empty(node: u64) {
    unsafe extern "C-unwind" fn nothing(_: usize) {}
    let tag = Tag {
        function: nothing as *const () as u64,
        node,
        parent: 0,
        index: 0,
        path: 0,
        site: NO_SITE,
        ranked_by_tid: false,
    };
    let mut header = Header {
        event: 0,
        tag,
        block: 0,
        copy: 0,
        distance: size_of::<Header>() as u64,
        detach: false,
        made_at: 0,
    };
    // SAFETY: a header of our own; its function takes no notice of the block.
    unsafe { gomp_enter(&raw mut header) };
}

unsafe extern "C-unwind" fn gomp_enter(header: *mut Header) {
    // SAFETY: the header made by `create`, or the runtime's copy of it.
    let head = unsafe { &*header };
    let block = if head.copy != 0 && head.made_at == header as u64 {
        head.block as usize // libomp's undeferred tasks have no copy
    } else {
        (header as usize).wrapping_add(head.distance as usize)
    };
    if head.detach {
        // SAFETY: the block is at least one word long (`create`).
        unsafe { (block as *mut u64).write_unaligned(head.event) };
    }
    // SAFETY: the task's function, as the program handed it to the runtime: `void fn(void *data)`.
    let function: unsafe extern "C-unwind" fn(usize) =
        unsafe { core::mem::transmute(head.tag.function) };
    // SAFETY: with a block of its own, copied as the program asked.
    let body = || unsafe { function(block) };
    match current() {
        Some(thread) => run(thread, &head.tag.frame(), 0, body),
        None => body(),
    }
}

/// Copies header and block in place of the program's copy function.
unsafe extern "C-unwind" fn gomp_copy(to: *mut Header, from: *const Header) {
    // SAFETY: the runtime gives room for what `create` said; `from` is the header made there.
    unsafe {
        to.write(*from);
        let copy: unsafe extern "C-unwind" fn(u64, u64) = core::mem::transmute((*from).copy);
        copy((to as u64).wrapping_add((*from).distance), (*from).block);
    }
}
