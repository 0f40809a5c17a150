//! One change of a control file at a time.

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long another command may take for a change, which is a few writes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A locked control file, until it is dropped.
pub(super) struct Lock<'a>(&'a File);

/// Somebody else has locked it.
#[derive(Debug, thiserror::Error)]
#[error("{who} has been changing it for {patience:?}")]
pub(super) struct Busy {
    pub(super) who: String,
    patience: Duration,
}

impl Lock<'_> {
    /// Locks a control file. Who is stopped in the middle of a change doesn't stop all others, but is named ([`Busy`]).
    pub(super) fn take<'a>(file: &'a File, path: &Path, patience: Duration) -> Result<Lock<'a>> {
        let cannot = || format!("cannot lock {}", path.display());
        let end = Instant::now() + patience;
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock(file)),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(Errno::WOULDBLOCK) => {
                    let holder = file.metadata().ok().and_then(|m| holder(m.dev(), m.ino()));
                    let who = holder.map_or_else(
                        || "another process".to_owned(),
                        |pid| format!("process {pid}"),
                    );
                    return Err(Busy { who, patience }).with_context(cannot);
                }
                Err(e) => return Err(e).with_context(cannot),
            }
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock); // closing does it too
    }
}

/// The process that has locked the file of an inode (`proc_locks(5)`), as far as can be seen from here. Some file systems
/// show another device there: without the right one it is who alone has locked a file of this number.
fn holder(device: u64, inode: u64) -> Option<u32> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let exact = format!("{major:02x}:{minor:02x}:{inode}");
    let inode = format!(":{inode}");
    // 1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF
    let locked = locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, place, ..] = words[..] else {
            return None;
        };
        place.ends_with(&inode).then_some((place, pid))
    });
    let locked: Vec<_> = locked.collect();
    let known = locked.iter().find(|(place, _)| *place == exact);
    match (known, &locked[..]) {
        (Some((_, pid)), _) | (None, [(_, pid)]) => pid.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_stopped_in_a_change_is_named() {
        let kept = tempfile::NamedTempFile::new().expect("a file");
        let open = || File::open(kept.path()).expect("it is there");
        let (first, second) = (open(), open());
        let soon = Duration::from_millis(30);
        let taken = Lock::take(&first, kept.path(), soon).expect("nobody has it");
        let refused = Lock::take(&second, kept.path(), soon);
        let refused = refused.err().expect("it is taken");
        assert!(refused.is::<Busy>());
        let said = format!("{refused:#}");
        let me = format!(
            "process {} has been changing it for 30ms",
            std::process::id()
        );
        assert!(said.ends_with(&me), "{said}");
        drop(taken);
        Lock::take(&second, kept.path(), soon).expect("it is free again");
    }
}
