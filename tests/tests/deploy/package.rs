//! The Debian package: every file that it takes is there, and its scripts are scripts.

use std::process::Command;

use crate::{names, root};

/// The sources of the package's files, as `proxy/Cargo.toml` lists them, from the root.
fn assets() -> Vec<String> {
    let manifest = std::fs::read_to_string(root().join("proxy/Cargo.toml")).unwrap();
    let package = manifest.split("[package.metadata.deb]").nth(1).unwrap();
    let assets = package.split("assets = [").nth(1).unwrap().split("\n]").next().unwrap();
    let sources =
        assets.lines().filter_map(|line| line.trim().strip_prefix("[\"")?.split('"').next());
    let from_root = |source: &str| match source.strip_prefix("../") {
        Some(path) => path.to_owned(),
        None => format!("proxy/{source}"),
    };
    sources.map(from_root).collect()
}

#[test]
fn every_file_of_the_package_is_there() {
    let assets = assets();
    assert!(assets.len() >= 8, "{assets:?}");
    for asset in assets.iter().filter(|asset| !asset.contains("/target/")) {
        match asset.rsplit_once("/*.") {
            Some((folder, extension)) => {
                let folder = folder.strip_prefix("deploy/").unwrap();
                assert!(!names(folder, extension).is_empty(), "{asset}");
            }
            None => assert!(root().join(asset).is_file(), "{asset}"),
        }
    }
}

#[test]
fn the_scripts_of_deploy_are_scripts() {
    let scripts = ["deb/postinst", "deb/prerm", "deb/postrm", "systemd/hand-over", "image-root"];
    for script in scripts.iter().chain(&["validators", "compose/secrets.sh", "compose/database.sh"])
    {
        let checked = Command::new("sh").arg("-n").arg(root().join("deploy").join(script)).output();
        let checked = checked.unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}
