//! Validation of delivery targets. A partner supplies the URL, so it must not give access to the
//! private networks of the edge (OWASP API7, server-side request forgery).
//!
//! The URL is checked before each attempt, and its resolved addresses when the connection is opened:
//! the edge connects to the checked addresses only, which defeats DNS rebinding. Redirects are not
//! followed (`outbound.rs`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{Ipv4Net, Ipv6Net};
use rampart_types::ClientId;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::platform::lookups::Lookups;

/// The addresses that a client's deliveries may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Public addresses, by `https`: live clients.
    Public,
    /// Also loopback, by `http` too: test clients whose developers have no public host, where the
    /// configuration allows it.
    PublicOrLoopback,
}

/// The target is forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forbidden;

impl std::fmt::Display for Forbidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the target is not a public one")
    }
}

impl std::error::Error for Forbidden {}

/// The only accepted name of loopback. Others that resolve to it are refused as an attack.
const LOOPBACK_NAME: &str = "localhost";

/// Ports below are reserved for system services (RFC 6335), of which only HTTP's own are allowed.
const FREE_PORTS_START: u16 = 1_024;
const HTTP_PORTS: [u16; 2] = [80, 443];

/// Validates everything about a URL except its resolved addresses.
///
/// # Errors
/// [`Forbidden`] for another scheme, a user name, a reserved port or a literal address that is out
/// of reach, including the forms that browsers accept (`0x7f.1`, `2130706433`).
pub fn validate(text: &str, reach: Reach) -> Result<Url, Forbidden> {
    let url = Url::parse(text).map_err(|_| Forbidden)?;
    let loopback = match url.host().ok_or(Forbidden)? {
        Host::Domain(name) => name == LOOPBACK_NAME,
        Host::Ipv4(address) => check_literal(address.into(), reach)?,
        Host::Ipv6(address) => check_literal(address.into(), reach)?,
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

/// Checks a literal address; true if it is loopback.
fn check_literal(address: IpAddr, reach: Reach) -> Result<bool, Forbidden> {
    let loopback = address.is_loopback();
    if is_public(address) || (loopback && reach == Reach::PublicOrLoopback) {
        Ok(loopback)
    } else {
        Err(Forbidden)
    }
}

/// IPv4 networks that are not the public Internet (RFC 6890 and its registry), and one public
/// address of a cloud's internal service.
const PRIVATE_V4: [Ipv4Net; 17] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    // Link-local, with the metadata address of most clouds.
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
    // A cloud's internal service for its virtual machines.
    v4(168, 63, 129, 16, 32),
];

/// The IPv6 network of global unicast. Addresses that embed an IPv4 address are outside of it
/// (`::ffff:0:0/96`, `64:ff9b::/96`) or excluded below.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0], 3);

/// Parts of [`GLOBAL_V6`] that are not the public Internet.
const CLOSED_V6: [Ipv6Net; 4] = [
    // Protocol assignments, including Teredo and ORCHID.
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

/// True if the address is on the public Internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !PRIVATE_V4.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !CLOSED_V6.iter().any(|net| net.contains(&address))
        }
    }
}

tokio::task_local! {
    /// The partner whose hosts this task looks up: the client hands its resolver a name alone.
    static PARTNER: ClientId;
}

/// Runs `work`, whose lookups are of this partner's share.
pub(super) fn for_partner<F: Future>(
    partner: ClientId,
    work: F,
) -> impl Future<Output = F::Output> {
    PARTNER.scope(partner, work)
}

/// Resolves a name once and returns its addresses only if all of them are within reach.
#[derive(Clone, Debug)]
pub(super) struct GuardedResolver {
    pub(super) reach: Reach,
    pub(super) lookups: Lookups,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { reach, lookups } = self.clone();
        // Before the future, which may end in a task of the client's own.
        let partner = PARTNER.try_with(|partner| *partner).ok();
        Box::pin(async move {
            // Port 0 selects the URL's own.
            let found = lookups.addresses(partner, name.as_str(), 0).await?;
            check_addresses(name.as_str(), &found, reach)?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Refuses a name unless all of its addresses are within reach.
fn check_addresses(name: &str, found: &[SocketAddr], reach: Reach) -> Result<(), Forbidden> {
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
        validate(text, Reach::Public).is_ok()
    }

    fn test(text: &str) -> bool {
        validate(text, Reach::PublicOrLoopback).is_ok()
    }

    #[test]
    fn public_https_is_allowed_for_all_clients() {
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
    fn loopback_is_allowed_for_test_clients_only() {
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
    fn every_form_of_a_private_address_is_refused() {
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
    fn other_schemes_names_and_reserved_ports_are_refused() {
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
    fn both_ends_of_every_private_network_are_refused() {
        let v4 = PRIVATE_V4.into_iter().map(IpNet::V4);
        for net in v4.chain(CLOSED_V6.into_iter().map(IpNet::V6)) {
            assert!(!is_public(net.network()) && !is_public(net.broadcast()), "{net}");
        }
    }

    #[test]
    fn one_private_address_of_a_name_refuses_all() {
        let public: SocketAddr = "93.184.216.34:0".parse().unwrap();
        let private: SocketAddr = "10.0.0.1:0".parse().unwrap();
        let loopback: SocketAddr = "[::1]:0".parse().unwrap();
        for reach in [Reach::Public, Reach::PublicOrLoopback] {
            assert!(check_addresses("shop.example", &[public], reach).is_ok());
            assert!(check_addresses("shop.example", &[public, private], reach).is_err());
            assert!(check_addresses("shop.example", &[loopback], reach).is_err(), "rebinding");
        }
        assert!(check_addresses("localhost", &[loopback], Reach::PublicOrLoopback).is_ok());
        assert!(check_addresses("localhost", &[loopback], Reach::Public).is_err());
        assert!(check_addresses("localhost", &[public], Reach::PublicOrLoopback).is_err());
    }

    proptest! {
        #[test]
        fn a_private_ipv4_address_is_refused_in_every_spelling(address in any::<[u8; 4]>()) {
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
        fn any_text_is_validated_without_a_panic(text in ".*", near in "https?://[a-z0-9@:./\\[\\]#\\\\]{0,30}") {
            let _ = (live(&text), test(&text), live(&near), test(&near));
        }
    }
}
