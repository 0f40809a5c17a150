//! What the keys do, and what the columns mean.

/// A key or column, and what it does or means.
pub(super) type Entry = (&'static str, &'static str);

/// While a program is recorded.
pub(super) fn live() -> Vec<Entry> {
    let keys = ROWS.into_iter().chain(CHANGES).chain([LAST]);
    keys.chain(COLUMNS).chain([MINUTE]).collect()
}

/// Of a finished run.
pub(super) fn finished() -> Vec<Entry> {
    let keys = FINISHED.into_iter().chain(ROWS).chain(TEXT);
    keys.chain(COLUMNS).collect()
}

/// Keys of every table.
const ROWS: [Entry; 4] = [
    ("Up, Down", "select a row; also j, k, PgUp, PgDn, Home, End"),
    ("< >", "sort by the column to the left, to the right"),
    ("r", "reverse the order"),
    ("/", "show only rows with this text; Esc shows all again"),
];

/// Keys while a program is recorded.
const CHANGES: [Entry; 8] = [
    ("1-4, Tab", "regions, threads, ranks and processes, events"),
    (
        "Enter",
        "the selected region with its threads; again: without",
    ),
    ("e", "switch the selected region off, or on again"),
    (
        "v",
        "count other events: type a list, as for ompfuse ctl --events",
    ),
    ("p", "pause recording, or let it go on"),
    ("t", "numbers since the begin, or since the last picture"),
    ("space", "hold the picture, or let it go on"),
    ("?", "this help"),
];

/// The last key.
const LAST: Entry = ("q, Esc", "quit; the program goes on");

/// Keys of a finished run.
const FINISHED: [Entry; 3] = [
    ("1-4, Tab", "regions, threads, call paths, events"),
    ("Enter", "read about the region: its lines, units, threads"),
    ("q, Esc", "leave the text, or quit"),
];

/// Keys of a text.
const TEXT: [Entry; 3] = [
    (
        "space, b",
        "a page on or back; also f, PgDn, PgUp, j, k, g, G",
    ),
    ("/ n N", "find in a text, the next one, the one before"),
    ("?", "this help"),
];

/// Columns, and what they mean.
const COLUMNS: [Entry; 7] = [
    (
        "share",
        "of all recorded time, waiting and runtime library included",
    ),
    ("wait", "share of a row's own time that is waiting"),
    ("runtime", "share that is the runtime library otherwise"),
    (
        "per s",
        "executions or units in a second, whichever are more",
    ),
    ("entered", "by all threads together"),
    (
        "XUs",
        "execution units: ranges, sections, tasks that have ended",
    ),
    ("imbal.", "work of the slowest thread over the mean, less 1"),
];

/// The column that needs looks.
const MINUTE: Entry = (
    "last minute",
    "a region's share, a thread's work: relative to the largest",
);
