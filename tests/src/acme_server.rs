//! Pebble, an ACME server for tests, with a name server that leads every name to loopback.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::json;

use crate::certificate::CERTIFICATE;
use crate::deadline::{SOON, until};
use crate::edge::Folder;
use crate::port::free;
use crate::process::Process;

/// A running authority. Dropping it ends it.
pub struct AcmeServer {
    process: Process,
    _names: Process,
    _folder: Folder,
}

impl AcmeServer {
    /// Starts one at an address of loopback that looks for its challenges at port `of_edges`.
    ///
    /// # Panics
    /// When none is installed: `deploy/setup --test` does so.
    pub async fn start(address: SocketAddr, of_edges: u16) -> Self {
        let (folder, management, dns) = (Folder::make(), free(), free());
        CERTIFICATE.write(folder.path());
        let settings = json!({"pebble": {
            "listenAddress": address,
            "managementListenAddress": management,
            "certificate": folder.path().join("cert.pem"),
            "privateKey": folder.path().join("key.pem"),
            "httpPort": 1,
            "tlsPort": of_edges,
        }});
        let path = folder.path().join("pebble.json");
        std::fs::write(&path, settings.to_string()).unwrap();
        let mut names = Command::new("/usr/bin/pebble-challtestsrv");
        names.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""]);
        names.arg("-dns01").arg(dns.to_string());
        names.arg("-management").arg(free().to_string());
        let names = Process::spawn(names);
        let mut pebble = Command::new("/usr/bin/pebble");
        pebble.arg("-config").arg(path).args(["-dnsserver", &dns.to_string()]);
        // It would look for a challenge up to 15 s after it was told to.
        pebble.env("PEBBLE_VA_NOSLEEP", "1");
        let process = Process::spawn(pebble);
        for server in [address, dns] {
            until("the authority answers", SOON, async || {
                assert!(process.status().is_none(), "{:?}", process.err());
                std::net::TcpStream::connect(server).ok()
            })
            .await;
        }
        Self { process, _names: names, _folder: folder }
    }

    /// The URL of the directory of one at an address.
    pub fn directory(address: SocketAddr) -> String {
        format!("https://{address}/dir")
    }

    /// Kills it.
    pub fn kill(&self) {
        self.process.kill();
    }
}
