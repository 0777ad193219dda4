//! The Debian package: every file that it takes is there, and its scripts are scripts.

use std::collections::BTreeSet;
use std::process::Command;

use crate::prometheus::alerts;
use crate::{names, read, root};

/// The package's folder of guides.
const GUIDES: &str = "usr/share/doc/rampart/";
/// The files and folders that the README leads to in the repository alone.
const SOURCES: [&str; 5] = ["LICENSE", "migrations/", "plugins/guests/", "tests/", "wit/"];

/// The package's files, as `proxy/Cargo.toml` lists them: each from the root, with its folder there.
fn packed() -> Vec<(String, String)> {
    let manifest = std::fs::read_to_string(root().join("proxy/Cargo.toml")).unwrap();
    let package = manifest.split("[package.metadata.deb]").nth(1).unwrap();
    let assets = package.split("assets = [").nth(1).unwrap().split("\n]").next().unwrap();
    let from_root = |source: &str| match source.strip_prefix("../") {
        Some(path) => path.to_owned(),
        None => format!("proxy/{source}"),
    };
    let lines = assets.lines().filter_map(|line| line.trim().strip_prefix("[\""));
    let files = lines.filter_map(|line| {
        let mut texts = line.split('"').step_by(2);
        Some((from_root(texts.next()?), texts.next()?.to_owned()))
    });
    files.collect()
}

/// The sources of the package's files, from the root.
fn assets() -> Vec<String> {
    packed().into_iter().map(|(source, _)| source).collect()
}

/// The guides of the package and what stands beside them, from the root. They have the same places
/// in the package.
fn guides() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (source, folder) in packed() {
        let (own, name) = source.rsplit_once('/').unwrap_or(("", source.as_str()));
        let Some(place) = folder.strip_prefix(GUIDES) else { continue };
        if name.starts_with("LICENSE") {
            continue;
        }
        assert_eq!(place.trim_end_matches('/'), own, "{source} has another place");
        let Some(extension) = name.strip_prefix("*.") else {
            found.insert(source);
            continue;
        };
        let names = names(own.strip_prefix("deploy/").unwrap(), extension);
        found.extend(names.iter().map(|name| format!("{own}/{name}.{extension}")));
    }
    found
}

/// The place from the root that a guide's link leads to.
fn target(guide: &str, link: &str) -> String {
    let mut path: Vec<_> = guide.split('/').collect();
    path.pop();
    for part in link.split('/') {
        if part == ".." {
            path.pop();
        } else {
            path.push(part);
        }
    }
    path.join("/")
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

/// Holds that every link of these guides leads to one of the files beside them.
pub(crate) fn follow_links(files: &BTreeSet<String>) {
    for guide in files.iter().filter(|file| file.contains(".md")) {
        let text = std::fs::read_to_string(root().join(guide)).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| !link.is_empty() && !link.contains(':')) {
            let leads_to = target(guide, link);
            let of_sources = SOURCES.iter().any(|source| leads_to.starts_with(source));
            let is_there = files.contains(&leads_to) || (guide == "README.md" && of_sources);
            assert!(is_there, "{guide}: {link}");
        }
    }
}

#[test]
fn what_a_guide_leads_to_is_in_the_package() {
    follow_links(&guides());
    for page in alerts() {
        let text = read(&format!("runbooks/{page}.md"));
        assert!(!text.contains("`deploy/"), "{page} names a path of the repository");
    }
}

/// The texts between quotes of the list under this name.
fn listed(file: &str, name: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let list = text.split(&format!("{name} = [")).nth(1).unwrap().split("\n]").next().unwrap();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn package_and_images_have_the_licences_of_their_crates() {
    let file = "usr/share/doc/rampart/LICENSE-third-party";
    let package = std::fs::read_to_string(root().join("proxy/Cargo.toml")).unwrap();
    assert!(package.contains("\"target/release/LICENSE-third-party\", \"usr/share/doc/rampart/\""));
    for image in ["Containerfile", "Containerfile.connectors"] {
        let text = std::fs::read_to_string(root().join("deploy").join(image)).unwrap();
        assert!(text.contains(&format!("RUN deploy/licences /image/{file} ")), "{image}");
        assert!(text.contains("podman build --format docker "), "{image} keeps its health check");
    }
    let script = Command::new("sh").arg("-n").arg(root().join("deploy/licences")).output().unwrap();
    assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
    assert_eq!(listed("deploy/about.toml", "accepted"), listed(".deny.toml", "allow"));
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
