//! Pingora binds after the services have started, waits half a minute for an address that is taken
//! and panics then, and does not say which port it got: sockets are bound here, or inherited.

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd as _;

use chrono::SecondsFormat;
use pingora_core::protocols::SocketDigest;
use pingora_core::server::Fds;
use rampart_core::platform::clock::Clock;
use serde_json::json;

use crate::config::{Config, Connectors, LogFormat};
use crate::startup_error::{Context as _, StartupError};

/// A bound socket in the table that Pingora's services take theirs from.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// Purpose and configured address; the same in the process that inherits it.
    pub(super) name: String,
    /// Its address, the port included.
    pub(crate) address: SocketAddr,
}

/// The addresses of all sockets.
#[derive(Clone, Debug)]
pub(crate) struct Sockets {
    /// Public; at least one.
    pub(crate) edge: Vec<Bound>,
    /// For operators.
    pub(crate) admin: Bound,
    /// For connectors; `None` where the default address is taken.
    pub(crate) connectors: Option<Bound>,
    /// For metrics and health.
    pub(crate) ops: Bound,
}

impl Sockets {
    /// Takes what is configured out of `fds`, and binds the rest into it. What was inherited and is
    /// not configured any more is closed.
    ///
    /// # Errors
    /// One sentence: which address is taken or not ours.
    pub(super) fn open(config: &Config, fds: &mut Fds) -> Result<Self, StartupError> {
        let edge = config.edge.listen.iter();
        let sockets = Self {
            edge: edge.map(|address| open("edge", *address, fds)).collect::<Result<_, _>>()?,
            admin: open("admin", config.admin.listen, fds)?,
            connectors: open_connectors(&config.connectors, fds)?,
            ops: open("ops", config.ops.listen, fds)?,
        };
        let private = [&sockets.admin, &sockets.ops].into_iter().chain(&sockets.connectors);
        let all = sockets.edge.iter().chain(private);
        fds.close_unclaimed(&all.map(|bound| bound.name.clone()).collect::<HashSet<_>>());
        Ok(sockets)
    }

    /// The addresses in one line that a program can read, in the form of the log's lines among which
    /// it stands.
    pub(super) fn line(&self, format: LogFormat) -> String {
        let edge: Vec<String> = self.edge.iter().map(|bound| bound.address.to_string()).collect();
        let (admin, ops) = (self.admin.address, self.ops.address);
        let connectors = self.connectors.as_ref().map(|bound| bound.address);
        match format {
            LogFormat::Json => {
                let time = Clock::system().now().to_rfc3339_opts(SecondsFormat::Micros, true);
                let line = json!({"time": time, "message": "listening", "edge": edge,
                    "admin": admin, "ops": ops, "connectors": connectors});
                line.to_string()
            }
            LogFormat::Text => {
                let edge = edge.join(",");
                let connectors = connectors.map(|address| format!(" connectors={address}"));
                let connectors = connectors.unwrap_or_default();
                format!("listening edge={edge} admin={admin} ops={ops}{connectors}")
            }
        }
    }

    /// The address of the first public one as a URL, for who configured none.
    pub(crate) fn public_url(&self) -> String {
        self.edge.first().map_or_else(String::new, |first| format!("https://{}", first.address))
    }
}

/// The connectors' socket. Several edges on one machine have the same default: the first one takes it.
fn open_connectors(config: &Connectors, fds: &mut Fds) -> Result<Option<Bound>, StartupError> {
    match open("connectors", config.address(), fds) {
        Err(error) if config.listen.is_none() => {
            tracing::warn!(%error, "connectors cannot reach this edge: set 'connectors.listen'");
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

fn open(purpose: &str, configured: SocketAddr, fds: &mut Fds) -> Result<Bound, StartupError> {
    let name = format!("{purpose}={configured}");
    let address = match fds.get(&name) {
        Some(fd) => {
            let digest = SocketDigest::from_raw_fd(*fd);
            let address = digest.local_addr().and_then(|address| address.as_inet()).copied();
            address.ok_or_else(|| io::ErrorKind::NotConnected.into())
        }
        None => bind(&name, configured, fds),
    };
    let address =
        address.context(format_args!("{purpose}.listen = {configured} cannot be used"))?;
    Ok(Bound { address, name })
}

fn bind(name: &str, configured: SocketAddr, fds: &mut Fds) -> io::Result<SocketAddr> {
    let socket = TcpListener::bind(configured)?;
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    fds.add(name.to_owned(), socket.into_raw_fd());
    Ok(address)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_addresses_are_told_in_the_form_of_the_log() {
        let bound =
            |port: u16| Bound { name: String::new(), address: ([127, 0, 0, 1], port).into() };
        let sockets = Sockets {
            edge: vec![bound(1), bound(2)],
            admin: bound(3),
            connectors: Some(bound(4)),
            ops: bound(5),
        };
        let text = "listening edge=127.0.0.1:1,127.0.0.1:2 admin=127.0.0.1:3 ops=127.0.0.1:5 \
                    connectors=127.0.0.1:4";
        assert_eq!(sockets.line(LogFormat::Text), text);
        let line: Value = serde_json::from_str(&sockets.line(LogFormat::Json)).unwrap();
        assert_eq!(line["message"], "listening");
        assert_eq!(line["edge"], json!(["127.0.0.1:1", "127.0.0.1:2"]));
        assert_eq!(line["connectors"], "127.0.0.1:4");
        let alone = Sockets { connectors: None, ..sockets };
        assert!(alone.line(LogFormat::Text).ends_with("ops=127.0.0.1:5"));
    }
}
