//! What the keys do, and what the columns mean.

/// Keys, and what they do.
pub(super) const KEYS: [(&str, &str); 13] = [
    ("1-4, Tab", "regions, threads, ranks and processes, events"),
    ("Up, Down", "select a row; also j, k, PgUp, PgDn, Home, End"),
    (
        "Enter",
        "the selected region with its threads; again: without",
    ),
    ("< >", "sort by the column to the left, to the right"),
    ("r", "reverse the order"),
    ("/", "show only rows with this text; Esc shows all again"),
    ("e", "switch the selected region off, or on again"),
    (
        "v",
        "count other events: type a list, as for ompfuse ctl --events",
    ),
    ("p", "pause recording, or let it go on"),
    ("t", "numbers since the begin, or since the last picture"),
    ("space", "hold the picture, or let it go on"),
    ("?", "this help"),
    ("q, Esc", "quit; the program goes on"),
];

/// Columns, and what they mean.
pub(super) const COLUMNS: [(&str, &str); 8] = [
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
    (
        "last minute",
        "a region's share, a thread's work: relative to the largest",
    ),
];
