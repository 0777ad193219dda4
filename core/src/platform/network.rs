//! Limits by address count what one customer holds, which in IPv6 is a network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};

/// Length of the prefix of IPv4 addresses mapped into IPv6, `::ffff:0:0/96`.
const MAPPED_PREFIX_BITS: u8 = 96;

/// The addresses that share one limit: an IPv4 address, mapped into IPv6 or not, or the /64 network
/// that one IPv6 customer gets.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// The network around an address that one party often has whole: /24 in IPv4, /48 in IPv6.
pub fn surrounding_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            Ipv4Addr::new(a, b, c, 0).into()
        }
        IpAddr::V6(v6) => {
            let [a, b, c, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).into()
        }
    }
}

/// The network that canonical addresses are in: one of IPv4 addresses mapped into IPv6, whose
/// addresses are IPv4 by then, is that of IPv4.
pub fn canonical_network(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else { return network };
    let mapped = || {
        let length = v6.prefix_len().checked_sub(MAPPED_PREFIX_BITS)?;
        Ipv4Net::new(v6.addr().to_ipv4_mapped()?, length).ok()
    };
    mapped().map_or(network, IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_share_a_limit() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("2001:db8:1:2:ffff::1"), network("2001:db8:1:2::"));
        assert_ne!(network("2001:db8:1:3::1"), network("2001:db8:1:2::1"));
        assert_eq!(network("::ffff:192.0.2.7"), "192.0.2.7");
        assert_ne!(network("::ffff:192.0.2.7"), network("::ffff:192.0.2.8"));
        assert_ne!(network("192.0.2.7"), network("192.0.2.8"));
    }

    #[test]
    fn networks_of_one_party_are_in_one_around_them() {
        let around = |text: &str| surrounding_network(text.parse().unwrap()).to_string();
        assert_eq!(around("192.0.2.7"), "192.0.2.0");
        assert_eq!(around("::ffff:192.0.2.8"), "192.0.2.0");
        assert_ne!(around("192.0.3.7"), around("192.0.2.7"));
        assert_eq!(around("2001:db8:1:2:3:4:5:6"), "2001:db8:1::");
        assert_ne!(around("2001:db8:2::1"), around("2001:db8:1::1"));
    }

    #[test]
    fn a_network_mapped_into_ipv6_is_one_of_ipv4() {
        let read = |text: &str| text.parse::<IpNet>().unwrap();
        let canonical = |text: &str| canonical_network(read(text));
        assert_eq!(canonical("::ffff:10.0.0.0/104"), read("10.0.0.0/8"));
        assert_eq!(canonical("::ffff:192.0.2.7/128"), read("192.0.2.7/32"));
        assert_eq!(canonical("::ffff:0.0.0.0/96"), read("0.0.0.0/0"));
        for same in ["10.0.0.0/8", "2001:db8::/32", "::/0", "::ffff:0:0/95"] {
            assert_eq!(canonical(same), read(same));
        }
    }
}
