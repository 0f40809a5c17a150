//! Standard output and error.

use anyhow::{Context, Result};
use serde::Serialize;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};

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

/// Nobody reads standard output any more (`ompfuse scan ... | head`): no error worth a message.
#[derive(Debug)]
pub(crate) struct ReaderGone;

impl std::fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for ReaderGone {}

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
    print_bytes(format!("{text}{line_break}").as_bytes())
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

/// One line on standard error: progress, warnings, the final error.
pub(crate) fn note(message: impl std::fmt::Display) {
    let line = message
        .to_string()
        .split('\n')
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    // Nothing is left to be done where standard error is gone too.
    let _ = writeln!(std::io::stderr(), "ompfuse: {line}");
}

/// Whether standard output shows colour.
pub(crate) fn colour() -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    std::io::stdout().is_terminal() && !no_colour && !dumb
}

/// Columns of the terminal that standard output is.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// A table without lines between its cells.
pub(crate) fn table(header: &[&str]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::TableStyle::new());
    table.set_header(header.iter().copied());
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table
}

/// A table's text, without blanks at the ends of lines.
pub(crate) fn lines(table: &comfy_table::Table) -> String {
    table
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}
