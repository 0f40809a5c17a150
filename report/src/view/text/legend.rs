//! What the columns mean.

use super::{Paint, TextOptions};
use crate::view::html::terms;
use crate::view::table::wrap;
use ompfuse_account::model::Class;

/// Columns of the text, and their meaning: a term of all views, or a sentence.
const COLUMNS: [(&str, Meaning); 23] = [
    (
        "#",
        Meaning::Text("Number of the region in this report; --region takes it."),
    ),
    ("share", Meaning::Term("share")),
    ("time", Meaning::Term("time")),
    (
        "execs",
        Meaning::Text("Executions, by a team together; of a task construct the tasks."),
    ),
    ("XUs", Meaning::Term("units")),
    ("avg/XU", Meaning::Text("Mean own time of a unit.")),
    (
        "threads",
        Meaning::Text("Work of each thread, relative to the largest."),
    ),
    ("imbal.", Meaning::Term("imbalance")),
    (
        "probes",
        Meaning::Text("Estimated time that measuring took of the region's, where that is much."),
    ),
    ("incl.", Meaning::Term("inclusive")),
    (
        "excl.",
        Meaning::Text("Own time on this call path, without what is inside."),
    ),
    ("p50", Meaning::Term("median")),
    (
        "p90, p99",
        Meaning::Text("90 and 99 in a hundred units take at most so long."),
    ),
    (
        "wall",
        Meaning::Text("From fork to join of a parallel region, all executions."),
    ),
    ("team", Meaning::Text("Threads of the largest team.")),
    (
        "work",
        Meaning::Text(
            "The program's own code; in the table of overheads as a share of fork to join.",
        ),
    ),
    ("sync", Meaning::Class(Class::Synchronization)),
    ("imbal", Meaning::Class(Class::Imbalance)),
    ("limpar", Meaning::Class(Class::LimitedParallelism)),
    ("mgmt", Meaning::Class(Class::Management)),
    (
        "span",
        Meaning::Text("Time that even any number of threads would take."),
    ),
    (
        "par.",
        Meaning::Text("Work / span: how many threads can be busy at most."),
    ),
    (
        "s, ms, µs, ns",
        Meaning::Text("Seconds and their parts. k, M, G: thousands, millions, billions of counts."),
    ),
];

/// Where a meaning is told.
enum Meaning {
    Text(&'static str),
    Term(&'static str),
    Class(Class),
}

/// The section.
pub(super) fn legend(options: TextOptions) -> String {
    let paint = Paint { on: options.colour };
    let widest = COLUMNS.iter().map(|(name, _)| name.chars().count()).max();
    let indent = widest.unwrap_or(0) + 2;
    let mut text = paint.bold("Legend") + "\n";
    for (name, meaning) in COLUMNS {
        let meaning = match meaning {
            Meaning::Text(text) => text,
            Meaning::Term(id) => terms::term(id).1,
            Meaning::Class(class) => terms::class_about(class),
        };
        let lines = wrap(meaning, options.width - indent, "");
        let mut name = name;
        for line in lines.lines() {
            let blanks = " ".repeat(indent - name.chars().count());
            text.push_str(&format!("{}{blanks}{line}\n", paint.bold(name)));
            name = "";
        }
    }
    text
}
