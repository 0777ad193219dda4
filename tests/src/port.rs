//! Ports of loopback for programs that cannot be asked to choose one.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::IntoRawFd as _;

use rampart_core::platform::clock::Clock;

/// First port that is tried, and their number: below those from which the kernel takes a client's, so that
/// a server that comes back finds its port free.
const PORTS: (u16, u16) = (20_000, 12_000);
/// An address of loopback at which nothing serves: a port that is taken there was given to somebody.
const GIVEN: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 254);

/// An address of loopback that nobody listens at. No other test is given it while this process runs.
pub fn free() -> SocketAddr {
    let (first, count) = PORTS;
    let random = Clock::system().random_u64().unwrap() % u64::from(count);
    let start = u16::try_from(random).unwrap();
    let mut ports = (0..count).map(|step| first + (start + step) % count);
    let found = ports.find_map(|port| {
        let given = TcpListener::bind((GIVEN, port)).ok()?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?.local_addr().ok()?;
        // Stays open until the process ends.
        let _ = given.into_raw_fd();
        Some(address)
    });
    found.expect("a port is free")
}
