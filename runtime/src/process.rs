//! Start and end of a recording, modules that come and go, threads, and fork.

mod end;
mod orphan;

pub(crate) use end::finish;

use crate::buffer::Buffer;
use crate::counters::{self, Counters, EventSet};
use crate::thread::{Thread, now, sample, state};
use crate::{control, entry, host, modules, names, program, syscall, tls};
use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use ompfuse_format::control::MAX_SETS;
use ompfuse_format::record::{self, MAX_COUNTERS, ThreadHeader};
use ompfuse_format::run::{self, ClockPair, EventStatus, ModuleStatus, ProcessHeader};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Longest value that is taken from the environment, in bytes.
const MAX_ENV: usize = 4096;
/// TLS word of a thread that does not record (no space, or finished).
const TLS_OFF: usize = 1;

/// Recording is on.
static ACTIVE: AtomicBool = AtomicBool::new(false);
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(core::ptr::null_mut());
/// Threads that record, as a list.
static THREADS: AtomicPtr<Thread> = AtomicPtr::new(core::ptr::null_mut());
/// Guards changes of the list: taken at a thread's first and last probe only.
static LIST_LOCK: AtomicBool = AtomicBool::new(false);
static NEXT_INDEX: AtomicU32 = AtomicU32::new(0);
/// Records lost by threads that have ended, and by threads that could not record at all.
static LOST: AtomicU64 = AtomicU64::new(0);
/// Ticks of so many boundaries as are measured together; 0: not measured.
static BOUNDARY_TICKS: AtomicU64 = AtomicU64::new(0);
/// Event sets besides the first, once a thread has found out what can be counted of them.
static SETS: [AtomicPtr<FurtherSet>; MAX_SETS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_SETS];
/// Somebody finds that out.
static SETS_CLAIMED: [AtomicBool; MAX_SETS] = [const { AtomicBool::new(false) }; MAX_SETS];

struct FurtherSet {
    chosen: EventSet,
    status: run::EventSet,
    /// Names of what is counted, in the order of the counters.
    names: CString,
}

/// Names of what is counted, in the order of the counters, separated by commas.
fn counted_names(status: &[EventStatus]) -> CString {
    let counted = status.iter().filter(|s| s.column.is_some());
    let names: Vec<&str> = counted.map(|s| s.name.as_str()).collect();
    CString::new(names.join(",")).unwrap_or_default()
}

/// The names of an event set of which a thread counts so many events, and how many these are: all, or none.
pub(crate) fn event_names(set: usize, counted: usize) -> Option<(*const c_char, usize)> {
    // SAFETY: PROCESS and the sets are never freed.
    let names = unsafe {
        match set {
            0 => &PROCESS.load(Ordering::Acquire).as_ref()?.names,
            _ => &SETS.get(set)?.load(Ordering::Acquire).as_ref()?.names,
        }
    };
    Some(match counted {
        0 => (c"".as_ptr(), 0),
        _ => (names.as_ptr(), counted),
    })
}

/// What is fixed when recording begins.
struct Process {
    directory: PathBuf,
    /// The process that records: the child of a fork that no handler was told of has another number.
    pid: u32,
    /// Distinguishes the processes of a run: the pid, with a suffix after exec.
    key: String,
    chosen: EventSet,
    status: Vec<EventStatus>,
    names: CString,
    pthread_key: libc::pthread_key_t,
}

/// One line to the user; the program goes on.
pub(crate) fn complain(message: &str) {
    // Not through std: its thread-local variables may be gone, if this thread is about to end.
    syscall::write(2, format!("ompfuse: {message}\n").as_bytes());
}

fn clock() -> ClockPair {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    ClockPair {
        tsc: now(),
        ns: t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64,
    }
}

/// A bounded value from the environment; nothing for a setuid program, which must not write where its caller says.
fn environment(name: &str) -> Option<String> {
    // SAFETY: getauxval only reads the auxiliary vector.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    let value = std::env::var_os(name)?.into_string().ok()?;
    (!value.is_empty() && value.len() <= MAX_ENV).then_some(value)
}

/// Boundaries that are measured together, and how often: what comes between them only makes some longer.
const MEASURED: (u64, u32) = (16, 8);

/// Measures what a boundary costs with this process's counters. It is charged to the main thread's serial part.
fn measure(thread: &Thread) {
    let (boundaries, times) = MEASURED;
    let ticks = (0..times).map(|_| {
        let begin = now();
        (0..boundaries).for_each(|_| thread.charge());
        now() - begin
    });
    let ticks = ticks.min().unwrap_or(0);
    BOUNDARY_TICKS.store(ticks, Ordering::Relaxed);
    sample::set_boundary(ticks / boundaries);
}

/// What the environment asks for, as it is when the library is loaded: the program may change it later.
struct Settings {
    directory: PathBuf,
    /// The event sets; at least one.
    events: Vec<String>,
    rotate: u32,
    control: Option<String>,
    /// See [`sample::prepare`].
    one_in: u32,
    share: u32,
}

fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    let number = |name| environment(name).and_then(|n| n.parse().ok()).unwrap_or(0);
    let read = || {
        let directory = PathBuf::from(environment(run::ENV_DIR)?);
        if !directory.is_absolute() {
            complain(&format!(
                "{} is not an absolute path, nothing is recorded",
                run::ENV_DIR
            ));
            return None;
        }
        Some(Settings {
            directory,
            events: environment(run::ENV_EVENTS)
                .unwrap_or_default()
                .split(';')
                .map(str::to_owned)
                .collect(),
            rotate: environment(run::ENV_ROTATE)
                .and_then(|n| n.parse().ok())
                .unwrap_or(0),
            control: environment(run::ENV_CONTROL),
            one_in: number(run::ENV_SAMPLE),
            share: number(run::ENV_THROTTLE),
        })
    };
    SETTINGS.get_or_init(read).as_ref()
}

/// Calls of [`attach`] that nobody has answered yet.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// Switches on the patched modules that have come since the last call; the first ones start the recording, if the
/// environment asks for it. Called by the loader, for every module that it initialises.
pub(crate) fn attach() {
    let Some(settings) = settings() else { return };
    // The loader's lock lets in one thread at a time. If that should change: whoever finds another at work leaves to it
    // what has to be done.
    if CALLS.fetch_add(1, Ordering::AcqRel) > 0 {
        return;
    }
    // SAFETY: errno is this thread's own variable.
    let errno = unsafe { *libc::__errno_location() };
    loop {
        let calls = CALLS.load(Ordering::Acquire);
        if PROCESS.load(Ordering::Acquire).is_null() {
            start(settings);
        } else if ACTIVE.load(Ordering::Acquire) {
            extend();
        }
        if CALLS
            .compare_exchange(calls, 0, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            break;
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Starts recording if there is a patched module.
fn start(settings: &Settings) {
    let found = modules::find();
    if found.is_empty() {
        return;
    }
    let (chosen, status) = counters::choose(split_set(&settings.events[0]));
    let mut pthread_key = 0;
    // SAFETY: the destructor has the right type and stays loaded with this library.
    if unsafe { libc::pthread_key_create(&mut pthread_key, Some(thread_ends)) } != 0 {
        complain("no thread-specific key left, nothing is recorded");
        return;
    }
    let mut process = Process {
        directory: settings.directory.clone(),
        pid: 0,
        key: String::new(),
        names: counted_names(&status),
        chosen,
        status,
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
    sample::prepare(settings.one_in, settings.share);
    entry::prepare();
    // SAFETY: the handlers are plain functions that stay loaded with this library.
    unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
    ACTIVE.store(true, Ordering::Release);
    // The main thread's account begins here, so that what precedes its first construct is in it.
    if let Some(thread) = current() {
        measure(thread);
        thread.rest();
    }
    for module in &found {
        switch_on(module);
    }
    program::connect();
}

/// The names in an event set's text.
fn split_set(set: &str) -> impl Iterator<Item = &str> {
    set.split(',').filter(|e| !e.is_empty())
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

/// Opens an event set for the calling thread, which records. `None`: nothing is known of it, or not yet.
#[cold]
pub(crate) fn open_set(set: usize) -> Option<Counters> {
    // What follows allocates, and so may run probes of a patched allocator.
    let word = tls::get();
    tls::set(TLS_OFF);
    // SAFETY: errno is this thread's own variable.
    let errno = unsafe { *libc::__errno_location() };
    let counters = further_set(set).map(|set| Counters::open(&set.chosen));
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    tls::set(word);
    counters
}

/// Another thread finds out what can be counted of a set, which takes it some microseconds.
fn await_set(known: &AtomicPtr<FurtherSet>) -> Option<&'static FurtherSet> {
    for _ in 0..MAX_YIELDS {
        // SAFETY: never freed.
        if let Some(known) = unsafe { known.load(Ordering::Acquire).as_ref() } {
            return Some(known);
        }
        syscall::yield_now();
    }
    None // it has been stopped, or couldn't: nothing is counted with it
}

/// How often a thread gives way to another before it goes on with what it counts.
const MAX_YIELDS: u32 = 20_000;

fn further_set(set: usize) -> Option<&'static FurtherSet> {
    let (known, claimed) = (SETS.get(set)?, SETS_CLAIMED.get(set)?);
    // SAFETY: never freed.
    if let Some(known) = unsafe { known.load(Ordering::Acquire).as_ref() } {
        return Some(known);
    }
    let wanted = control::set_names(set)?;
    if claimed.swap(true, Ordering::AcqRel) {
        return await_set(known);
    }
    let (chosen, events) = counters::choose(split_set(&wanted));
    let status = run::EventSet {
        set: set as u32,
        events,
    };
    // SAFETY: PROCESS is set before ACTIVE and never freed.
    let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref()? };
    if !process.announce_set(&status) {
        return None; // records with it could not be read
    }
    let new = Box::into_raw(Box::new(FurtherSet {
        names: counted_names(&status.events),
        chosen,
        status,
    }));
    known.store(new, Ordering::Release);
    // SAFETY: as above.
    unsafe { new.as_ref() }
}

/// Switches on what was loaded after the start.
fn extend() {
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
            begin: clock(),
            events: self.status.clone(),
            modules: modules::statuses(),
            // SAFETY: never freed.
            sets: SETS
                .iter()
                .filter_map(|s| unsafe { s.load(Ordering::Acquire).as_ref() })
                .map(|s| s.status.clone())
                .collect(),
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
            match create(&self.directory.join(format!("process-{}.json", self.key))) {
                Ok(mut file) => {
                    let written = file.write_all(&json).is_ok();
                    // Without it the recording can't be changed, that is all.
                    let _ = written && control::share(&self.control_file());
                    return written;
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

    fn control_file(&self) -> PathBuf {
        self.directory
            .join(ompfuse_format::control::file_name(&self.key))
    }

    /// Writes what can be counted of an event set.
    fn announce_set(&self, status: &run::EventSet) -> bool {
        let Ok(json) = serde_json::to_vec_pretty(status) else {
            return false;
        };
        let name = run::events_file(&self.key, status.set);
        create(&self.directory.join(name))
            .and_then(|mut f| f.write_all(&json))
            .is_ok()
    }

    /// Writes the description of a module that came after the header.
    fn announce_module(&self, status: &ModuleStatus) -> bool {
        let name = run::module_file(&self.key, status.module);
        let Ok(json) = serde_json::to_vec_pretty(status) else {
            return false;
        };
        let written = create(&self.directory.join(name)).and_then(|mut f| f.write_all(&json));
        if let Err(e) = &written {
            complain(&format!("cannot record {}: {e}", status.path));
        }
        written.is_ok()
    }
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

/// This thread, if it records.
#[inline(always)]
pub(crate) fn current<'a>() -> Option<&'a Thread> {
    known().or_else(|| {
        if !may_begin() {
            return None;
        }
        begin_thread()
    })
}

/// This thread, if it records already.
#[inline(always)]
pub(crate) fn known<'a>() -> Option<&'a Thread> {
    let word = tls::get();
    if word <= TLS_OFF {
        return None;
    }
    // SAFETY: set by begin_thread, and reset before the memory goes.
    let thread = unsafe { &*(word as *const Thread) };
    thread.wake().then_some(thread)
}

/// Whether this thread, which does not record, may begin to.
#[inline(always)]
pub(crate) fn may_begin() -> bool {
    tls::get() != TLS_OFF && ACTIVE.load(Ordering::Relaxed)
}

/// Whether this is the process that records, and no child of it that was made by a system call of the program's own.
fn is_own_process() -> bool {
    // SAFETY: PROCESS is set before ACTIVE and never freed.
    let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref() };
    process.is_some_and(|p| p.pid == std::process::id())
}

/// A thread's first probe.
#[cold]
#[inline(never)]
fn begin_thread<'a>() -> Option<&'a Thread> {
    let before = tls::get();
    tls::set(TLS_OFF); // what follows may allocate, and so run probes of a patched allocator
    // SAFETY: errno is this thread's own variable.
    let errno = unsafe { *libc::__errno_location() };
    let thread = if is_own_process() {
        end::be_told();
        new_thread().inspect(|thread| {
            if before > TLS_OFF {
                // SAFETY: this thread's own, whose records were closed when the program began to exit; never freed.
                thread.follow(unsafe { &*(before as *const Thread) });
            }
        })
    } else {
        orphan::stop();
        None
    };
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    match thread {
        Some(thread) => tls::set(thread as *const Thread as usize),
        None => {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }
    thread
}

fn new_thread<'a>() -> Option<&'a Thread> {
    // SAFETY: PROCESS is set before ACTIVE and never freed.
    let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref()? };
    let index = NEXT_INDEX.fetch_add(1, Ordering::Relaxed);
    let path = process
        .directory
        .join(format!("{}-{index}.rec", process.key));
    let file = create(&path).ok()?;
    let counters = Counters::open(&process.chosen);
    let mut values = [0; MAX_COUNTERS];
    counters.read(&mut values);
    let header = ThreadHeader {
        magic: record::MAGIC,
        version: record::VERSION,
        header_len: record::HEADER_LEN as u32,
        pid: std::process::id(),
        tid: syscall::thread_id(),
        index,
        counters: counters.len() as u32,
        tsc_start: 0,
        tsc_end: 0,
        committed: 0,
        lost: 0,
        counts_start: values,
        counts_end: [0; MAX_COUNTERS],
        unrecorded_ticks: 0,
        flushed: 0,
        stage: Buffer::STAGE,
    };
    let path = CString::new(path.into_os_string().into_vec()).ok()?;
    let buffer = Buffer::new(syscall::move_up(file.into_raw_fd()), &path, header)?;
    let memory = state::map()?;
    // SAFETY: just mapped, not shared with anybody yet.
    let thread: &Thread = unsafe { Thread::init(memory, index, counters, buffer) };
    thread
        .buffer
        .set_start(thread.last(), &thread.last_counts()[..thread.k()]);
    with_list(|| {
        thread.next.set(THREADS.load(Ordering::Relaxed));
        THREADS.store(memory, Ordering::Relaxed);
    });
    // SAFETY: the key was created at the start; its value makes the destructor run when the thread ends.
    unsafe { libc::pthread_setspecific(process.pthread_key, memory.cast()) };
    Some(thread)
}

/// About the stack pointer.
#[inline(never)]
pub(crate) fn here() -> usize {
    let object = 0u8;
    core::hint::black_box(&raw const object) as usize
}

fn with_list(change: impl FnOnce()) {
    while LIST_LOCK
        .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        syscall::yield_now(); // whoever has it may be waiting for this processor
    }
    change();
    LIST_LOCK.store(false, Ordering::Release);
}

/// Runs in a thread that ends.
unsafe extern "C" fn thread_ends(memory: *mut c_void) {
    let memory = memory.cast::<Thread>();
    if tls::get() != memory as usize {
        return; // not this process's (fork), or finished already
    }
    tls::set(0); // another destructor may still run constructs: they make a new record file
    // SAFETY: set by new_thread for this thread, and not released yet.
    let thread = unsafe { &*memory };
    if thread.wake() {
        thread.recover(here());
        thread.finish();
    }
    // Whoever is closing this thread has the lock until that is done.
    with_list(|| {
        LOST.fetch_add(thread.buffer.lost(), Ordering::Relaxed);
        let mut head = THREADS.load(Ordering::Relaxed).cast_const();
        if core::ptr::eq(head, memory) {
            THREADS.store(thread.next.get().cast_mut(), Ordering::Relaxed);
        }
        while !head.is_null() {
            // SAFETY: listed threads are alive.
            let other = unsafe { &*head };
            if core::ptr::eq(other.next.get(), memory) {
                other.next.set(thread.next.get());
            }
            head = other.next.get();
        }
    });
    thread.close_counters();
    // SAFETY: neither the list nor TLS leads here any more.
    unsafe {
        thread.buffer.release();
        state::unmap(memory);
    }
}

/// The child of a fork records for itself; what the parent's threads had open stays the parent's.
unsafe extern "C" fn after_fork_in_child() {
    let word = tls::get();
    if word > TLS_OFF {
        // SAFETY: the child's copy of the thread that forked.
        unsafe { &*(word as *const Thread) }.give_up();
    }
    tls::set(0);
    LIST_LOCK.store(false, Ordering::Relaxed);
    THREADS.store(core::ptr::null_mut(), Ordering::Relaxed);
    NEXT_INDEX.store(0, Ordering::Relaxed);
    names::after_fork();
    for (known, claimed) in SETS.iter().zip(&SETS_CLAIMED) {
        claimed.store(!known.load(Ordering::Relaxed).is_null(), Ordering::Relaxed);
    }
    end::start_again();
    CALLS.store(0, Ordering::Relaxed); // of a thread that is not here any more
    LOST.store(0, Ordering::Relaxed);
    // SAFETY: only this thread exists here, and no reference is held.
    let announced =
        unsafe { PROCESS.load(Ordering::Acquire).as_mut() }.is_some_and(Process::announce);
    if !announced {
        ACTIVE.store(false, Ordering::Release);
    }
}
