//! Input files as bytes.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::ops::Deref;
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

/// Maps a regular file.
pub(crate) fn map(path: &Path) -> Result<Input> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
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
