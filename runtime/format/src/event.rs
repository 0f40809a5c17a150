//! perf's events that ompfuse knows, each once: names, numbers, what they count.

mod exercise;
mod raw;

/// The event that patched code counts itself, without any counter of the processor or the kernel.
pub mod exact {
    /// The first one, which is counted where no other is named.
    pub const NAME: &str = EVENTS[0].0;

    /// How many there are.
    pub const COUNT: usize = EVENTS.len();

    /// Name, and what it counts of the program's own functions. Sets of them are numbers whose bit n is event n.
    pub const EVENTS: [(&str, &str); 6] = [
        ("instructions:exact", "instructions"),
        ("loads:exact", "operands that instructions read from memory"),
        ("stores:exact", "operands that instructions write to memory"),
        (
            "branches:exact",
            "jumps, conditional or not, without calls and returns",
        ),
        (
            "flops:exact",
            "floating-point operations, one for each element of a vector, two for each of a fused multiply-add",
        ),
        ("calls:exact", "calls of functions"),
    ];

    /// A thread's sums are in parts of one: what a loop executes in a turn can then be divided by what its register steps by. A sum that has
    /// everything is a whole number.
    pub const PARTS: i64 = 1 << PARTS_BITS;

    /// How many bits that takes.
    pub const PARTS_BITS: u32 = 9;

    /// Bits that are 0 if a sum has everything, and not while a loop turns that counts when it is left.
    pub const TORN: i64 = 3;

    /// Number of an event.
    pub fn number(name: &str) -> Option<usize> {
        EVENTS.iter().position(|(known, _)| *known == name)
    }

    /// Whether an event is one of them.
    pub fn is(name: &str) -> bool {
        number(name).is_some()
    }

    /// The names of a set.
    pub fn names(set: u32) -> impl Iterator<Item = &'static str> {
        let known = EVENTS.iter().enumerate();
        known.filter_map(move |(n, (name, _))| (set >> n & 1 != 0).then_some(*name))
    }

    /// A list of events, or several, without them.
    pub fn without(list: &str) -> String {
        let parts = list.split_inclusive([',', crate::run::TAKES_TURNS]);
        let others =
            parts.filter(|part| !is(part.trim_end_matches([',', crate::run::TAKES_TURNS])));
        others.collect()
    }
}

pub use exercise::exercise;

/// Who counts an event. The numbers are those of `perf_event_attr.type` (linux/perf_event.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A counter of the processor, of which there are few: PERF_TYPE_HARDWARE.
    Hardware = 0,
    /// The kernel: PERF_TYPE_SOFTWARE.
    Software = 1,
    /// A counter of the processor, of what one of its caches does: PERF_TYPE_HW_CACHE.
    Cache = 3,
    /// A counter of the processor, of what has this number in its manual: PERF_TYPE_RAW.
    Raw = 4,
}

impl Kind {
    /// Whether it takes one of the processor's counters.
    pub fn is_hardware(self) -> bool {
        self != Kind::Software
    }

    /// Whether it is a counter of the processor that may rightly stay 0 while a program works: a cache may have nothing to do,
    /// and what a number stands for is not known.
    pub fn may_stay_0(self) -> bool {
        matches!(self, Kind::Cache | Kind::Raw)
    }
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

/// `PERF_COUNT_HW_CACHE_*`: which cache, what is done to it (0 loads, 1 stores, 2 prefetches), and whether only misses count.
const fn cache(
    name: &'static str,
    cache: u64,
    access: u64,
    misses: bool,
    what: &'static str,
) -> Event {
    Event {
        kind: Kind::Cache,
        ..software(name, "", cache | access << 8 | (misses as u64) << 16, what)
    }
}

const fn in_kernel(event: Event) -> Event {
    Event {
        in_kernel: true,
        ..event
    }
}

/// All events: software first, then generic hardware events, then those of single caches. `time` (TSC) is always recorded and no
/// event.
pub const EVENTS: [Event; 43] = [
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
    cache(
        "L1-dcache-loads",
        0,
        0,
        false,
        "loads from the first-level data cache",
    ),
    cache(
        "L1-dcache-load-misses",
        0,
        0,
        true,
        "loads that it did not have",
    ),
    cache(
        "L1-dcache-stores",
        0,
        1,
        false,
        "stores into the first-level data cache",
    ),
    cache(
        "L1-dcache-store-misses",
        0,
        1,
        true,
        "stores into lines that it did not have",
    ),
    cache(
        "L1-dcache-prefetches",
        0,
        2,
        false,
        "prefetches into the first-level data cache",
    ),
    cache(
        "L1-dcache-prefetch-misses",
        0,
        2,
        true,
        "prefetches of lines that it did not have",
    ),
    cache(
        "L1-icache-loads",
        1,
        0,
        false,
        "fetches from the first-level instruction cache",
    ),
    cache(
        "L1-icache-load-misses",
        1,
        0,
        true,
        "fetches of lines that it did not have",
    ),
    cache("LLC-loads", 2, 0, false, "loads from the last-level cache"),
    cache("LLC-load-misses", 2, 0, true, "loads that it did not have"),
    cache(
        "LLC-stores",
        2,
        1,
        false,
        "stores into the last-level cache",
    ),
    cache(
        "LLC-store-misses",
        2,
        1,
        true,
        "stores into lines that it did not have",
    ),
    cache(
        "LLC-prefetches",
        2,
        2,
        false,
        "prefetches into the last-level cache",
    ),
    cache(
        "LLC-prefetch-misses",
        2,
        2,
        true,
        "prefetches of lines that it did not have",
    ),
    cache(
        "dTLB-loads",
        3,
        0,
        false,
        "loads whose address was translated",
    ),
    cache(
        "dTLB-load-misses",
        3,
        0,
        true,
        "loads whose page the data TLB did not have",
    ),
    cache(
        "dTLB-stores",
        3,
        1,
        false,
        "stores whose address was translated",
    ),
    cache(
        "dTLB-store-misses",
        3,
        1,
        true,
        "stores whose page the data TLB did not have",
    ),
    cache(
        "iTLB-loads",
        4,
        0,
        false,
        "fetches whose address was translated",
    ),
    cache(
        "iTLB-load-misses",
        4,
        0,
        true,
        "fetches whose page the instruction TLB did not have",
    ),
    cache(
        "branch-loads",
        5,
        0,
        false,
        "questions to the branch predictor",
    ),
    cache(
        "branch-load-misses",
        5,
        0,
        true,
        "questions that it answered wrongly or not",
    ),
    cache(
        "node-loads",
        6,
        0,
        false,
        "loads from memory of the NUMA node",
    ),
    cache(
        "node-load-misses",
        6,
        0,
        true,
        "loads from memory of another node",
    ),
    cache(
        "node-stores",
        6,
        1,
        false,
        "stores into memory of the NUMA node",
    ),
    cache(
        "node-store-misses",
        6,
        1,
        true,
        "stores into memory of another node",
    ),
];

/// The event of this name or alias, or of this number of the processor's own (`r1c2`, as perf has it).
pub fn find(name: &str) -> Option<&'static Event> {
    let known = EVENTS
        .iter()
        .find(|e| e.name == name || !name.is_empty() && e.alias == name);
    known.or_else(|| raw::find(name))
}

/// Whether an event occupies one of the processor's counters.
pub fn is_hardware(name: &str) -> bool {
    find(name).is_some_and(|e| e.kind.is_hardware())
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
        // linux/perf_event.h: the data TLB is cache 3, a store operation 1, a miss result 1.
        assert_eq!(find("dTLB-store-misses").map(|e| e.config), Some(0x1_0103));
        assert!(is_hardware("node-loads"));
        assert!(is_hardware("branch-instructions") && !is_hardware("cs") && !is_hardware("x"));
    }
}
