//! How much memory there is, and what happens when there is no more.

use anyhow::{Context, Result};
use rustix::process::{Resource, getrlimit};
use signal_hook::consts::SIGABRT;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// More than this isn't used unless it is asked for. What data needs is estimated for deep labels, and is some three times of what
/// usual data takes. Beyond it the data is read again for each part, so time grows with the square of its size.
const ENOUGH: u64 = 8 << 30;

/// The same for each of a job's ranks, of which a machine has many.
const ENOUGH_OF_RANK: u64 = 1 << 30;

/// The `--memory` option.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arg {
    /// Use at most this much memory (`500M`, `4G`; default: half of what is available, 8G at most)
    ///
    /// Larger data is read in several passes, some regions in each.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
}

impl Arg {
    /// In bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.memory.unwrap_or_else(|| available().min(ENOUGH))
    }
}

/// What a rank of a job uses beside others, in bytes.
pub(crate) fn of_rank() -> u64 {
    available().min(ENOUGH_OF_RANK)
}

/// What the command needs of its stack, with room to spare; some 60 KiB were not enough.
const STACK: usize = 8 << 20;

/// Whether a limit that the user has set for the program's sake leaves too little of a stack for this command.
pub(crate) fn is_stack_short() -> bool {
    getrlimit(Resource::Stack)
        .current
        .is_some_and(|limit| limit < STACK as u64 / 8)
}

/// Does something in a thread, which has a stack of any size; without one if there can't be any. The limit stays as it is: the program
/// inherits it.
pub(crate) fn with_stack<T: Send>(what: fn() -> T) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        match thread.spawn_scoped(scope, what) {
            Ok(thread) => thread.join().expect(crate::NO_PANIC),
            Err(_) => what(),
        }
    })
}

/// Makes the threads that computations share, and sees to it that a failed allocation ends the command with status 1: the standard
/// library says so in a line and aborts, which would be a signal's status and a core file.
///
/// The threads are made here and not when they are first needed, since that panics where a limit leaves no room for their stacks;
/// then everything is done by one.
pub(crate) fn prepare() -> Result<()> {
    signal_hook::flag::register_conditional_shutdown(SIGABRT, 1, Arc::new(AtomicBool::new(true)))?;
    let wanted = std::env::var("RAYON_NUM_THREADS").ok();
    let wanted: Option<usize> = wanted.and_then(|n| n.parse().ok()).filter(|&n| n > 0);
    let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = wanted.unwrap_or_else(processors);
    // Pools can't be asked for again where one was refused.
    let pool = rayon::ThreadPoolBuilder::new();
    let pool = if can_start(threads) {
        pool.num_threads(threads)
    } else {
        pool.num_threads(1).use_current_thread()
    };
    pool.build_global().with_context(|| {
        format!("cannot start {threads} threads; allow more memory, or set RAYON_NUM_THREADS=1")
    })
}

/// So many bytes that are free at the end of a heap are kept.
const KEPT: i32 = 64 << 10;

/// Has the allocator give free memory back at once, for commands that look at a file in steps, each with much memory of its own: a
/// patch of 39 MB needs 64 instead of 80 MB, in the same time. By itself glibc keeps the more the larger what was freed is.
#[expect(unsafe_code, reason = "no crate has it")]
pub(crate) fn give_back() {
    // SAFETY: only a number of the allocator changes, under its own lock. One that doesn't know it goes on as before.
    unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT) };
}

/// Whether so many threads find room. Their stacks are kept for those that come after them.
fn can_start(threads: usize) -> bool {
    let go = Mutex::new(());
    let held = go.lock();
    std::thread::scope(|scope| {
        let start = |_| {
            let thread = std::thread::Builder::new();
            thread.spawn_scoped(scope, || drop(go.lock())).is_ok()
        };
        let all = (0..threads).all(start);
        drop(held);
        all
    })
}

/// Half of the memory that is available: of the machine's, of what control groups allow, and of the process's own limits.
pub(crate) fn available() -> u64 {
    let machine = number(Path::new("/proc/meminfo"), |text| {
        let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        Some(kib << 10)
    });
    let of_process = [Resource::As, Resource::Data]
        .into_iter()
        .filter_map(|resource| getrlimit(resource).current);
    let least = of_process.chain(machine).chain(of_groups()).min();
    least.unwrap_or(u64::MAX) / 2
}

/// What the control groups around this process allow.
fn of_groups() -> impl Iterator<Item = u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits: Vec<u64> = limits_of_groups(&own)
        .iter()
        .filter_map(|file| number(file, |text| text.trim().parse().ok()))
        .collect();
    limits.into_iter()
}

/// The files that have the limits, of version 2 and 1. In a container the group's own path may not be there, but those around it.
fn limits_of_groups(own: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (root, file) = match fields.next() {
            Some("") => ("/sys/fs/cgroup", "memory.max"),
            Some(kinds) if kinds.split(',').any(|kind| kind == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let path = fields.next().unwrap_or_default().trim_start_matches('/');
        let group = Path::new(root).join(path);
        let around = group.ancestors().take_while(|p| p.starts_with(root));
        files.extend(around.map(|group| group.join(file)));
    }
    files
}

fn number(path: &Path, read: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    read(&std::fs::read_to_string(path).ok()?)
}

/// A number of bytes: `500M`, `4G`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size; say for example 500M or 4G");
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        Some((at, 'T' | 't')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups() {
        let files = |own: &str| {
            let files = limits_of_groups(own).into_iter();
            let texts = files.map(|f| f.display().to_string());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(
            files("0::/a/b"),
            ["a/b/", "a/", ""].map(|g| format!("/sys/fs/cgroup/{g}memory.max"))
        );
        assert_eq!(
            files("5:cpu,memory:/job\n4:pids:/job\n"),
            ["job/", ""].map(|g| format!("/sys/fs/cgroup/memory/{g}memory.limit_in_bytes"))
        );
        assert_eq!(files("garbage\n\n"), [""; 0]);
    }

    #[test]
    fn sizes() {
        assert_eq!(size("17"), Ok(17));
        assert_eq!(size("3k"), Ok(3 << 10));
        assert_eq!(size("500M"), Ok(500 << 20));
        assert_eq!(size("2G"), Ok(2 << 30));
        for bad in ["", "G", "-1", "1.5G", "4X", "99999999999T", "1é"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert!(available() > 1 << 20);
    }
}
