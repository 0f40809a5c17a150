//! Where files go.

use super::{Check, State};
use crate::cache;
use ompfuse_account::units::bytes;
use std::path::Path;

/// Room that a recording of some minutes may need.
const ROOM: u64 = 1 << 30;

pub(super) fn all() -> Vec<Check> {
    vec![cached(), here(), temporary()]
}

fn cached() -> Check {
    let name = "cache";
    let folder = match cache::place() {
        Ok(folder) => folder,
        Err(error) => {
            return Check::new(name, State::Limited, format!("{error:#}"))
                .means("every recording patches the program and its libraries again")
                .helps(cache::REMEDY);
        }
    };
    let copies = cache::list(&folder).unwrap_or_default();
    let size: u64 = copies.iter().map(|c| c.bytes).sum();
    let found = format!(
        "{}: {} copies, {}",
        folder.display(),
        copies.len(),
        bytes(size)
    );
    // One that isn't there is made in the innermost one that is.
    let there = folder.ancestors().find(|f| f.exists());
    match !there.is_some_and(is_writable) {
        true => Check::new(name, State::Limited, format!("{found}, read-only"))
            .means("every recording patches the program and its libraries again")
            .helps(cache::REMEDY),
        false => Check::new(name, State::Ok, found).means("`ompfuse cache` lists and clears it"),
    }
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Free bytes for this user.
fn free(folder: &Path) -> Option<u64> {
    let of = rustix::fs::statvfs(folder).ok()?;
    Some(of.f_bavail.saturating_mul(of.f_frsize))
}

fn here() -> Check {
    let name = "this folder";
    if !is_writable(Path::new(".")) {
        return Check::new(name, State::Limited, "it can't be written")
            .means("runs need another folder")
            .helps("name one with -o");
    }
    with_room(name, Path::new(".")).means("a recording ends when half of that is full")
}

fn temporary() -> Check {
    let folder = std::env::temp_dir();
    let name = "temporary files";
    match is_writable(&folder) {
        true => with_room(name, &folder),
        false => Check::new(
            name,
            State::Limited,
            format!("{} can't be written", folder.display()),
        )
        .means("without a cache patched copies lie beside the runs")
        .helps("set TMPDIR to a folder of your own"),
    }
}

fn with_room(name: &'static str, folder: &Path) -> Check {
    let shown = match folder.canonicalize() {
        Ok(path) => path.display().to_string(),
        Err(_) => folder.display().to_string(),
    };
    match free(folder) {
        None => Check::new(name, State::Ok, shown),
        Some(room) if room < ROOM => Check::new(
            name,
            State::Limited,
            format!("{shown}: {} free", bytes(room)),
        )
        .helps("make room, or record less (--units, --max-size)"),
        Some(room) => Check::new(name, State::Ok, format!("{shown}: {} free", bytes(room))),
    }
}
