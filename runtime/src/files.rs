//! Files of the run, and lines for the user.

use crate::syscall;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::OnceLock;

/// A new file for the owner only; an existing one or a link is an error.
pub(crate) fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)
}

/// A new file with these contents, or none.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = create(path)?;
    let written = match syscall::may_have(bytes.len() as u64) {
        true => file.write_all(bytes),
        false => Err(std::io::ErrorKind::FileTooLarge.into()),
    };
    if written.is_err() {
        let _ = std::fs::remove_file(path); // a part of it is damaged to who reads it
    }
    written
}

/// One line to the user; the program goes on.
pub(crate) fn complain(message: &str) {
    // Not through std: its thread-local variables may be gone, if this thread is about to end.
    if standard_error().is_some_and(|file| syscall::identity(2) == Some(file)) {
        syscall::write_quietly(2, format!("ompfuse: {message}\n").as_bytes());
    }
}

/// What standard error was at the start: the program may close it, and a file of its own get that number.
pub(crate) fn standard_error() -> Option<(u64, u64)> {
    static FILE: OnceLock<Option<(u64, u64)>> = OnceLock::new();
    *FILE.get_or_init(|| syscall::identity(2))
}
