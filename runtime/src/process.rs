//! Start and end of a recording, the patched modules of the process, its threads, and fork.

use crate::buffer::Buffer;
use crate::counters::{self, Chosen, Counters};
use crate::thread::{Thread, now};
use crate::{entry, syscall, tls};
use core::ffi::{CStr, c_int, c_void};
use core::ptr::null;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use ompfuse_format::abi::{self, ModuleHeader, NoteDesc};
use ompfuse_format::record::{self, MAX_COUNTERS, ThreadHeader};
use ompfuse_format::run::{self, ClockPair, EventStatus, ModuleStatus, ProcessEnd, ProcessHeader};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

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
/// Address of rseq's `cpu_id` relative to the thread's TLS base, 0 if glibc has not registered it.
static RSEQ_CPU: AtomicUsize = AtomicUsize::new(0);
/// `omp_get_thread_num` and `omp_get_num_threads` of the process's OpenMP runtime.
static THREAD_NUM: AtomicUsize = AtomicUsize::new(0);
static NUM_THREADS: AtomicUsize = AtomicUsize::new(0);

/// What is fixed when recording begins.
struct Process {
    directory: PathBuf,
    /// Distinguishes the processes of a run: the pid, with a suffix after exec.
    key: String,
    chosen: Vec<Chosen>,
    status: Vec<EventStatus>,
    modules: Vec<ModuleStatus>,
    pthread_key: libc::pthread_key_t,
}

/// One line to the user; the program goes on.
fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "ompfuse: {message}");
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

/// Starts recording if the environment asks for it and a patched module is there. Called by the loader.
pub(crate) fn start() {
    let Some(directory) = environment(run::ENV_DIR) else {
        return;
    };
    let directory = PathBuf::from(directory);
    if !directory.is_absolute() {
        complain(&format!(
            "{} is not an absolute path, nothing is recorded",
            run::ENV_DIR
        ));
        return;
    }
    let found = find_modules();
    if found.is_empty() {
        return;
    }
    let events = environment(run::ENV_EVENTS).unwrap_or_default();
    let (chosen, status) = counters::choose(events.split(',').filter(|e| !e.is_empty()));
    let mut pthread_key = 0;
    // SAFETY: the destructor has the right type and stays loaded with this library.
    if unsafe { libc::pthread_key_create(&mut pthread_key, Some(thread_ends)) } != 0 {
        complain("no thread-specific key left, nothing is recorded");
        return;
    }
    let modules = found.iter().map(|m| m.status.clone()).collect();
    let mut process = Process {
        directory,
        key: String::new(),
        chosen,
        status,
        modules,
        pthread_key,
    };
    if !process.announce() {
        return;
    }
    PROCESS.store(Box::into_raw(Box::new(process)), Ordering::Release);
    find_rseq();
    entry::prepare();
    // SAFETY: the handlers are plain functions that stay loaded with this library.
    unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
    ACTIVE.store(true, Ordering::Release);
    // The main thread's account begins here, so that what precedes its first construct is in it.
    let _ = current();
    for module in &found {
        module.switch_on();
    }
}

impl Process {
    /// Writes the process header under a name that nobody has.
    fn announce(&mut self) -> bool {
        let pid = std::process::id();
        let header = ProcessHeader {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid,
            begin: clock(),
            events: self.status.clone(),
            modules: self.modules.clone(),
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
                Ok(mut file) => return file.write_all(&json).is_ok(),
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
}

/// A new file for the owner only; an existing one or a link is an error.
fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)
}

/// A patched module, found through its note.
struct Module {
    header: *mut ModuleHeader,
    status: ModuleStatus,
}

impl Module {
    /// Writes the module's number and the thunks' addresses, then protects the page: nothing else may change them.
    fn switch_on(&self) {
        let page = (self.header as usize & !0xfff) as *const u8;
        // SAFETY: the rewriter gives the header pages of its own in a writable segment; stubs read a slot with one load
        // and treat 0 as "not there", so any moment is good.
        unsafe {
            (&raw mut (*self.header).module).write_volatile(self.status.module);
            for (slot, thunk) in [
                (abi::SLOT_CALL, entry::call_thunk as *const () as u64),
                (abi::SLOT_TASK, entry::task_thunk as *const () as u64),
                (abi::SLOT_INLINE, entry::inline_thunk as *const () as u64),
            ] {
                (&raw mut (*self.header).slots[slot]).write_volatile(thunk);
            }
            syscall::protect(page, 4096);
        }
    }
}

/// Every patched module that is loaded.
fn find_modules() -> Vec<Module> {
    let mut found: Vec<Module> = Vec::new();
    // SAFETY: the callback has the right type and gets the vector that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit_module), (&raw mut found).cast()) };
    found
}

unsafe extern "C" fn visit_module(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr hands a valid description, and back the pointer that find_modules gave.
    let (info, found) = unsafe { (&*info, &mut *data.cast::<Vec<Module>>()) };
    // SAFETY: the loader's description of the module's program headers.
    let phdrs =
        unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for note in phdrs.iter().filter(|p| p.p_type == libc::PT_NOTE) {
        // SAFETY: the segment is mapped from its address on with its length.
        let bytes = unsafe {
            core::slice::from_raw_parts(
                (info.dlpi_addr + note.p_vaddr) as *const u8,
                note.p_memsz as usize,
            )
        };
        let Some(desc) = find_note(bytes) else {
            continue;
        };
        let header = (info.dlpi_addr + desc.header_va) as *mut ModuleHeader;
        // SAFETY: `verify` has seen that the note leads to a header in a mapped segment; the magic is checked here.
        let valid = unsafe {
            (*header).magic == abi::MODULE_MAGIC && (*header).abi_version == abi::ABI_VERSION
        };
        if !valid || found.len() >= 254 {
            continue;
        }
        // SAFETY: the loader's string.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) }
            .to_string_lossy()
            .into_owned();
        let path = if name.is_empty() {
            std::fs::read_link("/proc/self/exe").map_or(name, |p| p.to_string_lossy().into_owned())
        } else {
            name
        };
        let status = ModuleStatus {
            module: found.len() as u32,
            path,
            bias: info.dlpi_addr,
        };
        found.push(Module { header, status });
    }
    0
}

/// Our note among those of a segment (namesz, descsz, type, then name and description, each padded to 4 bytes).
fn find_note(mut bytes: &[u8]) -> Option<NoteDesc> {
    loop {
        let word =
            |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let (name_len, desc_len, kind) = (word(0)?, word(4)?, word(8)?);
        let desc_at = 12 + name_len.checked_next_multiple_of(4)?;
        let end = desc_at.checked_add(desc_len.checked_next_multiple_of(4)?)?;
        if kind as u32 == abi::NOTE_TYPE && bytes.get(12..12 + name_len)? == abi::NOTE_NAME {
            return NoteDesc::from_bytes(bytes.get(desc_at..desc_at + desc_len)?)
                .filter(|d| d.abi_version == abi::ABI_VERSION);
        }
        bytes = bytes.get(end..)?;
    }
}

/// Address of a symbol in the process, 0 if there is none.
fn symbol(name: &CStr) -> usize {
    // SAFETY: dlsym only reads the name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// glibc 2.35 and later registers restartable sequences: the processor's number is one load away.
fn find_rseq() {
    let offset = symbol(c"__rseq_offset");
    let size = symbol(c"__rseq_size");
    if offset != 0 && size != 0 {
        // SAFETY: glibc's documented variables: ptrdiff_t and unsigned int.
        let (offset, size) = unsafe { (*(offset as *const isize), *(size as *const u32)) };
        if size > 0 {
            RSEQ_CPU.store((offset + 4) as usize, Ordering::Relaxed);
        }
    }
}

/// Number of the processor that this thread runs on, `u16::MAX` if that can't be had cheaply.
#[inline]
pub(crate) fn cpu() -> u16 {
    let offset = RSEQ_CPU.load(Ordering::Relaxed);
    if offset == 0 {
        return u16::MAX;
    }
    // SAFETY: glibc keeps the area at this offset registered as long as the thread lives.
    let cpu = unsafe { (tls::base().wrapping_add(offset) as *const i32).read_volatile() };
    u16::try_from(cpu).unwrap_or(u16::MAX)
}

/// Asks the OpenMP runtime; looked up when first needed, as it may be loaded late.
fn ask(cache: &AtomicUsize, name: &CStr) -> Option<i64> {
    let mut function = cache.load(Ordering::Relaxed);
    if function == 0 {
        function = symbol(name);
        if function == 0 {
            return None;
        }
        cache.store(function, Ordering::Relaxed);
    }
    // SAFETY: both functions are `int f(void)` in every OpenMP runtime.
    let function: unsafe extern "C" fn() -> c_int = unsafe { core::mem::transmute(function) };
    // SAFETY: callable at any time.
    Some(i64::from(unsafe { function() }))
}

/// Thread number in the current team.
pub(crate) fn thread_num() -> i64 {
    ask(&THREAD_NUM, c"omp_get_thread_num").unwrap_or(0)
}

/// Size of the current team.
pub(crate) fn num_threads() -> i64 {
    ask(&NUM_THREADS, c"omp_get_num_threads").unwrap_or(1)
}

/// This thread, if it records.
#[inline(always)]
pub(crate) fn current<'a>() -> Option<&'a Thread> {
    let word = tls::get();
    if word > TLS_OFF {
        // SAFETY: set by begin_thread, and reset before the memory goes.
        return Some(unsafe { &*(word as *const Thread) });
    }
    if word == TLS_OFF || !ACTIVE.load(Ordering::Relaxed) {
        return None;
    }
    begin_thread()
}

/// A thread's first probe.
#[cold]
fn begin_thread<'a>() -> Option<&'a Thread> {
    tls::set(TLS_OFF); // what follows may allocate, and so run probes of a patched allocator
    // SAFETY: errno is this thread's own variable.
    let errno = unsafe { *libc::__errno_location() };
    let thread = new_thread();
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
    };
    let buffer = Buffer::new(syscall::move_up(file.into_raw_fd()), header)?;
    let memory = syscall::map_memory(size_of::<Thread>())?.cast::<Thread>();
    // SAFETY: fresh zeroed pages, aligned, large enough, not shared with anybody yet.
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

fn with_list(change: impl FnOnce()) {
    while LIST_LOCK
        .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        core::hint::spin_loop();
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
    thread.finish();
    thread.close_counters();
    LOST.fetch_add(thread.buffer.lost(), Ordering::Relaxed);
    with_list(|| {
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
    // SAFETY: neither the list nor TLS leads here any more.
    unsafe {
        thread.buffer.release();
        syscall::unmap(memory.cast(), size_of::<Thread>());
    }
}

/// Ends the recording at the process's orderly exit. Called by the loader.
pub(crate) fn finish() {
    if !ACTIVE.swap(false, Ordering::AcqRel) {
        return;
    }
    // SAFETY: as in new_thread.
    let Some(process) = (unsafe { PROCESS.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let own = tls::get();
    let mut lost = LOST.load(Ordering::Relaxed);
    let mut head: *const Thread = null();
    with_list(|| head = THREADS.load(Ordering::Relaxed));
    while !head.is_null() {
        // SAFETY: listed threads are alive; those that end from now on wait for nothing of ours, but glibc runs no
        // further destructors of other threads while exit() is under way unless they end by themselves.
        let thread = unsafe { &*head };
        // A thread at work can't be closed from here: what it committed stays, its last part is missing.
        if head as usize == own || thread.is_idle() {
            thread.finish();
        }
        lost += thread.buffer.lost();
        head = thread.next.get();
    }
    if own > TLS_OFF {
        tls::set(TLS_OFF);
    }
    let end = ProcessEnd {
        end: clock(),
        threads: NEXT_INDEX.load(Ordering::Relaxed),
        lost,
        stopped: (lost > 0)
            .then(|| format!("{lost} records or threads did not fit (disk full, or a limit)")),
    };
    if let (Ok(json), Ok(mut file)) = (
        serde_json::to_vec_pretty(&end),
        create(
            &process
                .directory
                .join(format!("process-{}.end.json", process.key)),
        ),
    ) {
        let _ = file.write_all(&json);
    }
    if let Some(stopped) = &end.stopped {
        complain(stopped);
    }
}

/// The child of a fork records for itself; what the parent's threads had open stays the parent's.
unsafe extern "C" fn after_fork_in_child() {
    let word = tls::get();
    if word > TLS_OFF {
        // SAFETY: the child's copy of the thread that forked.
        unsafe { &*(word as *const Thread) }.abandoned.set(true);
    }
    tls::set(0);
    LIST_LOCK.store(false, Ordering::Relaxed);
    THREADS.store(core::ptr::null_mut(), Ordering::Relaxed);
    NEXT_INDEX.store(0, Ordering::Relaxed);
    LOST.store(0, Ordering::Relaxed);
    // SAFETY: only this thread exists here, and no reference is held.
    let announced =
        unsafe { PROCESS.load(Ordering::Acquire).as_mut() }.is_some_and(Process::announce);
    if !announced {
        ACTIVE.store(false, Ordering::Release);
    }
}
