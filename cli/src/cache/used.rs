//! Which folders of the cache are in use: locks that end with the process that holds them.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How often a lock is tried that somebody else has.
const ATTEMPTS: u32 = 20;

/// Open files that this process may still need: a lock takes none of the last ones.
const SPARE: u64 = 16;

/// A folder that this process uses. Without a lock where it may open hardly any file.
#[derive(Debug)]
pub(crate) struct Hold {
    _lock: Option<File>,
}

/// Marks a folder as used by this process, now and until the result is dropped. `None`: there is no such folder, or another
/// command is about to remove it.
pub(crate) fn hold(folder: &Path) -> Option<Hold> {
    let file = File::open(folder).ok()?;
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    if most.is_some_and(|most| file.as_raw_fd() as u64 + SPARE > most) {
        return Some(Hold { _lock: None });
    }
    // A file system without locks is no reason not to use what is there.
    let is_taken = || flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
    // Who only looks whether it is in use has it for a moment.
    for _ in 0..ATTEMPTS {
        if !is_taken() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    if is_taken() {
        return None;
    }
    let _ = file.set_modified(SystemTime::now()); // the cache may be read-only
    Some(Hold { _lock: Some(file) })
}

/// Keeps others from using a folder, until the result is dropped. `None`: some process uses it.
pub(super) fn take(folder: &Path) -> std::io::Result<Option<File>> {
    let file = File::open(folder)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(None),
        _ => Ok(Some(file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (hold(dir.path()).unwrap(), hold(dir.path()).unwrap());
        assert!(take(dir.path()).unwrap().is_none());
        drop((one, other));
        let taken = take(dir.path()).unwrap();
        assert!(taken.is_some() && hold(dir.path()).is_none());
        drop(taken);
        assert!(hold(dir.path()).is_some());
        assert!(hold(&dir.path().join("nothing")).is_none());
    }
}
