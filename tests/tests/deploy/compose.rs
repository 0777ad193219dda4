//! The machines of `compose.yaml`: valid, with every file that they read, and settings that fit.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use rampart_tests::bank::connector;
use rampart_tests::edge::Folder;

use crate::{read, root, validator};

const CONNECTORS: [&str; 3] = ["bank", "evm", "stripe"];

#[test]
fn the_composition_is_valid_and_whole() {
    let printed = validator(&["python", "compose/check.py"]);
    let mut lines = printed.lines();
    let services: BTreeSet<_> = lines.next().unwrap().split(' ').collect();
    let edges = ["balancer", "edge-1", "edge-2", "migrate", "postgres", "prometheus", "valkey"];
    assert_eq!(services, edges.into_iter().chain(CONNECTORS).collect());
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

/// A certificate of so many days for the balancer, signed by itself.
const CERTIFICATE: &str = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -subj /CN=localhost -addext subjectAltName=DNS:balancer -keyout certificate-key -out certificate -days";

#[test]
fn a_certificate_that_ends_soon_is_made_anew() {
    let secrets = root().join("deploy/compose/secrets.sh");
    for (days, is_kept) in [(29, false), (31, true)] {
        let folder = Folder::make();
        let mut made = Command::new("sh");
        made.args(["-c", &format!("{CERTIFICATE} {days}")]).current_dir(folder.path());
        assert!(made.output().unwrap().status.success());
        let read = || fs::read(folder.path().join("certificate")).unwrap();
        let before = read();
        assert!(Command::new(&secrets).arg(folder.path()).status().unwrap().success());
        assert_eq!(read() == before, is_kept, "{days} days");
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

#[test]
fn the_connectors_read_their_settings_and_look_for_the_balancer() {
    let folder = Folder::make();
    let secrets = root().join("deploy/compose/secrets.sh");
    assert!(Command::new(&secrets).arg(folder.path()).status().unwrap().success());
    let place = folder.path().to_str().unwrap();
    for name in CONNECTORS {
        let settings = read(&format!("compose/connectors/{name}.toml"));
        assert!(settings.contains("\"https://balancer:9465\""), "{settings}");
        // What nothing makes: the connector's token, keys of its provider.
        for secret in settings.split("/run/secrets/").skip(1) {
            let secret = folder.path().join(secret.split('"').next().unwrap());
            if !secret.exists() {
                fs::write(&secret, "01".repeat(32)).unwrap();
            }
        }
        fs::create_dir(folder.path().join(format!("rampart-connector-{name}"))).unwrap();
        let settings = settings
            .replace("/run/secrets", place)
            .replace("/var/lib", place)
            .replace("//balancer:9465", "//127.0.0.1:1");
        let file = folder.path().join("connector.toml");
        fs::write(&file, settings).unwrap();
        let mut program = Command::new(connector(name));
        let checked = program.arg("--config").arg(&file).arg("--check").output().unwrap();
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(said.starts_with("the edge does not answer"), "{name}: {said}");
    }
}
