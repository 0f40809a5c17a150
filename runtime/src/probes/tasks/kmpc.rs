//! The tasks of KMPC: allocated by one call, handed over by another, and executed by an entry that the runtime calls.

use super::{Tag, run};
use crate::entry::{self, Call};
use crate::probes::depend;
use crate::probes::sync;
use crate::probes::taskloop::Bounds;
use crate::process::current;
use crate::thread::{Choice, Cost, Detached, Frame, Place, Thread};
use ompfuse_format::Construct;
use ompfuse_format::record::Step;

/// Marks a [`KmpTag`] as ours.
const MAGIC: u64 = 0x4b53_4154_4546_504f; // "OPFETASK"

/// KMPC's task, as far as the compiler's interface fixes it (`kmp.h`, kmp_task_t).
#[repr(C)]
struct KmpTask {
    shareds: u64,
    routine: u64,
}

/// Before the shared variables of KMPC's task. The runtime copies it with the task where a taskloop multiplies one.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(in crate::probes) struct KmpTag {
    magic: u64,
    pub(in crate::probes) tag: Tag,
    /// Children of the parts that an untied task has executed so far.
    rank: i64,
    /// What was chosen when its first part began.
    choice: Choice,
    is_untied: bool,
    /// What the tasks of a taskloop have in common.
    pub(in crate::probes) bounds: Option<Bounds>,
}

/// Bytes behind KMPC's task, before its shared variables.
const TAG_LEN: u64 = size_of::<KmpTag>() as u64;

/// kmp.h, kmp_tasking_flags_t.tiedness.
const FLAG_TIED: u64 = 1;

/// `__kmpc_omp_task_alloc(loc, gtid, flags, sizeof_task, sizeof_shareds, entry)`: the task grows by a tag, which is found
/// again right before the shared variables.
pub(crate) fn alloc(thread: &Thread, call: &Call) -> u64 {
    let mut regs = call.regs();
    let size = regs[3].next_multiple_of(8) + TAG_LEN;
    regs[3] = size;
    regs[4] = regs[4].max(8); // so that there is a pointer to the shared variables
    let tag = KmpTag {
        magic: MAGIC,
        tag: Tag::new(thread, entry::this(call.site()), regs[5]),
        rank: 0,
        choice: Choice::NONE,
        is_untied: regs[2] & FLAG_TIED == 0,
        bounds: None,
    };
    thread.begin_creation(call.stack_pointer());
    // SAFETY: a larger task is as good for the program as one of the size it asked for.
    let result = unsafe { call.forward_with(&regs) };
    let task = result as *mut KmpTask;
    // SAFETY: the runtime's new task; the tag's place is inside it if the shared variables lie behind what we asked for.
    unsafe {
        if !task.is_null() && (*task).shareds == result + size {
            ((*task).shareds.wrapping_sub(TAG_LEN) as *mut KmpTag).write(tag);
            (*task).routine = kmpc_enter as *const () as u64;
        }
    }
    result
}

/// `__kmpc_task_allow_completion_event`: the task ends when the event that is given back is fulfilled.
pub(crate) fn event(thread: &Thread, call: &Call) -> u64 {
    let event = sync::service(thread, call);
    // SAFETY: the task that the program has allocated, and not handed over yet.
    if let Some(tag) = unsafe { tag(call.known(0).unwrap_or(0)) } {
        // SAFETY: as above.
        let of = unsafe { ((*tag).tag.node, (*tag).tag.site) };
        depend::detached(thread, of, event);
    }
    event
}

/// The tag of a task that `alloc` has seen. What is behind the pointer changes only where the task is handled by one thread.
///
/// # Safety
/// `task` must be a task of KMPC, allocated by a patched or unpatched call.
pub(in crate::probes) unsafe fn tag(task: u64) -> Option<*mut KmpTag> {
    let task = task as *const KmpTask;
    // SAFETY: the caller's promise; the routine is ours only where `alloc` has put the tag.
    unsafe {
        if task.is_null() || (*task).routine != kmpc_enter as *const () as u64 {
            return None;
        }
        let tag = (*task).shareds.wrapping_sub(TAG_LEN) as *mut KmpTag;
        ((*tag).magic == MAGIC).then_some(tag)
    }
}

/// The entry of a tagged task; called again for each part of an untied one.
unsafe extern "C-unwind" fn kmpc_enter(gtid: i32, task: *mut KmpTask) -> i32 {
    // SAFETY: the runtime calls a task's routine with the task, and only tagged tasks have this one.
    let at = unsafe { (*task).shareds.wrapping_sub(TAG_LEN) as *mut KmpTag };
    // SAFETY: as above. A copy: the task may be gone before its last part returns.
    let kept = unsafe { at.read() };
    // SAFETY: the compiler's task entry, as given to the allocation.
    let function: unsafe extern "C-unwind" fn(i32, *mut KmpTask) -> i32 =
        unsafe { core::mem::transmute(kept.tag.function) };
    let Some(thread) = current() else {
        // SAFETY: with the runtime's own arguments.
        return unsafe { function(gtid, task) };
    };
    let (frame, extent) = match kept.bounds {
        None => (kept.tag.frame(), 0),
        Some(bounds) => {
            let mut tag = kept.tag;
            if tag.node == 0 {
                tag.node = thread.new_node();
                // SAFETY: the task has not begun: nobody else refers to it.
                unsafe { (*at).tag.node = tag.node };
            }
            // SAFETY: the runtime has stored the bounds of this task where those of the pattern were.
            let (index, extent) = unsafe { bounds.of_task(task as u64) };
            let place = Place {
                parent: tag.parent,
                step: Step::Range,
                index,
                path: thread.path(&tag.place(), tag.site, index),
            };
            let frame = Frame::new(Construct::Task, tag.site, tag.node, place, 0, 1);
            (frame, extent)
        }
    };
    frame.resume(kept.rank, kept.choice, kept.is_untied);
    let mut result = 0;
    run(thread, &frame, extent, || {
        // SAFETY: the task has not executed anything of this part yet, so it is there, and this thread's.
        unsafe { (*at).choice = frame.choice() };
        // SAFETY: with the runtime's own arguments.
        result = unsafe { function(gtid, task) };
    });
    result
}

/// `__kmpc_omp_task*`: hands the task over, or executes it at once. An untied task hands itself over at the end of each of
/// its parts but the last.
pub(crate) fn enqueue(thread: &Thread, call: &Call) -> u64 {
    // SAFETY: the task that the program hands over; until then nobody else has it.
    let site = unsafe {
        match tag(call.known(0).unwrap_or(0)) {
            None => entry::this(call.site()),
            Some(tag) => {
                let frame = thread.task_frame();
                if frame.node == (*tag).tag.node {
                    (*tag).rank = frame.rank();
                }
                if call.known(1).is_some() {
                    depend::kmpc_task(thread, call, ((*tag).tag.node, (*tag).tag.site));
                }
                (*tag).tag.site
            }
        }
    };
    let cost = Cost::new();
    let (result, t0) = created(thread, call, &cost);
    thread.write_wait(Construct::TaskCreate, site, t0, 0, &cost);
    result
}

/// Calls the original, which is the last step of creating a task: what the former steps have cost is in the account too.
/// Returns its result and when the creation began, as far as it is known.
#[inline(always)]
fn created(thread: &Thread, call: &Call, cost: &Cost) -> (u64, u64) {
    let t0 = thread.go_on_with_creation(call.stack_pointer());
    thread.drain(&thread.pending, cost);
    match t0 {
        None => sync::timed(thread, cost, || call.forward()),
        Some(t0) => (sync::timed_from_here(thread, cost, || call.forward()).0, t0),
    }
}

/// `__kmpc_omp_task_begin_if0`: the program calls the task's entry itself after this.
pub(crate) fn begin_if0(thread: &Thread, call: &Call) -> u64 {
    // SAFETY: the task that the program executes.
    let tag = unsafe { tag(call.known(0).unwrap_or(0)).map(|at| at.read().tag) };
    let cost = Cost::new();
    let (result, t0) = created(thread, call, &cost);
    let Some(tag) = tag else {
        thread.absorb(&cost);
        return result;
    };
    thread.write_wait(Construct::TaskCreate, tag.site, t0, 0, &cost);
    if let Some(detached) = thread.detach(Detached::new(tag.frame(), None)) {
        thread.enter_here(&detached.frame);
    }
    result
}

/// `__kmpc_omp_task_complete_if0`.
pub(crate) fn complete_if0(thread: &Thread, call: &Call) -> u64 {
    if let Some(detached) = thread.detached(Construct::Task) {
        thread.leave_as(&detached.frame, 0, false);
        thread.reattach(detached);
    }
    call.forward()
}
