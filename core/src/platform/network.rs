//! Limits by address count what one customer holds, which in IPv6 is a network.

use std::net::{IpAddr, Ipv6Addr};

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
}
