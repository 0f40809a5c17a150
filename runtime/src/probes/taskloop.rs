//! Taskloops. The construct is a node of its own where it is met; each task that the runtime makes of it is an XU inside,
//! labelled by its first iteration, counted from 0.

use super::divide::{divide, divide_up};
use super::sync;
use super::tasks::{self, Room};
use crate::entry::{self, Call};
use crate::host;
use crate::process::current;
use crate::thread::{Cost, Frame, Place, Thread};
use core::cell::Cell;
use ompfuse_format::Construct;
use ompfuse_format::abi::FLAG_UNSIGNED;
use ompfuse_format::record::{IntervalHead, Step};

/// The order of a loop's values. All arithmetic wraps in 64 bits, as it does for both signs.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Iterations {
    first: u64,
    /// Distance of one iteration to the next.
    by: u64,
    down: bool,
}

impl Iterations {
    fn new(first: u64, step: u64, down: bool) -> Iterations {
        let by = if down { step.wrapping_neg() } else { step };
        Iterations {
            first,
            by: by.max(1),
            down,
        }
    }

    /// How far it is from one value to a later one.
    fn distance(&self, from: u64, to: u64) -> u64 {
        if self.down {
            from.wrapping_sub(to)
        } else {
            to.wrapping_sub(from)
        }
    }

    /// Number of the iteration with this value.
    fn index(&self, value: u64) -> i64 {
        divide(self.distance(self.first, value), self.by) as i64
    }

    /// Whether there is nothing from one value to another, with or without signs.
    fn is_behind(&self, from: u64, to: u64) -> bool {
        let (from, to) = if self.down { (to, from) } else { (from, to) };
        from > to && from as i64 > to as i64
    }

    /// Iterations from `start` while before `end`.
    fn count(&self, start: u64, end: u64) -> u64 {
        divide_up(self.distance(start, end), self.by)
    }
}

/// What a task needs to know of the taskloop that it belongs to.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Common {
    /// The tasks' function.
    function: u64,
    /// The taskloop's node.
    node: u64,
    place: Place,
    loop_: Iterations,
    /// The program's block, for the copy function.
    block: u64,
    /// The program's copy function, 0 if there is none.
    copy: u64,
    site: u32,
    /// From the header to the copied block.
    distance: u32,
}

/// A call that returns after its tasks have ended; on the stack of the thread that makes it.
struct Waiting {
    common: Common,
    /// Making the tasks.
    making: Cost,
    /// Waiting for them.
    waiting: Cost,
    /// When that began, 0 if it was not seen.
    since: Cell<u64>,
    /// A task was executed while they were made: there is nothing to wait for.
    undeferred: Cell<bool>,
}

/// In front of GOMP's argument block, as a task's. The runtime stores and reads the first three words as those of the
/// block.
#[repr(C)]
struct Header {
    /// The task's first value, and the first one behind it.
    bounds: [u64; 2],
    /// Description of the reductions, if there are any.
    reductions: u64,
    /// Address of the header that the call was made with.
    made_at: u64,
    /// The call, if it waits; else null.
    call: *const Waiting,
}

/// The header of a call that doesn't wait: its tasks may outlive it.
#[repr(C)]
struct LongHeader {
    short: Header,
    common: Common,
}

/// Bytes of the longer one.
pub(super) const LARGEST_HEADER: usize = size_of::<LongHeader>();

impl Header {
    /// # Safety
    /// `header` was made by [`create`], or is the runtime's copy, and its call waits for its tasks if it says so.
    unsafe fn common(header: *const Header) -> Common {
        // SAFETY: the caller's promise; without a call that waits, the header is a long one.
        unsafe {
            match (*header).call.as_ref() {
                Some(call) => call.common,
                None => (*header.cast::<LongHeader>()).common,
            }
        }
    }
}

/// gomp-constants.h, GOMP_TASK_FLAG_UP.
const FLAG_UP: u64 = 1 << 8;
/// gomp-constants.h, GOMP_TASK_FLAG_NOGROUP.
const FLAG_NOGROUP: u64 = 1 << 11;

/// `GOMP_taskloop*(fn, data, cpyfn, size, align, flags, tasks, priority, start, end, step)`. `space`: room on the thunk's
/// stack, null if the block is too large for that.
#[inline(never)]
pub(crate) fn create(thread: &Thread, call: &Call, space: *mut u8) -> u64 {
    let mut regs = call.regs();
    let [function, data, copy, size, align, flags] = regs;
    let [start, end, step] = [4, 5, 6].map(|nth| call.known(nth).unwrap_or(0));
    let waits = flags & FLAG_NOGROUP == 0;
    let header_len = if waits {
        size_of::<Header>()
    } else {
        LARGEST_HEADER
    };
    let Some(room) = Room::new(space, header_len, size, align) else {
        return call.forward();
    };
    let unsigned = call.site().flags & FLAG_UNSIGNED != 0;
    let down = if unsigned {
        flags & FLAG_UP == 0
    } else {
        (step as i64) < 0
    };
    let (site, node, place) = begin(thread, call, None);
    let call_of = Waiting {
        common: Common {
            function,
            node,
            place,
            loop_: Iterations::new(start, step, down),
            block: data,
            copy,
            site,
            distance: room.distance as u32,
        },
        making: Cost::new(),
        waiting: Cost::new(),
        since: Cell::new(0),
        undeferred: Cell::new(false),
    };
    let header = room.header.cast::<Header>();
    // SAFETY: there is room for the header and the block, which is the program's; a block with a description of reductions
    // has it in its third word.
    unsafe {
        header.write(Header {
            bounds: [0; 2],
            reductions: if size >= 24 {
                (data as *const u64).add(2).read_unaligned()
            } else {
                0
            },
            made_at: header as u64,
            call: if waits {
                &raw const call_of
            } else {
                core::ptr::null()
            },
        });
        if !waits {
            (&raw mut (*header.cast::<LongHeader>()).common).write(call_of.common);
        }
        // A block with a copy function may be smaller than what is made of it. libomp reads it in full size nonetheless, and
        // calls the function later, when the block may be gone.
        if copy == 0 || (!waits && host::has_libomp(entry::this(call.site()))) {
            room.copy_block(data);
        }
    }
    regs[0] = enter as *const () as u64;
    regs[1] = header as u64;
    if copy != 0 {
        regs[2] = copy_header as *const () as u64;
    }
    regs[3] = room.len();
    regs[4] = room.align as u64;
    // SAFETY: enter(header) does what function(data) does; the runtime copies the block or calls copy_header, and a call
    // that waits returns after its tasks have ended.
    let (result, t0) = sync::timed(thread, &call_of.making, || unsafe {
        call.forward_with(&regs)
    });
    let empty = if unsigned {
        if down { start <= end } else { start >= end }
    } else if down {
        start as i64 <= end as i64
    } else {
        start as i64 >= end as i64
    };
    let mut since = call_of.since.get();
    if since == 0 {
        since = t0;
        if call_of.undeferred.get() {
            since = thread.last();
        } else if waits && !empty {
            // Others have executed all tasks: where making them ended and waiting began was not seen.
            thread.drain(&call_of.making, &call_of.waiting);
        }
    }
    end_of(thread, site, node, place, t0, &call_of.making);
    if waits && !empty {
        thread.write_wait(Construct::Taskgroup, site, since, 0, &call_of.waiting);
    }
    result
}

/// A taskloop begins: its node and place, which may have been given out already.
fn begin(thread: &Thread, call: &Call, known: Option<(u64, Place)>) -> (u32, u64, Place) {
    let site = entry::this(call.site());
    let (node, place) = known.unwrap_or_else(|| {
        let place = thread.place_task();
        (thread.new_node(), place)
    });
    thread.write_node(node, Construct::Taskloop, site, place);
    (site, node, place)
}

/// Its call has returned; `making` is what it has taken, without the tasks.
fn end_of(thread: &Thread, site: u32, node: u64, place: Place, t0: u64, making: &Cost) {
    let head = IntervalHead {
        construct: Construct::Taskloop,
        site,
        node,
        parent: place.parent,
        step: place.step,
        cpu: host::cpu(),
        index: place.index,
        extent: 0,
        t0,
        t1: thread.last(),
        own_ticks: making.ticks.get(),
        disturbed: making.disturbed.get(),
    };
    thread.write_interval(&head, making);
}

/// A task of GOMP's.
unsafe extern "C-unwind" fn enter(header: *mut Header) {
    // SAFETY: the header made by `create`, or the runtime's copy of it, with the bounds of this task.
    let (common, [start, end], call, made_at) = unsafe {
        let head = &*header;
        (Header::common(header), head.bounds, head.call, head.made_at)
    };
    let block = if common.copy != 0 && made_at == header as u64 {
        common.block as usize // not copied: the program's own is what it would get
    } else {
        (header as usize).wrapping_add(common.distance as usize)
    };
    // SAFETY: every taskloop's block begins with the bounds, where the runtime would have stored them.
    unsafe { (block as *mut [u64; 2]).write_unaligned([start, end]) };
    // SAFETY: the tasks' function, as the program handed it to the runtime: `void fn(void *data)`.
    let function: unsafe extern "C-unwind" fn(usize) =
        unsafe { core::mem::transmute(common.function) };
    // SAFETY: with a block of its own, copied as the program asked.
    let body = || unsafe { function(block) };
    let Some(thread) = current() else {
        return body();
    };
    let place = Place {
        parent: common.node,
        step: Step::Range,
        index: common.loop_.index(start),
        path: thread.path(&common.place, common.site, common.loop_.index(start)),
    };
    let frame = Frame::new(Construct::Task, common.site, thread.new_node(), place, 0, 1);
    tasks::run(thread, &frame, common.loop_.count(start, end), body);
    // SAFETY: a call that waits for this task.
    let Some(waiting) = (unsafe { call.as_ref() }) else {
        return;
    };
    if !core::ptr::eq(thread.account(), &raw const waiting.making) {
        return; // another thread's call, or one that waits already
    }
    // Tasks that the call executes as it makes them are where it has put them: in our room, or on the stack.
    let here = &raw const frame as usize;
    let on_stack = (here..waiting as *const Waiting as usize).contains(&(header as usize));
    if on_stack || made_at == header as u64 {
        waiting.undeferred.set(true);
    } else {
        thread.switch(&raw const waiting.waiting);
        thread.set_floor((waiting as *const Waiting) as usize);
        waiting.since.set(thread.last());
    }
}

/// In place of the program's copy function. The bounds stay: libomp stores them before.
unsafe extern "C-unwind" fn copy_header(to: *mut Header, from: *const Header) {
    // SAFETY: the runtime gives room for what `create` said; `from` is the header made there, or libomp's copy of header
    // and block.
    unsafe {
        let common = Header::common(from);
        (*to).reductions = (*from).reductions;
        (*to).made_at = (*from).made_at;
        (*to).call = (*from).call;
        if (*from).call.is_null() {
            (*to.cast::<LongHeader>()).common = common;
        }
        let copy: unsafe extern "C-unwind" fn(u64, u64) = core::mem::transmute(common.copy);
        let distance = u64::from(common.distance);
        let is_gone = (*from).call.is_null() && (*from).made_at != from as u64;
        let source = if is_gone {
            from as u64 + distance
        } else {
            common.block
        };
        copy(to as u64 + distance, source);
    }
}

/// Where the bounds of KMPC's tasks are, and what they mean.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Bounds {
    loop_: Iterations,
    /// From the task to its first and last value.
    at: [u32; 2],
}

impl Bounds {
    /// First iteration and number of iterations of a task.
    ///
    /// # Safety
    /// `task` is one that the runtime has made of the pattern.
    pub(super) unsafe fn of_task(&self, task: u64) -> (i64, u64) {
        // SAFETY: the caller's promise: the task is a copy of the pattern, in which the bounds are there.
        let [first, last] = self
            .at
            .map(|at| unsafe { ((task + u64::from(at)) as *const u64).read_unaligned() });
        let count = if self.loop_.is_behind(first, last) {
            0
        } else {
            divide(self.loop_.distance(first, last), self.loop_.by) + 1
        };
        (self.loop_.index(first), count)
    }
}

/// Larger than any compiler's task without its shared variables.
const MAX_TASK: u64 = 1 << 20;

/// `__kmpc_taskloop*(loc, gtid, task, if, *lower, *upper, step, nogroup, ...)`: the runtime copies the task, with its tag,
/// for each task that it makes.
pub(crate) fn pattern(thread: &Thread, call: &Call) -> u64 {
    let [task, lower, upper, step, nogroup] =
        [0, 1, 2, 3, 4].map(|nth| call.known(nth).unwrap_or(0));
    let at = [lower, upper].map(|bound| bound.wrapping_sub(task));
    let cost = Cost::new();
    thread.drain(&thread.pending, &cost);
    // SAFETY: the task that the program hands over; until then nobody else has it.
    let tag = unsafe { tasks::tag(task) }.filter(|_| at.iter().all(|&at| at < MAX_TASK));
    let Some(tag) = tag else {
        let (result, t0) = sync::timed(thread, &cost, || call.forward());
        thread.write_wait(
            Construct::TaskCreate,
            entry::this(call.site()),
            t0,
            0,
            &cost,
        );
        return result;
    };
    // SAFETY: as above; the bounds are fields of the task.
    let (site, node, place) = unsafe {
        let known = ((*tag).tag.node, (*tag).tag.place());
        let (site, node, place) = begin(thread, call, Some(known));
        let first = (lower as *const u64).read_unaligned();
        (*tag).tag.node = 0; // each task gets its own when it begins
        (*tag).tag.parent = node;
        (*tag).tag.site = site;
        (*tag).bounds = Some(Bounds {
            loop_: Iterations::new(first, step, (step as i64) < 0),
            at: at.map(|at| at as u32),
        });
        (site, node, place)
    };
    let (result, t0) = sync::timed(thread, &cost, || call.forward());
    let waiting = Cost::new();
    if nogroup as u32 == 0 {
        // It waits for its tasks as well; how long it took to make them is not seen.
        thread.drain(&cost, &waiting);
    }
    end_of(thread, site, node, place, t0, &cost);
    if nogroup as u32 == 0 {
        thread.write_wait(Construct::Taskgroup, site, t0, 0, &waiting);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_logical_in_both_directions_and_signs() {
        let up = Iterations::new(10, 3, false);
        assert_eq!((up.index(16), up.count(16, 23)), (2, 3));
        let down = Iterations::new(10, -3i64 as u64, true);
        assert_eq!((down.index(4), down.count(4, -4i64 as u64)), (2, 3));
        assert!(down.is_behind(0, 3) && !down.is_behind(3, 3) && up.is_behind(3, 0));
        assert!(!up.is_behind(3, u64::MAX) && !down.is_behind(3, u64::MAX)); // with one sign there is something
        let all = Iterations::new(i64::MIN as u64, 1, false);
        assert_eq!(all.index(i64::MAX as u64), -1); // the largest number, of a loop without sign
        let unsigned = Iterations::new(u64::MAX - 1, -2i64 as u64, true);
        assert_eq!(
            (unsigned.index(1 << 63), unsigned.count(4, 0)),
            ((1 << 62) - 1, 2)
        );
    }
}
