//! What a file is that isn't what was expected.

use super::kinds::is_run;
use crate::input;
use anyhow::{Result, bail};
use std::path::Path;

/// First bytes of a file that gzip has compressed, such as a baseline.
pub(super) const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// Refuses files that can't be profiles or tables, and says what they are, and what to do.
pub(super) fn check(path: &Path) -> Result<()> {
    const BEGIN: usize = 4096;
    // What can't be read is told when all of it is read.
    let Ok(bytes) = input::map(path) else {
        return Ok(());
    };
    let shown = path.display();
    if bytes.starts_with(b"\x7fELF") {
        bail!(
            "{shown} is a program or library, not a profile or run; `ompfuse profile -- {}` records it",
            runnable(path)
        );
    }
    if bytes.starts_with(GZIP_MAGIC) {
        bail!(
            "{shown} is a baseline, not a profile or run; compare runs with it: `ompfuse diff {shown} RUNS`"
        );
    }
    if bytes.starts_with(b"#!") {
        bail!(
            "{shown} is a script, not a profile or run; `ompfuse profile -- {}` records what it starts",
            runnable(path)
        );
    }
    if let Some(folder) = path.parent().filter(|folder| is_run(folder)) {
        bail!(
            "{shown} is a file of a recorded run; give the run's folder, {}",
            folder.display()
        );
    }
    let begin = &bytes[..bytes.len().min(BEGIN)];
    if begin.starts_with(b"PAR1") || path.extension().is_some_and(|e| e == "parquet") {
        return Ok(());
    }
    let line = begin.split(|&b| b == b'\n').next().unwrap_or_default();
    let columns = String::from_utf8_lossy(line);
    let has = |name: &str| {
        columns
            .split(',')
            .any(|c| c.trim().trim_matches('"') == name)
    };
    let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !has(name)).collect();
    // A single one that is missing is named by who reads the table.
    if missing.len() > 1 {
        bail!(
            "{shown} is neither a profile nor a table of execution units: its first line lacks the columns {}; a table of \
                 another recorder needs {}, and a column per event",
            missing.join(", "),
            NEEDED.join(", ")
        );
    }
    Ok(())
}

/// Columns of another recorder's table.
const NEEDED: [&str; 5] = ["type", "label", "thread", "t0_ns", "t1_ns"];

/// A file as a shell takes it for a command.
fn runnable(path: &Path) -> String {
    match path.components().count() {
        1 if !path.has_root() => format!("./{}", path.display()),
        _ => path.display().to_string(),
    }
}
