//! Discovery of PostgreSQL's programs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::StartError;

/// The oldest supported major version.
const VERSION_MIN: u32 = 15;

/// Folder of Debian and Ubuntu with one installation per major version, outside the `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

/// A folder with `postgres` and `initdb` of one version.
#[derive(Debug)]
pub(super) struct Installation {
    bin: PathBuf,
    version: u32,
}

impl Installation {
    /// The first suitable one: `bin` alone if set, else `PATH`, else Debian's, newest first.
    /// An existing cluster requires exactly its own version, `wanted`.
    pub(super) fn find(bin: Option<&Path>, wanted: Option<u32>) -> Result<Self, StartError> {
        let folders = match bin {
            Some(bin) => vec![bin.to_path_buf()],
            None => searched_folders(),
        };
        let fits =
            |found: &Self| wanted.map_or(found.version >= VERSION_MIN, |v| v == found.version);
        folders.into_iter().filter_map(Self::inspect).find(fits).ok_or_else(|| missing(bin, wanted))
    }

    fn inspect(bin: PathBuf) -> Option<Self> {
        if !bin.join("initdb").is_file() {
            return None;
        }
        let output = Command::new(bin.join("postgres")).arg("--version").output().ok()?;
        let version = major(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { bin, version })
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }
}

#[expect(clippy::disallowed_methods, reason = "PATH is where programs are, not a setting")]
fn searched_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(debian_folders()).collect()
}

/// The `bin` folders below [`DEBIAN`], newest version first.
fn debian_folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let mut versions: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.into_iter().map(|v| Path::new(DEBIAN).join(v.to_string()).join("bin")).collect()
}

/// The major version in `postgres (PostgreSQL) 15.18 (Debian 15.18-1)`.
fn major(version: &str) -> Option<u32> {
    let number = version.split_once("(PostgreSQL) ")?.1;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn missing(bin: Option<&Path>, wanted: Option<u32>) -> StartError {
    let required = match wanted {
        Some(version) => format!("PostgreSQL {version}, which made the existing cluster,"),
        None => format!("PostgreSQL {VERSION_MIN} or later"),
    };
    let searched = bin.map_or_else(|| OsStr::new("PATH or /usr/lib/postgresql"), Path::as_os_str);
    StartError::new(format!(
        "{required} is not in {}: install it (deploy/setup does) or name its folder in RAMPART_PG_BIN",
        searched.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_releases_betas_and_packages() {
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 19beta1\n"), Some(19));
        assert_eq!(major("postgres (PostgreSQL) devel\n"), None);
        assert_eq!(major(""), None);
    }

    #[test]
    fn a_folder_without_postgres_is_named_in_the_error() {
        let error = Installation::find(Some(Path::new("/nowhere/bin")), None).unwrap_err();
        assert!(error.to_string().contains("/nowhere/bin"), "{error}");
    }

    #[test]
    fn a_cluster_of_an_absent_version_is_not_opened_with_another() {
        let error = Installation::find(None, Some(1)).unwrap_err();
        assert!(error.to_string().starts_with("PostgreSQL 1, which made"), "{error}");
    }
}
