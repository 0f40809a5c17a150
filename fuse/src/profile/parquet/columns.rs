//! The columns of a profile that are no events.

/// A column, of one value a unit.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    /// The version of the layout that it came with.
    since: u8,
    /// What it says. In `docs/reference/columns.md` and in the file, as the field's metadata.
    pub(super) meaning: &'static str,
}

/// Key of a column's meaning in its field's metadata.
pub(super) const MEANING_KEY: &str = "description";
/// Key of its unit, likewise.
pub(super) const UNIT_KEY: &str = "unit";
/// Key of the run that an event's counts come from, likewise.
pub(super) const ORIGIN_KEY: &str = "origin";

/// Versions of the layout that can be read, the one that is written last. In version 2 old names stand beside new ones.
pub(super) const VERSIONS: [&str; 2] = ["1", "2"];

/// The version that is written.
pub(super) const WRITTEN: u8 = VERSIONS.len() as u8;
/// The same as files have it.
pub(super) const VERSION: &str = VERSIONS[VERSIONS.len() - 1];

/// Prefix of the columns that say which run an event comes from.
pub(super) const ORIGIN_PREFIX: &str = "run:";
/// Prefix of the columns that say which XU of it.
pub(super) const SOURCE_PREFIX: &str = "xu:";
/// Prefix of events that are called as another column is.
const EVENT_PREFIX: &str = "event:";

const fn column(name: &'static str, since: u8, meaning: &'static str) -> Column {
    Column {
        name,
        since,
        meaning,
    }
}

/// All of them.
pub(super) const COLUMNS: &[Column] = &[
    column(
        "label",
        1,
        "Identity of the unit. Null if it has more than 1024 numbers.",
    ),
    column(
        "label_hash",
        1,
        "Chained XXH3_128 hash of the label, big-endian.",
    ),
    column(
        "type",
        1,
        "Address of the construct (`0x4011a6`). In another recorder's table: its type.",
    ),
    column(
        "module",
        1,
        "Build id of the file with that address, or its path if it has none.",
    ),
    column(
        "kind",
        2,
        "`range`, `section` or `task`. Null in another recorder's table.",
    ),
    column(
        "region_construct",
        2,
        "Construct of the unit, such as `loop`, `task` or `taskloop`.",
    ),
    column("construct", 1, "Old name of `kind`."),
    column(
        "function",
        1,
        "Linkage name of the function with the construct.",
    ),
    column(
        "function_demangled",
        1,
        "The function's name in the source, without parameters.",
    ),
    column("source", 1, "Source line of the construct: `file:line`."),
    column("process", 1, "Process id."),
    column(
        "process_number",
        1,
        "Position of the process in the run. Process ids can be reused.",
    ),
    column("mpi_rank", 1, "Rank of the process in an MPI program."),
    column("thread", 1, "Number of the thread in its process."),
    column("cpu", 1, "Logical processor at the unit's end."),
    column("first_iteration", 2, "First iteration of a range, from 0."),
    column(
        "ordinal",
        2,
        "Number of a section, from 0; number of a task among its siblings, as in its label.",
    ),
    column(
        "rank",
        1,
        "Old column for both `first_iteration` and `ordinal`.",
    ),
    column(
        "iterations",
        1,
        "Iterations of a range or of a taskloop's task.",
    ),
    column(
        "start_ns",
        1,
        "Begin, in nanoseconds since the run's begin.",
    ),
    column("end_ns", 1, "End, in nanoseconds since the run's begin."),
    column(
        "own_ns",
        2,
        "Nanoseconds in the unit's own code, without the constructs inside.",
    ),
    column("duration_ns", 1, "Old name of `own_ns`."),
    column(
        "parts",
        1,
        "Stretches in which the unit was executed without interruption.",
    ),
    column(
        "disturbed",
        2,
        "Whether the kernel interrupted the unit or moved its thread, so that its time is longer than its own.",
    ),
    column(
        "confidence",
        1,
        "How sure counts from other runs are this unit's own, from 0 to 1. Only in profiles combined by lgl or joint.",
    ),
];

/// Whether a file of this version has such a column that is no event.
pub(super) fn is_fixed(name: &str, version: u8) -> bool {
    let is_it = |column: &Column| column.name == name && column.since <= version;
    name.starts_with(ORIGIN_PREFIX) || name.starts_with(SOURCE_PREFIX) || COLUMNS.iter().any(is_it)
}

/// What a column of this name says; `None` for those of events.
pub(super) fn meaning(name: &str) -> Option<&'static str> {
    let column = COLUMNS.iter().find(|c| c.name == name);
    column.map(|c| c.meaning)
}

/// Name of an event's column.
pub(super) fn of_event(event: &str, version: u8) -> String {
    if is_fixed(event, version) || event.starts_with(EVENT_PREFIX) {
        format!("{EVENT_PREFIX}{event}")
    } else {
        event.to_owned()
    }
}

/// The event whose column has this name.
pub(super) fn event_of(column: &str, version: u8) -> &str {
    column
        .strip_prefix(EVENT_PREFIX)
        .filter(|event| of_event(event, version) == column)
        .unwrap_or(column)
}
