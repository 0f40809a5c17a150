//! Programs that run with other privileges than those of whoever starts them.

use anyhow::{Result, bail};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Why a file gives privileges, if it does: a copy of it has none, and the loader takes no library from beside it.
fn given_by(file: &Path) -> Option<&'static str> {
    let mode = file.metadata().ok()?.permissions().mode();
    if mode & 0o4000 != 0 {
        return Some("set-user-ID");
    }
    // Without the group's right to execute the bit means something else.
    if mode & 0o2010 == 0o2010 {
        return Some("set-group-ID");
    }
    let mut value = [0; 64];
    let has = rustix::fs::getxattr(file, c"security.capability", &mut value[..]);
    has.is_ok().then_some("capabilities")
}

/// A program that isn't recorded because it has privileges.
#[derive(Debug, thiserror::Error)]
#[error("{0} has privileges of its own ({1}) and is not recorded; record a copy without them")]
pub(crate) struct Privileged(String, &'static str);

/// Refuses to record such a program.
pub(crate) fn refuse_to_record(file: &Path) -> Result<(), Privileged> {
    match given_by(file) {
        Some(why) => Err(Privileged(file.display().to_string(), why)),
        None => Ok(()),
    }
}

/// Refuses to patch such a program in a way in which it would not start.
pub(crate) fn refuse_to_patch(file: &Path, dormant: bool) -> Result<()> {
    match given_by(file) {
        Some(why) if !dormant => bail!(
            "{} has privileges of its own ({why}), so the loader ignores libraries beside it; patch it with --dormant",
            file.display()
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    #[test]
    fn mode_bits_are_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path();
        for (mode, why) in [
            (0o755, None),
            (0o4755, Some("set-user-ID")),
            (0o2755, Some("set-group-ID")),
            (0o2645, None),
        ] {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(given_by(path), why, "{mode:o}");
            assert_eq!(refuse_to_record(path).is_err(), why.is_some());
            assert!(refuse_to_patch(path, true).is_ok());
        }
        assert_eq!(given_by(Path::new("/no/such/file")), None);
    }
}
