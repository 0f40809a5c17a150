//! Input files as bytes.

use anyhow::{Context, Result, bail};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The bytes of a file.
pub(crate) struct Input(Option<memmap2::Mmap>);

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl Input {
    /// Maps a file that this command has just written.
    pub(crate) fn of(file: &File) -> std::io::Result<Input> {
        map_file(file).map(|map| Input(Some(map)))
    }

    /// Gives the memory of its pages back; they are read again when they are needed again.
    #[expect(
        unsafe_code,
        reason = "for private memory with changes, which this isn't, pages would be lost"
    )]
    pub(crate) fn release(&self) {
        if let Some(map) = &self.0 {
            // SAFETY: a read-only mapping of a file: its pages have the file's contents again.
            let released = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
            // A kernel that doesn't want to needs more memory, that is all.
            let _ = released;
        }
    }
}

impl AsRef<[u8]> for Input {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// No text that somebody writes, or `report --suggest-filter`, is longer than so many bytes; `/dev/zero` is.
const LONGEST_TEXT: u64 = 64 << 20;

/// The text of a file, or what comes out of a pipe.
pub(crate) fn text(path: &Path) -> std::io::Result<String> {
    text_of(File::open(path)?)
}

fn text_of(file: File) -> std::io::Result<String> {
    let mut text = String::new();
    file.take(LONGEST_TEXT + 1).read_to_string(&mut text)?;
    match text.len() as u64 <= LONGEST_TEXT {
        true => Ok(text),
        false => Err(std::io::Error::other("more than 64 MiB of text")),
    }
}

/// The text of a file that may be read again later: a pipe would keep its reader waiting.
pub(crate) fn lasting_text(path: &Path) -> std::io::Result<String> {
    let file = open(path)?;
    match file.metadata()?.is_file() {
        true => text_of(file),
        false => Err(std::io::Error::other("not a regular file")),
    }
}

/// Opens what may turn out to be a pipe, whose writer nobody waits for, or a terminal. What it is can be asked then; if
/// it were asked before, it could be another file by now. Regular files are read as ever.
pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    File::options()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)
}

/// Maps a regular file.
pub(crate) fn map(path: &Path) -> Result<Input> {
    let file = open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let metadata = file
        .metadata()
        .with_context(|| format!("cannot examine {}", path.display()))?;
    if metadata.is_dir() {
        bail!("{} is a folder, not a file", path.display());
    }
    if !metadata.is_file() {
        bail!("{} is not a regular file", path.display());
    }
    if metadata.len() == 0 {
        return Ok(Input(None)); // mmap refuses a length of 0
    }
    Ok(Input(Some(map_file(&file).with_context(|| {
        format!("cannot map {}", path.display())
    })?)))
}

/// Binaries and record files are up to gigabytes large and read in parts.
#[expect(
    unsafe_code,
    reason = "mapping a file is unsafe in Rust: another process may change it"
)]
fn map_file(file: &File) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: the mapping is private and read-only, and every consumer parses the bytes as untrusted input, with
    // bounds checked at each access. What remains is somebody truncating the file meanwhile, which ends this command
    // with SIGBUS: outputs are replaced by renaming and never truncated, so ompfuse doesn't do that to itself.
    unsafe { memmap2::Mmap::map(file) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;

    #[test]
    fn endless_text_and_pipes_are_refused() {
        let error = |read: std::io::Result<String>| read.unwrap_err().to_string();
        let zero = Path::new("/dev/zero");
        assert_eq!(error(text(zero)), "more than 64 MiB of text");
        assert_eq!(error(lasting_text(zero)), "not a regular file");
        assert_eq!(error(lasting_text(Path::new("/"))), "not a regular file");
    }

    #[test]
    fn nobody_waits_for_the_writer_of_a_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let error = format!("{:#}", map(&pipe).err().unwrap());
        assert!(error.ends_with("is not a regular file"), "{error}");
        let error = lasting_text(&pipe).unwrap_err().to_string();
        assert_eq!(error, "not a regular file");
    }

    #[test]
    fn maps_files_and_tells_what_else_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"abc").unwrap();
        let input = map(&path).unwrap();
        assert_eq!(&*input, b"abc");
        input.release();
        assert_eq!(&*input, b"abc");
        std::fs::write(&path, b"").unwrap();
        assert_eq!(&*map(&path).unwrap(), b"");
        let error = |p: &Path| format!("{:#}", map(p).err().unwrap());
        assert!(error(dir.path()).ends_with("is a folder, not a file"));
        assert!(error(Path::new("/dev/null")).ends_with("is not a regular file"));
        assert!(error(&dir.path().join("none")).contains("cannot open"));
    }
}
