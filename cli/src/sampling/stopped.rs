//! Threads that gave their processor away: where they have stopped.
//!
//! The kernel tells that a thread has stopped, and when, but to ordinary users not where. So `/proc` is asked for the system call and the
//! stack pointer, and the stack is copied from the thread's memory. The thread isn't disturbed: it has no processor, and it is looked at
//! once as long as it has none. Stops that have begun and ended between two looks are not seen.

use super::records::Frame;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use ompfuse_format::samples::{STOP_LEAST_NS, Switch};
use std::collections::HashMap;
use std::io::{ErrorKind, IoSliceMut};

/// Threads that are looked at in one go, beside those that were there before: each takes some 30 us, so all of them 1 % of a processor.
const MOST: usize = 8;
/// Bytes of a stack, and of a page.
const STACK: usize = 8192;
const PAGE: usize = 4096;

/// Process and thread.
type Thread = (u32, u32);

/// What is known of a thread.
#[derive(Debug, Clone, Copy)]
struct Last {
    raw_ns: u64,
    /// It has stopped, and nobody has looked.
    is_wanted: bool,
    /// Nobody knows whether it has: it was there before.
    is_old: bool,
}

/// The threads of the processes that are sampled.
#[derive(Debug, Default)]
pub(super) struct Stopped {
    threads: HashMap<Thread, Last>,
    /// The kernel doesn't allow it.
    is_refused: bool,
}

/// A thread that has stopped.
pub(super) struct Stop {
    pub(super) thread: Thread,
    /// It was there before, and had stopped then: no switch tells of it.
    pub(super) is_old: bool,
    /// The system call; `None`: it is in none.
    pub(super) call: Option<u32>,
    ip: u64,
    sp: u64,
    stack: Vec<u8>,
}

impl Stop {
    pub(super) fn frame(&self) -> Frame<'_> {
        Frame {
            ip: self.ip,
            sp: self.sp,
            // It isn't told: callers that need it end the stack.
            bp: 0,
            stack: &self.stack,
        }
    }
}

impl Stopped {
    /// Takes in that a thread got a processor or lost it. Records of several processors are in no order.
    pub(super) fn note(&mut self, switch: &Switch) {
        let last = Last {
            raw_ns: switch.raw_ns,
            is_wanted: switch.is_out && !switch.is_preempted,
            is_old: false,
        };
        let known = self.threads.entry((switch.pid, switch.tid));
        let known = known.or_insert(last);
        if known.raw_ns < last.raw_ns {
            *known = last;
        }
    }

    /// A thread that was there before, and may have stopped.
    pub(super) fn begin(&mut self, thread: Thread, raw_ns: u64) {
        let last = Last {
            raw_ns,
            is_wanted: true,
            is_old: true,
        };
        self.threads.insert(thread, last);
    }

    /// A thread has ended.
    pub(super) fn ended(&mut self, thread: Thread) {
        self.threads.remove(&thread);
    }

    /// Looks at those that have stopped since the last look.
    pub(super) fn look(&mut self, now_ns: u64, each: &mut dyn FnMut(&Stop)) {
        if self.is_refused {
            return;
        }
        let is_due = |last: &Last| last.is_wanted && last.raw_ns + STOP_LEAST_NS <= now_ns;
        let due = self.threads.iter_mut().filter(|(_, last)| is_due(last));
        let mut left = MOST;
        for (thread, last) in due {
            match left {
                _ if last.is_old => {}
                0 => continue,
                _ => left -= 1,
            }
            match stop(*thread) {
                Ok(Some(stop)) => each(&Stop {
                    is_old: last.is_old,
                    ..stop
                }),
                Ok(None) => {} // it went on, or has ended
                Err(Refused) => {
                    self.is_refused = true;
                    return;
                }
            }
            last.is_wanted = false;
        }
    }
}

/// The kernel doesn't let this command look.
struct Refused;

/// `None`: it has a processor again.
fn stop(thread: Thread) -> Result<Option<Stop>, Refused> {
    let Some(before) = syscall(thread)? else {
        return Ok(None);
    };
    let Some((call, sp, ip)) = parse(&before) else {
        return Ok(None);
    };
    let stack = memory(thread.0, sp);
    // If it is the same now, it has not moved meanwhile, or came back to the same place.
    let is_same = syscall(thread)?.is_some_and(|after| after == before);
    Ok(is_same.then_some(Stop {
        thread,
        is_old: false,
        call,
        ip,
        sp,
        stack,
    }))
}

/// What `/proc` says of a thread's system call (proc_pid_syscall(5)).
fn syscall((pid, tid): Thread) -> Result<Option<String>, Refused> {
    let path = format!("/proc/{pid}/task/{tid}/syscall");
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(Refused),
        Err(_) => Ok(None),
    }
}

/// Call, stack pointer, next instruction. `None`: it runs.
fn parse(text: &str) -> Option<(Option<u32>, u64, u64)> {
    let mut words = text.split_ascii_whitespace();
    let call: i64 = words.next()?.parse().ok()?;
    let mut last = words.rev();
    let mut address = || {
        let hex = last.next()?.strip_prefix("0x")?;
        u64::from_str_radix(hex, 16).ok()
    };
    let (ip, sp) = (address()?, address()?);
    Some((u32::try_from(call).ok(), sp, ip))
}

/// What lies in a process's memory from an address on, as far as it can be read.
fn memory(pid: u32, from: u64) -> Vec<u8> {
    let mut bytes = vec![0; STACK];
    let parts = || {
        let from = usize::try_from(from).ok()?;
        let end = from.checked_add(STACK)?;
        // A part for each page: those that can't be read are left out.
        let firsts = std::iter::successors(Some(from), |at| Some((at / PAGE + 1) * PAGE));
        let part = |base: usize| RemoteIoVec {
            base,
            len: (base / PAGE * PAGE + PAGE).min(end) - base,
        };
        Some(
            firsts
                .take_while(|at| *at < end)
                .map(part)
                .collect::<Vec<_>>(),
        )
    };
    let mut read = || {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?);
        process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes)], &parts()?).ok()
    };
    let read = read().unwrap_or(0);
    bytes.truncate(read);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_thread_tells_its_call() {
        let text = "35 0x1 0x0 0x2 0x3 0x4 0x5 0x7ffd10 0x7f20\n";
        assert_eq!(parse(text), Some((Some(35), 0x7f_fd10, 0x7f20)));
        assert_eq!(parse("-1 0x7ffd10 0x7f20"), Some((None, 0x7f_fd10, 0x7f20)));
        assert_eq!(parse("running\n"), None);
    }

    #[test]
    fn what_can_be_read_of_a_stack_is_read() {
        let own = vec![7u8; 3 * STACK];
        let read = memory(std::process::id(), own.as_ptr() as u64 + 5);
        assert_eq!(read, own[..STACK]);
        assert!(memory(std::process::id(), 8).is_empty());
    }

    #[test]
    fn the_latest_switch_decides() {
        let switch = |raw_ns, is_out| Switch {
            raw_ns,
            pid: 1,
            tid: 2,
            is_out,
            is_preempted: false,
        };
        let mut stopped = Stopped::default();
        [switch(2, false), switch(1, true)]
            .iter()
            .for_each(|s| stopped.note(s));
        assert!(!stopped.threads[&(1, 2)].is_wanted);
        stopped.note(&switch(3, true));
        assert!(stopped.threads[&(1, 2)].is_wanted);
    }
}
