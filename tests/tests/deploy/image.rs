//! The root of the image: the binary runs in it, alone and without rights.

use std::path::Path;
use std::process::Command;

use rampart_tests::edge::Folder;
use rampart_tests::process::binary;

use crate::root;

/// Runs the binary of an image's root as its user, with nothing else in sight.
fn run(image: &Path, arguments: &[&str]) -> String {
    // As an ordinary user one is root, and the only user, of a namespace of one's own.
    let wrapper: &[&str] = match nix::unistd::geteuid().is_root() {
        true => &["chroot", "--userspec=65532:65532"],
        false => &["unshare", "--map-root-user", "chroot"],
    };
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(image).arg("/usr/bin/rampart").args(arguments);
    let output = command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {err}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_binary_runs_in_the_root_of_the_image() {
    let folder = Folder::make();
    let image = folder.path().join("image");
    let script = root().join("deploy/image-root");
    let made = Command::new(&script).arg(binary()).arg(&image).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(run(&image, &["--version"]).starts_with("rampart "));
    assert!(run(&image, &["config", "reference"]).contains("edge.listen"));
    for shell in ["bin/sh", "usr/bin/sh", "bin/bash", "usr/bin/env"] {
        assert!(!image.join(shell).exists(), "{shell}");
    }
    assert!(image.join("etc/ssl/certs/ca-certificates.crt").is_file());
    assert!(image.join("usr/share/doc/rampart/LICENSE").is_file());
    let again = Command::new(&script).arg(binary()).arg(&image).output().unwrap();
    assert!(!again.status.success(), "it writes into an empty folder alone");
}
