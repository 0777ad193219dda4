//! The one place that decides which address a client has: its connection's, or behind a balancer
//! the one that the balancer tells.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use http::HeaderMap;
use ipnet::IpNet;
use pingora_core::protocols::GetSocketDigest as _;
use pingora_core::protocols::l4::stream::Stream as Socket;

use super::proxy_protocol;
use crate::config::{Edge, ProxyProtocol};

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The balancers in front of a listener, and how they tell their clients' addresses; by default there
/// are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientAddresses {
    proxy_protocol: ProxyProtocol,
    forwarded_for: bool,
    trusted: Vec<IpNet>,
}

impl ClientAddresses {
    /// As the public listener is configured.
    pub(crate) fn new(edge: &Edge) -> Self {
        Self {
            proxy_protocol: edge.proxy_protocol,
            forwarded_for: edge.forwarded_for,
            trusted: edge.trusted_proxies.clone(),
        }
    }

    /// The address of a new connection's client; reads the PROXY protocol off `socket`.
    ///
    /// # Errors
    /// When the protocol is wanted and the other end is not a trusted proxy, or does not speak it.
    pub(super) async fn of_connection(&self, socket: &mut Socket) -> io::Result<IpAddr> {
        let peer = peer_of(socket);
        if self.proxy_protocol == ProxyProtocol::Off {
            return Ok(peer);
        }
        if !self.trusts(peer) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "no trusted proxy"));
        }
        let told = proxy_protocol::read_header(socket, self.proxy_protocol).await?;
        Ok(told.unwrap_or(peer))
    }

    /// The address of a request's client on a connection of `peer`: the rightmost one of
    /// `X-Forwarded-For` that is not a trusted proxy. Whoever is none has no say in it.
    pub(crate) fn of_request(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut address = peer;
        if !self.forwarded_for {
            return address;
        }
        let lines = headers.get_all(FORWARDED_FOR);
        let mut hops = lines.iter().rev().flat_map(|line| line.as_bytes().rsplit(|&b| b == b','));
        while self.trusts(address) {
            // An entry that is no address hides those to its left: nobody vouches for them.
            match hops.next().and_then(hop) {
                Some(before) => address = before,
                None => break,
            }
        }
        address
    }

    /// True for a balancer whose connections carry requests of many clients, so that limits of one
    /// client do not hold for them.
    pub(crate) fn is_shared(&self, address: IpAddr) -> bool {
        self.forwarded_for && self.trusts(address)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(&address))
    }
}

/// The other end of a connection; 0.0.0.0 for one that the operating system has forgotten already.
fn peer_of(socket: &Socket) -> IpAddr {
    let digest = socket.get_socket_digest();
    let peer = digest.as_ref().and_then(|digest| digest.peer_addr()?.as_inet());
    peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip().to_canonical())
}

/// An address in `X-Forwarded-For`, with or without a port.
fn hop(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address =
        bare.parse().or_else(|_| text.parse().map(|socket: std::net::SocketAddr| socket.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_request(peer: &str, lines: &[&'static str]) -> String {
        let addresses = ClientAddresses {
            proxy_protocol: ProxyProtocol::Off,
            forwarded_for: true,
            trusted: ["10.0.0.0/8", "2001:db8:ffff::/48"].map(|text| text.parse().unwrap()).into(),
        };
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, http::HeaderValue::from_static(line));
        }
        addresses.of_request(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_rightmost_address_that_is_not_trusted_counts() {
        assert_eq!(of_request("10.0.0.1", &["192.0.2.1, 198.51.100.2, 10.0.0.2"]), "198.51.100.2");
        assert_eq!(
            of_request("10.0.0.1", &["192.0.2.1", "198.51.100.2", "10.0.0.2"]),
            "198.51.100.2"
        );
        assert_eq!(of_request("10.0.0.1", &["192.0.2.1:443"]), "192.0.2.1");
        assert_eq!(of_request("2001:db8:ffff::1", &["[2001:db8::7]:443"]), "2001:db8::7");
        assert_eq!(of_request("10.0.0.1", &["[2001:db8::7]"]), "2001:db8::7");
        assert_eq!(of_request("10.0.0.1", &["::ffff:192.0.2.1"]), "192.0.2.1");
    }

    #[test]
    fn who_is_no_trusted_proxy_has_no_say() {
        assert_eq!(of_request("192.0.2.9", &["198.51.100.2"]), "192.0.2.9");
        assert_eq!(of_request("10.0.0.1", &["203.0.113.5, 192.0.2.9"]), "192.0.2.9");
    }

    #[test]
    fn without_a_sound_entry_the_nearest_address_counts() {
        assert_eq!(of_request("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(of_request("10.0.0.1", &["192.0.2.1, unknown, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(of_request("10.0.0.1", &["192.0.2.1,"]), "10.0.0.1");
        assert_eq!(of_request("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
    }

    #[test]
    fn a_trusted_network_mapped_into_ipv6_is_one_of_ipv4() {
        for network in ["::ffff:10.0.0.0/104", "::ffff:10.0.0.7"] {
            let edge = serde_json::json!({"forwarded_for": true, "trusted_proxies": network});
            let clients = ClientAddresses::new(&serde_json::from_value(edge).unwrap());
            assert!(clients.is_shared([10, 0, 0, 7].into()), "{network}");
        }
    }
}
