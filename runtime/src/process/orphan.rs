//! The child of a fork that the C library knows nothing of (`clone` as a system call of the program's own). Other threads of
//! its parent may have held the allocator's lock, which nobody releases in the child: it records nothing, since beginning to
//! allocates, and leaves a file that says so.

use super::{ACTIVE, PROCESS, clock};
use crate::syscall;
use core::ffi::CStr;
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;
use ompfuse_format::run::ClockPair;

/// Text on the stack; what doesn't fit is an error.
struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    fn new() -> Text<N> {
        Text {
            bytes: [0; N],
            len: 0,
        }
    }

    fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}

impl<const N: usize> Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..).unwrap_or(&mut []);
        room.get_mut(..text.len())
            .ok_or(fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

/// Nothing is recorded in this process, and a file tells that.
pub(super) fn stop() {
    ACTIVE.store(false, Ordering::Release);
    // SAFETY: PROCESS is set before ACTIVE and never freed.
    let Some(process) = (unsafe { PROCESS.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let Some(folder) = process.directory.to_str() else {
        return;
    };
    let (mut path, mut text) = (Text::<4096>::new(), Text::<512>::new());
    let pid = std::process::id();
    if write!(path, "{folder}/process-{pid}.end.json\0").is_err()
        || tell(&mut text, clock()).is_err()
    {
        return;
    }
    if let Ok(path) = CStr::from_bytes_with_nul(path.written())
        && syscall::may_have(text.written().len() as u64)
        && let Some(fd) = syscall::create(path)
    {
        syscall::write(fd, text.written());
        syscall::close(fd);
    }
}

/// A `ProcessEnd`.
fn tell(text: &mut impl Write, ClockPair { tsc, ns }: ClockPair) -> fmt::Result {
    let reason =
        "the program made it by a system call (clone) instead of fork(): it is not recorded";
    write!(
        text,
        r#"{{"end":{{"tsc":{tsc},"ns":{ns}}},"threads":0,"lost":0,"threads_lost":0,"sized_teams":false,"stopped":"{reason}"}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_format::run::ProcessEnd;

    #[test]
    fn what_is_told_can_be_read() {
        let mut text = Text::<512>::new();
        let end = ClockPair {
            tsc: u64::MAX,
            ns: u64::MAX,
        };
        tell(&mut text, end).unwrap();
        let read: ProcessEnd = serde_json::from_slice(text.written()).unwrap();
        assert_eq!((read.end, read.lost), (end, 0));
        assert!(read.stopped.unwrap().contains("clone"));
        assert!(Text::<8>::new().write_str("123456789").is_err());
    }
}
