//! Standard input of a program that is started several times: each run reads what the first one read.
//!
//! A file is read again from where it was. A pipe's bytes are gone once they are read: they are kept in a file without a name,
//! and each run has a pipe of its own, which is fed from that file, then from where the bytes come from. Terminals and devices are
//! left alone.

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// So much of a pipe is kept, in bytes.
const MOST: u64 = 1 << 30;

/// Standard input, for programs that read it in every run.
pub(crate) enum Input {
    /// It is handed on as it is.
    AsItIs,
    /// A file, and where it was.
    File(File, u64),
    /// A pipe or socket.
    Pipe(Kept),
}

/// What was read of a pipe.
pub(crate) struct Kept {
    source: File,
    file: File,
    len: u64,
    /// The source has ended.
    ended: bool,
    /// More than [`MOST`] was read, or there was no room for it.
    is_cut: bool,
}

impl Input {
    /// Notes what standard input is, and where. `folder`: where there is room; `runs`: how often the program will be started.
    pub(crate) fn remember(folder: &Path, runs: usize) -> Result<Input> {
        if runs < 2 {
            return Ok(Input::AsItIs);
        }
        let Ok(duplicate) = std::io::stdin().as_fd().try_clone_to_owned() else {
            return Ok(Input::AsItIs);
        };
        let Ok(status) = rustix::fs::fstat(&duplicate) else {
            return Ok(Input::AsItIs);
        };
        let mut source = File::from(duplicate);
        Ok(match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => match source.stream_position() {
                Ok(at) => Input::File(source, at),
                Err(_) => Input::AsItIs,
            },
            FileType::Fifo | FileType::Socket => Input::Pipe(Kept {
                source,
                file: tempfile::tempfile_in(folder).with_context(|| {
                    format!("cannot keep standard input in {}", folder.display())
                })?,
                len: 0,
                ended: false,
                is_cut: false,
            }),
            _ => Input::AsItIs,
        })
    }

    /// What the next run gets. An error if that can't be what the first one got.
    pub(crate) fn next(&mut self, run: usize) -> Result<Option<Feed>> {
        match self {
            Input::AsItIs => Ok(None),
            Input::File(file, at) => {
                if run > 0 {
                    let _ = file.seek(SeekFrom::Start(*at)); // then the program sees the end of its input
                }
                Ok(None)
            }
            Input::Pipe(kept) => {
                anyhow::ensure!(
                    !kept.is_cut,
                    "standard input is a pipe, of which more was read than can be kept for further runs (1 GiB); give it as a \
                     file: `< FILE`"
                );
                kept.feed().map(Some)
            }
        }
    }

    /// Takes back what a run was fed with.
    pub(crate) fn take_back(&mut self, feed: Option<Feed>) -> Result<()> {
        if let (Input::Pipe(kept), Some(feed)) = (self, feed) {
            *kept = feed.end()?;
        }
        Ok(())
    }
}

/// A pipe that is being fed.
pub(crate) struct Feed {
    /// For the program; it must be the only one who has it.
    reader: Option<std::io::PipeReader>,
    thread: JoinHandle<Kept>,
    /// Tells the thread to end, which waits for the other end's being closed too.
    stop: Arc<AtomicBool>,
    wake: std::io::PipeWriter,
}

impl Feed {
    /// The program's standard input, once.
    pub(super) fn stdin(&mut self) -> Option<Stdio> {
        self.reader.take().map(Stdio::from)
    }

    fn end(self) -> Result<Kept> {
        drop(self.reader);
        self.stop.store(true, Ordering::Release);
        drop(self.wake);
        let joined = self.thread.join();
        joined.map_err(|_| anyhow::anyhow!("cannot keep standard input for further runs"))
    }
}

impl Kept {
    /// A copy of the descriptors; the thread hands back what it has.
    fn feed(&mut self) -> Result<Feed> {
        let cannot = "cannot make a pipe for standard input";
        let (reader, mut writer) = std::io::pipe().context(cannot)?;
        let (woken, wake) = std::io::pipe().context(cannot)?;
        let flags = fcntl_getfl(&writer).context(cannot)?;
        fcntl_setfl(&writer, flags | OFlags::NONBLOCK).context(cannot)?;
        let mut kept = Kept {
            source: self.source.try_clone().context(cannot)?,
            file: self.file.try_clone().context(cannot)?,
            ..*self
        };
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = stop.clone();
        let thread = std::thread::Builder::new()
            .name("standard input".to_owned())
            .spawn(move || {
                kept.hand_on(&mut writer, &woken, &is_over);
                kept
            })
            .context(cannot)?;
        Ok(Feed {
            reader: Some(reader),
            thread,
            stop,
            wake,
        })
    }

    /// Writes what is kept, then what comes, until the source ends or nobody reads any more.
    fn hand_on(&mut self, to: &mut impl WriteFd, woken: &impl AsFd, is_over: &AtomicBool) {
        let mut buffer = vec![0; 1 << 16];
        let (mut at, end) = (0, self.len);
        while at < end {
            let some = buffer.len().min((end - at) as usize);
            let part = &mut buffer[..some];
            if self.file.read_exact_at(part, at).is_err() || !write_all(to, part, woken, is_over) {
                return;
            }
            at += some as u64;
        }
        while !self.ended {
            // Nothing is taken from the source that nobody reads: the writer's end tells by an error that the reader is gone.
            let mut ready = [
                PollFd::new(&self.source, PollFlags::IN),
                PollFd::new(woken, PollFlags::IN),
                PollFd::new(&*to, PollFlags::empty()),
            ];
            match poll(&mut ready, None) {
                Err(Errno::INTR) => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            let gone = PollFlags::ERR | PollFlags::HUP;
            if is_over.load(Ordering::Acquire) || ready[2].revents().intersects(gone) {
                return;
            }
            if ready[0].revents().is_empty() {
                continue;
            }
            let read = match self.source.read(&mut buffer) {
                Ok(0) => {
                    self.ended = true;
                    return;
                }
                Ok(read) => read,
                Err(e)
                    if matches!(
                        e.kind(),
                        std::io::ErrorKind::Interrupted | std::io::ErrorKind::WouldBlock
                    ) =>
                {
                    continue;
                }
                Err(_) => {
                    self.ended = true;
                    return;
                }
            };
            self.keep(&buffer[..read]);
            if !write_all(to, &buffer[..read], woken, is_over) {
                return;
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.is_cut {
            return;
        }
        let fits = self.len + bytes.len() as u64 <= MOST;
        if fits && self.file.write_all_at(bytes, self.len).is_ok() {
            self.len += bytes.len() as u64;
        } else {
            self.is_cut = true;
        }
    }
}

/// What can be written and waited for.
trait WriteFd: Write + AsFd {}
impl<T: Write + AsFd> WriteFd for T {}

/// False if nobody reads any more.
fn write_all(
    to: &mut impl WriteFd,
    mut bytes: &[u8],
    woken: &impl AsFd,
    is_over: &AtomicBool,
) -> bool {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                let mut ready = [
                    PollFd::new(&*to, PollFlags::OUT),
                    PollFd::new(woken, PollFlags::IN),
                ];
                let waited = poll(&mut ready, None);
                if is_over.load(Ordering::Acquire) || waited.is_err_and(|e| e != Errno::INTR) {
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
    true
}
