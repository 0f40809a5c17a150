//! Profiles in several files, as engines write them.

use crate::input;
use anyhow::{Context, Result};
use bytes::Bytes;
use ompfuse_fuse::Profile;
use ompfuse_fuse::exchange::{Folder, FolderRows};
use ompfuse_fuse::profile::by_type::Pieces;
use std::path::Path;

/// What is known beside the rows. Readers of folders of Parquet files pass over such names.
pub(crate) const FOLDER_FILE: &str = "_profile.json";

/// Rows that are read at once.
const PIECE: usize = 1 << 16;

/// Whether a path is such a profile.
pub(super) fn is_folder(path: &Path) -> bool {
    path.join(FOLDER_FILE).is_file()
}

/// What is known beside the rows.
pub(super) fn known(path: &Path) -> Result<Folder> {
    let file = path.join(FOLDER_FILE);
    let bytes = input::map(&file)?;
    serde_json::from_slice(&bytes).with_context(|| format!("cannot read {}", file.display()))
}

fn files(path: &Path, folder: &Folder) -> Result<Vec<Bytes>> {
    let map = |file: &str| Ok(Bytes::from_owner(input::map(&path.join(file))?));
    let cannot = || format!("cannot read {}", path.display());
    (folder.files().map(map).collect::<Result<_>>()).with_context(cannot)
}

/// To be read piece by piece.
pub(super) fn pieces(path: &Path) -> Result<Pieces> {
    let folder = known(path)?;
    let files = files(path, &folder)?;
    Pieces::of_folder(folder, files).with_context(|| format!("cannot read {}", path.display()))
}

/// All of it.
pub(super) fn profile(path: &Path) -> Result<Profile> {
    let folder = known(path)?;
    let files = files(path, &folder)?;
    let read =
        FolderRows::new(folder, files, PIECE).and_then(|rows| rows.profile(&super::name(path)));
    read.with_context(|| format!("cannot read {}", path.display()))
}
