//! Whose the cache folder is: what lies in it is executed.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether nobody but this user (and root) can put something into a folder, from `base` on, as far as it exists. An error says
/// who can.
pub(super) fn trusted(base: &Path, folder: &Path) -> Result<(), String> {
    const WRITE_BY_OTHERS: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let me = rustix::process::geteuid().as_raw();
    let levels = folder.ancestors().take_while(|f| f.starts_with(base));
    for level in levels {
        let Ok(metadata) = level.metadata() else {
            continue; // it is made when it is needed
        };
        let (owner, mode) = (metadata.uid(), metadata.mode());
        let shown = level.display();
        if owner != me && (owner != 0 || level == folder) {
            return Err(format!("{shown} belongs to user {owner}"));
        }
        if mode & WRITE_BY_OTHERS != 0 && mode & STICKY == 0 {
            return Err(format!("everybody can write into {shown}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_that_others_can_change_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join(".cache/ompfuse");
        assert_eq!(trusted(dir.path(), &inner), Ok(()));
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(trusted(dir.path(), &inner), Ok(()));
        let between = dir.path().join(".cache");
        let mode = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&between, mode(0o777)).unwrap();
        let told = trusted(dir.path(), &inner).unwrap_err();
        assert_eq!(
            told,
            format!("everybody can write into {}", between.display())
        );
        std::fs::set_permissions(&between, mode(0o1777)).unwrap();
        assert_eq!(trusted(dir.path(), &inner), Ok(()));
        // Only root can give folders away.
        if std::os::unix::fs::chown(dir.path(), Some(12345), None).is_ok() {
            let told = trusted(dir.path(), &inner).unwrap_err();
            assert_eq!(
                told,
                format!("{} belongs to user 12345", dir.path().display())
            );
        }
    }
}
