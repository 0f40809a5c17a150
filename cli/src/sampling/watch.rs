//! What events cost the program: they are closed where there would be too many of them.
//!
//! Inherited events cost at each switch from one thread to another, at each begin of a thread, and memory of the kernel. So what there is
//! of these is counted from the first tenth of a second on.
//!
//! All of them are closed, or none. Threads with equal events hand them on at a switch. If one of several events is closed they are no
//! longer equal, and a switch takes 8 us more instead of 1: the timer is stopped and started at each.

use ompfuse_format::samples::TooMuch;
use std::time::Duration;

/// How long switches and threads are counted before it is decided.
const WINDOW: Duration = Duration::from_millis(100);

/// Switches a second above which nothing is recorded. Each takes some 1.2 us more, half of it for its records.
const SWITCHES: u64 = 20_000;
/// Threads a second above which nothing is recorded. Each takes some 13 us more.
const THREADS: u64 = 2_000;
/// Events in the kernel, one for each thread and processor, above which nothing is recorded.
const EVENTS: u64 = 64_000;

/// What there was too much of, and how much.
pub(super) type Verdict = (TooMuch, u64);

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct Watch {
    switches: u64,
    threads: u64,
    /// Threads that are there, beside the first.
    alive: u64,
    begun: Option<Duration>,
}

impl Watch {
    pub(super) fn switched(&mut self) {
        self.switches += 1;
    }

    pub(super) fn began(&mut self) {
        self.threads += 1;
        self.alive += 1;
    }

    pub(super) fn ended(&mut self) {
        self.alive = self.alive.saturating_sub(1);
    }

    /// Decides, if it is time. `now`: since the program's start. `each`: events for each thread.
    pub(super) fn look(&mut self, now: Duration, each: u64) -> Option<Verdict> {
        let events = (1 + self.alive).saturating_mul(each);
        if events > EVENTS {
            return Some((TooMuch::Events, events));
        }
        let begun = *self.begun.get_or_insert(now);
        let passed = now.saturating_sub(begun);
        if passed < WINDOW {
            return None;
        }
        let per_second = |n: u64| (n as f64 / passed.as_secs_f64()) as u64;
        // A thread gets its processor, and loses it: two records.
        let (switches, threads) = (per_second(self.switches / 2), per_second(self.threads));
        (self.switches, self.threads, self.begun) = (0, 0, Some(now));
        match (switches, threads) {
            (_, THREADS..) => Some((TooMuch::Threads, threads)),
            (SWITCHES.., _) => Some((TooMuch::Switches, switches)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(millis: u64, switches: u64, threads: u64) -> Option<Verdict> {
        let mut watch = Watch::default();
        assert_eq!(watch.look(Duration::ZERO, 2), None);
        (0..2 * switches).for_each(|_| watch.switched());
        for _ in 0..threads {
            watch.began();
            watch.ended();
        }
        watch.look(Duration::from_millis(millis), 2)
    }

    #[test]
    fn it_is_decided_after_a_while_by_what_came_in_a_second() {
        assert_eq!(after(99, 100_000, 100_000), None);
        assert_eq!(after(100, 1_999, 199), None);
        let verdict = Some((TooMuch::Switches, 20_000));
        assert_eq!(after(200, 4_000, 0), verdict);
        assert_eq!(after(100, 9_000, 200), Some((TooMuch::Threads, 2_000)));
    }

    #[test]
    fn events_of_all_threads_that_are_there_count() {
        let mut watch = Watch::default();
        (0..499).for_each(|_| watch.began());
        assert_eq!(watch.look(Duration::ZERO, 128), None);
        watch.began();
        let verdict = Some((TooMuch::Events, 64_128));
        assert_eq!(watch.look(Duration::ZERO, 128), verdict);
        watch.ended();
        assert_eq!(watch.look(Duration::ZERO, 128), None);
    }
}
