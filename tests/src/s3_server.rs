//! A server with S3's API in a process of its own (`deploy/s3-server`), for edges that keep documents
//! in a bucket.

use std::collections::BTreeMap;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;

use crate::caller::Protocol;
use crate::edge::Setup;
use crate::port::free;
use crate::process::Process;
use crate::repository::root;

/// Prefix of the objects' names.
const PREFIX: &str = "live/eu";
/// The access key that the server knows.
const ACCESS_KEY: &str = "AKIARAMPARTTESTS0000";
/// Its secret.
const SECRET_KEY: &str = "the-secret-of-the-tests-of-documents-000";

/// The server, with an empty bucket. It ends when it is dropped.
pub struct S3Server {
    process: Process,
    url: String,
}

impl S3Server {
    /// One on a free port.
    pub async fn start() -> Self {
        let port = free().port().to_string();
        let (process, url) = spawn(&port).await;
        Self { process, url }
    }

    /// Kills it and starts it again, empty, at the same address.
    pub async fn restart(&mut self) {
        self.process.kill();
        let port = self.url.rsplit(':').next().unwrap().to_owned();
        (self.process, self.url) = spawn(&port).await;
    }

    /// Has an edge keep its documents there.
    pub fn configure(&self, setup: &mut Setup) {
        setup.unset("documents.folder");
        setup.set("documents.s3_url", format!("s3://documents/{PREFIX}"));
        setup.set("documents.s3_endpoint", &self.url);
        setup.set("documents.s3_access_key", ACCESS_KEY);
        setup.set("documents.s3_secret_key", SECRET_KEY);
    }

    /// The objects of documents by the names that edges give them.
    pub async fn documents(&self) -> BTreeMap<String, Vec<u8>> {
        let request = Protocol::Http1.client().get(format!("{}/_objects", self.url));
        let objects: BTreeMap<String, String> = request.send().await.unwrap().json().await.unwrap();
        let document = |(name, object): (String, String)| {
            let name = name.strip_prefix(PREFIX).unwrap().strip_prefix('/').unwrap().to_owned();
            (!name.starts_with("probe-")).then(|| (name, STANDARD.decode(object).unwrap()))
        };
        objects.into_iter().filter_map(document).collect()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Kills it.
    pub fn kill(&self) {
        self.process.kill();
    }
}

async fn spawn(port: &str) -> (Process, String) {
    let mut command = Command::new(root().join("deploy/s3-server"));
    command.args(["--port", port]);
    let process = Process::spawn(command);
    let url = process.prints("listening ").await;
    (process, url)
}
