//! What the kernel tells of this process and its threads: processors, times, names.

use crate::syscall;
use ompfuse_format::record::THREAD_NAME;
use std::fs::File;
use std::io::Read;

/// Processors that the calling thread may run on.
pub(crate) fn processors() -> Option<u32> {
    let mut mask = Mask::default();
    mask.add(0).then(|| mask.count())
}

/// A set of processors.
pub(crate) struct Mask([u64; 128]);

impl Default for Mask {
    fn default() -> Mask {
        Mask([0; 128])
    }
}

impl Mask {
    /// Adds those that a thread may run on (sched_getaffinity(2)). `tid` 0: the calling thread. Says whether the kernel told.
    pub(crate) fn add(&mut self, tid: u32) -> bool {
        let mut mask = [0u64; 128];
        let args = [
            tid as usize,
            size_of_val(&mask),
            mask.as_mut_ptr() as usize,
            0,
            0,
            0,
        ];
        // SAFETY: the kernel writes at most the given length into the local array.
        let written = unsafe { syscall::raw(libc::SYS_sched_getaffinity, args) };
        for (word, own) in self.0.iter_mut().zip(mask) {
            *word |= own;
        }
        written > 0
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// Processor time of all threads since the process began, in nanoseconds.
pub(crate) fn cpu_ns() -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes to a timespec that is there.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    (done == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Most memory that the process had in use at once, in bytes. `getrusage` tells instead what the process had before it became this program.
pub(crate) fn peak_bytes() -> Option<u64> {
    let mut file = File::open("/proc/self/status").ok()?;
    let mut text = [0; 2048];
    let len = file.read(&mut text).ok()?;
    // The program's name in it may be any bytes.
    let mut lines = text[..len].split(|&b| b == b'\n');
    let line = lines.find_map(|l| l.strip_prefix(b"VmHWM:"))?;
    let text = core::str::from_utf8(line.strip_suffix(b"kB")?).ok()?;
    let kilobytes: u64 = text.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// What the kernel tells of a thread (`schedstat`; Linux, Documentation/scheduler/sched-stats.rst).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    /// How long it had a processor, in nanoseconds.
    ran_ns: u64,
    /// How long it was ready to run and had none.
    queued_ns: u64,
}

impl Schedule {
    /// As headers have both: 0 is not known.
    pub(crate) fn one_more(self) -> (u64, u64) {
        let more = |ns: u64| ns.saturating_add(1);
        (more(self.ran_ns), more(self.queued_ns))
    }
}

/// Of a thread of this process.
pub(crate) fn schedule(tid: u32) -> Option<Schedule> {
    let mut file = File::open(format!("/proc/self/task/{tid}/schedstat")).ok()?;
    let mut text = [0; 128];
    let len = file.read(&mut text).ok()?;
    let text = core::str::from_utf8(&text[..len]).ok()?;
    let mut fields = text.split_ascii_whitespace();
    Some(Schedule {
        ran_ns: fields.next()?.parse().ok()?,
        queued_ns: fields.next()?.parse().ok()?,
    })
}

/// What a thread is called: its `comm` without the end of the line, and zeros behind it.
pub(crate) fn name(tid: u32) -> Option<[u8; THREAD_NAME]> {
    let mut file = File::open(format!("/proc/self/task/{tid}/comm")).ok()?;
    let mut name = [0; THREAD_NAME];
    let len = file.read(&mut name).ok()?;
    if let Some(end) = name.get_mut(len.saturating_sub(1)) {
        *end = 0;
    }
    Some(name)
}

/// What the calling thread is called, likewise: a call that filters allow where they forbid to open files.
pub(crate) fn own_name() -> Option<[u8; THREAD_NAME]> {
    let mut name = [0; THREAD_NAME];
    // SAFETY: the kernel writes at most 16 bytes, the last of which is zero (prctl(2)).
    let done = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    (done == 0).then_some(name)
}

/// How often the process's threads have been switched.
pub(crate) fn switches() -> Option<u64> {
    // SAFETY: all-zero is a valid rusage, which the kernel fills.
    let usage = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_SELF, &mut usage) == 0).then_some(usage)?
    };
    Some((usage.ru_nvcsw + usage.ru_nivcsw) as u64)
}
