//! A network between an edge and Postgres that can fail: a TCP relay in the test.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The state of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Everything arrives.
    Up,
    /// Nothing arrives, and nobody is told. Connections from before never come back.
    BlackHole,
    /// Connections are closed as soon as they are made.
    Refusing,
}

/// The relay. It ends with this.
pub struct PostgresLink {
    address: SocketAddr,
    state: Arc<watch::Sender<Link>>,
    _relay: JoinSet<()>,
}

impl PostgresLink {
    /// A relay to Postgres at this address, up.
    pub async fn to(postgres: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(watch::Sender::new(Link::Up));
        let mut relay = JoinSet::new();
        relay.spawn(accept(listener, postgres, Arc::clone(&state)));
        Self { address, state, _relay: relay }
    }

    /// Its own address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the state of the network.
    pub fn set(&self, link: Link) {
        self.state.send_replace(link);
    }
}

async fn accept(listener: TcpListener, postgres: SocketAddr, state: Arc<watch::Sender<Link>>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        connections.spawn(relay(client, postgres, state.subscribe()));
        while connections.try_join_next().is_some() {}
    }
}

async fn relay(mut client: TcpStream, postgres: SocketAddr, mut state: watch::Receiver<Link>) {
    let at_first = *state.borrow_and_update();
    if at_first == Link::Up
        && let Ok(mut server) = TcpStream::connect(postgres).await
    {
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut server) => return,
            _ = state.changed() => {}
        }
    }
    if *state.borrow() == Link::BlackHole {
        // Both ends stay open for as long as the relay.
        std::future::pending::<()>().await;
    }
}
