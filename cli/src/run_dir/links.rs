//! Symbolic links in the paths of folders that runs are written into.

use anyhow::{Result, bail};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A link may be somebody else's, and lead to another place by the time that something is written.
pub(super) fn refuse(folder: &Path) -> Result<()> {
    // Without slashes at the end, which would have it followed.
    let folder: PathBuf = folder.components().collect();
    if let Ok(to) = std::fs::read_link(&folder) {
        bail!(
            "cannot record into {}: it is a symbolic link; name the folder that it leads to, {}",
            folder.display(),
            to.display()
        );
    }
    if let Some((link, owner)) = foreign_link(&folder, &mut { MAX_LINKS }) {
        bail!(
            "cannot record into {}: {} is a symbolic link of user {owner}; name the folder that it leads to",
            folder.display(),
            link.display()
        );
    }
    Ok(())
}

/// As many links as the kernel follows in a path.
const MAX_LINKS: usize = 40;

/// The first symbolic link on the way to a path that is neither this user's nor root's, and whose it is. `left`: how many are
/// looked at.
fn foreign_link(path: &Path, left: &mut usize) -> Option<(PathBuf, u32)> {
    let path = std::path::absolute(path).ok()?;
    let mut levels: Vec<&Path> = path.ancestors().collect();
    levels.reverse();
    levels.into_iter().find_map(|level| {
        let owner = level
            .symlink_metadata()
            .ok()
            .filter(Metadata::is_symlink)?
            .uid();
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            return Some((level.to_owned(), owner));
        }
        *left = left.checked_sub(1)?;
        foreign_link(&level.parent()?.join(level.read_link().ok()?), left)
    })
}
