//! Standard output and error.

use anyhow::{Context, Result};
use ompfuse_report::view::table::{self, Column, Style};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The `--format` option.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FormatArg {
    /// How to print the result
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

impl FormatArg {
    /// Whether JSON is wanted.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }
}

/// The `--quiet` option.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct QuietArg {
    /// Print only errors and losses: no report, no remarks
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Whether remarks are left out.
static QUIET: AtomicBool = AtomicBool::new(false);

impl QuietArg {
    /// From now on remarks are left out, if that is wanted.
    pub(crate) fn apply(&self) {
        QUIET.store(self.quiet, Ordering::Relaxed);
    }
}

/// Arguments that don't go together, or are missing: exit status 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Nobody reads standard output any more (`ompfuse scan ... | head`): no error worth a message.
#[derive(Debug)]
pub(crate) struct ReaderGone;

impl std::fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for ReaderGone {}

/// It could not be done, and why was said: by this command, or by another one of the same job.
#[derive(Debug)]
pub(crate) struct SaidAlready;

impl std::fmt::Display for SaidAlready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("said already")
    }
}

impl std::error::Error for SaidAlready {}

/// Prints bytes.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(bytes).and_then(|()| out.flush()))
}

fn written(result: std::io::Result<()>) -> Result<()> {
    match result {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Err(ReaderGone.into()),
        result => result.context("cannot write to standard output"),
    }
}

/// Prints text that ends with a line break; one is added where it is missing.
pub(crate) fn print(text: &str) -> Result<()> {
    let line_break = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    print_bytes(format!("{}{line_break}", harmless(text)).as_bytes())
}

/// What stands for a control character.
const UNPRINTABLE: char = '\u{fffd}';

/// A text without control characters but line breaks, tabulators and colours: names are those of programs, and a terminal obeys what is
/// in them.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(next) = rest.chars().next() {
        let colour = colour(rest);
        let (kept, taken) = match colour.len() {
            0 if is_plain(next) => (None, next.len_utf8()),
            0 => (Some(UNPRINTABLE), next.len_utf8()),
            len => (None, len),
        };
        match kept {
            Some(mark) => out.push(mark),
            None => out.push_str(&rest[..taken]),
        }
        rest = &rest[taken..];
    }
    Cow::Owned(out)
}

/// The sequence that a text begins with, if it sets a colour (ECMA-48, SGR); else nothing.
fn colour(text: &str) -> &str {
    let Some(after) = text.strip_prefix("\x1b[") else {
        return "";
    };
    let parameters = after
        .bytes()
        .take_while(|b| b.is_ascii_digit() || *b == b';');
    let end = 2 + parameters.count();
    match text.as_bytes().get(end) {
        Some(b'm') => &text[..=end],
        _ => "",
    }
}

/// Prints text that ends with a line break on standard error: what is for people, while a program has standard output.
pub(crate) fn print_aside(text: &str) {
    // Nothing is left to be done where standard error is gone too.
    let way = crate::progress::make_way();
    let _ = std::io::stderr().write_all(format!("{way}{}", harmless(text)).as_bytes());
}

/// Prints a value as indented JSON, piece by piece: a large library's sites are as long as its code.
pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    match serde_json::to_writer_pretty(&mut out, value) {
        Err(e) if !e.is_io() => Err(e).context("cannot encode the result as JSON"),
        Err(e) => written(Err(e.into())),
        Ok(()) => written(out.write_all(b"\n").and_then(|()| out.flush())),
    }
}

/// Elements of a list that a thread encodes at a time.
const SHARE: usize = 2048;

/// Prints what [`print_json`] prints of `frame` if its list `key`, which is empty, holds these elements; they are encoded
/// by several threads.
pub(crate) fn print_json_list<T: Serialize + Sync>(
    frame: &impl Serialize,
    key: &str,
    list: &[T],
) -> Result<()> {
    write_json_list(&mut std::io::stdout().lock(), frame, key, list)
}

fn write_json_list<T: Serialize + Sync>(
    out: &mut impl Write,
    frame: &impl Serialize,
    key: &str,
    list: &[T],
) -> Result<()> {
    const WHAT: &str = "cannot encode the result as JSON";
    let frame = serde_json::to_string_pretty(frame).context(WHAT)?;
    let place = format!("\n  \"{key}\": [");
    let (before, after) = frame
        .split_once(&place)
        .with_context(|| format!("{WHAT}: it has no {key}"))?;
    let mut put = |bytes: &[u8]| written(out.write_all(bytes));
    put(before.as_bytes())?;
    put(place.as_bytes())?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for (round, part) in list.chunks(threads * SHARE).enumerate() {
        let encoded: Vec<serde_json::Result<Vec<u8>>> = std::thread::scope(|scope| {
            let mut shares = part.chunks(SHARE);
            let own = shares.next();
            let others: Vec<_> = shares.map(|s| scope.spawn(move || elements(s))).collect();
            let own = own.into_iter().map(elements).collect::<Vec<_>>();
            let joined = others.into_iter().map(|t| t.join().expect(crate::NO_PANIC));
            own.into_iter().chain(joined).collect()
        });
        for (n, share) in encoded.into_iter().enumerate() {
            put(if (round, n) == (0, 0) { b"\n" } else { b",\n" })?;
            put(&share.context(WHAT)?)?;
        }
    }
    put(if list.is_empty() { b"" } else { b"\n  " })?;
    put(after.as_bytes())?;
    put(b"\n")?;
    written(out.flush())
}

/// Elements of a list one level below a value, without what is around them.
fn elements<T: Serialize>(list: &[T]) -> serde_json::Result<Vec<u8>> {
    const OPEN: usize = "{\n  \"\": [\n".len();
    const CLOSE: usize = "\n  ]\n}".len();
    let mut text = serde_json::to_vec_pretty(&std::collections::BTreeMap::from([("", list)]))?;
    text.truncate(text.len() - CLOSE);
    text.drain(..OPEN);
    Ok(text)
}

/// Whether notes are left to somebody else.
static MUTE: AtomicBool = AtomicBool::new(false);

/// Of the commands of one job one alone makes notes.
pub(crate) fn mute(is_mute: bool) {
    MUTE.store(is_mute, Ordering::Relaxed);
}

/// Whether nobody is to write on the terminal.
pub(crate) fn is_mute() -> bool {
    MUTE.load(Ordering::Relaxed)
}

/// One line on standard error: what goes wrong, what is lost.
pub(crate) fn note(message: impl std::fmt::Display) {
    if !is_mute() {
        say(message);
    }
}

/// One line on standard error that isn't left to anybody else: the final error.
pub(crate) fn say(message: impl std::fmt::Display) {
    let line = message
        .to_string()
        .split('\n')
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    // Nothing is left to be done where standard error is gone too.
    let way = crate::progress::make_way();
    let _ = writeln!(std::io::stderr(), "{way}ompfuse: {}", harmless(&line));
}

/// As [`note`], for what nobody needs to know: `--quiet` leaves it out.
pub(crate) fn remark(message: impl std::fmt::Display) {
    if !QUIET.load(Ordering::Relaxed) {
        note(message);
    }
}

/// As [`print_aside`], for what `--quiet` leaves out, and a job's other commands too.
pub(crate) fn remark_aside(text: &str) {
    if !QUIET.load(Ordering::Relaxed) && !MUTE.load(Ordering::Relaxed) {
        print_aside(text);
    }
}

/// Where a text for people goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

impl Stream {
    /// Whether it shows colour.
    pub(crate) fn colour(self) -> bool {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        self.of(|file| file.is_terminal()) && !no_colour && !dumb
    }

    /// Characters in a line: what the variable COLUMNS says, else of the terminal that it is.
    pub(crate) fn width(self) -> Option<usize> {
        let told = std::env::var("COLUMNS").ok().and_then(|n| n.parse().ok());
        let told = told.filter(|&n: &usize| n > 0);
        let size = || self.of(|file| rustix::termios::tcgetwinsize(file).ok());
        told.or_else(|| size().map(|s| usize::from(s.ws_col)).filter(|&n| n > 0))
    }

    fn of<T>(self, what: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        match self {
            Stream::Output => what(std::io::stdout().as_fd()),
            Stream::Error => what(std::io::stderr().as_fd()),
        }
    }
}

/// A table for standard output: as wide as the terminal allows, whole where there is none.
pub(crate) fn table(columns: &[Column<'_>], rows: Vec<Vec<String>>) -> String {
    styled_table(columns, rows, &|_, cell| cell.to_owned())
}

/// As [`table`], with coloured cells.
pub(crate) fn styled_table(
    columns: &[Column<'_>],
    rows: Vec<Vec<String>>,
    style: Style<'_>,
) -> String {
    let width = Stream::Output.width();
    let plain = |head: &str| head.to_owned();
    let fitted = table::fitted(columns, rows, width, style, &plain);
    let missing = fitted.missing("wider lines, a pipe, or --format json");
    let missing = missing.map(|line| table::wrap(&line, width.unwrap_or(usize::MAX), "  "));
    fitted.text + &missing.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_can_not_move_the_cursor() {
        let text = "\x1b[1;31mred\x1b[0m\n\ta\x1b]0;title\x07b\x1b[2Jc\u{9b}d\x1b";
        let told =
            "\x1b[1;31mred\x1b[0m\n\ta\u{fffd}]0;title\u{fffd}b\u{fffd}[2Jc\u{fffd}d\u{fffd}";
        assert_eq!(harmless(text), told);
        assert!(matches!(harmless("π and\tω\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn lists_are_printed_as_the_value_that_holds_them() {
        for len in [0, 1, SHARE, 5 * SHARE + 1] {
            let list: Vec<_> = (0..len)
                .map(|n| json!({"id": n, "in": {"sites": []}}))
                .collect();
            let frame = |sites: &[serde_json::Value]| json!({"a": "\n  \"sites\": [", "sites": sites, "z": {"sites": []}});
            let mut written = Vec::new();
            write_json_list(&mut written, &frame(&[]), "sites", &list).unwrap();
            let mut expected = serde_json::to_vec_pretty(&frame(&list)).unwrap();
            expected.push(b'\n');
            assert!(written == expected, "{len}");
        }
    }
}
