//! The folder of the socket through which listeners are handed over: whoever can write to it could take
//! the sockets, so that it must be ours alone.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, absolute};

use rustix::fs::{Access, access};

/// Makes the folder of `path` where it does not exist yet, and checks it.
///
/// # Errors
/// When it cannot be made, or others may enter it.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    let folder = folder_of(path)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    check_owner(folder)
}

/// Checks that [`make_private`] would succeed, and makes nothing.
///
/// # Errors
/// The sentence of `rampart doctor`.
pub(crate) fn check_private(path: &Path) -> io::Result<()> {
    let folder = absolute(folder_of(path)?)?;
    let nearest = folder.ancestors().find(|above| above.symlink_metadata().is_ok());
    let is_usable = nearest.is_some_and(|nearest| {
        nearest.is_dir() && access(nearest, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    });
    if !is_usable {
        let why = format!("'{}' is no folder that this user may write to", folder.display());
        return Err(io::Error::other(why));
    }
    if nearest == Some(&*folder) { check_owner(&folder) } else { Ok(()) }
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.ok_or_else(|| io::Error::other("edge.upgrade_socket names no folder"))
}

fn check_owner(folder: &Path) -> io::Result<()> {
    if fs::metadata(folder)?.permissions().mode() & 0o077 != 0 {
        let why = format!("'{}' must be accessible to its owner alone", folder.display());
        return Err(io::Error::other(why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_checked_and_not_made() {
        let id = rampart_core::platform::clock::Clock::system().uuid().unwrap();
        let folder = std::env::temp_dir().join(format!("rampart-folder-{id}"));
        let socket = folder.join("upgrade.sock");
        check_private(&socket).unwrap();
        assert!(!folder.exists());
        make_private(&socket).unwrap();
        check_private(&socket).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
        let told = check_private(&socket).unwrap_err().to_string();
        assert!(told.ends_with("must be accessible to its owner alone"), "{told}");
        fs::remove_dir(&folder).unwrap();
        let told = check_private(Path::new("/dev/null/run/upgrade.sock")).unwrap_err().to_string();
        assert_eq!(told, "'/dev/null/run' is no folder that this user may write to");
        let told = check_private(Path::new("upgrade.sock")).unwrap_err().to_string();
        assert_eq!(told, "edge.upgrade_socket names no folder");
    }
}
