//! The columns of a profile that are no events.

/// A column, of one value a unit.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    /// What it says. In `docs/reference/columns.md` and in the file, as the field's metadata.
    pub(super) meaning: &'static str,
}

/// Key of a column's meaning in its field's metadata.
pub(super) const MEANING_KEY: &str = "description";
/// Key of its unit, likewise.
pub(super) const UNIT_KEY: &str = "unit";
/// Key of the run that an event's counts come from, likewise.
pub(super) const ORIGIN_KEY: &str = "origin";

/// Version of the layout. Files of another one are not read.
pub(super) const VERSION: &str = "3";

/// Prefix of the columns that say which run an event comes from.
pub(super) const ORIGIN_PREFIX: &str = "run:";
/// Prefix of the columns that say which XU of it.
pub(super) const SOURCE_PREFIX: &str = "xu:";
/// Prefix of events that are called as another column is.
const EVENT_PREFIX: &str = "event:";

const fn column(name: &'static str, meaning: &'static str) -> Column {
    Column { name, meaning }
}

/// All of them.
pub(super) const COLUMNS: &[Column] = &[
    column(
        "label",
        "Identity of the unit. Null if it has more than 1024 numbers.",
    ),
    column(
        "label_hash",
        "Chained XXH3_128 hash of the label, big-endian.",
    ),
    column(
        "type",
        "Address of the construct (`0x4011a6`). In another recorder's table: its type.",
    ),
    column(
        "module",
        "Build id of the file with that address, or its path if it has none.",
    ),
    column(
        "kind",
        "`range`, `section` or `task`. Null in another recorder's table.",
    ),
    column(
        "region_construct",
        "Construct of the unit, such as `loop`, `task` or `taskloop`.",
    ),
    column(
        "function",
        "Linkage name of the function with the construct.",
    ),
    column(
        "function_demangled",
        "The function's name in the source, without parameters.",
    ),
    column("source", "Source line of the construct: `file:line`."),
    column("process", "Process id."),
    column(
        "process_number",
        "Position of the process in the run. Process ids can be reused.",
    ),
    column("mpi_rank", "Rank of the process in an MPI program."),
    column("thread", "Number of the thread in its process."),
    column("cpu", "Logical processor at the unit's end."),
    column("first_iteration", "First iteration of a range, from 0."),
    column(
        "ordinal",
        "Number of a section, from 0; number of a task among its siblings, as in its label.",
    ),
    column(
        "iterations",
        "Iterations of a range or of a taskloop's task.",
    ),
    column("start_ns", "Begin, in nanoseconds since the run's begin."),
    column("end_ns", "End, in nanoseconds since the run's begin."),
    column(
        "own_ns",
        "Nanoseconds in the unit's own code, without the constructs inside.",
    ),
    column(
        "parts",
        "Stretches in which the unit was executed without interruption.",
    ),
    column(
        "disturbed",
        "Whether the kernel interrupted the unit or moved its thread, so that its time is longer than its own.",
    ),
    column(
        "confidence",
        "How sure counts from other runs are this unit's own, from 0 to 1. Only in profiles combined by lgl or joint.",
    ),
];

/// Whether a column of this name is no event.
pub(super) fn is_fixed(name: &str) -> bool {
    let is_prefixed = name.starts_with(ORIGIN_PREFIX) || name.starts_with(SOURCE_PREFIX);
    is_prefixed || COLUMNS.iter().any(|c| c.name == name)
}

/// What a column of this name says; `None` for those of events.
pub(super) fn meaning(name: &str) -> Option<&'static str> {
    let column = COLUMNS.iter().find(|c| c.name == name);
    column.map(|c| c.meaning)
}

/// Name of an event's column.
pub(super) fn of_event(event: &str) -> String {
    if is_fixed(event) || event.starts_with(EVENT_PREFIX) {
        format!("{EVENT_PREFIX}{event}")
    } else {
        event.to_owned()
    }
}

/// The event whose column has this name.
pub(super) fn event_of(column: &str) -> &str {
    column
        .strip_prefix(EVENT_PREFIX)
        .filter(|event| of_event(event) == column)
        .unwrap_or(column)
}
