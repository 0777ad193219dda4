//! The machines of `compose.yaml`: valid, with every file that they read, and settings that fit.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use rampart_tests::edge::Folder;

use crate::{root, validator};

#[test]
fn the_composition_is_valid_and_whole() {
    let printed = validator(&["python", "compose/check.py"]);
    let mut lines = printed.lines();
    let services: BTreeSet<_> = lines.next().unwrap().split(' ').collect();
    let wanted = ["balancer", "edge-1", "edge-2", "migrate", "postgres", "prometheus", "valkey"];
    assert_eq!(services, BTreeSet::from(wanted));
    validator(&["promtool", "check", "config", "--syntax-only", "compose/prometheus.yaml"]);

    let folder = Folder::make();
    let secrets = root().join("deploy/compose/secrets.sh");
    for _ in 0..2 {
        let made = Command::new(&secrets).arg(folder.path()).status().unwrap();
        assert!(made.success());
    }
    for secret in lines.next().unwrap().split(' ') {
        let text = fs::read_to_string(folder.path().join(secret)).unwrap();
        assert!(!text.trim().is_empty(), "{secret}");
    }
}

#[test]
fn the_balancer_reads_its_settings() {
    let haproxy = Command::new("sh")
        .args(["-c", "PATH=$PATH:/usr/sbin haproxy -c -f deploy/compose/haproxy.cfg"])
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&haproxy.stderr);
    assert!(haproxy.status.success(), "{said}");
    // It knows the edges only in their network.
    let unexpected = said.lines().filter(|line| line.starts_with("[WARNING]"));
    let unexpected: Vec<_> =
        unexpected.filter(|line| !line.contains("could not resolve")).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
}
