//! A packed release: of one binary the same bytes at any time and place, with checksums that are signed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use rampart_tests::edge::Folder;

use crate::package::follow_links;
use crate::root;

/// A small program with symbols.
fn binary(folder: &Folder) -> std::path::PathBuf {
    let source = folder.path().join("program.c");
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let program = folder.path().join("program");
    let built = Command::new("cc").arg("-g").arg(&source).arg("-o").arg(&program).output();
    assert!(built.unwrap().status.success());
    program
}

/// Packs a release of the program into this folder, signed with this key of the home of GnuPG's.
fn pack(program: &Path, folder: &Path, signed: Option<(&Path, &str)>) {
    let mut command = Command::new(root().join("deploy/release"));
    command.arg(program).arg(folder).env_remove("RELEASE_KEY");
    if let Some((home, key)) = signed {
        command.env("GNUPGHOME", home).env("RELEASE_KEY", key);
    }
    succeed(&mut command);
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The archive of a release, by its checksum file.
fn archive(folder: &Path) -> String {
    let sums = fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    sums.trim().rsplit("  ").next().unwrap().to_owned()
}

#[test]
fn one_binary_is_always_packed_into_the_same_bytes() {
    let (one, other) = (Folder::make(), Folder::make());
    let program = binary(&one);
    let copy = other.path().join("a copy");
    fs::copy(&program, &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
    let (first, second) = (one.path().join("release"), other.path().join("of another/name"));
    pack(&program, &first, None);
    pack(&copy, &second, None);
    let name = archive(&first);
    assert_eq!(fs::read(first.join(&name)).unwrap(), fs::read(second.join(&name)).unwrap());
    assert_eq!(archive(&second), name);
    let listed = succeed(Command::new("tar").arg("-tzf").arg(first.join(&name)));
    let listed = String::from_utf8(listed.stdout).unwrap();
    for file in [
        "rampart",
        "LICENSE",
        "LICENSE-DejaVu",
        "CHANGELOG.md",
        "SECURITY.md",
        "deploy/OPERATING.md",
        "systemd/rampart.service",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(&format!("/{file}"))), "{file}: {listed}");
    }
    let files = listed.lines().filter_map(|line| Some(line.split_once('/')?.1.to_owned()));
    follow_links(&files.collect());
}

#[test]
fn the_checksums_are_signed_and_tell_what_was_changed() {
    let folder = Folder::make();
    let (home, release) = (folder.path().join("keys"), folder.path().join("release"));
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    let gpg = || {
        let mut gpg = Command::new("gpg");
        gpg.env("GNUPGHOME", &home).current_dir(&release);
        gpg.args(["--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback"]);
        gpg
    };
    fs::create_dir(&release).unwrap();
    succeed(gpg().args(["--quick-generate-key", "releases@rampart.example", "ed25519", "sign"]));
    pack(&binary(&folder), &release, Some((&home, "releases@rampart.example")));
    let verified = || {
        let signature = gpg().args(["--verify", "SHA256SUMS.asc", "SHA256SUMS"]).output().unwrap();
        let mut sums = Command::new("sha256sum");
        let sums = sums.args(["--check", "--strict", "SHA256SUMS"]).current_dir(&release).output();
        (signature.status.success(), sums.unwrap().status.success())
    };
    assert_eq!(verified(), (true, true));
    let name = archive(&release);
    let mut changed = fs::read(release.join(&name)).unwrap();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(release.join(&name), changed).unwrap();
    assert_eq!(verified(), (true, false));
    let sums = succeed(Command::new("sha256sum").arg(&name).current_dir(&release));
    fs::write(release.join("SHA256SUMS"), sums.stdout).unwrap();
    assert_eq!(verified(), (false, true));
}

#[test]
fn a_build_that_the_profile_does_not_fit_is_told() {
    let folder = Folder::make();
    let said_of = |program: &Path| {
        let output = succeed(Command::new(root().join("deploy/profile-fit")).arg(program));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = said_of(&binary(&folder));
    assert!(said.contains(" in the profile 0 are in "), "{said}");
    assert!(said.contains("make profile"), "{said}");
    // A program that has the names of all functions in the profile.
    let packed = root().join("deploy/rampart.profdata.gz");
    let profile = succeed(Command::new("gzip").arg("-dc").arg(packed)).stdout;
    let fitting = folder.path().join("fitting");
    fs::write(&fitting, &profile).unwrap();
    assert_eq!(said_of(&fitting), "");
    // One that has half of them.
    let half = folder.path().join("half");
    fs::write(&half, &profile[..profile.len() / 2]).unwrap();
    assert!(said_of(&half).contains("make profile"));
}
