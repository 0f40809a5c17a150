//! What records in this process: what is fixed for it, its threads, its event sets, fork, and the end.

mod end;
mod key;
mod measure;
mod orphan;
mod sets;
mod settings;
mod threads;

pub(crate) use end::finish;
pub(crate) use measure::{measure, ticks_of};
pub(crate) use sets::{event_names, open_set};
pub(crate) use settings::{Settings, settings};
pub(crate) use threads::{current, known, may_begin};

use crate::counters::EventSet;
use crate::files::{complain, write_new};
use crate::thread::{Thread, now, sums};
use crate::undisturbed::undisturbed;
use crate::{control, heap, kernel, modules, names, syscall, tls};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use ompfuse_format::run::{
    self, ClockPair, EventStatus, ModuleStatus, ProcessCosts, ProcessHeader,
};
use sets::counted_names;
use settings::environment;
use std::ffi::CString;
use std::path::PathBuf;

/// Recording is on.
pub(crate) static ACTIVE: AtomicBool = AtomicBool::new(false);
pub(crate) static PROCESS: AtomicPtr<Process> = AtomicPtr::new(core::ptr::null_mut());
/// Records lost by threads that have ended.
static LOST: AtomicU64 = AtomicU64::new(0);
/// Threads that could not record at all.
static THREADS_LOST: AtomicU64 = AtomicU64::new(0);
/// Time stamp counter when preparing the recording began, and when that was done.
pub(crate) static STARTED: AtomicU64 = AtomicU64::new(0);
pub(crate) static PREPARED: AtomicU64 = AtomicU64::new(0);

/// What is fixed when recording begins.
pub(crate) struct Process {
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

/// Calls of [`attach`](crate::recording::attach) that nobody has answered yet.
pub(crate) static CALLS: AtomicU32 = AtomicU32::new(0);

impl Process {
    /// What records by these settings: the events that are counted per execution unit, and per parallel region, and what becomes of each.
    /// `None`: no thread could tell that it ends.
    pub(crate) fn new(
        settings: &Settings,
        [(chosen, status), (of_regions, region_status)]: [(EventSet, Vec<EventStatus>); 2],
    ) -> Option<Process> {
        Some(Process {
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
            pthread_key: key::make(threads::thread_ends)?,
        })
    }

    /// Writes the process header under a name that nobody has.
    pub(crate) fn announce(&mut self) -> bool {
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
            processors: kernel::processors(),
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
    pub(crate) fn announce_costs(&self) {
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

    pub(crate) fn control_file(&self) -> PathBuf {
        self.directory
            .join(ompfuse_format::control::file_name(&self.key))
    }

    /// Begins without recording, if the command wants that of who starts now.
    pub(crate) fn hold(&self) {
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
    pub(crate) fn announce_module(&self, status: &ModuleStatus) -> bool {
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

/// The child of a fork records for itself; what the parent's threads had open stays the parent's.
pub(crate) unsafe extern "C" fn after_fork_in_child() {
    undisturbed(begin_again);
}

fn begin_again() {
    STARTED.store(now(), Ordering::Relaxed);
    PREPARED.store(0, Ordering::Relaxed);
    let word = tls::get();
    if word > tls::OFF {
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
