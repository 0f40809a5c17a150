//! Copies of a program's folder, in which it is run, so that each run finds the same files and what it writes can be compared.

use super::files::{Listing, MOST_ENTRIES};
use anyhow::{Context, Result, bail};
use ompfuse_format::glob::matches_glob;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Larger folders are not copied.
const MOST_BYTES: u64 = 1 << 30;

/// Copies of a program's folder, in which it is run.
pub(super) struct Copies {
    /// As it was before the first run.
    origin: PathBuf,
    /// The copy of the run under way.
    here: PathBuf,
    /// Files that are compared.
    globs: Vec<String>,
}

impl Copies {
    /// `within`: where the copies are. `without`: a folder that is left out.
    ///
    /// # Errors
    /// The folder is too large.
    pub(super) fn new(globs: &[String], within: &Path, without: &Path) -> Result<Copies> {
        let folder = std::env::current_dir().context("cannot read this folder's name")?;
        let listing = Listing::of(&folder, &[without]);
        if listing.is_none_or(|listing| listing.bytes() > MOST_BYTES) {
            bail!(
                "{} is too large to be copied for each run ({MOST_ENTRIES} files, 1 GiB at most); for --compare-files start `try` in a folder with only what the program needs",
                folder.display()
            );
        }
        let copies = Copies {
            origin: within.join("origin"),
            here: within.join("folder"),
            globs: globs.to_vec(),
        };
        copy(&folder, &copies.origin, without)?;
        Ok(copies)
    }

    /// A fresh copy for a run.
    pub(super) fn fresh(&self) -> Result<&Path> {
        if self.here.exists() {
            let removed = std::fs::remove_dir_all(&self.here);
            removed.with_context(|| format!("cannot remove {}", self.here.display()))?;
        }
        copy(&self.origin, &self.here, Path::new(""))?;
        Ok(&self.here)
    }

    /// Gathers the files that are compared, with their names, in one file.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn gather(&self, to: &Path) -> Result<()> {
        let listing = Listing::of(&self.here, &[]).context("the program writes too many files")?;
        let is_meant = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let path = path.to_string_lossy();
            let mut globs = self.globs.iter();
            globs.any(|glob| matches_glob(glob, &path) || matches_glob(glob, &name))
        };
        let mut all = vec![];
        for path in listing.paths().filter(|path| is_meant(path)) {
            let file = self.here.join(path);
            let bytes = std::fs::read(&file);
            let bytes = bytes.with_context(|| format!("cannot read {}", file.display()))?;
            writeln!(all, "{}:", path.display())?;
            all.extend(bytes);
        }
        if all.is_empty() {
            bail!(
                "no file of this folder is called {} after a run; --compare-files compares files that the program writes into its folder",
                self.globs.join(" or ")
            );
        }
        std::fs::write(to, all).with_context(|| format!("cannot write {}", to.display()))
    }
}

/// Copies a folder. Files that are neither files, folders nor links are left out.
fn copy(from: &Path, to: &Path, without: &Path) -> Result<()> {
    let cannot = || format!("cannot copy {}", from.display());
    std::fs::create_dir(to).with_context(cannot)?;
    for entry in std::fs::read_dir(from).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().with_context(cannot)?;
        if kind.is_dir() {
            if source != without {
                copy(&source, &target, without)?;
            }
            continue;
        }
        let done = if kind.is_symlink() {
            std::fs::read_link(&source).and_then(|to| symlink(to, &target))
        } else if kind.is_file() {
            std::fs::copy(&source, &target).and_then(|_| {
                let modified = entry.metadata()?.modified()?;
                let file = std::fs::File::options().append(true).open(&target);
                // A file that may not be written keeps its new time.
                file.map_or(Ok(()), |file| file.set_modified(modified))
            })
        } else {
            Ok(())
        };
        done.with_context(|| format!("cannot copy {}", source.display()))?;
    }
    Ok(())
}
