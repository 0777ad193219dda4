//! The root of the image: the binary runs in it, alone and without rights.

use std::fs;
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
    let made = Command::new(&script).arg(&image).arg(binary()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(run(&image, &["--version"]).starts_with("rampart "));
    assert!(run(&image, &["config", "reference"]).contains("edge.listen"));
    for shell in ["bin/sh", "usr/bin/sh", "bin/bash", "usr/bin/env"] {
        assert!(!image.join(shell).exists(), "{shell}");
    }
    assert!(image.join("etc/ssl/certs/ca-certificates.crt").is_file());
    assert!(image.join("usr/share/doc/rampart/LICENSE").is_file());
    assert!(image.join("usr/share/doc/rampart/LICENSE-DejaVu").is_file());
    let again = Command::new(&script).arg(&image).arg(binary()).output().unwrap();
    assert!(!again.status.success(), "it writes into an empty folder alone");
}

/// Options of podman that keep what it stores in a folder of the test's own.
fn podman(folder: &Path) -> Command {
    let mut command = Command::new("podman");
    command.arg("--root").arg(folder.join("store")).arg("--runroot").arg(folder.join("run"));
    command.args(["--storage-driver=vfs", "--cgroup-manager=cgroupfs"]);
    command
}

/// Runs a command of podman's that must succeed, and gives what it prints.
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_image_runs_with_a_root_that_is_read_only() {
    let folder = Folder::make();
    let probe = podman(folder.path()).arg("info").output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        println!("skipped: podman does not work here");
        return;
    }
    let context = folder.path().join("context");
    let layout = Command::new(root().join("deploy/image-root"))
        .arg(context.join("image"))
        .arg(binary())
        .output()
        .unwrap();
    assert!(layout.status.success(), "{}", String::from_utf8_lossy(&layout.stderr));
    // The stage before compiles what is laid out here already.
    let stages = fs::read_to_string(root().join("deploy/Containerfile")).unwrap();
    let last = stages.split("\nFROM scratch\n").nth(1).unwrap().replace("--from=build ", "");
    fs::write(context.join("Containerfile"), format!("FROM scratch\n{last}")).unwrap();
    let mut build = podman(folder.path());
    build.args(["build", "--format=docker", "--isolation=chroot", "--layers=false", "--tag=edge"]);
    succeed(build.arg(&context));
    let mut inspect = podman(folder.path());
    inspect.args(["image", "inspect", "--format={{.User}} {{.Config.Healthcheck.Test}}", "edge"]);
    let expected = "65532:65532 [CMD /usr/bin/rampart doctor --running]";
    assert_eq!(succeed(&mut inspect).trim(), expected);
    let mut run = podman(folder.path());
    run.args([
        "run",
        "--rm",
        "--read-only",
        "--network=none",
        "--no-healthcheck",
        "--cap-drop=all",
    ]);
    // Its own defaults may be more than this process is allowed.
    run.args(["--ulimit=nofile=10000:10000", "--ulimit=nproc=1000:1000"]);
    assert!(succeed(run.args(["edge", "config", "reference"])).contains("edge.listen"));
}

/// Docker and Podman read this one file, as long as there is no `.containerignore`.
#[test]
fn no_build_is_sent_secrets_or_what_is_built() {
    let ignored = fs::read_to_string(root().join(".dockerignore")).unwrap();
    let ignored: Vec<_> = ignored.lines().collect();
    assert_eq!(ignored, [".git", "deploy/compose/secrets", "target"]);
    assert!(!root().join(".containerignore").exists());
}
