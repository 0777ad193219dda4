//! The listening sockets: bound here, or inherited from the process before.

use std::io;
use std::net::{SocketAddr, TcpListener};

use crate::config::Config;
use crate::serve::Fault;
use crate::upgrade::Named;

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Purpose and configured address; the same in the process that inherits it.
    name: String,
    /// Where it really listens.
    pub(crate) address: SocketAddr,
    /// The socket, not blocking.
    pub(crate) socket: TcpListener,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Public; at least one.
    pub(crate) edge: Vec<Opened>,
    /// For operators.
    pub(crate) admin: Opened,
    /// For metrics and health.
    pub(crate) ops: Opened,
}

impl Sockets {
    /// Takes what is configured out of `inherited`, and binds the rest. What was inherited and is
    /// not configured any more is closed.
    ///
    /// # Errors
    /// One sentence: which address is taken or not ours.
    pub(crate) fn open(config: &Config, mut inherited: Vec<Named>) -> Result<Self, Fault> {
        let edge = config.edge.listen.iter();
        Ok(Self {
            edge: edge
                .map(|address| open("edge", *address, &mut inherited))
                .collect::<Result<_, _>>()?,
            admin: open("admin", config.admin.listen, &mut inherited)?,
            ops: open("ops", config.ops.listen, &mut inherited)?,
        })
    }

    /// Further handles of the same sockets, to hand over later.
    ///
    /// # Errors
    /// When there are no file descriptors left.
    pub(crate) fn copies(&self) -> io::Result<Vec<Named>> {
        let all = self.edge.iter().chain([&self.admin, &self.ops]);
        all.map(|opened| Ok((opened.name.clone(), opened.socket.try_clone()?))).collect()
    }

    /// The address of the first public one as a URL, for who configured none.
    pub(crate) fn public_url(&self) -> String {
        self.edge.first().map_or_else(String::new, |first| format!("https://{}", first.address))
    }
}

fn open(
    purpose: &str,
    configured: SocketAddr,
    inherited: &mut Vec<Named>,
) -> Result<Opened, Fault> {
    let name = format!("{purpose}={configured}");
    let socket = match inherited.iter().position(|(known, _)| *known == name) {
        Some(index) => Ok(inherited.swap_remove(index).1),
        None => TcpListener::bind(configured),
    };
    let opened = socket.and_then(|socket| {
        socket.set_nonblocking(true)?;
        Ok(Opened { address: socket.local_addr()?, name, socket })
    });
    opened.map_err(|e| Fault::new(&format!("{purpose}.listen = {configured} is not free"), &e))
}
