//! Events on a process and all that it starts, with rings that the kernel writes into.

use super::records::REGISTERS;
use crate::processors;
use anyhow::{Context, Result, bail};
use ompfuse_format::refused::{self, EACCES, EPERM, Guard, PARANOID_FILE, STATUS_FILE};
use perf_rings::events::Software;
use perf_rings::{Builder, Clock, SampleFlag, Sampler};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeSet;
use std::io;

/// Bytes of a page.
const PAGE: usize = 4096;
/// Pages of a processor's ring. Locked memory is per user and shared by all commands, so fewer are tried where these are too many.
const PAGES: [usize; 4] = [64, 32, 16, 8];

// errno values of perf_event_open(2).
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;
const ESRCH: i32 = 3;

/// Files beside events, for what begins later.
const SPARE_FILES: u64 = 64;

/// Why the kernel allows no samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    /// What helps.
    pub(crate) remedy: Option<String>,
}

/// Tries an event on this process. `None`: samples are allowed.
pub(crate) fn refusal() -> Option<Refusal> {
    let error = sampled(1).any_cpu().observe_self().build().err()?;
    Some(explain(&error))
}

/// The same on the first thread of a process.
pub(crate) fn refusal_of(pid: u32) -> Option<Refusal> {
    let pid = i32::try_from(pid).ok()?;
    let mut event = sampled(1);
    event.inherit(false).enable_on_exec(false);
    let error = event.observe_pid(pid).any_cpu().build().err()?;
    Some(explain(&error))
}

fn explain(error: &io::Error) -> Refusal {
    let read = |file: &str| std::fs::read_to_string(file).ok();
    let guard = Guard::parse(read(PARANOID_FILE).as_deref(), read(STATUS_FILE).as_deref());
    let known = error.raw_os_error();
    match known.and_then(|errno| refused::explain(errno, &guard)) {
        Some((reason, remedy)) => Refusal { reason, remedy },
        None => Refusal {
            reason: format!("the kernel has no such event ({error})"),
            remedy: None,
        },
    }
}

/// Most bytes of a stack that are copied: those of nearly all threads have fewer.
const STACK: usize = 8192;
/// No stack with less is of use.
const LEAST_STACK: usize = 512;
/// What a ring must have room for: so much of a second. It is emptied five times as often.
const ROOM_S: f64 = 0.1;

/// Bytes of a stack that are copied for each sample, as far as a ring has room.
fn stack_bytes(ring: usize, rate: u32) -> usize {
    let each = ring as f64 / (f64::from(rate) * ROOM_S);
    let each = (each as usize).min(STACK) & !7;
    if each < LEAST_STACK { 0 } else { each }
}

/// An event that samples user code so often in a second of processor time. It begins when a program is executed.
fn sampled(rate: u32) -> Builder<'static> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder
        .sample(SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC_RAW)
        .exclude_kernel(true)
        .exclude_hv(true)
        .inherit(true)
        .enable_on_exec(true)
        .sample_period(1_000_000_000 / u64::from(rate))
        .mmap(true)
        .mmap2(true)
        .comm(true)
        .comm_exec(true)
        .task(true)
        .context_switch(true)
        // Nobody waits for it.
        .wakeup_watermark(u32::MAX as usize);
    builder
}

/// The events of a process.
pub(super) struct Rings {
    rings: Vec<Ring>,
    /// Of a process that ran already.
    running: Option<Running>,
    /// Dropped after the events.
    _files: Files,
}

/// A ring of a processor, or of a thread.
struct Ring {
    thread: Option<u32>,
    sampler: Sampler,
}

/// A process that ran already: its threads are asked for again and again.
struct Running {
    pid: u32,
    rate: u32,
    /// Pages of a thread's ring.
    pages: usize,
}

impl Rings {
    /// Opens them on each processor that this command may run on.
    pub(super) fn open(pid: u32, rate: u32) -> Result<Rings> {
        let processors = processors::allowed().context("the processors aren't known")?;
        let files = Files::room_for(processors.len() as u64);
        let pid = i32::try_from(pid).context("no process has this number")?;
        let rings = ring_each(&processors, pid, rate)?;
        if rings.is_empty() {
            bail!("no processor has the event");
        }
        let of_processor = |sampler| Ring {
            thread: None,
            sampler,
        };
        Ok(Rings {
            rings: rings.into_iter().map(of_processor).collect(),
            running: None,
            _files: files,
        })
    }

    /// Opens one on each thread of a process that runs already. (Inherited events would need a ring for each thread and processor.)
    pub(super) fn of_running(pid: u32, rate: u32) -> Result<Rings> {
        let threads = threads(pid);
        let mut rings = Rings {
            rings: vec![],
            running: None,
            _files: Files::room_for(2 * threads.len() as u64 + SPARE_FILES),
        };
        let mut error = None;
        for pages in PAGES {
            rings.rings.clear();
            match threads
                .iter()
                .try_for_each(|&tid| rings.add(tid, rate, pages))
            {
                Ok(()) if rings.rings.is_empty() => bail!("it has ended"),
                Ok(()) => {
                    rings.running = Some(Running { pid, rate, pages });
                    return Ok(rings);
                }
                Err(e) => error = Some(e),
            }
        }
        Err(error.unwrap_or_else(|| anyhow::anyhow!("no size of rings was tried")))
    }

    /// A thread's ring; none if it has ended.
    fn add(&mut self, tid: u32, rate: u32, pages: usize) -> Result<()> {
        let mut event = sampled(rate);
        event.inherit(false).enable_on_exec(false).enabled(true);
        with_stack(&mut event, pages, rate);
        let tid = i32::try_from(tid).context("no thread has this number")?;
        let counter = match event.observe_pid(tid).any_cpu().build() {
            Ok(counter) => counter,
            Err(e) if e.raw_os_error() == Some(ESRCH) => return Ok(()),
            Err(e) => bail!("{}", explain(&e).reason),
        };
        let sampler = counter.sampled(pages * PAGE);
        self.rings.push(Ring {
            thread: Some(tid.cast_unsigned()),
            sampler: sampler.map_err(|e| unmapped(&e, pages, "thread"))?,
        });
        Ok(())
    }

    /// Looks for threads that have begun, and forgets those that have ended. Of a process that was started there is nothing to do.
    pub(super) fn follow(&mut self) {
        let Some(Running { pid, rate, pages }) = self.running else {
            return;
        };
        let now = threads(pid);
        self.rings
            .retain(|r| r.thread.is_some_and(|t| now.contains(&t)));
        let is_new = |tid: &u32| !self.rings.iter().any(|r| r.thread == Some(*tid));
        let new: Vec<u32> = now.iter().copied().filter(is_new).collect();
        for tid in new {
            // Who can't have one more is told by the number of threads that have samples.
            let _ = self.add(tid, rate, pages);
        }
    }

    /// Hands on what is in the rings: kind, flags and body of each record.
    pub(super) fn drain(&mut self, each: &mut dyn FnMut(u32, u16, &[u8])) {
        for ring in &mut self.rings {
            // What comes meanwhile has its turn the next time: else this could go on for ever.
            for _ in 0..MOST {
                let Some(record) = ring.sampler.next_record() else {
                    break;
                };
                each(record.ty(), record.misc(), &record.to_contiguous());
            }
        }
    }

    /// Events that the kernel has for each thread.
    pub(super) fn for_each_thread(&self) -> u64 {
        match self.running {
            Some(_) => 1,
            None => self.rings.len() as u64,
        }
    }

    /// The kernel tells nothing any more.
    pub(super) fn close(&mut self) {
        self.rings.clear();
    }
}

/// Records of a ring that are read in one go: a ring of the largest size has no more.
const MOST: usize = 64 * PAGE / 16;

/// A ring for each processor. Processors without such events are left out.
fn ring_each(processors: &[usize], pid: i32, rate: u32) -> Result<Vec<Sampler>> {
    let event = sampled(rate);
    let mut error = None;
    for pages in PAGES {
        let mut event = event.clone();
        with_stack(&mut event, pages, rate);
        match with_pages(processors, pid, &event, pages) {
            Ok(rings) => return Ok(rings),
            Err(e) => error = Some(e),
        }
    }
    Err(error.unwrap_or_else(|| anyhow::anyhow!("no size of rings was tried")))
}

/// As much of the stack as a ring has room for.
fn with_stack(event: &mut Builder<'static>, pages: usize, rate: u32) {
    let stack = stack_bytes(pages * PAGE, rate);
    if stack > 0 {
        // Three registers are enough to follow frames.
        event
            .sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER)
            .sample_regs_user(REGISTERS)
            .sample_stack_user(stack as u32);
    }
}

/// The threads of a process; none if it has ended.
pub(crate) fn threads(pid: u32) -> BTreeSet<u32> {
    let listed = std::fs::read_dir(format!("/proc/{pid}/task"));
    let names = listed.into_iter().flatten().flatten();
    names
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .collect()
}

fn unmapped(e: &io::Error, pages: usize, each: &str) -> anyhow::Error {
    match e.raw_os_error() {
        Some(EPERM | EACCES) => anyhow::anyhow!(
            "no memory may be locked for {pages} pages on each {each} (other commands use it, or kernel.perf_event_mlock_kb is low)"
        ),
        _ => anyhow::anyhow!("no ring could be mapped: {e}"),
    }
}

fn with_pages(
    processors: &[usize],
    pid: i32,
    event: &Builder<'static>,
    pages: usize,
) -> Result<Vec<Sampler>> {
    let mut rings = vec![];
    for &processor in processors {
        let mut event = event.clone();
        let opened = event.observe_pid(pid).one_cpu(processor).build();
        let counter = match opened {
            Ok(counter) => counter,
            Err(e) if [Some(ENODEV), Some(EINVAL)].contains(&e.raw_os_error()) => continue,
            Err(e) => bail!("{}", explain(&e).reason),
        };
        let ring = counter.sampled(pages * PAGE);
        rings.push(ring.map_err(|e| unmapped(&e, pages, "processor"))?);
    }
    Ok(rings)
}

/// Room for more open files of this command. The limit that programs inherit is as before as soon as this is dropped; the program that
/// is sampled was started before.
struct Files(Option<Rlimit>);

impl Files {
    fn room_for(more: u64) -> Files {
        /// Those that this command has open for other things.
        const OTHERS: u64 = 128;
        let before = getrlimit(Resource::Nofile);
        let wanted = more + OTHERS;
        if before.current.is_none_or(|now| now >= wanted) {
            return Files(None);
        }
        let most = before.maximum.map_or(wanted, |most| most.min(wanted));
        let raised = Rlimit {
            current: Some(most),
            maximum: before.maximum,
        };
        Files(
            setrlimit(Resource::Nofile, raised)
                .is_ok()
                .then_some(before),
        )
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            let _ = setrlimit(Resource::Nofile, before); // a lower limit is always allowed
        }
    }
}
