//! Signals that mean something to the program only, sent to this command: who has started it (a script, a batch system that
//! warns before a job's end) knows the number of no other process.

use crate::interrupt;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Origin;

/// Takes them from now on, until it is dropped.
pub(super) struct Relay(Option<SignalsInfo<WithOrigin>>);

impl Relay {
    /// For those that are not ignored: then the program ignores them too. If they can't be taken they end this command, as ever.
    pub(super) fn new() -> Relay {
        let ignored = interrupt::ignored_signals();
        let taken = [SIGUSR1, SIGUSR2].into_iter();
        let taken = taken.filter(|signal| ignored & 1 << (signal - 1) == 0);
        Relay(SignalsInfo::new(taken).ok())
    }

    /// Hands on what has come, but for what the program itself has sent: that was for its whole group, of which it is.
    pub(super) fn hand_on(&mut self, program: Pid) {
        let come = self.0.iter_mut().flat_map(SignalsInfo::pending);
        for Origin {
            signal, process, ..
        } in come
        {
            let is_own = process.is_some_and(|sender| descends(sender.pid, program.as_raw_pid()));
            if !is_own && let Some(signal) = Signal::from_named_raw(signal) {
                let _ = kill_process(program, signal); // it may have ended just now
            }
        }
    }
}

/// Whether a process is another one, or a child of it, or a child's child.
fn descends(mut pid: i32, from: i32) -> bool {
    const DEPTH: usize = 100;
    let parent = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?; // a name may have anything in it
        rest.split_whitespace().nth(1)?.parse().ok()
    };
    for _ in 0..DEPTH {
        if pid == from {
            return true;
        }
        match parent(pid) {
            Some(above) if above > 1 => pid = above,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_descends_from_whom() {
        let me = std::process::id() as i32;
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let its = child.id() as i32;
        assert!(descends(me, me) && descends(its, me) && !descends(me, its));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descends(its, me), "it is no more");
    }
}
