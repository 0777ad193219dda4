//! The peers that Rampart is compared with, each with its configuration in `peers/`, on the first core.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::port::free;
use rampart_tests::process::Process;
use ring::hmac;

use crate::environment::Environment;
use crate::generators::Target;

/// The key that signs Envoy's tokens.
const SECRET: &[u8] = b"the secret of the tokens of a peer in a benchmark";
/// Bytes that nginx takes as one word of its configuration.
const NGINX_WORD_MAX: usize = 4_000;

/// A peer that serves the body over TLS.
pub(crate) struct Peer {
    process: Process,
    /// Its address over TLS.
    pub(crate) address: SocketAddr,
}

impl Peer {
    /// Its process; what it forked is below it.
    pub(crate) fn process(&self) -> u32 {
        self.process.id()
    }

    /// GET of anything.
    pub(crate) fn get(&self) -> Target {
        Target::get(self.address, "/", None)
    }

    fn start(environment: &Environment, name: &str, address: SocketAddr, command: Command) -> Self {
        let process = Process::spawn(command);
        let accepts = async || {
            let ended = process.status().map(|status| (status, process.err()));
            assert!(ended.is_none(), "{name} ended: {ended:?}");
            TcpStream::connect(address).ok()
        };
        environment.runtime.block_on(until(name, SOON, accepts));
        Self { process, address }
    }
}

/// A program on the first core.
fn pinned(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(program);
    command
}

/// nginx, and where it takes callbacks over plain HTTP.
pub(crate) fn nginx(environment: &Environment, body: &[u8]) -> (Peer, SocketAddr) {
    nginx_under(environment, body, pinned(Path::new("nginx")))
}

/// The same, run by this command.
pub(crate) fn nginx_under(
    environment: &Environment,
    body: &[u8],
    mut command: Command,
) -> (Peer, SocketAddr) {
    let (tls, plain) = (free(), free());
    let body = String::from_utf8(body.to_vec()).unwrap();
    let fits = body.len() <= NGINX_WORD_MAX && !body.contains(['\'', '$', '\\']);
    assert!(fits, "nginx cannot have this body in its configuration: {body}");
    let values = [
        ("folder", environment.folder.to_str().unwrap()),
        ("tls", &tls.port().to_string()),
        ("plain", &plain.port().to_string()),
        ("body", &body),
    ];
    let settings = environment.write("nginx.conf", include_str!("peers/nginx.conf"), &values);
    command.arg("-c").arg(settings).arg("-p").arg(&environment.folder);
    (Peer::start(environment, "nginx", tls, command), plain)
}

/// HAProxy, with the body in a file.
pub(crate) fn haproxy(environment: &Environment, body: &[u8]) -> Peer {
    fs::write(environment.folder.join("body.json"), body).unwrap();
    let tls = free();
    let values =
        [("folder", environment.folder.to_str().unwrap()), ("tls", &tls.port().to_string())];
    let settings = environment.write("haproxy.cfg", include_str!("peers/haproxy.cfg"), &values);
    let mut command = pinned(Path::new("haproxy"));
    command.args(["-db", "-f"]).arg(settings);
    Peer::start(environment, "HAProxy", tls, command)
}

/// hyper over rustls: this very program with another task.
pub(crate) fn hyper(environment: &Environment, body: &[u8]) -> Peer {
    fs::write(environment.folder.join("body.json"), body).unwrap();
    let tls = free();
    let mut command = pinned(&std::env::current_exe().unwrap());
    command.arg("hyper-peer").arg("--listen").arg(tls.to_string());
    command.arg("--folder").arg(&environment.folder);
    Peer::start(environment, "hyper", tls, command)
}

/// Envoy, and the header with a token that it lets in.
pub(crate) fn envoy(environment: &Environment, body: &[u8], program: &Path) -> (Peer, String) {
    fs::write(environment.folder.join("body.json"), body).unwrap();
    let tls = free();
    let values = [
        ("folder", environment.folder.to_str().unwrap()),
        ("tls", &tls.port().to_string()),
        ("secret", &URL_SAFE_NO_PAD.encode(SECRET)),
    ];
    let settings = environment.write("envoy.yaml", include_str!("peers/envoy.yaml"), &values);
    let mut command = pinned(program);
    command.args(["--concurrency", "1", "--disable-hot-restart", "-l", "error", "-c"]);
    command.arg(settings);
    (Peer::start(environment, "Envoy", tls, command), format!("authorization: Bearer {}", token()))
}

/// A token like those that Rampart gives its clients.
fn token() -> String {
    let claims =
        r#"{"sub":"019c1f5e-7c0a-7d52-9d3f-2b8a4e6f1c70","exp":4102444800,"iat":1772366400}"#;
    let [head, claims] =
        [r#"{"alg":"HS256","typ":"JWT"}"#, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
    let signed = format!("{head}.{claims}");
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}
