//! perf's events that ompfuse knows, each once: names, numbers, what they count.

mod exercise;

pub use exercise::exercise;

/// Who counts an event. The numbers are those of `perf_event_attr.type` (linux/perf_event.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A counter of the processor, of which there are few: PERF_TYPE_HARDWARE.
    Hardware = 0,
    /// The kernel: PERF_TYPE_SOFTWARE.
    Software = 1,
}

/// An event of perf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// perf's name.
    pub name: &'static str,
    /// perf's other name for it, or `""`.
    pub alias: &'static str,
    /// Who counts it.
    pub kind: Kind,
    /// Its number: `perf_event_attr.config`.
    pub config: u64,
    /// It happens in kernel mode only: where the kernel may not be counted it opens, and stays 0.
    pub in_kernel: bool,
    /// What it counts.
    pub what: &'static str,
}

const fn software(
    name: &'static str,
    alias: &'static str,
    config: u64,
    what: &'static str,
) -> Event {
    Event {
        name,
        alias,
        kind: Kind::Software,
        config,
        in_kernel: false,
        what,
    }
}

const fn hardware(
    name: &'static str,
    alias: &'static str,
    config: u64,
    what: &'static str,
) -> Event {
    Event {
        kind: Kind::Hardware,
        ..software(name, alias, config, what)
    }
}

const fn in_kernel(event: Event) -> Event {
    Event {
        in_kernel: true,
        ..event
    }
}

/// All events: software first, then generic hardware events. `time` (TSC) is always recorded and no event.
pub const EVENTS: [Event; 17] = [
    software("task-clock", "", 1, "nanoseconds on a processor"),
    software("page-faults", "faults", 2, "page faults"),
    software("minor-faults", "", 5, "page faults that needed no disk"),
    software("major-faults", "", 6, "page faults that needed the disk"),
    in_kernel(software(
        "context-switches",
        "cs",
        3,
        "switches to another thread",
    )),
    in_kernel(software(
        "cpu-migrations",
        "migrations",
        4,
        "moves to another processor",
    )),
    software(
        "alignment-faults",
        "",
        7,
        "unaligned accesses that the kernel has emulated",
    ),
    software(
        "emulation-faults",
        "",
        8,
        "instructions that the kernel has emulated",
    ),
    hardware(
        "cycles",
        "cpu-cycles",
        0,
        "cycles of the processor's own clock",
    ),
    hardware("instructions", "", 1, "retired instructions"),
    hardware(
        "cache-references",
        "",
        2,
        "accesses of a cache, most often the last level",
    ),
    hardware(
        "cache-misses",
        "",
        3,
        "misses of a cache, most often the last level",
    ),
    hardware("branches", "branch-instructions", 4, "retired branches"),
    hardware("branch-misses", "", 5, "mispredicted branches"),
    hardware(
        "stalled-cycles-frontend",
        "idle-cycles-frontend",
        7,
        "cycles without instructions to start",
    ),
    hardware(
        "stalled-cycles-backend",
        "idle-cycles-backend",
        8,
        "cycles without resources to start instructions",
    ),
    hardware(
        "ref-cycles",
        "",
        9,
        "cycles of a clock that does not change with the processor's",
    ),
];

/// The event of this name or alias.
pub fn find(name: &str) -> Option<&'static Event> {
    EVENTS
        .iter()
        .find(|e| e.name == name || !name.is_empty() && e.alias == name)
}

/// Whether an event occupies one of the processor's counters.
pub fn is_hardware(name: &str) -> bool {
    find(name).is_some_and(|e| e.kind == Kind::Hardware)
}

/// The names, in the order of [`EVENTS`].
pub fn names() -> impl Iterator<Item = &'static str> {
    EVENTS.iter().map(|e| e.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_unique() {
        for (at, event) in EVENTS.iter().enumerate() {
            assert_eq!(find(event.name), Some(&EVENTS[at]));
            assert!(event.alias.is_empty() || find(event.alias) == Some(&EVENTS[at]));
            let same = |e: &&Event| (e.kind as u8, e.config) == (event.kind as u8, event.config);
            assert_eq!(EVENTS.iter().filter(same).count(), 1, "{}", event.name);
            assert!(!event.what.is_empty());
        }
        assert_eq!(find(""), None);
        assert!(is_hardware("branch-instructions") && !is_hardware("cs") && !is_hardware("x"));
    }
}
