//! `ompfuse cache`.

use crate::cache::{self, Copy, Kind};
use crate::output;
use anyhow::{Context, Result};
use clap::Subcommand;
use ompfuse_account::units::bytes;
use ompfuse_report::view::table::{Column, wrap};
use serde::Serialize;
use std::path::PathBuf;

/// Show or clear the folder with patched copies of programs and libraries
///
/// A copy is made again when it is needed, so it is safe to remove any.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ompfuse cache list
  ompfuse cache clear --older-than 30d")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the copies: original, size, when they were used, whether they are in use
    List {
        #[command(flatten)]
        format: output::FormatArg,
    },
    /// Remove copies, except those that a command or a recorded program is using
    Clear {
        /// Only those that were not used for this long (30d, 12h, 10min, 30s)
        #[arg(long, value_name = "AGE", value_parser = parse_age)]
        older_than: Option<u64>,
        #[command(flatten)]
        format: output::FormatArg,
    },
    /// Print the folder's path
    Path,
}

#[derive(Debug, Serialize)]
struct Listing {
    folder: PathBuf,
    bytes: u64,
    copies: Vec<Copy>,
}

#[derive(Debug, Serialize)]
struct Cleared {
    folder: PathBuf,
    /// Of the removed copies.
    bytes: u64,
    removed: Vec<Copy>,
    kept_in_use: Vec<Copy>,
}

/// Seconds, from a number and a unit.
fn parse_age(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "s" => Some(1),
        "min" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        _ => None,
    };
    let seconds = unit.zip(number.parse().ok());
    let seconds = seconds.and_then(|(unit, number): (u64, u64)| number.checked_mul(unit));
    seconds.ok_or_else(|| "a number with a unit is needed: 30d, 12h, 10min, 30s".to_owned())
}

pub(super) fn run(args: &Args) -> Result<()> {
    let folder = cache::place()?;
    match &args.what {
        What::Path => output::print(&folder.to_string_lossy()),
        What::List { format } => {
            let copies = list(&folder)?;
            let listing = Listing {
                bytes: copies.iter().map(|c| c.bytes).sum(),
                folder,
                copies,
            };
            match format.is_json() {
                true => output::print_json(&listing),
                false => output::print(&listing.text()),
            }
        }
        What::Clear { older_than, format } => {
            let cleared = clear(folder, older_than.unwrap_or(0))?;
            match format.is_json() {
                true => output::print_json(&cleared),
                false => output::print(&cleared.text()),
            }
        }
    }
}

fn list(folder: &std::path::Path) -> Result<Vec<Copy>> {
    let listed = cache::list(folder);
    listed.with_context(|| format!("cannot list {}", folder.display()))
}

fn clear(folder: PathBuf, least_s: u64) -> Result<Cleared> {
    let (mut removed, mut kept_in_use) = (Vec::new(), Vec::new());
    let copies = list(&folder)?.into_iter();
    for mut copy in copies.filter(|c| c.unused_s >= least_s) {
        let is_gone = !copy.in_use
            && cache::remove(&copy)
                .with_context(|| format!("cannot remove {}", copy.folder.display()))?;
        if is_gone {
            removed.push(copy);
        } else {
            copy.in_use = true;
            kept_in_use.push(copy);
        }
    }
    Ok(Cleared {
        bytes: removed.iter().map(|c| c.bytes).sum(),
        folder,
        removed,
        kept_in_use,
    })
}

impl Listing {
    fn text(&self) -> String {
        let width = output::Stream::Output.width().unwrap_or(100);
        let copies = match self.copies.len() {
            0 => "nothing".to_owned(),
            1 => format!("1 copy, {}", bytes(self.bytes)),
            n => format!("{n} copies, {}", bytes(self.bytes)),
        };
        let title = wrap(&format!("{}: {copies}", self.folder.display()), width, "  ");
        if self.copies.is_empty() {
            return title;
        }
        let columns = [
            Column::right("size"),
            Column::left("used"),
            Column::left("file").keeps_front(12),
            Column::left("original").keeps_end(14).leaves(1),
        ];
        let row = |copy: &Copy| {
            let used = match copy.in_use {
                true => "now".to_owned(),
                false => format!("{} ago", age(copy.unused_s)),
            };
            let original = match copy.kind {
                Kind::Own => "libraries of ompfuse",
                Kind::Unfinished if copy.in_use => "a command at work",
                Kind::Unfinished => "left behind by a command",
                Kind::Patched => copy.original.as_deref().unwrap_or("?"),
            };
            let file = copy.file.clone().unwrap_or_default();
            vec![bytes(copy.bytes), used, file, original.to_owned()]
        };
        let rows = self.copies.iter().map(row).collect();
        format!("{title}\n{}", output::table(&columns, rows))
    }
}

impl Cleared {
    fn text(&self) -> String {
        let copies = |n: usize| match n {
            1 => "1 copy".to_owned(),
            n => format!("{n} copies"),
        };
        let kept = match self.kept_in_use.len() {
            0 => String::new(),
            n => format!("; {} in use stayed", copies(n)),
        };
        let removed = copies(self.removed.len());
        format!("removed {removed}, {}{kept}\n", bytes(self.bytes))
    }
}

/// A length of time with its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_units() {
        assert_eq!(parse_age("30d"), Ok(30 * 86_400));
        assert_eq!(parse_age("90min"), Ok(5400));
        for wrong in ["30", "d", "-1d", "1.5h", "5m", "99999999999999999999d"] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            [59, 61, 7200, 200_000].map(age),
            ["59 s", "1 min", "2 h", "2 d"]
        );
    }
}
