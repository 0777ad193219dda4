//! Load generators of others: wrk for HTTP/1.1, h2load for HTTP/2, pgbench for Postgres.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Connections of wrk.
const HTTP1_CONNECTIONS: usize = 64;
/// Connections of h2load, and requests at a time on each.
const HTTP2_CONNECTIONS: usize = 8;
const HTTP2_STREAMS: usize = 8;

/// Requests to one place.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// `https` or `http`.
    pub(crate) scheme: &'static str,
    /// The server.
    pub(crate) address: SocketAddr,
    /// Path and query.
    pub(crate) path: String,
    /// Header that carries the credential, as `name: value`.
    pub(crate) credential: Option<String>,
    /// A script of wrk that makes the requests over HTTP/1.1, where they are no plain GET.
    pub(crate) script: Option<PathBuf>,
    /// The addresses that each connection of HTTP/2 asks for in turn, where there are several.
    pub(crate) list: Option<PathBuf>,
    /// The core of the generator, when everybody has one.
    pub(crate) core: Option<usize>,
    /// Connections over HTTP/1.1, each with one request at a time.
    pub(crate) connections: usize,
}

impl Target {
    /// GET of a path over TLS from the second core.
    pub(crate) fn get(address: SocketAddr, path: &str, credential: Option<String>) -> Self {
        Self {
            scheme: "https",
            address,
            path: path.to_owned(),
            credential,
            script: None,
            list: None,
            core: Some(1),
            connections: HTTP1_CONNECTIONS,
        }
    }

    /// The same with requests made by a script of wrk.
    pub(crate) fn scripted(self, script: &Path) -> Self {
        Self { script: Some(script.to_owned()), ..self }
    }

    /// The same with addresses from a list, over HTTP/2.
    pub(crate) fn listed(self, list: &Path) -> Self {
        Self { list: Some(list.to_owned()), ..self }
    }

    /// From any core.
    pub(crate) fn anywhere(self) -> Self {
        Self { core: None, ..self }
    }

    fn command(&self, program: &str) -> Command {
        match self.core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string(), program]);
                command
            }
            None => Command::new(program),
        }
    }

    fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.address, self.path)
    }

    /// Answers over HTTP/1.1, and the seconds they took. Panics when one is no success.
    pub(crate) fn http1(&self, time: Duration) -> (f64, f64) {
        let mut command = self.command("wrk");
        let connections = self.connections.to_string();
        command.args(["-t1", "-c", &connections, "-d", &format!("{}s", seconds(time))]);
        if let Some(credential) = &self.credential {
            command.args(["-H", credential]);
        }
        if let Some(script) = &self.script {
            command.arg("-s").arg(script);
        }
        let said = run(command.arg(self.url()));
        let clean = !said.contains("Non-2xx") && !said.contains("Socket errors");
        assert!(clean, "{}: {said}", self.url());
        let line = said.lines().find(|line| line.contains(" requests in ")).expect("wrk counts");
        let mut words = line.split_whitespace();
        let count = words.next().and_then(|word| word.parse().ok()).expect("a count");
        let took = words.find_map(|word| word.strip_suffix("s,")?.parse().ok());
        (count, took.expect("a time"))
    }

    /// The same over HTTP/2.
    pub(crate) fn http2(&self, time: Duration) -> (f64, f64) {
        let mut command = self.command("h2load");
        let (connections, streams) = (HTTP2_CONNECTIONS.to_string(), HTTP2_STREAMS.to_string());
        command.args(["-t1", "-c", &connections, "-m", &streams]);
        let seconds = seconds(time);
        command.args(["-D", &seconds.to_string()]);
        if let Some(credential) = &self.credential {
            command.args(["-H", credential]);
        }
        match &self.list {
            Some(list) => command.arg("-i").arg(list),
            None => command.arg(self.url()),
        };
        let said = run(&mut command);
        let line = said.lines().find(|line| line.starts_with("requests:")).expect("h2load counts");
        let number = |what: &str| {
            let mut parts = line.trim_start_matches("requests:").split(',');
            let count = parts.find_map(|part| part.trim().strip_suffix(what)?.trim().parse().ok());
            count.unwrap_or(0.0)
        };
        let refused = number("failed") + number("errored");
        let done = number("succeeded");
        assert!(refused == 0.0 && done > 0.0, "{}: {said}", self.url());
        (done, Duration::from_secs(seconds).as_secs_f64())
    }
}

/// A script of pgbench against a database.
#[derive(Clone, Debug)]
pub(crate) struct Pgbench {
    /// Connection string.
    pub(crate) database: String,
    /// The script.
    pub(crate) script: PathBuf,
    /// Folder of its logs.
    pub(crate) folder: PathBuf,
}

impl Pgbench {
    /// Transactions a second over so many connections.
    pub(crate) fn rate(&self, connections: usize, time: Duration) -> f64 {
        let said = run(&mut self.command(connections, time));
        let line = said.lines().find(|line| line.starts_with("tps = ")).expect("pgbench counts");
        line.split(' ').nth(2).and_then(|word| word.parse().ok()).expect("a rate")
    }

    /// Seconds of each transaction over one connection.
    pub(crate) fn latencies(&self, time: Duration) -> Vec<f64> {
        let prefix = self.folder.join("pgbench");
        let mut command = self.command(1, time);
        command.arg("--log").arg(format!("--log-prefix={}", prefix.display()));
        run(&mut command);
        let log = |name: &str| name.starts_with("pgbench.");
        let mut latencies = Vec::new();
        for entry in std::fs::read_dir(&self.folder).unwrap().map_while(Result::ok) {
            if entry.file_name().to_str().is_some_and(log) {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                let third = |line: &str| line.split(' ').nth(2)?.parse::<f64>().ok();
                latencies.extend(text.lines().filter_map(third).map(|micros| micros / 1e6));
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        latencies
    }

    fn command(&self, connections: usize, time: Duration) -> Command {
        let mut command = Command::new(postgres_program("pgbench"));
        let threads = if connections > 1 { "2" } else { "1" };
        command.args(["-n", "-M", "prepared", "-j", threads, "-c", &connections.to_string()]);
        command.args(["-T", &seconds(time).to_string(), "-f"]).arg(&self.script);
        command.arg(&self.database);
        command
    }
}

/// A program of Postgres: as Debian has it on the path, or in the folder of its version.
fn postgres_program(name: &str) -> PathBuf {
    let chosen = std::env::var_os("RAMPART_PG_BIN").map(|folder| PathBuf::from(folder).join(name));
    chosen.filter(|path| path.is_file()).unwrap_or_else(|| name.into())
}

/// Whole seconds, one at least: none of these programs takes less.
fn seconds(time: Duration) -> u64 {
    time.as_secs().max(1)
}

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| {
        panic!("{:?} cannot be run: {error}; deploy/bench-setup installs it", command.get_program())
    });
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let err = String::from_utf8_lossy(&done.stderr);
    // pgbench says on standard error which of its clients gave up, and ends well.
    let well = done.status.success() && !err.contains("aborted");
    assert!(well, "{command:?} failed: {said}{err}");
    said
}
