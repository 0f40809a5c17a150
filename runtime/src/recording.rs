//! The start of a recording, and modules that come later: what is patched is switched on.

use crate::counters::{self, EventSet};
use crate::files::complain;
use crate::process::{
    ACTIVE, CALLS, PREPARED, PROCESS, Process, STARTED, Settings, after_fork_in_child, current,
    known, measure, settings, ticks_of,
};
use crate::thread::{context, meter, now, sample, sums};
use crate::undisturbed::uncancelled;
use crate::{arrival, control, entry, heap, host, modules, names, probes, program};
use core::sync::atomic::Ordering;
use ompfuse_format::record::USER_MODULE;
use ompfuse_format::run::EventStatus;

/// Switches on the patched modules that have come since the last call; the first ones start the recording, if the
/// environment asks for it. Called by the loader, for every module that it initialises.
pub(crate) fn attach() {
    let begun = now();
    let Some(settings) = settings() else { return };
    // The loader's lock lets in one thread at a time. If that should change: whoever finds another at work leaves to it
    // what has to be done.
    if CALLS.fetch_add(1, Ordering::AcqRel) > 0 {
        return;
    }
    // SAFETY: errno is this thread's own variable.
    let errno = unsafe { *libc::__errno_location() };
    uncancelled(|| answer(settings, begun));
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Does what has to be done until nobody has called meanwhile. `begun`: since when.
fn answer(settings: &Settings, begun: u64) {
    loop {
        let calls = CALLS.load(Ordering::Acquire);
        if PROCESS.load(Ordering::Acquire).is_null() {
            start(settings, begun);
        } else if ACTIVE.load(Ordering::Acquire) && heap::has_room() {
            match known() {
                Some(thread) => {
                    thread.take_out(extend);
                    thread.rest();
                }
                None => extend(),
            }
        }
        if CALLS
            .compare_exchange(calls, 0, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            return;
        }
    }
}

/// Starts recording if there is a patched module. `begun`: when preparing that began.
fn start(settings: &Settings, begun: u64) {
    let found = modules::find();
    if found.is_empty() {
        return;
    }
    STARTED.store(begun, Ordering::Relaxed);
    let Some(mut process) = Process::new(settings, chosen(settings)) else {
        complain("no thread-specific key left, nothing is recorded");
        return;
    };
    control::prepare(&control::Start {
        sets: &settings.events,
        rotate: settings.rotate,
        reload: settings.control.as_deref(),
    });
    let announced = process.announce();
    // Also where nothing can be written: it is tried, and said, once.
    PROCESS.store(Box::into_raw(Box::new(process)), Ordering::Release);
    if !announced {
        return;
    }
    host::find_rseq();
    entry::prepare();
    context::switch_on(settings.context_depth);
    // SAFETY: the handlers are plain functions that stay loaded with this library.
    unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
    ACTIVE.store(true, Ordering::Release);
    // The main thread's account begins here, so that what precedes its first construct is in it.
    if let Some(thread) = current() {
        measure(thread, probes::empty_task);
        thread.rest();
    }
    // SAFETY: set above, and never freed.
    if let Some(process) = unsafe { PROCESS.load(Ordering::Acquire).as_ref() } {
        process.announce_costs();
    }
    let min_ticks = settings.min_ns.map_or(0, ticks_of);
    sample::prepare(settings.one_in, settings.share, min_ticks);
    sums::prepare(settings.sums);
    if let Some(thread) = known() {
        thread.look_for_samples();
        thread.look_for_sums();
        thread.rest();
    }
    // SAFETY: as above.
    if let Some(process) = unsafe { PROCESS.load(Ordering::Acquire).as_ref() } {
        process.hold();
    }
    for module in &found {
        switch_on(module);
    }
    connect();
    // What comes before is in nobody's account.
    PREPARED.store(now(), Ordering::Relaxed);
    if let Some(thread) = known() {
        thread.begin_anew(begun);
        PREPARED.store(thread.last(), Ordering::Relaxed);
        thread.rest();
    }
}

/// What of the wanted events is counted per execution unit, and per parallel region, and what becomes of each.
fn chosen(settings: &Settings) -> [(EventSet, Vec<EventStatus>); 2] {
    let choose = |wanted: &str| counters::choose(wanted, modules::counted(), None);
    let of_units = choose(&settings.events[0]);
    if of_units.0.is_simulated() {
        meter::switch_off();
        return [of_units, (EventSet::none(), vec![])];
    }
    let of_regions = settings.of_regions.as_str();
    if settings.is_cheap && of_units.0.needs_calls() {
        let all = [settings.events[0].as_str(), of_regions].join(",");
        return [(EventSet::none(), vec![]), choose(&all)];
    }
    [of_units, choose(of_regions)]
}

/// Switches on a module, after a table has been made for it in the control file.
fn switch_on(module: &modules::Module) {
    // SAFETY: set before the first module is switched on, and never freed.
    if let Some(process) = unsafe { PROCESS.load(Ordering::Acquire).as_ref() } {
        control::add_module(
            &process.control_file(),
            module.status.module,
            module.sites(),
        );
    }
    module.switch_on(arrival::addresses());
}

/// Gives the program what it asks for. Then it may name regions, for which there is a table in the control file.
fn connect() {
    if !program::connect() {
        return;
    }
    // SAFETY: as in `switch_on`.
    if let Some(process) = unsafe { PROCESS.load(Ordering::Acquire).as_ref() } {
        control::add_module(&process.control_file(), USER_MODULE, names::PLACES as u32);
    }
}

/// Switches on what was loaded after the start.
fn extend() {
    context::modules_have_come();
    // SAFETY: set before ACTIVE and never freed.
    let Some(process) = (unsafe { PROCESS.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    for module in modules::find() {
        if !module.new || process.announce_module(&module.status) {
            switch_on(&module);
        }
    }
    connect();
}
