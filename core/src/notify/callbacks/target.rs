//! Where a delivery may go. A partner writes the URL, so the edge must not become its way into
//! the networks that the edge can reach (OWASP API7, server-side request forgery).
//!
//! The URL is judged before each attempt, and the addresses of its name when the connection is
//! made: the very addresses that were judged are connected to, so that a name that changes its
//! answer (DNS rebinding) gains nothing. Redirects are not followed (`outbound.rs`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// How far a client's deliveries may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Public addresses, by `https`: live clients.
    Public,
    /// The same, and loopback by `http` too: test clients, whose developers have no public host.
    PublicOrLoopback,
}

/// The target is one that no delivery may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forbidden;

impl std::fmt::Display for Forbidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the target is not a public one")
    }
}

impl std::error::Error for Forbidden {}

/// The one name of loopback. Others that resolve to it are taken for what they look like: a try.
const LOOPBACK_NAME: &str = "localhost";

/// Ports below are reserved for services of the system (RFC 6335); of these a delivery may go to
/// HTTP's own alone. Above, partners may serve where they like.
const FREE_PORTS_START: u16 = 1_024;
const HTTP_PORTS: [u16; 2] = [80, 443];

/// Judges all of a URL that needs no name resolved.
///
/// # Errors
/// [`Forbidden`] for another scheme, a user name, a reserved port or a literal address that is out
/// of reach. What a browser would read as an address is one (`0x7f.1`, `2130706433`).
pub fn judge(text: &str, reach: Reach) -> Result<Url, Forbidden> {
    let url = Url::parse(text).map_err(|_| Forbidden)?;
    let loopback = match url.host().ok_or(Forbidden)? {
        Host::Domain(name) => name == LOOPBACK_NAME,
        Host::Ipv4(address) => judge_literal(address.into(), reach)?,
        Host::Ipv6(address) => judge_literal(address.into(), reach)?,
    };
    let within_reach = !loopback || reach == Reach::PublicOrLoopback;
    let scheme = match url.scheme() {
        "https" => true,
        "http" => loopback,
        _ => false,
    };
    let named = !url.username().is_empty() || url.password().is_some();
    let port = url.port_or_known_default().ok_or(Forbidden)?;
    let port = port >= FREE_PORTS_START || HTTP_PORTS.contains(&port);
    if within_reach && scheme && port && !named { Ok(url) } else { Err(Forbidden) }
}

/// Whether the address is loopback, if a delivery may go to it at all.
fn judge_literal(address: IpAddr, reach: Reach) -> Result<bool, Forbidden> {
    let loopback = address.is_loopback();
    if is_public(address) || (loopback && reach == Reach::PublicOrLoopback) {
        Ok(loopback)
    } else {
        Err(Forbidden)
    }
}

/// IPv4 networks that are not the public Internet (RFC 6890 and its registry), and one address
/// that is public in form but a cloud's own service.
const CLOSED_V4: [Ipv4Net; 17] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    // Link-local, with the metadata address of most clouds in it.
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    // Relays of 6to4.
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    // Multicast.
    v4(224, 0, 0, 0, 4),
    // Reserved, with the broadcast address in it.
    v4(240, 0, 0, 0, 4),
    v4(255, 255, 255, 255, 32),
    // A cloud's channel to its virtual machines.
    v4(168, 63, 129, 16, 32),
];

/// The only IPv6 network that is global unicast. What wraps an IPv4 address is outside of it
/// (`::ffff:0:0/96`, `64:ff9b::/96`) or closed below, so no private address hides in another.
const OPEN_V6: Ipv6Net = v6([0x2000, 0, 0], 3);

/// Parts of [`OPEN_V6`] that are not the public Internet.
const CLOSED_V6: [Ipv6Net; 4] = [
    // Protocol assignments, with Teredo and ORCHID in it.
    v6([0x2001, 0, 0], 23),
    v6([0x2001, 0xdb8, 0], 32),
    // 6to4.
    v6([0x2002, 0, 0], 16),
    v6([0x3fff, 0, 0], 20),
];

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(head: [u16; 3], prefix: u8) -> Ipv6Net {
    let [a, b, c] = head;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

/// Whether the address is one of the public Internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !CLOSED_V4.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => {
            OPEN_V6.contains(&address) && !CLOSED_V6.iter().any(|net| net.contains(&address))
        }
    }
}

/// Resolves a name once and gives out its addresses only if every one of them is within reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuardedResolver {
    pub(super) reach: Reach,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.reach;
        Box::pin(async move {
            // Port 0 stands for the URL's own.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found = found.collect::<Vec<_>>();
            admit(name.as_str(), &found, reach)?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Refuses a name unless a delivery may go to all of its addresses.
fn admit(name: &str, found: &[SocketAddr], reach: Reach) -> Result<(), Forbidden> {
    let loopback = name == LOOPBACK_NAME && reach == Reach::PublicOrLoopback;
    let fits = |address: &SocketAddr| {
        if loopback { address.ip().is_loopback() } else { is_public(address.ip()) }
    };
    if found.iter().all(fits) { Ok(()) } else { Err(Forbidden) }
}

#[cfg(test)]
mod tests {
    use ipnet::IpNet;
    use proptest::prelude::*;

    use super::*;

    fn live(text: &str) -> bool {
        judge(text, Reach::Public).is_ok()
    }

    fn test(text: &str) -> bool {
        judge(text, Reach::PublicOrLoopback).is_ok()
    }

    #[test]
    fn public_https_is_within_everybodys_reach() {
        for text in [
            "https://shop.example/hook?a=b",
            "https://shop.example:8443/",
            "https://93.184.216.34/",
            "https://[2606:4700:4700::1111]/",
            "https://good.example/#@127.0.0.1/",
            "https://good.example/?@10.0.0.1",
        ] {
            assert!(live(text) && test(text), "{text}");
        }
    }

    #[test]
    fn loopback_is_for_test_clients() {
        for text in [
            "http://localhost:8080/hook",
            "http://127.0.0.1/",
            "http://127.9.9.9:4000/",
            "http://[::1]:4000/",
            "https://localhost:8443/",
            "http://0x7f.1:8080/",
            "http://2130706433/",
        ] {
            assert!(test(text) && !live(text), "{text}");
        }
    }

    #[test]
    fn every_form_of_a_closed_address_is_nobodys() {
        for host in [
            "0",
            "0.0.0.0",
            "10.0.0.1",
            "10.1",
            "012.0.0.1",
            "0xa.0.0.1",
            "167772161",
            "100.64.0.1",
            "100.100.100.200",
            "169.254.169.254",
            "0xa9fea9fe",
            "169.254.43518",
            "168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "192.168.1.1.",
            "１９２.１６８.１.１",
            "192。168。1。1",
            "224.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:8.8.8.8]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[2001::1]",
            "[2001:db8::1]",
            "[fc00::1]",
            "[fd00:ec2::254]",
            "[fe80::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[100::1]",
        ] {
            for scheme in ["http", "https"] {
                let text = format!("{scheme}://{host}/latest/meta-data");
                assert!(!live(&text) && !test(&text), "{text}");
            }
        }
    }

    #[test]
    fn other_schemes_names_and_reserved_ports_are_nobodys() {
        for text in [
            "",
            "shop.example",
            "http://shop.example/",
            "http://localhost.shop.example/",
            "http://localhost./",
            "gopher://127.0.0.1:70/",
            "file:///etc/passwd",
            "ftp://shop.example/",
            "unix:///run/postgres",
            "https://user@shop.example/",
            "https://user:secret@shop.example/",
            "https://:secret@shop.example/",
            "https://good.example@127.0.0.1/",
            "https://shop.example:22/",
            "https://shop.example:25/",
            "http://localhost:22/",
            "https://shop.example:0/",
            "https://[::1",
        ] {
            assert!(!live(text) && !test(text), "{text:?}");
        }
    }

    #[test]
    fn both_ends_of_every_closed_network_are_closed() {
        let v4 = CLOSED_V4.into_iter().map(IpNet::V4);
        for net in v4.chain(CLOSED_V6.into_iter().map(IpNet::V6)) {
            assert!(!is_public(net.network()) && !is_public(net.broadcast()), "{net}");
        }
    }

    #[test]
    fn one_closed_address_among_a_names_answers_closes_all() {
        let public: SocketAddr = "93.184.216.34:0".parse().unwrap();
        let private: SocketAddr = "10.0.0.1:0".parse().unwrap();
        let loopback: SocketAddr = "[::1]:0".parse().unwrap();
        for reach in [Reach::Public, Reach::PublicOrLoopback] {
            assert!(admit("shop.example", &[public], reach).is_ok());
            assert!(admit("shop.example", &[public, private], reach).is_err());
            assert!(admit("shop.example", &[loopback], reach).is_err(), "rebinding");
        }
        assert!(admit("localhost", &[loopback], Reach::PublicOrLoopback).is_ok());
        assert!(admit("localhost", &[loopback], Reach::Public).is_err());
        assert!(admit("localhost", &[public], Reach::PublicOrLoopback).is_err());
    }

    proptest! {
        #[test]
        fn an_ipv4_address_is_closed_in_every_spelling(address in any::<[u8; 4]>()) {
            let address = Ipv4Addr::from(address);
            let number = u32::from(address);
            for host in [format!("{address}"), format!("{number}"), format!("{number:#x}")] {
                let text = format!("https://{host}/");
                prop_assert_eq!(live(&text), is_public(address.into()), "{}", text);
            }
            let mapped = IpAddr::V6(address.to_ipv6_mapped());
            prop_assert!(!is_public(mapped));
        }

        #[test]
        fn any_text_is_judged_without_a_panic(text in ".*", near in "https?://[a-z0-9@:./\\[\\]#\\\\]{0,30}") {
            let _ = (live(&text), test(&text), live(&near), test(&near));
        }
    }
}
