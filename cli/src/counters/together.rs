//! How many hardware events this processor counts at once, and which: found by trying.

use super::builder;
use ompfuse_format::event::{self, Event};
use perf_event::Group;
use std::io;

/// Most general-purpose counters that the search for them tries.
const MOST_SLOTS: usize = 8;

/// How many hardware events one event set can have: as many as a group can have so that each of them counts. The kernel's
/// word is not enough: there are virtual machines where a group of six opens and runs, and one of the six stays 0.
/// 0: there is no PMU.
pub(crate) fn hardware_slots() -> usize {
    // An event that has no fixed counter of its own on any processor.
    let event = event::find("branch-misses");
    let count_at_once =
        |n: usize, with_kernel: bool| event.is_some_and(|e| all_count(&vec![e; n], with_kernel));
    // Who may not count what the kernel does may count the rest.
    let slots = |with_kernel| {
        (1..=MOST_SLOTS)
            .take_while(|&n| count_at_once(n, with_kernel))
            .count()
    };
    [true, false].map(slots).into_iter().max().unwrap_or(0)
}

/// Whether these hardware events count when they are counted together, on a processor of so many slots. A cache's event that stays 0
/// may have had nothing to do or no counter: with such events sets are no larger than what is known to count.
pub(crate) fn count_together(names: &[String], slots: usize) -> bool {
    let events: Vec<&Event> = names.iter().filter_map(|n| event::find(n)).collect();
    let is_certain = !events.iter().any(|e| e.kind.may_stay_0());
    (is_certain || events.len() <= slots) && all_count(&events, false)
}

/// Whether each event of a group counts.
fn all_count(events: &[&Event], with_kernel: bool) -> bool {
    let counts = || -> io::Result<bool> {
        let mut group = Group::new()?;
        let members = events
            .iter()
            .map(|e| builder(e, with_kernel).group(&mut group).build());
        let members = members.collect::<io::Result<Vec<_>>>()?;
        group.enable()?;
        event::exercise();
        let counts = group.read()?;
        // A cache may rightly have nothing to do: of those it is enough that the group has the counters.
        let mut all = events.iter().zip(&members);
        let moves = |(e, m): (&&Event, &perf_event::Counter)| e.kind.may_stay_0() || counts[m] > 0;
        Ok(counts.time_running() > 0 && all.all(moves))
    };
    counts().unwrap_or(false)
}

/// Whether an event occupies one of the processor's counters, of several.
pub(super) fn hardware(names: &[String]) -> Vec<&'static Event> {
    let known = names.iter().filter_map(|n| event::find(n));
    known.filter(|e| e.kind.is_hardware()).collect()
}
