//! Output folders that are either there in full or not at all.

use super::{check, named, parent};
use crate::interrupt;
use anyhow::{Context, Result, bail};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Makes a folder beside its destination, fills it, and renames it. A folder that is there must be empty. `fill` gets its path.
pub(crate) fn write_folder(path: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    check_folder(path)?;
    let hold = interrupt::hold();
    let temporary =
        named(path, |builder, folder| builder.tempdir_in(folder)).with_context(cannot)?;
    fill(temporary.path()).map_err(|e| match e.is::<std::io::Error>() {
        true => e.context(cannot()),
        // What the writer itself finds wrong says where.
        false => e,
    })?;
    std::fs::set_permissions(temporary.path(), Permissions::from_mode(0o755))
        .with_context(cannot)?;
    hold.check()?;
    std::fs::rename(temporary.path(), path).with_context(cannot)?;
    // What had this name is another's now.
    let _ = temporary.keep();
    Ok(())
}

/// Refuses what [`write_folder`] can't replace.
pub(crate) fn check_folder(path: &Path) -> Result<()> {
    check(path)?;
    let cannot = |why: &str| {
        format!(
            "cannot write {}: {why}; name another folder",
            path.display()
        )
    };
    let mut listing = match std::fs::read_dir(path) {
        Ok(listing) => listing,
        Err(_) if path.symlink_metadata().is_ok() => bail!(cannot("it is no folder")),
        Err(_) if !parent(path).is_dir() => {
            bail!(cannot(&format!(
                "there is no folder {}",
                parent(path).display()
            )))
        }
        Err(_) => return Ok(()),
    };
    if listing.next().is_some() {
        bail!(cannot("the folder is not empty"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_there_in_full_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let fill = |folder: &Path| Ok(std::fs::write(folder.join("file"), b"one")?);
        let error = write_folder(&path, |folder| {
            fill(folder)?;
            Err(std::io::Error::other("no").into())
        });
        assert!(format!("{:#}", error.unwrap_err()).starts_with("cannot write "));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        std::fs::create_dir(&path).unwrap();
        write_folder(&path, fill).unwrap();
        assert_eq!(std::fs::read(path.join("file")).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        for (path, why) in [
            (path.clone(), "the folder is not empty"),
            (path.join("file"), "it is no folder"),
            (dir.path().join("no/out"), "there is no folder"),
        ] {
            let error = format!("{:#}", write_folder(&path, fill).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }
}
