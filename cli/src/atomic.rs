//! Output files that are either there in full or not at all.

mod folder;

pub(crate) use folder::{check_folder, write_folder};

use crate::input;
use crate::interrupt;
use anyhow::{Context, Result, ensure};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::{File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Stretches of zeros at least this long, at multiples of it, become holes.
const BLOCK: usize = 4096;

/// Writes a file beside its destination, forces it to the disk and renames it. `mode`: permission bits.
pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    write_with(path, mode, |file| {
        let mut holes = Holes::new(file);
        holes.write(bytes)?;
        holes.finish()?;
        Ok(())
    })
}

/// As [`write`], with the contents written by `fill`.
pub(crate) fn write_with(
    path: &Path,
    mode: u32,
    fill: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    check(path)?;
    let mut hold = Some(interrupt::hold());
    let mut temporary = Temporary::beside(path).with_context(cannot)?;
    if matches!(temporary, Temporary::Unnamed(_)) {
        // Whatever ends this command leaves nothing behind. A signal would leave a temporary file of a name.
        interrupted(hold.take())?;
    }
    let file = temporary.file();
    fill(file).map_err(|e| match e.is::<std::io::Error>() {
        true => e.context(cannot()),
        // What the writer itself finds wrong says where.
        false => e,
    })?;
    file.set_permissions(Permissions::from_mode(mode))
        .with_context(cannot)?;
    file.sync_all().with_context(cannot)?;
    let hold = hold.unwrap_or_else(interrupt::hold);
    hold.check()?;
    temporary.persist(path).with_context(cannot)
}

/// What came while signals were held back.
fn interrupted(hold: Option<interrupt::Hold>) -> Result<(), interrupt::Interrupted> {
    hold.map_or(Ok(()), |hold| hold.check())
}

/// Refuses what isn't replaced by a file: a device (root could replace /dev/null for everybody), a pipe, and a link to an open
/// file, as /dev/stdout is, whatever that file may be.
pub(crate) fn check(path: &Path) -> Result<()> {
    let is_other = path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir());
    let is_open_file = path
        .read_link()
        .is_ok_and(|target| target.starts_with("/proc"));
    ensure!(
        !is_other && !is_open_file,
        "cannot write {}: it is no regular file; name a file that can be replaced",
        path.display()
    );
    Ok(())
}

/// The same before anything takes long: the folder is there too.
pub(crate) fn check_ahead(path: &Path) -> Result<()> {
    check(path)?;
    let folder = parent(path);
    ensure!(
        folder.is_dir(),
        "cannot write {}: there is no folder {}",
        path.display(),
        folder.display()
    );
    Ok(())
}

/// A file that isn't there yet.
enum Temporary {
    /// Without a name, so that whatever ends this command leaves nothing behind.
    Unnamed(File),
    /// Where the file system has no such files.
    Named(NamedTempFile),
}

impl Temporary {
    fn beside(path: &Path) -> std::io::Result<Temporary> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::open(parent(path), flags, Mode::RUSR | Mode::WUSR)
            && link(&file).exists()
        {
            return Ok(Temporary::Unnamed(file.into()));
        }
        named(path, |builder, folder| builder.tempfile_in(folder)).map(Temporary::Named)
    }

    fn file(&mut self) -> &mut File {
        match self {
            Temporary::Unnamed(file) => file,
            Temporary::Named(file) => file.as_file_mut(),
        }
    }

    /// Gives it its name, in place of what has that.
    fn persist(self, path: &Path) -> std::io::Result<()> {
        let file = match self {
            Temporary::Unnamed(file) => file,
            Temporary::Named(file) => {
                return file.persist(path).map(drop).map_err(|e| e.error);
            }
        };
        let call_it = |name: &Path| {
            rustix::fs::linkat(CWD, link(&file), CWD, name, AtFlags::SYMLINK_FOLLOW)
                .map_err(std::io::Error::from)
        };
        match call_it(path) {
            // A link doesn't replace anything, renaming does.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                let beside = named(path, |builder, folder| builder.make_in(folder, &call_it))?;
                let beside = beside.into_temp_path();
                beside.persist(path).map_err(|e| e.error)
            }
            result => result,
        }
    }
}

fn named<T>(
    path: &Path,
    make: impl FnOnce(&tempfile::Builder<'_, '_>, &Path) -> std::io::Result<T>,
) -> std::io::Result<T> {
    make(tempfile::Builder::new().prefix(".ompfuse-"), parent(path))
}

/// An open file's place in the file system.
fn link(file: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// As [`write`], unless the file has these contents already.
pub(crate) fn write_if_different(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    if input::map(path).is_ok_and(|old| *old == *bytes) {
        return Ok(());
    }
    write(path, bytes, mode)
}

/// The folder that a file is in.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if p.as_os_str().is_empty() => Path::new("."),
        Some(p) => p,
        None => Path::new("/"),
    }
}

/// Writes a file from its beginning to its end, with holes for blocks of zeros: segments are appended at aligned offsets,
/// often far behind the original's end.
pub(crate) struct Holes<'a> {
    file: &'a mut File,
    len: u64,
}

impl<'a> Holes<'a> {
    /// Into an empty file.
    pub(crate) fn new(file: &'a mut File) -> Holes<'a> {
        Holes { file, len: 0 }
    }

    /// What comes next.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let is_hole = |block: &[u8]| block.len() == BLOCK && block.iter().all(|&b| b == 0);
        let mut rest = bytes;
        while !rest.is_empty() {
            let hole = rest
                .chunks(BLOCK)
                .take_while(|b| is_hole(b))
                .map(<[u8]>::len)
                .sum::<usize>();
            if hole > 0 {
                self.file.seek(SeekFrom::Current(hole as i64))?;
            }
            let data = rest[hole..]
                .chunks(BLOCK)
                .take_while(|b| !is_hole(b))
                .map(<[u8]>::len)
                .sum::<usize>();
            self.file.write_all(&rest[hole..hole + data])?;
            rest = &rest[hole + data..];
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// A hole at the end counts too.
    pub(crate) fn finish(self) -> std::io::Result<()> {
        self.file.set_len(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn replaces_a_file_with_its_mode_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        write(&path, b"one", 0o600).unwrap();
        write(&path, b"two", 0o755).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o755);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let inode = path.metadata().unwrap().ino();
        write_if_different(&path, b"two", 0o755).unwrap();
        assert_eq!(path.metadata().unwrap().ino(), inode);
        write_if_different(&path, b"three", 0o755).unwrap();
        assert_ne!(path.metadata().unwrap().ino(), inode);
    }

    #[test]
    fn devices_and_open_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let file = tempfile::tempfile().unwrap();
        let targets = [PathBuf::from("/dev/null"), socket, link(&file)];
        for (n, target) in targets.iter().enumerate() {
            let path = dir.path().join(n.to_string());
            std::os::unix::fs::symlink(target, &path).unwrap();
            let error = write(&path, b"one", 0o600).unwrap_err();
            let text = format!("{error:#}");
            assert!(text.contains("it is no regular file"), "{text}");
            assert_eq!(&path.read_link().unwrap(), target);
        }
        // A link to a file that can be replaced is replaced, as linkers do.
        let (file, path) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, b"one").unwrap();
        std::os::unix::fs::symlink(&file, &path).unwrap();
        write(&path, b"two", 0o600).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"one");
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn sparse_files_have_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = vec![0; 3 * BLOCK];
        bytes.extend([7; 5000]);
        bytes.extend([0; 64 * BLOCK]);
        for (n, end) in [0, 1, BLOCK, 3 * BLOCK + 1, bytes.len()]
            .into_iter()
            .enumerate()
        {
            let path = dir.path().join(n.to_string());
            write(&path, &bytes[..end], 0o600).unwrap();
            assert!(
                std::fs::read(&path).unwrap() == bytes[..end],
                "first {end} bytes"
            );
        }
        assert!(dir.path().join("4").metadata().unwrap().blocks() * 512 < 16 * BLOCK as u64);
    }

    #[test]
    fn a_failing_writer_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        write(&path, b"one", 0o600).unwrap();
        let no = || Err(std::io::Error::other("no").into());
        let error = write_with(&path, 0o600, |_| no()).unwrap_err();
        assert!(format!("{error:#}").starts_with("cannot write "));
        let error = write_with(&path, 0o600, |_| anyhow::bail!("not that")).unwrap_err();
        assert_eq!(format!("{error:#}"), "not that");
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
