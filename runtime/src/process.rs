//! Start and end of a recording, modules that come and go, threads, and fork.

mod end;
mod key;
mod measure;
mod orphan;
mod sets;
mod settings;
mod threads;

pub(crate) use end::finish;
pub(crate) use measure::{Schedule, schedule};
pub(crate) use sets::{event_names, open_set};
pub(crate) use threads::{current, here, known, may_begin};

use crate::counters::{self, EventSet};
use crate::thread::{Thread, context, meter, now, sample, sums};
use crate::undisturbed::{uncancelled, undisturbed};
use crate::{control, entry, heap, host, modules, names, program, syscall, tls};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use ompfuse_format::record::USER_MODULE;
use ompfuse_format::run::{
    self, ClockPair, EventStatus, ModuleStatus, ProcessCosts, ProcessHeader,
};
use sets::counted_names;
use settings::{Settings, environment, settings};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// TLS word of a thread that does not record (no space, or finished).
pub(crate) const TLS_OFF: usize = 1;

/// Recording is on.
static ACTIVE: AtomicBool = AtomicBool::new(false);
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(core::ptr::null_mut());
/// Records lost by threads that have ended.
static LOST: AtomicU64 = AtomicU64::new(0);
/// Threads that could not record at all.
static THREADS_LOST: AtomicU64 = AtomicU64::new(0);
/// Time stamp counter when preparing the recording began, and when that was done.
static STARTED: AtomicU64 = AtomicU64::new(0);
static PREPARED: AtomicU64 = AtomicU64::new(0);

/// What is fixed when recording begins.
struct Process {
    directory: PathBuf,
    /// The process that records: the child of a fork that no handler was told of has another number.
    pid: u32,
    /// Distinguishes the processes of a run: the pid, with a suffix after exec.
    key: String,
    /// Where its end is told.
    end: Option<end::EndFile>,
    /// What is shorter is only counted.
    min_ns: Option<u64>,
    chosen: EventSet,
    status: Vec<EventStatus>,
    /// What is counted per parallel region and thread.
    of_regions: EventSet,
    region_status: Vec<EventStatus>,
    names: CString,
    pthread_key: libc::pthread_key_t,
}

/// One line to the user; the program goes on.
pub(crate) fn complain(message: &str) {
    // Not through std: its thread-local variables may be gone, if this thread is about to end.
    if standard_error().is_some_and(|file| syscall::identity(2) == Some(file)) {
        syscall::write_quietly(2, format!("ompfuse: {message}\n").as_bytes());
    }
}

/// What standard error was at the start: the program may close it, and a file of its own get that number.
fn standard_error() -> Option<(u64, u64)> {
    static FILE: OnceLock<Option<(u64, u64)>> = OnceLock::new();
    *FILE.get_or_init(|| syscall::identity(2))
}

fn clock() -> ClockPair {
    let read = || {
        let before = now();
        let ns = syscall::monotonic_ns();
        let between = now().saturating_sub(before);
        let pair = ClockPair {
            tsc: before + between / 2,
            ns,
        };
        (between, pair)
    };
    // The closest of some: two pairs may be all that tells the rate, and lie a tenth of a millisecond apart.
    let (_, pair) =
        (1..8).map(|_| read()).fold(
            read(),
            |closest, other| {
                if other.0 < closest.0 { other } else { closest }
            },
        );
    pair
}

/// Calls of [`attach`] that nobody has answered yet.
static CALLS: AtomicU32 = AtomicU32::new(0);

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
    let [(chosen, status), (of_regions, region_status)] = chosen(settings);
    let Some(pthread_key) = key::make(threads::thread_ends) else {
        complain("no thread-specific key left, nothing is recorded");
        return;
    };
    let mut process = Process {
        directory: settings.directory.clone(),
        pid: 0,
        key: String::new(),
        end: None,
        min_ns: settings.min_ns,
        names: counted_names(&status),
        chosen,
        status,
        of_regions,
        region_status,
        pthread_key,
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
        measure::measure(thread);
        thread.rest();
    }
    // SAFETY: set above, and never freed.
    if let Some(process) = unsafe { PROCESS.load(Ordering::Acquire).as_ref() } {
        process.announce_costs();
    }
    let min_ticks = settings.min_ns.map_or(0, measure::ticks_of);
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
    program::connect();
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
    let of_units = counters::choose(&settings.events[0], None);
    if of_units.0.is_simulated() {
        meter::switch_off();
        return [of_units, (EventSet::none(), vec![])];
    }
    let of_regions = settings.of_regions.as_str();
    if settings.is_cheap && of_units.0.needs_calls() {
        let all = [settings.events[0].as_str(), of_regions].join(",");
        return [(EventSet::none(), vec![]), counters::choose(&all, None)];
    }
    [of_units, counters::choose(of_regions, None)]
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
    module.switch_on();
}

/// Makes a table in the control file for the regions that the program names.
pub(crate) fn switch_names() {
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
    program::connect();
}

impl Process {
    /// Writes the process header under a name that nobody has.
    fn announce(&mut self) -> bool {
        let pid = std::process::id();
        self.pid = pid;
        let header = ProcessHeader {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid,
            mpi_rank: run::RANK_VARIABLES
                .iter()
                .find_map(|name| environment(name)?.parse().ok()),
            mpi_size: run::SIZE_VARIABLES
                .iter()
                .find_map(|name| environment(name)?.parse().ok()),
            begin: clock(),
            events: self.status.clone(),
            modules: modules::statuses(),
            min_duration_ns: self.min_ns,
            sets: sets::statuses(),
            region_events: self.region_status.clone(),
            processors: measure::processors(),
            started: STARTED.load(Ordering::Relaxed),
        };
        let Ok(json) = serde_json::to_vec_pretty(&header) else {
            return false;
        };
        for attempt in 0..1000 {
            self.key = if attempt == 0 {
                pid.to_string()
            } else {
                format!("{pid}.{attempt}")
            };
            let path = self.directory.join(format!("process-{}.json", self.key));
            match write_new(&path, &json) {
                Ok(()) => {
                    self.end = end::EndFile::reserve(&self.end_path(), self.end.take());
                    // Without it the recording can't be changed, that is all.
                    let _ = control::share(&self.control_file());
                    return true;
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    complain(&format!(
                        "cannot record into {}: {e}",
                        self.directory.display()
                    ));
                    return false;
                }
            }
        }
        false
    }

    /// Writes what recording costs; where that can't be, it isn't known.
    fn announce_costs(&self) {
        let mut costs = measure::costs(&self.status);
        if costs == ProcessCosts::default() {
            return;
        }
        costs.clock = Some(clock());
        if let Ok(json) = serde_json::to_vec_pretty(&costs) {
            let path = self.directory.join(run::costs_file(&self.key));
            let _ = write_new(&path, &json);
        }
    }

    fn end_path(&self) -> PathBuf {
        self.directory
            .join(format!("process-{}.end.json", self.key))
    }

    fn control_file(&self) -> PathBuf {
        self.directory
            .join(ompfuse_format::control::file_name(&self.key))
    }

    /// Begins without recording, if the command wants that of who starts now.
    fn hold(&self) {
        let file = self.directory.join(ompfuse_format::control::HELD_FILE);
        // Without a control file nobody could let it go on.
        control::hold(|| file.exists() && self.control_file().exists());
    }

    /// Writes what can be counted of an event set.
    fn announce_set(&self, status: &run::EventSet) -> bool {
        let Ok(json) = serde_json::to_vec_pretty(status) else {
            return false;
        };
        let name = run::events_file(&self.key, status.set);
        write_new(&self.directory.join(name), &json).is_ok()
    }

    /// Writes the description of a module that came after the header.
    fn announce_module(&self, status: &ModuleStatus) -> bool {
        let name = run::module_file(&self.key, status.module);
        let Ok(json) = serde_json::to_vec_pretty(status) else {
            return false;
        };
        let written = write_new(&self.directory.join(name), &json);
        if let Err(e) = &written {
            complain(&format!("cannot record {}: {e}", status.path));
        }
        written.is_ok()
    }
}

/// A time that is not known as long as it is 0.
fn told(time: &AtomicU64) -> Option<u64> {
    Some(time.load(Ordering::Relaxed)).filter(|&tsc| tsc != 0)
}

/// A new file for the owner only; an existing one or a link is an error.
pub(crate) fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)
}

/// A new file with these contents, or none.
fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = create(path)?;
    let written = match syscall::may_have(bytes.len() as u64) {
        true => file.write_all(bytes),
        false => Err(std::io::ErrorKind::FileTooLarge.into()),
    };
    if written.is_err() {
        let _ = std::fs::remove_file(path); // a part of it is damaged to who reads it
    }
    written
}

/// The child of a fork records for itself; what the parent's threads had open stays the parent's.
unsafe extern "C" fn after_fork_in_child() {
    undisturbed(begin_again);
}

fn begin_again() {
    STARTED.store(now(), Ordering::Relaxed);
    PREPARED.store(0, Ordering::Relaxed);
    let word = tls::get();
    if word > TLS_OFF {
        // SAFETY: the child's copy of the thread that forked.
        unsafe { &*(word as *const Thread) }.give_up();
    }
    tls::set(0);
    threads::after_fork();
    names::after_fork();
    syscall::after_fork();
    sets::after_fork();
    measure::after_fork();
    sums::team::after_fork();
    end::start_again();
    CALLS.store(0, Ordering::Relaxed); // of a thread that is not here any more
    LOST.store(0, Ordering::Relaxed);
    THREADS_LOST.store(0, Ordering::Relaxed);
    // SAFETY: only this thread exists here, and no reference is held.
    let announced = unsafe { PROCESS.load(Ordering::Acquire).as_mut() }.is_some_and(|process| {
        let announced = heap::has_room() && process.announce();
        if announced {
            process.hold();
            process.announce_costs(); // the parent has measured them
        }
        announced
    });
    if !announced {
        ACTIVE.store(false, Ordering::Release);
    }
    PREPARED.store(now(), Ordering::Relaxed);
}
