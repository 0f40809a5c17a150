//! What the kernel tells of a process.

use rustix::time::{ClockId, clock_gettime};

/// When a process started (proc_pid_stat(5)): in [`TICK_NS`] since the machine did, its sleep included. `None`: there is no such
/// process.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    const AT_START_TIME: usize = 22 - 3; // the first two are left out: a name may have anything in it
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(AT_START_TIME)?.parse().ok()
}

/// The kernel tells times of processes in hundredths of a second.
const TICK_NS: u64 = 10_000_000;

/// Whether a process has certainly started after a reading of CLOCK_MONOTONIC; `None`: there is no such process.
pub(crate) fn started_after(pid: u32, monotonic_ns: u64) -> Option<bool> {
    let start = start_time(pid)?;
    let now = |clock| {
        let t = clock_gettime(clock);
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
    };
    // How much of its sleep was before, nobody knows.
    let monotonic = now(ClockId::Monotonic);
    let slept = now(ClockId::Boottime).saturating_sub(monotonic);
    Some(start * TICK_NS > monotonic_ns + slept)
}

/// The number that a process has in a namespace of its own; `None`: it is in that of this command.
pub(crate) fn own_number(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|l| l.strip_prefix("NSpid:"))?;
    let inner = numbers.split_whitespace().skip(1); // the first is the one that is seen from here
    inner.last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_got_the_number_since_is_told() {
        let now = clock_gettime(ClockId::Monotonic);
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let me = std::process::id();
        assert_eq!(started_after(me, now), Some(false));
        assert_eq!(started_after(me, 0), Some(true));
        assert_eq!(started_after(u32::MAX, 0), None);
    }
}
