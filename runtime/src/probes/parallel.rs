//! Parallel regions: the body is wrapped by a closure that follows it into the team's threads. Host `teams` regions are the
//! same with teams for threads; how many of them there are, and which one this is, the runtime tells.

use super::{loops, sync};
use crate::entry::{self, Call, bound, invoke};
use crate::host;
use crate::process::current;
use crate::thread::sums::team::TeamSums;
use crate::thread::{Cost, Forked, Frame, Outermost, Place, Region, Thread};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI64, Ordering};
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::record::{IntervalHead, Step};

impl Forked {
    /// A region begins with this call.
    #[inline(always)]
    pub(crate) fn new(thread: &Thread, call: &Call) -> Forked {
        let site = call.site();
        let construct = match Construct::from_number(site.construct) {
            Some(Construct::Teams) => Construct::Teams,
            _ => Construct::Parallel,
        };
        let mut forked = Forked {
            construct,
            site: entry::this(site),
            node: thread.new_node(),
            place: thread.place_task(),
            outermost: thread.outermost(),
            around: thread.team_word(),
            team: AtomicI64::new(1),
            sums: TeamSums::new(thread),
        };
        let context = thread.note_fork(construct, forked.site, || call.caller());
        if context != 0 {
            forked.place.path = thread.path_through(forked.place.path, context);
        }
        thread.write_node_at_once(forked.node, construct, forked.site, forked.place);
        forked
    }

    /// Runs `call` and records the region as the encountering thread sees it.
    #[inline(always)]
    fn run(&self, thread: &Thread, call: impl FnOnce() -> u64) -> u64 {
        let cost = Cost::new();
        self.begin(thread);
        let (result, t0) = sync::timed(thread, &cost, call);
        self.write(thread, t0, &cost);
        result
    }

    /// It is about to be forked, or has been.
    #[inline(always)]
    pub(crate) fn begin(&self, thread: &Thread) {
        self.sums.begin(thread, self.site, self.around);
    }

    /// Writes the region's interval, which ends at the last boundary.
    #[inline(always)]
    pub(crate) fn write(&self, thread: &Thread, t0: u64, cost: &Cost) {
        thread.be_back_in_team(self.around);
        let Place {
            parent,
            step,
            index,
            ..
        } = self.place;
        let head = IntervalHead {
            construct: self.construct,
            site: self.site,
            node: self.node,
            parent,
            step,
            cpu: host::cpu(),
            index,
            extent: self.team.load(Ordering::Relaxed).max(1) as u64,
            t0,
            t1: thread.last(),
            own_ticks: cost.ticks.get(),
            disturbed: cost.disturbed.get(),
        };
        self.sums.end(thread, &head, self.around, &self.place);
        thread.write_interval(&head, cost);
    }

    /// One member's part of the region: `body` in a frame of its own.
    #[inline(always)]
    fn part(&self, body: impl FnOnce(Option<&Thread>)) {
        let Some(thread) = current() else {
            return body(None);
        };
        let frame = self.frame();
        frame.team_sums.set(&raw const self.sums);
        thread.begin_part(self.outermost_of(&frame));
        thread.enter(&frame);
        thread.be_in_team(&frame, false);
        body(Some(thread));
        thread.leave_as(&frame, frame.tid.get() as u64, true);
        thread.end_part(&frame);
        thread.rest();
    }

    /// The outermost region that a part of this one belongs to.
    #[inline(always)]
    pub(crate) fn outermost_of(&self, part: &Frame) -> Outermost {
        self.outermost.unwrap_or(Outermost {
            construct: self.construct,
            site: self.site,
            member: part.tid.get() as u32,
        })
    }

    /// The frame of the member that asks.
    fn frame(&self) -> Frame {
        let (construct, tid, size) = if self.construct == Construct::Teams {
            (
                Construct::Team,
                host::team_num(self.site),
                host::num_teams(self.site),
            )
        } else {
            (
                Construct::ImplicitTask,
                host::thread_num(self.site),
                host::num_threads(self.site),
            )
        };
        if tid == 0 {
            self.team.store(size, Ordering::Relaxed);
        }
        self.frame_of(construct, tid, size)
    }

    pub(crate) fn frame_of(&self, construct: Construct, tid: i64, size: i64) -> Frame {
        let place = Place {
            parent: self.node,
            step: Step::None,
            index: tid,
            path: self.place.path,
        };
        Frame::new(construct, self.site, self.node, place, tid, size)
    }
}

/// Notes whether a call of GOMP says how many threads it wants. 1 is also what `if(0)` is compiled to.
#[inline(always)]
pub(super) fn note_size(call: &Call) {
    if call.arg(2) as u32 > 1 {
        host::note_sized_team();
    }
}

/// `GOMP_parallel(fn, data, ...)` and its like.
pub(crate) fn gomp(
    thread: &Thread,
    call: &Call,
    in_loop: Option<(i64, i64)>,
    work: Construct,
) -> u64 {
    let [function_at, data_at] = [call.site().args[0], call.site().args[1]].map(usize::from);
    let mut regs = call.regs();
    if function_at >= regs.len() || data_at >= regs.len() {
        return call.forward();
    }
    note_size(call);
    let data = regs[data_at];
    let first_word = if call.site().probe == Probe::ParallelReductions as u8 {
        // SAFETY: the runtime would read it as well.
        unsafe { (data as *const u64).read_unaligned() }
    } else {
        0
    };
    let region = Region {
        first_word,
        function: regs[function_at],
        data,
        forked: Forked::new(thread, call),
        in_loop,
        work,
    };
    regs[function_at] = gomp_enter as *const () as u64;
    regs[data_at] = &raw const region as u64;
    // SAFETY: gomp_enter(region) does what function(data) does. The runtime returns after all have done so.
    region
        .forked
        .run(thread, || unsafe { call.forward_with(&regs) })
}

/// `GOMP_parallel_loop_*(fn, data, threads, start, end, incr, ...)`: the body fetches its first range with `*_next`.
pub(crate) fn gomp_loop(thread: &Thread, call: &Call) -> u64 {
    let site = call.site();
    let known = |nth| bound(site, call.known(nth).unwrap_or(0));
    gomp(thread, call, Some((known(2), known(4))), Construct::Loop)
}

pub(crate) unsafe extern "C-unwind" fn gomp_enter(region: *const Region) {
    // SAFETY: handed over by `gomp` or `started::start`, which keep it until the team is done.
    let region = unsafe { &*region };
    // SAFETY: the outlined function, as the program handed it to the runtime: `void fn(void *data)`.
    let function: unsafe extern "C-unwind" fn(u64) =
        unsafe { core::mem::transmute(region.function) };
    region.forked.part(|thread| {
        if let (Some(thread), true) = (thread, region.in_loop.is_some()) {
            region.open_work(thread);
        }
        // SAFETY: with the program's own argument.
        unsafe { function(region.data) };
    });
}

impl Region {
    /// Opens the loop or `sections` that the region's threads are in from the start.
    #[inline(never)]
    pub(crate) fn open_work(&self, thread: &Thread) {
        if let Some((first, step)) = self.in_loop {
            loops::open(thread, self.work, self.forked.site, first, step, None);
        }
    }
}

/// Most arguments of a microtask that are kept on the stack.
const FEW: usize = 64;

/// What a team's threads need to know of a region of `__kmpc_fork_call`.
struct ForkRegion {
    microtask: u64,
    args: *const u64,
    argc: usize,
    forked: Forked,
}

/// `__kmpc_fork_call(loc, argc, microtask, ...)`: the arguments are packed, and unpacked before the microtask.
pub(crate) fn fork(thread: &Thread, call: &Call) -> u64 {
    let argc = call.arg(1) as u32 as usize;
    if argc > FEW {
        return many_arguments(thread, call, argc);
    }
    let mut few = [const { MaybeUninit::uninit() }; FEW];
    for (at, arg) in few.iter_mut().take(argc).enumerate() {
        arg.write(call.arg(3 + at));
    }
    fork_with(thread, call, few.as_ptr().cast(), argc)
}

/// As [`fork`], of a region with more variables than anybody has seen: it allocates.
#[cold]
#[inline(never)]
fn many_arguments(thread: &Thread, call: &Call, argc: usize) -> u64 {
    let many: Vec<u64> = (0..argc).map(|at| call.arg(3 + at)).collect();
    fork_with(thread, call, many.as_ptr(), argc)
}

/// The rest of [`fork`], with `argc` arguments at `args`.
fn fork_with(thread: &Thread, call: &Call, args: *const u64, argc: usize) -> u64 {
    let [loc, microtask] = [call.arg(0), call.arg(2)];
    // SAFETY: the target is __kmpc_fork_call or __kmpc_fork_teams, which are variadic.
    let target: unsafe extern "C-unwind" fn(u64, i32, u64, ...) =
        unsafe { core::mem::transmute(call.target()) };
    let region = ForkRegion {
        microtask,
        args,
        argc,
        forked: Forked::new(thread, call),
    };
    region.forked.run(thread, || {
        // SAFETY: kmpc_enter(gtid, btid, region) does what microtask(gtid, btid, args...) does; the runtime returns after
        // all threads have done so.
        unsafe { target(loc, 1, kmpc_enter as *const () as u64, &raw const region) };
        0
    })
}

/// `__kmpc_fork_call_if(loc, argc, microtask, condition, args)`: one argument, or none where it is null.
pub(crate) fn fork_if(thread: &Thread, call: &Call) -> u64 {
    let mut regs = call.regs();
    let args = regs[4];
    let region = ForkRegion {
        microtask: regs[2],
        args: &raw const args,
        argc: usize::from(args != 0),
        forked: Forked::new(thread, call),
    };
    (regs[1], regs[2]) = (1, kmpc_enter as *const () as u64);
    regs[4] = &raw const region as u64;
    // SAFETY: as in `fork`; without condition the runtime calls the microtask itself.
    region
        .forked
        .run(thread, || unsafe { call.forward_with(&regs) })
}

unsafe extern "C-unwind" fn kmpc_enter(
    gtid: *const i32,
    btid: *const i32,
    region: *const ForkRegion,
) {
    // SAFETY: handed over by `fork`, whose stack frame lasts until the team is done.
    let region = unsafe { &*region };
    region.forked.part(|_| {
        // SAFETY: the program's microtask with the program's arguments.
        unsafe {
            invoke(
                region.microtask,
                gtid as u64,
                btid as u64,
                region.argc,
                region.args,
            )
        };
    });
}
