//! Bodies that the program runs itself between two calls of the runtime: serialised regions and undeferred tasks of KMPC, and
//! the teams of a `target` region that gcc's host executes. So is the master's part of a region of GOMP as compilers before
//! gcc 4.9 began it. Their frames can't live on a stack of ours.

use super::parallel::{gomp_enter, note_size};
use super::sync;
use crate::entry::{self, Call, bound};
use crate::host;
use crate::thread::{Detached, Forked, Region, Thread};
use core::sync::atomic::Ordering;
use ompfuse_format::Construct;

impl Detached {
    /// Keeps a region, and the frame of the first thread's part of it.
    fn of_region(region: Region) -> Detached {
        let frame = region.forked.frame_of(Construct::ImplicitTask, 0, 1);
        Detached::new(frame, Some(region))
    }

    /// Keeps a league that begins here, and the frame of its first team.
    fn of_teams(forked: Forked, teams: i64) -> Detached {
        forked.team.store(teams, Ordering::Relaxed);
        let frame = forked.frame_of(Construct::Team, 0, teams);
        Detached::new(frame, Some(without_body(forked)))
    }
}

/// A region whose body the program runs itself.
fn without_body(forked: Forked) -> Region {
    Region {
        first_word: 0,
        function: 0,
        data: 0,
        forked,
        in_loop: None,
        work: Construct::Loop,
    }
}

/// `__kmpc_serialized_parallel`: a team of one.
pub(crate) fn serialized_begin(thread: &Thread, call: &Call) -> u64 {
    let detached = Detached::of_region(without_body(Forked::new(thread, call)));
    let (result, t0) = sync::timed(thread, &detached.cost, || call.forward());
    detached.t0.set(t0);
    if let Some(detached) = thread.detach(detached) {
        begin(thread, detached);
        enter(thread, detached);
    }
    result
}

/// The region, which is kept, goes on.
fn begin(thread: &Thread, detached: &Detached) {
    if let Some(Region { forked, .. }) = &detached.region {
        forked.begin(thread);
    }
}

/// The thread's part of a region, which it enters at the last boundary.
fn enter(thread: &Thread, detached: &Detached) {
    if let Some(region) = &detached.region {
        detached.frame.team_sums.set(&raw const region.forked.sums);
        thread.begin_part(region.forked.outermost_of(&detached.frame));
    }
    thread.enter_here(&detached.frame);
}

/// `GOMP_parallel_start` and its like: the other threads execute the body at once, the caller after this.
pub(crate) fn start(thread: &Thread, call: &Call) -> u64 {
    let site = call.site();
    let [function_at, data_at] = [site.args[0], site.args[1]].map(usize::from);
    let mut regs = call.regs();
    if function_at >= regs.len() || data_at >= regs.len() {
        return call.forward();
    }
    note_size(call);
    let known = |nth| call.known(nth).map(|value| bound(site, value));
    let (in_loop, work) = match (known(2), known(3)) {
        (Some(first), step) => (Some((first, step.unwrap_or(1))), Construct::Loop),
        (None, Some(_)) => (Some((0, 1)), Construct::Sections),
        (None, None) => (None, Construct::Loop),
    };
    let kept = thread.detach(Detached::of_region(Region {
        first_word: 0,
        function: regs[function_at],
        data: regs[data_at],
        forked: Forked::new(thread, call),
        in_loop,
        work,
    }));
    let Some((detached, region)) = kept.and_then(|d| Some((d, d.region.as_ref()?))) else {
        return call.forward();
    };
    begin(thread, detached);
    regs[function_at] = gomp_enter as *const () as u64;
    regs[data_at] = core::ptr::from_ref(region) as u64;
    // SAFETY: gomp_enter(region) does what function(data) does; the region is kept until `end`, when the team is done.
    let (result, t0) = sync::timed(thread, &detached.cost, || unsafe {
        call.forward_with(&regs)
    });
    detached.t0.set(t0);
    // Only now there is a team.
    let team = host::num_threads(entry::this(site));
    region.forked.team.store(team, Ordering::Relaxed);
    detached.frame.team.set(team);
    thread.charge();
    enter(thread, detached);
    region.open_work(thread);
    result
}

/// `__kmpc_end_serialized_parallel` or `GOMP_parallel_end`.
pub(crate) fn end(thread: &Thread, call: &Call) -> u64 {
    let Some(detached) = thread.detached(Construct::ImplicitTask) else {
        return call.forward();
    };
    thread.leave(&detached.frame, 0);
    thread.end_part(&detached.frame);
    let (result, _) = sync::timed_from_here(thread, &detached.cost, || call.forward());
    if let Some(region) = &detached.region {
        region
            .forked
            .write(thread, detached.t0.get(), &detached.cost);
    }
    thread.reattach(detached);
    result
}

/// `GOMP_teams4`: the program executes one team after the other, and asks for each.
pub(crate) fn team_next(thread: &Thread, call: &Call) -> u64 {
    let [teams, first] = [0, 1].map(|nth| call.known(nth).unwrap_or(0) as u32);
    if first as u8 != 0 {
        let forked = Forked::new(thread, call);
        let detached = Detached::of_teams(forked, i64::from(teams.max(1)));
        let (result, t0) = sync::timed(thread, &detached.cost, || call.forward());
        detached.t0.set(t0);
        // Another runtime may say at once that there is nothing to do.
        if result as u8 != 0
            && let Some(detached) = thread.detach(detached)
        {
            begin(thread, detached);
            enter(thread, detached);
        }
        return result;
    }
    let Some((detached, region)) = thread
        .detached(Construct::Team)
        .and_then(|d| Some((d, d.region.as_ref()?)))
    else {
        return call.forward();
    };
    let number = detached.frame.tid.get() as u64;
    thread.leave_as(&detached.frame, number, true);
    thread.end_part(&detached.frame);
    let (result, _) = sync::timed_from_here(thread, &detached.cost, || call.forward());
    if result as u8 != 0 {
        detached.frame.turn_to_next();
        enter(thread, detached);
    } else {
        region
            .forked
            .write(thread, detached.t0.get(), &detached.cost);
        thread.reattach(detached);
    }
    result
}
