//! Parallel regions: the body is wrapped by a closure that follows it into the team's threads.

use super::{loops, sync};
use crate::entry::{self, Call, bound};
use crate::host;
use crate::process;
use crate::thread::{Cost, Frame, Place, Thread};
use core::arch::global_asm;
use core::cell::Cell;
use core::sync::atomic::{AtomicI64, Ordering};
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::record::{IntervalHead, Step};

/// What a team's threads need to know of the region; on the stack of the encountering thread, which waits for them.
#[repr(C)]
struct Region {
    /// First word of the program's data, which `GOMP_parallel_reductions` reads: a description of the reductions.
    reductions: u64,
    function: u64,
    data: u64,
    site: u32,
    node: u64,
    /// First value and increment of the loop that the threads are in from the start (combined constructs of GOMP).
    in_loop: Option<(i64, i64)>,
    /// What it is: a loop, or sections.
    work: Construct,
    /// Team size, as the team's first thread finds it.
    team: AtomicI64,
}

/// Forks: runs `call` with `region`'s node, and records the region as the encountering thread sees it.
fn run(thread: &Thread, site: u32, call: impl FnOnce(u64) -> (u64, i64)) -> u64 {
    let place = thread.place_task();
    let node = thread.new_node();
    thread.write_node(node, Construct::Parallel, site, place);
    let cost = Cost::new();
    let mut team = 1;
    let (result, t0) = sync::timed(thread, &cost, || {
        let (result, size) = call(node);
        team = size;
        result
    });
    let head = head(site, node, place, team, t0, thread.last(), &cost);
    thread.write_interval(&head, &cost);
    result
}

fn head(
    site: u32,
    node: u64,
    place: Place,
    team: i64,
    t0: u64,
    t1: u64,
    cost: &Cost,
) -> IntervalHead {
    IntervalHead {
        construct: Construct::Parallel,
        site,
        node,
        parent: place.parent,
        step: place.step,
        cpu: host::cpu(),
        index: place.index,
        extent: team.max(1) as u64,
        t0,
        t1,
        own_ticks: cost.ticks.get(),
    }
}

/// One thread's part of the region: `body` in a frame of its own.
fn implicit_task(site: u32, node: u64, team: &AtomicI64, body: impl FnOnce(Option<&Thread>)) {
    let Some(thread) = process::current() else {
        return body(None);
    };
    let (tid, size) = (host::thread_num(site), host::num_threads(site));
    if tid == 0 {
        team.store(size, Ordering::Relaxed);
    }
    let frame = implicit_frame(site, node, tid, size);
    thread.enter(&frame);
    body(Some(thread));
    thread.leave(&frame, tid as u64);
}

fn implicit_frame(site: u32, node: u64, tid: i64, team: i64) -> Frame {
    let place = Place {
        parent: node,
        step: Step::None,
        index: tid,
    };
    Frame::new(Construct::ImplicitTask, site, node, place, tid, team)
}

/// `GOMP_parallel(fn, data, ...)` and its like.
pub(crate) fn gomp(
    thread: &Thread,
    call: &Call,
    in_loop: Option<(i64, i64)>,
    work: Construct,
) -> u64 {
    let site = entry::this(call.site());
    let [function_at, data_at] = [call.site().args[0], call.site().args[1]].map(usize::from);
    let mut regs = call.regs();
    if function_at >= regs.len() || data_at >= regs.len() {
        return call.forward();
    }
    run(thread, site, |node| {
        let (function, data) = (regs[function_at], regs[data_at]);
        let reductions = if call.site().probe == Probe::ParallelReductions as u16 {
            // SAFETY: the runtime would read it as well.
            unsafe { (data as *const u64).read_unaligned() }
        } else {
            0
        };
        let region = Region {
            reductions,
            function,
            data,
            site,
            node,
            in_loop,
            work,
            team: AtomicI64::new(1),
        };
        regs[function_at] = gomp_enter as *const () as u64;
        regs[data_at] = &raw const region as u64;
        // SAFETY: gomp_enter(region) does what function(data) does. The runtime returns after all have done so.
        let result = unsafe { call.forward_with(&regs) };
        (result, region.team.load(Ordering::Relaxed))
    })
}

/// `GOMP_parallel_loop_*(fn, data, threads, start, end, incr, ...)`: the body fetches its first range with `*_next`.
pub(crate) fn gomp_loop(thread: &Thread, call: &Call) -> u64 {
    let site = call.site();
    let known = |nth| bound(site, call.known(nth).unwrap_or(0));
    gomp(thread, call, Some((known(2), known(4))), Construct::Loop)
}

unsafe extern "C-unwind" fn gomp_enter(region: *const Region) {
    // SAFETY: handed over by `gomp`, whose stack frame lasts until the team is done.
    let region = unsafe { &*region };
    // SAFETY: the outlined function, as the program handed it to the runtime: `void fn(void *data)`.
    let function: unsafe extern "C-unwind" fn(u64) =
        unsafe { core::mem::transmute(region.function) };
    implicit_task(region.site, region.node, &region.team, |thread| {
        if let (Some(thread), Some((first, step))) = (thread, region.in_loop) {
            loops::open(thread, region.work, region.site, first, step, None);
        }
        // SAFETY: with the program's own argument.
        unsafe { function(region.data) };
    });
}

/// Most arguments of a microtask that are kept on the stack.
const FEW: usize = 64;

/// What a team's threads need to know of a region of `__kmpc_fork_call`.
struct ForkRegion {
    microtask: u64,
    args: *const u64,
    argc: usize,
    site: u32,
    node: u64,
    team: AtomicI64,
}

/// `__kmpc_fork_call(loc, argc, microtask, ...)`: the arguments are packed, and unpacked before the microtask.
pub(crate) fn fork(thread: &Thread, call: &Call) -> u64 {
    let site = entry::this(call.site());
    let [loc, argc, microtask] = [call.arg(0), call.arg(1), call.arg(2)];
    let argc = argc as u32 as usize;
    let mut few = [0; FEW];
    let many: Vec<u64>; // allocates, where the program passes more than anybody has seen
    let args: &[u64] = if argc <= FEW {
        few.iter_mut()
            .take(argc)
            .enumerate()
            .for_each(|(at, arg)| *arg = call.arg(3 + at));
        few.get(..argc).unwrap_or(&[])
    } else {
        many = (0..argc).map(|at| call.arg(3 + at)).collect();
        &many
    };
    // SAFETY: the target is __kmpc_fork_call, which is variadic.
    let target: unsafe extern "C-unwind" fn(u64, i32, u64, ...) =
        unsafe { core::mem::transmute(call.target()) };
    run(thread, site, |node| {
        let region = ForkRegion {
            microtask,
            args: args.as_ptr(),
            argc,
            site,
            node,
            team: AtomicI64::new(1),
        };
        // SAFETY: kmpc_enter(gtid, btid, region) does what microtask(gtid, btid, args...) does; the runtime returns after
        // all threads have done so.
        unsafe { target(loc, 1, kmpc_enter as *const () as u64, &raw const region) };
        (0, region.team.load(Ordering::Relaxed))
    })
}

unsafe extern "C-unwind" fn kmpc_enter(
    gtid: *const i32,
    btid: *const i32,
    region: *const ForkRegion,
) {
    // SAFETY: handed over by `fork`, whose stack frame lasts until the team is done.
    let region = unsafe { &*region };
    implicit_task(region.site, region.node, &region.team, |_| {
        // SAFETY: the program's microtask with the program's arguments.
        unsafe { ompfuse_invoke_microtask(region.microtask, gtid, btid, region.argc, region.args) };
    });
}

unsafe extern "C-unwind" {
    /// Calls `microtask(gtid, btid, args[0], ..., args[argc - 1])`.
    fn ompfuse_invoke_microtask(
        microtask: u64,
        gtid: *const i32,
        btid: *const i32,
        argc: usize,
        args: *const u64,
    );
}

global_asm!(
    ".pushsection .text",
    ".globl ompfuse_invoke_microtask",
    ".hidden ompfuse_invoke_microtask",
    ".type ompfuse_invoke_microtask,@function",
    "ompfuse_invoke_microtask:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov r11, rdi", // microtask
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov r10, rcx", // argc
    "mov rax, r8",  // args
    // The arguments from the fifth on go to the stack, last one first; it stays aligned to 16.
    "cmp r10, 4",
    "jbe 2f",
    "test r10, 1",
    "jz 1f",
    "sub rsp, 8",
    "1:",
    "push [rax + r10 * 8 - 8]",
    "dec r10",
    "cmp r10, 4",
    "ja 1b",
    "2:",
    // Argument registers that are not used may hold anything, but memory behind the last argument is not read.
    "test r10, r10",
    "jz 3f",
    "mov rdx, [rax]",
    "cmp r10, 1",
    "je 3f",
    "mov rcx, [rax + 8]",
    "cmp r10, 2",
    "je 3f",
    "mov r8, [rax + 16]",
    "cmp r10, 3",
    "je 3f",
    "mov r9, [rax + 24]",
    "3:",
    "xor eax, eax",
    "call r11",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size ompfuse_invoke_microtask, . - ompfuse_invoke_microtask",
    ".popsection",
);

/// A serialised region or an undeferred task of KMPC: the program runs the body between two calls of ours, so the frame
/// can't live on a stack of ours.
pub(crate) struct Detached {
    pub(crate) frame: Frame,
    pub(crate) cost: Cost,
    place: Place,
    t0: u64,
    node: u64,
    pub(crate) next: Cell<*mut Detached>,
}

impl Detached {
    /// A detached frame around `frame`.
    pub(crate) fn new(frame: Frame) -> Detached {
        let place = frame.place;
        let node = frame.node;
        Detached {
            frame,
            cost: Cost::new(),
            place,
            t0: 0,
            node,
            next: Cell::new(core::ptr::null_mut()),
        }
    }
}

/// `__kmpc_serialized_parallel`: a team of one.
pub(crate) fn serialized_begin(thread: &Thread, call: &Call) -> u64 {
    let site = entry::this(call.site());
    let place = thread.place_task();
    let node = thread.new_node();
    thread.write_node(node, Construct::Parallel, site, place);
    let mut detached = Detached::new(implicit_frame(site, node, 0, 1));
    let (result, t0) = sync::timed(thread, &detached.cost, || call.forward());
    detached.t0 = t0;
    detached.place = place;
    if let Some(detached) = thread.detach(detached) {
        thread.enter(&detached.frame);
    }
    result
}

/// `__kmpc_end_serialized_parallel`.
pub(crate) fn serialized_end(thread: &Thread, call: &Call) -> u64 {
    let Some(detached) = thread.detached(Construct::ImplicitTask) else {
        return call.forward();
    };
    thread.leave(&detached.frame, 0);
    let (result, _) = sync::timed(thread, &detached.cost, || call.forward());
    let Detached {
        place,
        t0,
        node,
        frame,
        cost,
        ..
    } = detached;
    let head = head(frame.site, *node, *place, 1, *t0, thread.last(), cost);
    thread.write_interval(&head, cost);
    thread.reattach(detached);
    result
}
