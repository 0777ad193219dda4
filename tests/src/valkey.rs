//! Valkey, or Redis where that is what the system has, for edges that share their rates.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::deadline::{SOON, until};
use crate::edge::Folder;
use crate::port::free;
use crate::process::Process;

/// A running server. Dropping it ends it.
pub struct Valkey {
    process: Process,
    address: SocketAddr,
    arguments: Vec<String>,
    folder: Folder,
}

impl Valkey {
    /// Starts one on a free port of loopback that keeps nothing, with more arguments.
    ///
    /// # Panics
    /// When none is installed: `deploy/setup --test` does so.
    pub async fn start(arguments: &[&str]) -> Self {
        let (address, folder) = (free(), Folder::make());
        let arguments: Vec<_> = arguments.iter().map(|&text| text.to_owned()).collect();
        let process = spawn(address, folder.path(), &arguments);
        let server = Self { process, address, arguments, folder };
        server.answers().await;
        server
    }

    /// Kills it and starts it again, empty, at the same address.
    pub async fn restart(&mut self) {
        self.process.kill();
        self.process = spawn(self.address, self.folder.path(), &self.arguments);
        self.answers().await;
    }

    async fn answers(&self) {
        until("the server answers", SOON, async || {
            assert!(self.process.status().is_none(), "{:?}", self.process.out());
            std::net::TcpStream::connect(self.address).ok()
        })
        .await;
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
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

fn spawn(address: SocketAddr, folder: &Path, arguments: &[String]) -> Process {
    let mut command = Command::new(program());
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(folder).args(arguments);
    Process::spawn(command)
}

/// The program; a folder for servers is not on everybody's path.
fn program() -> PathBuf {
    let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin"];
    let names = ["valkey-server", "redis-server"];
    let programs = names.iter().flat_map(|name| folders.map(|folder| Path::new(folder).join(name)));
    let found = { programs }.find(|program| program.is_file());
    found.expect("`deploy/setup --test` installs Valkey or Redis")
}
