//! The end of a recording, at the process's orderly exit.
//!
//! Two moments: an exit handler is called while the OpenMP runtime is in order yet, and this library's destructor when the
//! runtime's has been called. Threads that the program left running go on until the very end; what they do after the
//! runtime's destructor may crash, hence no time is spent there that can be spent before. Constructs in the program's
//! own destructors come in between: they are recorded.

use super::settings::settings;
use super::threads::{NEXT_INDEX, THREADS, is_own_process, with_list};
use super::{ACTIVE, LOST, PREPARED, PROCESS, Process, THREADS_LOST, clock, measure, told};
use crate::files::{complain, create};
use crate::thread::{Thread, now};
use crate::undisturbed::uncancelled;
use crate::{host, kernel, syscall, tls};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use ompfuse_format::run::ProcessEnd;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The exit handler is registered.
static WAITING: AtomicBool = AtomicBool::new(false);
/// The end was written when the program began to exit.
static WRITTEN: AtomicBool = AtomicBool::new(false);
/// Time stamp counter when the program began to exit; 0: it hasn't.
static EXITING: AtomicU64 = AtomicU64::new(0);

/// At a thread's first probe: has the exit handler called. The C library calls handlers before destructors if they are
/// registered after its own start, which is past when there is a second thread.
pub(super) fn be_told() {
    // A system call: the C library has no function for it before glibc 2.30.
    let first = syscall::thread_id() == std::process::id();
    if !first && !WAITING.swap(true, Ordering::Relaxed) {
        // The last one is called first. Two that wait: one is there while the other is being registered again.
        for handler in [wait_for_end, wait_for_end, prepare] {
            // SAFETY: a plain function, which stays loaded with this library.
            unsafe { libc::atexit(handler) };
        }
    }
}

/// In the child of a fork: nothing of its end is written.
pub(super) fn start_again() {
    WRITTEN.store(false, Ordering::Relaxed);
    CLOSED.store(false, Ordering::Relaxed);
    EXITING.store(0, Ordering::Relaxed);
    COMPLETED.store(0, Ordering::Relaxed);
}

/// Time stamp counter when the records were complete because of that, by a thread whose own was complete, too; 0: they aren't.
static COMPLETED: AtomicU64 = AtomicU64::new(0);

/// The program is about to end. Returns when that was noticed first: what comes then is completing records.
fn exiting() -> u64 {
    let now = now();
    let first = EXITING.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    first.err().unwrap_or(now)
}

/// Notes what the kernel tells of all threads, before completing their files changes it.
fn note_schedules() {
    with_list(|| {
        let mut head = THREADS.load(Ordering::Relaxed).cast_const();
        while !head.is_null() {
            // SAFETY: listed threads are alive.
            let thread = unsafe { &*head };
            let told = || kernel::schedule(thread.buffer.tid());
            thread.buffer.end_schedule(told);
            head = thread.next.get();
        }
    });
}

/// The program begins to exit.
extern "C" fn prepare() {
    let exiting = exiting();
    uncancelled(|| close_all(exiting));
    CLOSED.store(true, Ordering::Release);
}

/// [`prepare`] has done what it does.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Longest time that a thread waits for another one's [`prepare`].
const PATIENCE: Duration = Duration::from_secs(10);

/// Called behind [`prepare`], by a thread that exits while another one is in there. Each handler is called by one of them. Who
/// finds none left ends the process, and with it the writing of its end.
extern "C" fn wait_for_end() {
    let is_prepared = || CLOSED.load(Ordering::Acquire);
    if is_prepared() {
        return;
    }
    // For the next thread that comes.
    // SAFETY: as in `be_told`.
    unsafe { libc::atexit(wait_for_end) };
    let patience = syscall::monotonic_ns() + PATIENCE.as_nanos() as u64;
    while !is_prepared() && syscall::monotonic_ns() < patience {
        syscall::yield_now();
    }
}

fn close_all(exiting: u64) {
    // SAFETY: PROCESS is set before ACTIVE and never freed.
    let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref() };
    let Some(process) = process.filter(|_| ACTIVE.load(Ordering::Acquire) && is_own_process())
    else {
        return;
    };
    note_schedules();
    let complete = || {
        // The exiting thread too: if it comes to another construct, it goes on in another file.
        let lost = close_idle(exiting, true);
        if write(process, &totals(lost, None)) {
            WRITTEN.store(true, Ordering::Relaxed);
        }
        // Whoever else exits may end the process before the destructor is called.
        let _ = std::fs::remove_file(process.control_file());
    };
    match own().filter(|own| !finish_if_idle(own, exiting)) {
        Some(own) => own.take_out(complete), // it exits in the midst of something
        None => {
            complete();
            COMPLETED.store(now(), Ordering::Relaxed);
        }
    }
}

/// Closes the exiting thread before all others, whose files take time, if it is idle. Returns whether it was.
fn finish_if_idle(own: &Thread, exiting: u64) -> bool {
    let mut is_closed = false;
    with_list(|| {
        is_closed = own.close();
        if is_closed {
            own.finish_from_outside(exiting, true);
        }
    });
    is_closed
}

/// The calling thread, if it records.
fn own<'a>() -> Option<&'a Thread> {
    let word = tls::get();
    // SAFETY: set by begin_thread, and reset before the memory goes.
    let own = (word > tls::OFF).then(|| unsafe { &*(word as *const Thread) });
    own.filter(|thread| !thread.is_gone())
}

/// Ends the recording. Called by the loader.
pub(crate) fn finish() {
    uncancelled(end);
}

fn end() {
    let begun = now();
    let exiting = exiting();
    if !ACTIVE.swap(false, Ordering::AcqRel) {
        return;
    }
    // SAFETY: as in `prepare`.
    let Some(process) = (unsafe { PROCESS.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    if !is_own_process() {
        return; // the parent's threads and files are not ours to close
    }
    let is_written = WRITTEN.load(Ordering::Relaxed);
    note_schedules();
    let own = own();
    if let Some(thread) = own.filter(|own| !finish_if_idle(own, exiting)) {
        thread.wake();
        thread.recover(tls::stack_pointer());
        thread.finish();
    }
    tls::set(tls::OFF);
    let handlers = told(&COMPLETED).map(|completed| [completed, begun]);
    let end = totals(close_idle(exiting, !is_written), handlers);
    let is_written = write(process, &end);
    // Nobody can change anything any more.
    let _ = std::fs::remove_file(process.control_file());
    // The command that waits for the program reads the ends, and says it once for all processes. Where there was no room for
    // this one, the threads' own files tell it what their records lost.
    let is_told = is_written || end.threads_lost == 0;
    let is_heard = is_told && settings().is_some_and(|settings| settings.is_heard);
    if let Some(stopped) = end.stopped.as_ref().filter(|_| !is_heard) {
        complain(stopped);
    }
}

/// Longest time that others' probes are waited for, all of them together. A thread that the kernel has interrupted in one, at the end of
/// its part of a region, say, would lose its last part.
const SHORTLY: Duration = Duration::from_millis(20);

/// Closes a thread as soon as it is not at work, by then.
fn close_by(thread: &Thread, until: u64) -> bool {
    loop {
        if thread.close() {
            return true;
        }
        if thread.is_gone() || syscall::monotonic_ns() >= until {
            return false;
        }
        syscall::yield_now();
    }
}

/// Closes the threads that are not at work; of those that are, what they have committed stays, and their last part is
/// missing. Returns how many records are lost so far. `exiting`: when they end. `trim`: their files are cut to what is in them, which
/// takes time.
fn close_idle(exiting: u64, trim: bool) -> u64 {
    let mut lost = LOST.load(Ordering::Relaxed);
    let own = own().map(core::ptr::from_ref);
    let until = syscall::monotonic_ns() + SHORTLY.as_nanos() as u64;
    // A thread that ends meanwhile (libgomp's pool may) waits for the lock before its memory goes.
    with_list(|| {
        let mut head = THREADS.load(Ordering::Relaxed).cast_const();
        while !head.is_null() {
            // SAFETY: listed threads are alive.
            let thread = unsafe { &*head };
            super::threads::name(thread);
            let is_own = own == Some(head);
            if thread.close() || (trim && !is_own && close_by(thread, until)) {
                thread.finish_from_outside(exiting, trim);
            }
            lost += thread.buffer.lost();
            head = thread.next.get();
        }
    });
    lost
}

/// Processors that the threads may run on, all of them together. `None`: not every thread is still there.
fn bound() -> Option<u32> {
    let mut all = kernel::Mask::default();
    let mut known = 0;
    with_list(|| {
        let mut head = THREADS.load(Ordering::Relaxed).cast_const();
        while !head.is_null() {
            // SAFETY: listed threads are alive.
            let thread = unsafe { &*head };
            known += u32::from(all.add(thread.buffer.tid()));
            head = thread.next.get();
        }
    });
    (known == NEXT_INDEX.load(Ordering::Relaxed)).then(|| all.count())
}

/// `handlers`: when the program's other exit handlers and destructors were called, if nothing else tells it.
fn totals(lost: u64, handlers: Option<[u64; 2]>) -> ProcessEnd {
    let threads_lost = THREADS_LOST.load(Ordering::Relaxed);
    let what = match (lost, threads_lost) {
        (0, 0) => None,
        (_, 0) => Some(format!("{lost} records")),
        (0, _) => Some(format!("{threads_lost} of the threads")),
        _ => Some(format!("{lost} records and {threads_lost} of the threads")),
    };
    ProcessEnd {
        end: clock(),
        threads: NEXT_INDEX.load(Ordering::Relaxed),
        lost,
        threads_lost,
        stopped: what
            .map(|what| format!("{what} did not fit (disk full, a limit, or out of reach)")),
        switches: measure::switched(),
        cpu_ns: kernel::cpu_ns(),
        peak_bytes: kernel::peak_bytes(),
        bound: bound(),
        sized_teams: host::are_teams_sized(),
        prepared: told(&PREPARED),
        exiting: told(&EXITING),
        handlers,
    }
}

/// Writes the end, or what has become of it since.
fn write(process: &Process, end: &ProcessEnd) -> bool {
    let Ok(json) = serde_json::to_vec_pretty(end) else {
        return false;
    };
    if let Some(file) = process.end.as_ref().filter(|file| file.is_ours()) {
        return file.write(&json);
    }
    let path = process.end_path();
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let mut again = OpenOptions::new();
    again.write(true).truncate(true).custom_flags(flags);
    let file = again.open(&path).or_else(|_| create(&path));
    let may_have = |_: &File| syscall::may_have(json.len() as u64);
    file.ok()
        .filter(may_have)
        .is_some_and(|mut file| file.write_all(&json).is_ok())
}

/// The file for a process's end, empty until then. Its text must have room on a disk that has become full, and must be told where
/// the folder can't be reached any more (other privileges, another root).
pub(super) struct EndFile {
    fd: i32,
    /// The file behind `fd`: the program may close that number, and open another file that gets it.
    identity: (u64, u64),
}

impl EndFile {
    /// Bytes that an end has at most.
    const ROOM: u64 = 4096;

    /// Makes it. `before`: the parent's, in the child of a fork.
    pub(super) fn reserve(path: &Path, before: Option<EndFile>) -> Option<EndFile> {
        if let Some(parents) = before.filter(EndFile::is_ours) {
            syscall::close(parents.fd);
        }
        let file = create(path).ok()?;
        syscall::allocate_behind(file.as_raw_fd(), EndFile::ROOM);
        let identity = syscall::identity(file.as_raw_fd())?;
        let fd = syscall::moved_up(file.as_raw_fd())?;
        core::mem::forget(file); // its number is closed
        Some(EndFile { fd, identity })
    }

    fn is_ours(&self) -> bool {
        syscall::identity(self.fd) == Some(self.identity)
    }

    fn write(&self, text: &[u8]) -> bool {
        // SAFETY: the slice is readable.
        let written = unsafe { syscall::write_at(self.fd, text.as_ptr(), text.len(), 0) };
        let end = if written { text.len() as u64 } else { 0 };
        syscall::truncate(self.fd, end);
        written
    }
}
