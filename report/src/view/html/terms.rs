//! What the words on the page mean: on hover, and in a list.

use super::shares::Part;
use maud::{Markup, html};
use ompfuse_account::model::Class;

/// What a part of the available time is called.
pub(super) fn name(part: Part) -> &'static str {
    match part {
        Part::Serial => "Serial code",
        Part::Work => "Parallel work",
        Part::Communication => "MPI",
        Part::Call => "Recorded calls",
        Part::Lost(class) => class_name(class),
        Part::Idle => "Idle threads",
        Part::Unknown => "Not known",
    }
}

/// What a class of overhead is called.
pub(in crate::view) fn class_name(class: Class) -> &'static str {
    match class {
        Class::Synchronization => "Synchronization",
        Class::Imbalance => "Imbalance",
        Class::LimitedParallelism => "Limited parallelism",
        Class::Management => "Management",
    }
}

/// What a class of overhead is.
pub(in crate::view) fn class_about(class: Class) -> &'static str {
    about(Part::Lost(class))
}

/// What a part of the available time is.
pub(super) fn about(part: Part) -> &'static str {
    match part {
        Part::Serial => "The program's code outside of parallel regions.",
        Part::Work => "The program's own code in parallel regions.",
        Part::Communication => "Calls of MPI.",
        Part::Call => {
            "Recorded calls of other libraries: a thread waits for others, reads, writes, or waits for a device."
        }
        Part::Lost(Class::Synchronization) => {
            "Waiting at barriers and taskwait, and to enter critical sections, locks and atomics."
        }
        Part::Lost(Class::Imbalance) => {
            "Waiting at the end of parallel regions and loops for threads that have more to do."
        }
        Part::Lost(Class::LimitedParallelism) => {
            "Waiting because there is not enough to do: behind single, or too few sections."
        }
        Part::Lost(Class::Management) => {
            "Starting and joining threads, creating tasks, fetching ranges of iterations."
        }
        Part::Idle => {
            "Threads that have no part in what runs: in serial code, or in smaller teams."
        }
        Part::Unknown => {
            "The records don't tell: recording was switched off, or the program was killed."
        }
    }
}

/// All terms: `(id, name, meaning)`.
const TERMS: [(&str, &str, &str); 12] = [
    (
        "available",
        "Available time",
        "The program's own time, times the most threads that it had at once.",
    ),
    (
        "region",
        "Region",
        "One OpenMP construct, chosen function or loop at one source line, with all copies that the compiler made of it.",
    ),
    (
        "share",
        "Share",
        "The region's own time as a share of the available time. With serial code and idle threads the shares add up to 100%.",
    ),
    (
        "time",
        "Time",
        "Own time of all threads together: work, waiting and runtime library, without the constructs inside.",
    ),
    (
        "efficiency",
        "Efficiency",
        "Work as a share of the threads' time there. For a parallel region: from fork to join, with all inside.",
    ),
    (
        "units",
        "Units",
        "Execution units: executed ranges of loop iterations, sections or tasks.",
    ),
    ("min", "Min", "Own time of the shortest unit."),
    (
        "median",
        "Median",
        "Half of the units take at most so long. From a histogram, so within a few percent.",
    ),
    ("max", "Max", "Own time of the longest unit."),
    (
        "imbalance",
        "Imbalance",
        "Work of the slowest thread over the mean of all threads, less 1. Even work has 0%.",
    ),
    (
        "worst",
        "Worst loss",
        "What costs most there: a class of overhead, or a known kind of loss.",
    ),
    (
        "inclusive",
        "Inclusive time",
        "Own time with everything executed inside, tasks that it created among it.",
    ),
];

/// What a term of the table means.
pub(in crate::view) fn term(id: &str) -> (&'static str, &'static str) {
    let found = TERMS.iter().find(|(term, _, _)| *term == id);
    found.map_or(("", ""), |(_, name, about)| (*name, *about))
}

/// The parts' colours and names in a line.
pub(super) fn keys() -> Markup {
    html! {
        ul.keys {
            @for part in Part::ALL {
                li title=(about(part)) { span class={ "key " (part.id()) } {} (self::name(part)) }
            }
        }
    }
}

/// The section.
pub(super) fn section() -> Markup {
    html! {
        h2 { "Terms" }
        dl.terms {
            @for (_, name, about) in TERMS {
                div { dt { (name) } dd { (about) } }
            }
            @for part in Part::ALL {
                div {
                    dt { span class={ "key " (part.id()) } {} (self::name(part)) }
                    dd { (self::about(part)) }
                }
            }
        }
    }
}
