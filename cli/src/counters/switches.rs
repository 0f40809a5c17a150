//! What the processor's counters cost where a thread is switched: the kernel takes their values from them and puts them back.
//! In a virtual machine each of these accesses may be one of the hypervisor's.

use super::builder;
use super::together::hardware;
use ompfuse_format::event::Event;
use perf_event::Group;
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// How often two threads wait for each other in one measurement.
const ROUNDS: u32 = 100;
/// How often is measured; the least counts, since others only add to it.
const TIMES: u32 = 5;

/// What counting these events adds to the processor time of a switch away from a thread and back to it, in nanoseconds.
/// At least: what the processor does for it while it is idle is not seen. `None`: it can't be measured, or none of the
/// events is the processor's.
pub(crate) fn switch_cost_ns(names: &[String]) -> Option<u64> {
    let events = hardware(names);
    if events.is_empty() {
        return None;
    }
    let (mut with, mut without) = (u64::MAX, u64::MAX);
    for _ in 0..TIMES {
        without = without.min(ping_pong(&[]).ok()?);
        with = with.min(ping_pong(&events).ok()?);
    }
    Some(with.saturating_sub(without) / u64::from(2 * ROUNDS))
}

/// Two threads that count these events wake each other. Returns the processor time of both, in nanoseconds.
fn ping_pong(events: &[&Event]) -> io::Result<u64> {
    let (mut here, mut there) = UnixStream::pair()?;
    let mut byte = [0];
    std::thread::scope(|scope| {
        let answers = scope.spawn(move || -> io::Result<()> {
            let _group = count(events)?;
            let mut byte = [0];
            for _ in 0..=ROUNDS {
                there.read_exact(&mut byte)?;
                there.write_all(&byte)?;
            }
            Ok(())
        });
        let _group = count(events)?;
        let mut begin = 0;
        for round in 0..=ROUNDS {
            if round == 1 {
                begin = processor_ns(); // the other thread is ready
            }
            here.write_all(&byte)?;
            here.read_exact(&mut byte)?;
        }
        let passed = processor_ns().saturating_sub(begin);
        drop(here); // had it failed, it would wait for ever
        answers.join().map_err(|_| io::ErrorKind::Other)??;
        Ok(passed)
    })
}

/// Counts events in this thread for as long as the result is kept.
fn count(events: &[&Event]) -> io::Result<Option<(Group, Vec<perf_event::Counter>)>> {
    if events.is_empty() {
        return Ok(None);
    }
    let mut group = Group::new()?;
    let members = events
        .iter()
        .map(|e| builder(e, false).group(&mut group).build());
    let members = members.collect::<io::Result<Vec<_>>>()?;
    group.enable()?;
    Ok(Some((group, members)))
}

/// Processor time of this process.
fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_processors_events_cost_at_switches() {
        assert_eq!(switch_cost_ns(&[]), None);
        assert_eq!(switch_cost_ns(&["page-faults".to_owned()]), None);
        assert!(ping_pong(&[]).unwrap() > 0);
    }
}
