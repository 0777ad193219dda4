//! The connections of a private listener, which few addresses cannot take from others.

use std::net::{Ipv4Addr, SocketAddr};

use futures::future::join_all;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::wire::Wire;
use tokio::net::TcpStream;

/// Connections that an address may have of a private listener's 256.
const OF_ADDRESS: usize = 96;
const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

/// Opens connections of this address, which stay silent, until one more is refused.
async fn fill(own: Ipv4Addr, listener: SocketAddr) -> Vec<Wire<TcpStream>> {
    let opening = (0..OF_ADDRESS).map(|_| Wire::plain_from(own, listener));
    let mut silent = join_all(opening).await;
    // One that came before a silent one was counted had that one refused: another takes its place.
    until("one more connection is refused", SOON, async || {
        silent.push(Wire::plain_from(own, listener).await);
        Wire::plain_from(own, listener).await.exchange(REQUEST).await.is_none().then_some(())
    })
    .await;
    silent
}

#[tokio::test]
async fn few_addresses_cannot_take_the_connections_of_a_private_listener() {
    let edge = Edge::start().await;
    let mut silent = Vec::new();
    for last in [2, 3] {
        silent.push(fill(Ipv4Addr::new(127, 0, 0, last), edge.ops).await);
        for other in [Ipv4Addr::new(127, 0, 0, 4), Ipv4Addr::new(127, 0, 1, 1)] {
            let mut other = Wire::plain_from(other, edge.ops).await;
            assert_eq!(other.exchange(REQUEST).await.unwrap().status(), 200);
        }
    }
    drop(silent);
}

#[tokio::test]
async fn addresses_of_few_networks_cannot_take_the_connections_of_a_private_listener() {
    let edge = Edge::start().await;
    let mut silent = Vec::new();
    for network in [1, 2, 3] {
        silent.push(fill(Ipv4Addr::new(127, 0, network, 1), edge.ops).await);
        let mut other = Wire::plain_from(Ipv4Addr::new(127, 0, 4, 1), edge.ops).await;
        assert_eq!(other.exchange(REQUEST).await.unwrap().status(), 200, "beside {network}");
    }
    drop(silent);
}
