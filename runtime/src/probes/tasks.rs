//! Explicit tasks: the label is made where the task is created and travels with it.

use super::parallel::Detached;
use super::sync;
use crate::entry::{self, Call, MAX_STACK_ALIGN};
use crate::process;
use crate::thread::{Cost, Frame, Place, Thread};
use ompfuse_format::Construct;
use ompfuse_format::record::Step;

/// Marks a [`Tag`] as ours.
const MAGIC: u64 = 0x4b53_4154_4546_504f; // "OPFETASK"

/// What travels with a task.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Tag {
    magic: u64,
    /// The task's own function.
    function: u64,
    node: u64,
    parent: u64,
    index: i64,
    site: u32,
    ranked_by_tid: bool,
}

impl Tag {
    /// For a task created here.
    fn new(thread: &Thread, site: u32, function: u64) -> Tag {
        let place = thread.place_task();
        Tag {
            magic: MAGIC,
            function,
            node: thread.new_node(),
            parent: place.parent,
            index: place.index,
            site,
            ranked_by_tid: place.step == Step::TidRanked,
        }
    }

    fn frame(&self) -> Frame {
        let step = if self.ranked_by_tid {
            Step::TidRanked
        } else {
            Step::Ranked
        };
        let place = Place {
            parent: self.parent,
            step,
            index: self.index,
        };
        Frame::new(Construct::Task, self.site, self.node, place, 0, 1)
    }

    /// Executes the task's body (or a part of it) in its frame.
    fn run(&self, body: impl FnOnce()) {
        let Some(thread) = process::current() else {
            return body();
        };
        let frame = self.frame();
        thread.enter(&frame);
        body();
        thread.leave(&frame, 0);
    }
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
}

/// Bytes that a header may need in front of a block.
pub(crate) const HEADER_LEN: usize = size_of::<Header>().next_multiple_of(16);

/// gomp-constants.h, GOMP_TASK_FLAG_DETACH.
const FLAG_DETACH: u64 = 1 << 13;

/// `GOMP_task(fn, data, cpyfn, size, align, if, flags, ...)`. `space`: room on the thunk's stack, null if the block is too
/// large for that.
pub(crate) fn create(thread: &Thread, call: &Call, space: *mut u8) -> u64 {
    let mut regs = call.regs();
    let [function, data, copy, size, align, _] = regs;
    let size = size as usize;
    let align = (align as usize).max(1);
    if align > MAX_STACK_ALIGN || !align.is_power_of_two() {
        return call.forward(); // no compiler asks for it
    }
    let whole_align = align.max(16);
    let distance = HEADER_LEN.next_multiple_of(whole_align);
    let allocated: *mut u8;
    let base = if space.is_null() {
        // SAFETY: plain allocation; libgomp allocates for every deferred task as well.
        allocated = unsafe { libc::malloc(distance + size + whole_align) }.cast();
        if allocated.is_null() {
            return call.forward();
        }
        allocated
    } else {
        allocated = core::ptr::null_mut();
        space
    };
    let header = (base as usize).next_multiple_of(whole_align) as *mut Header;
    let tag = Tag::new(thread, entry::this(call.site()), function);
    let detach = call.known(6).unwrap_or(0) & FLAG_DETACH != 0 && size >= 8;
    // SAFETY: base has distance + size bytes from the next aligned address on: the thunk reserved
    // size + 2 * align + HEADER_LEN, malloc whole_align more than needed. `data` has size bytes.
    unsafe {
        header.write(Header {
            event: 0,
            tag,
            block: data,
            copy,
            distance: distance as u64,
            detach,
        });
        if copy == 0 && size > 0 {
            core::ptr::copy_nonoverlapping(
                data as *const u8,
                header.cast::<u8>().add(distance),
                size,
            );
        }
    }
    regs[0] = gomp_enter as *const () as u64;
    regs[1] = header as u64;
    if copy != 0 {
        regs[2] = gomp_copy as *const () as u64;
    }
    regs[3] = (distance + size) as u64;
    regs[4] = whole_align as u64;
    let cost = Cost::new();
    // SAFETY: gomp_enter(header) does what function(data) does; the runtime copies the block or calls gomp_copy.
    let (result, t0) = sync::timed(thread, &cost, || unsafe { call.forward_with(&regs) });
    thread.write_wait(Construct::TaskCreate, tag.site, t0, 0, &cost);
    if !allocated.is_null() {
        // SAFETY: the runtime has copied the block, or executed the task.
        unsafe { libc::free(allocated.cast()) };
    }
    result
}

unsafe extern "C-unwind" fn gomp_enter(header: *mut Header) {
    // SAFETY: the header made by `create`, or the runtime's copy of it.
    let head = unsafe { &*header };
    let block = (header as usize).wrapping_add(head.distance as usize);
    if head.detach {
        // SAFETY: the block is at least one word long (`create`).
        unsafe { (block as *mut u64).write_unaligned(head.event) };
    }
    // SAFETY: the task's function, as the program handed it to the runtime: `void fn(void *data)`.
    let function: unsafe extern "C-unwind" fn(usize) =
        unsafe { core::mem::transmute(head.tag.function) };
    // SAFETY: with a block of its own, copied as the program asked.
    head.tag.run(|| unsafe { function(block) });
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

/// KMPC's task, as far as the compiler's interface fixes it (`kmp.h`, kmp_task_t).
#[repr(C)]
struct KmpTask {
    shareds: u64,
    routine: u64,
}

/// Bytes behind KMPC's task, before its shared variables.
const TAG_LEN: u64 = size_of::<Tag>() as u64;

/// `__kmpc_omp_task_alloc(loc, gtid, flags, sizeof_task, sizeof_shareds, entry)`: the task grows by a tag, which is found
/// again right before the shared variables.
pub(crate) fn alloc(thread: &Thread, call: &Call) -> u64 {
    let mut regs = call.regs();
    let size = regs[3].next_multiple_of(8) + TAG_LEN;
    regs[3] = size;
    regs[4] = regs[4].max(8); // so that there is a pointer to the shared variables
    let tag = Tag::new(thread, entry::this(call.site()), regs[5]);
    let before = thread.switch(&raw const thread.pending);
    // SAFETY: a larger task is as good for the program as one of the size it asked for.
    let result = unsafe { call.forward_with(&regs) };
    thread.switch(before);
    let task = result as *mut KmpTask;
    // SAFETY: the runtime's new task; the tag's place is inside it if the shared variables lie behind what we asked for.
    unsafe {
        if !task.is_null() && (*task).shareds == result + size {
            ((*task).shareds.wrapping_sub(TAG_LEN) as *mut Tag).write(tag);
            (*task).routine = kmpc_enter as *const () as u64;
        }
    }
    result
}

/// The tag of a task that `alloc` has seen.
///
/// # Safety
/// `task` must be a task of KMPC, allocated by a patched or unpatched call.
unsafe fn tag(task: *const KmpTask) -> Option<Tag> {
    // SAFETY: the caller's promise; the routine is ours only where `alloc` has put the tag.
    unsafe {
        if task.is_null() || (*task).routine != kmpc_enter as *const () as u64 {
            return None;
        }
        let tag = ((*task).shareds.wrapping_sub(TAG_LEN) as *const Tag).read();
        (tag.magic == MAGIC).then_some(tag)
    }
}

/// The entry of a tagged task; called again for each part of an untied one.
unsafe extern "C-unwind" fn kmpc_enter(gtid: i32, task: *mut KmpTask) -> i32 {
    // SAFETY: the runtime calls a task's routine with the task, and only tagged tasks have this one.
    let tag = unsafe { ((*task).shareds.wrapping_sub(TAG_LEN) as *const Tag).read() };
    // SAFETY: the compiler's task entry, as given to the allocation.
    let function: unsafe extern "C-unwind" fn(i32, *mut KmpTask) -> i32 =
        unsafe { core::mem::transmute(tag.function) };
    let mut result = 0;
    // SAFETY: with the runtime's own arguments.
    tag.run(|| result = unsafe { function(gtid, task) });
    result
}

/// `__kmpc_omp_task*`: hands the task over, or executes it at once.
pub(crate) fn enqueue(thread: &Thread, call: &Call) -> u64 {
    let task = call.known(0).unwrap_or(0) as *const KmpTask;
    // SAFETY: the task that the program hands over.
    let site = unsafe { tag(task) }.map_or_else(|| entry::this(call.site()), |tag| tag.site);
    let cost = Cost::new();
    thread.pending.drain_into(&cost, thread.k());
    let (result, t0) = sync::timed(thread, &cost, || call.forward());
    thread.write_wait(Construct::TaskCreate, site, t0, 0, &cost);
    result
}

/// `__kmpc_omp_task_begin_if0`: the program calls the task's entry itself after this.
pub(crate) fn begin_if0(thread: &Thread, call: &Call) -> u64 {
    let task = call.known(0).unwrap_or(0) as *const KmpTask;
    // SAFETY: the task that the program executes.
    let tag = unsafe { tag(task) };
    let cost = Cost::new();
    thread.pending.drain_into(&cost, thread.k());
    let (result, t0) = sync::timed(thread, &cost, || call.forward());
    let Some(tag) = tag else {
        thread.absorb(&cost);
        return result;
    };
    thread.write_wait(Construct::TaskCreate, tag.site, t0, 0, &cost);
    if let Some(detached) = thread.detach(Detached::new(tag.frame())) {
        thread.enter(&detached.frame);
    }
    result
}

/// `__kmpc_omp_task_complete_if0`.
pub(crate) fn complete_if0(thread: &Thread, call: &Call) -> u64 {
    if let Some(detached) = thread.detached(Construct::Task) {
        thread.leave(&detached.frame, 0);
        thread.reattach(detached);
    }
    call.forward()
}
