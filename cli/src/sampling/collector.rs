//! The thread that empties the rings into a file.

use super::events::{Rings, threads};
use super::files::Files;
use super::has_tsc;
use super::maps;
use super::records::{self, Looked, Met};
use super::stacks::Stacks;
use super::stopped::Stopped;
use super::watch::{Verdict, Watch};
use anyhow::{Context, Result, anyhow};
use ompfuse_format::samples::{
    Closed, ClosedAt, STOP_EVERY_NS, SampleRecord, SamplesHeader, Sampling, Stop, Switch, TooMuch,
    TscPair, encode_header, encode_record, samples_file, tsc,
};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often rings are emptied: the smallest has room for more at the highest rate.
const PAUSE: Duration = Duration::from_nanos(STOP_EVERY_NS);
/// How often both clocks are read, in nanoseconds.
const CLOCKS_NS: u64 = 500_000_000;
/// Readings of which the one counts that took the shortest time.
const READINGS: usize = 10;
/// Bytes that are written at once.
const BYTES: usize = 1 << 16;

/// The thread, and how it is told something.
pub(super) struct Collector {
    thread: JoinHandle<Result<Sampling>>,
    /// The program has ended.
    ended: Arc<AtomicBool>,
}

/// Bytes that a run's records and samples have when there is no room for more; 0: there is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limit(Arc<AtomicU64>);

impl Limit {
    /// They have reached so many.
    pub(crate) fn reached(&self, bytes: u64) {
        self.0.store(bytes.max(1), Ordering::Relaxed);
    }
}

impl Collector {
    /// Looks at a process from the next program on that it executes. `run`: the folder for the file.
    pub(super) fn start(pid: u32, rate: u32, run: &Path, limit: &Limit) -> Result<Collector> {
        let work = Work::new(Rings::open(pid, rate)?, header(pid, rate), run)?;
        Collector::go(work, limit)
    }

    /// Looks at a process that runs already.
    pub(super) fn of_running(
        pid: u32,
        rate: u32,
        files: &Files,
        run: &Path,
        limit: &Limit,
    ) -> Result<Collector> {
        let mut work = Work::new(Rings::of_running(pid, rate)?, header(pid, rate), run)?;
        work.stacks = Stacks::new(files.clone());
        let mapped =
            std::fs::read(format!("/proc/{pid}/maps")).context("its memory isn't known")?;
        for mapping in maps::code(&mapped, pid, work.begun_ns) {
            let record = SampleRecord::Mapping(mapping);
            work.stacks.note(&record);
            encode_record(&record, &mut work.bytes);
        }
        for tid in threads(pid) {
            work.stopped.begin((pid, tid), work.begun_ns);
        }
        Collector::go(work, limit)
    }

    fn go(mut work: Work, limit: &Limit) -> Result<Collector> {
        let ended = Arc::new(AtomicBool::new(false));
        let told = (Arc::clone(&ended), limit.clone());
        let thread = std::thread::Builder::new().name("samples".to_owned());
        let thread = thread.spawn(move || work.go_on(&told.0, &told.1));
        Ok(Collector {
            thread: thread.context("no thread could be started")?,
            ended,
        })
    }

    /// After the program's end.
    pub(super) fn end(self) -> Result<Sampling> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let done = self.thread.join();
        done.unwrap_or_else(|_| Err(anyhow!("the thread that collects samples has failed")))
    }
}

fn header(pid: u32, rate: u32) -> SamplesHeader {
    SamplesHeader {
        pid,
        period_ns: 1_000_000_000 / u64::from(rate),
        has_tsc: has_tsc(),
    }
}

/// What the thread has.
struct Work {
    rings: Rings,
    file: File,
    /// Whole records that are not written yet.
    bytes: Vec<u8>,
    stacks: Stacks,
    stopped: Stopped,
    watch: Watch,
    begun_ns: u64,
    clocks_ns: u64,
    done: Sampling,
}

impl Work {
    fn new(rings: Rings, header: SamplesHeader, run: &Path) -> Result<Work> {
        let mut bytes = Vec::with_capacity(BYTES);
        encode_header(&header, &mut bytes);
        let begun_ns = raw_ns();
        let mut work = Work {
            rings,
            file: create(run, header.pid)?,
            bytes,
            stacks: Stacks::default(),
            stopped: Stopped::default(),
            watch: Watch::default(),
            begun_ns,
            clocks_ns: begun_ns,
            done: Sampling::default(),
        };
        work.read_clocks();
        Ok(work)
    }

    fn go_on(&mut self, ended: &AtomicBool, limit: &Limit) -> Result<Sampling> {
        loop {
            let is_last = ended.load(Ordering::Relaxed);
            self.drain();
            self.rings.follow();
            let is_due = self.clocks_ns.saturating_add(CLOCKS_NS) <= raw_ns() || is_last;
            if is_due {
                self.read_clocks();
            }
            match limit.0.load(Ordering::Relaxed) {
                0 => {}
                bytes => self.close((TooMuch::Bytes, bytes)),
            }
            let passed = Duration::from_nanos(raw_ns().saturating_sub(self.begun_ns));
            if let Some(verdict) = self.watch.look(passed, self.rings.for_each_thread()) {
                self.close(verdict);
            }
            // Whoever reads a run that goes on wants to know what threads do now.
            if self.bytes.len() >= BYTES / 2 || is_due {
                self.write()?;
            }
            if is_last {
                return Ok(std::mem::take(&mut self.done));
            }
            std::thread::park_timeout(PAUSE);
        }
    }

    /// Takes in what the kernel has written. Samples come last: what they need to know of their process is in any of the rings.
    fn drain(&mut self) {
        let Work {
            rings,
            bytes,
            stacks,
            stopped,
            watch,
            done,
            ..
        } = self;
        let mut looked: Vec<(u16, Vec<u8>)> = vec![];
        rings.drain(&mut |kind, misc, body| {
            let record = match records::read(kind, misc, body) {
                Met::Looked(_) => return looked.push((misc, body.to_vec())),
                Met::Record(record) => record,
                Met::Began(process) => {
                    watch.began();
                    match process {
                        Some(record) => record,
                        None => return,
                    }
                }
                Met::Ended(thread) => {
                    stopped.ended(thread);
                    return watch.ended();
                }
                Met::Other => return,
            };
            match &record {
                SampleRecord::Switch(switch) => {
                    stopped.note(switch);
                    watch.switched();
                }
                SampleRecord::Lost { count, .. } => done.lost += count,
                other => stacks.note(other),
            }
            encode_record(&record, bytes);
        });
        for (misc, body) in looked {
            if let Met::Looked(sample) = records::read(records::SAMPLE, misc, &body) {
                done.samples += 1;
                encode_record(&SampleRecord::Sample(stacks.sample(&sample)), bytes);
            }
        }
        if done.closed.is_some() {
            return;
        }
        let (raw_ns, begun_ns) = (raw_ns(), self.begun_ns);
        stopped.look(raw_ns, &mut |stop| {
            let (pid, tid) = stop.thread;
            if stop.is_old {
                let switch = Switch {
                    raw_ns: begun_ns,
                    pid,
                    tid,
                    is_out: true,
                    is_preempted: false,
                };
                encode_record(&SampleRecord::Switch(switch), bytes);
            }
            let sample = stacks.sample(&Looked {
                raw_ns,
                pid,
                tid,
                frame: stop.frame(),
            });
            let call = stop.call;
            encode_record(&SampleRecord::Stop(Stop { sample, call }), bytes);
        });
    }

    fn read_clocks(&mut self) {
        let reading = || {
            let (before, raw_ns, after) = (tsc(), raw_ns(), tsc());
            let length = after.saturating_sub(before);
            let pair = TscPair {
                tsc: before + length / 2,
                raw_ns,
            };
            (length, pair)
        };
        let all = std::iter::repeat_with(reading).take(READINGS);
        if let Some((_, pair)) = all.min_by_key(|(length, _)| *length) {
            self.clocks_ns = pair.raw_ns;
            encode_record(&SampleRecord::Clock(pair), &mut self.bytes);
        }
    }

    fn close(&mut self, (because, amount): Verdict) {
        if self.done.closed.is_some() {
            return;
        }
        let raw_ns = raw_ns();
        self.rings.close();
        let closed = Closed {
            raw_ns,
            because,
            amount,
        };
        encode_record(&SampleRecord::Closed(closed), &mut self.bytes);
        self.done.closed = Some(ClosedAt {
            because,
            amount,
            at_s: raw_ns.saturating_sub(self.begun_ns) as f64 / 1e9,
        });
    }

    /// Writes what is there: always whole records.
    fn write(&mut self) -> Result<()> {
        let written = self.file.write_all(&self.bytes);
        self.bytes.clear();
        if written.is_err() {
            self.rings.close();
        }
        written.context("samples could not be written")
    }
}

/// CLOCK_MONOTONIC_RAW in nanoseconds.
fn raw_ns() -> u64 {
    let time = clock_gettime(ClockId::MonotonicRaw);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A new file. Another host's process may have had the same number.
fn create(run: &Path, pid: u32) -> Result<File> {
    const MOST: u32 = 1000;
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    for again in 0..MOST {
        match options.open(run.join(samples_file(pid, again))) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            opened => return opened.context("the file for samples can't be made"),
        }
    }
    Err(anyhow!("the folder has too many files of samples"))
}
