//! Pingora reads no PROXY protocol: with it a balancer says, before the first byte of TLS, who has
//! connected to it (versions 1 and 2 of HAProxy's specification).

use std::fmt;
use std::io;
use std::net::IpAddr;

use pingora_core::protocols::l4::stream::Stream as Socket;
use ppp::{v1, v2};
use tokio::io::AsyncReadExt as _;

use crate::config::ProxyProtocol;

/// Longest header of version 1, in bytes, its line end included.
const V1_BYTES_MAX: usize = 107;
/// Bytes of version 2 up to the length of the rest.
const V2_PREFIX_BYTES: usize = 16;
/// Longest header of version 2 that is read, in bytes: addresses, and what balancers add to them.
const V2_BYTES_MAX: usize = 4 * 1024;

/// Reads the header of a connection and puts back what is behind it. Gives the client's address;
/// `None` when the balancer has connected for itself.
///
/// # Errors
/// When the connection does not begin with a sound header of the `accepted` version.
pub(super) async fn read_header(
    socket: &mut Socket,
    accepted: ProxyProtocol,
) -> io::Result<Option<IpAddr>> {
    let (mut bytes, mut filled) = (vec![0; V2_BYTES_MAX], 0);
    loop {
        match socket.read(&mut bytes[filled..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => filled += read,
        }
        if let Some(length) = header_length(&bytes[..filled], accepted)? {
            let (header, behind) = bytes[..filled].split_at(length);
            socket.rewind(behind);
            return source(header);
        }
    }
}

/// The length of the header at the beginning of `bytes`; `None` as long as it is not complete.
fn header_length(bytes: &[u8], accepted: ProxyProtocol) -> io::Result<Option<usize>> {
    let begins = |prefix: &[u8]| bytes.iter().zip(prefix).all(|(byte, expected)| byte == expected);
    if begins(v2::PROTOCOL_PREFIX) && matches!(accepted, ProxyProtocol::V2 | ProxyProtocol::Any) {
        let Some(prefix) = bytes.get(..V2_PREFIX_BYTES) else { return Ok(None) };
        let rest = u16::from_be_bytes([prefix[14], prefix[15]]);
        let length = V2_PREFIX_BYTES + usize::from(rest);
        if length > V2_BYTES_MAX {
            return Err(unsound(&"it is too long"));
        }
        return Ok((bytes.len() >= length).then_some(length));
    }
    if begins(v1::PROTOCOL_PREFIX.as_bytes())
        && matches!(accepted, ProxyProtocol::V1 | ProxyProtocol::Any)
    {
        let line = &bytes[..bytes.len().min(V1_BYTES_MAX)];
        return match line.windows(2).position(|two| two == b"\r\n") {
            Some(end) => Ok(Some(end + 2)),
            None if bytes.len() < V1_BYTES_MAX => Ok(None),
            None => Err(unsound(&"its line does not end")),
        };
    }
    Err(unsound(&"it is missing"))
}

/// The client's address in a complete header.
fn source(header: &[u8]) -> io::Result<Option<IpAddr>> {
    let address = if header.starts_with(v1::PROTOCOL_PREFIX.as_bytes()) {
        match v1::Header::try_from(header).map_err(|e| unsound(&e))?.addresses {
            v1::Addresses::Tcp4(ip) => Some(IpAddr::V4(ip.source_address)),
            v1::Addresses::Tcp6(ip) => Some(IpAddr::V6(ip.source_address)),
            v1::Addresses::Unknown => None,
        }
    } else {
        let header = v2::Header::try_from(header).map_err(|e| unsound(&e))?;
        match (header.command, header.addresses) {
            (v2::Command::Proxy, v2::Addresses::IPv4(ip)) => Some(IpAddr::V4(ip.source_address)),
            (v2::Command::Proxy, v2::Addresses::IPv6(ip)) => Some(IpAddr::V6(ip.source_address)),
            _ => None,
        }
    };
    Ok(address.map(|address| address.to_canonical()))
}

fn unsound(why: &dyn fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the PROXY protocol's header: {why}"))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixStream;

    use super::*;

    const V1: &[u8] = b"PROXY TCP4 192.0.2.7 10.0.0.1 50000 443\r\n";
    const V2_IPV4: &[u8] =
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0f\xc0\0\x02\x07\x0a\0\0\x01\xc3\x50\x01\xbb\x04\0\0";

    #[test]
    fn fuzz_proxy_protocol() {
        rampart_fuzz::fuzz("proxy-protocol", |input| {
            for accepted in [ProxyProtocol::V1, ProxyProtocol::V2, ProxyProtocol::Any] {
                let Ok(Some(length)) = header_length(input, accepted) else { continue };
                assert!(length <= input.len().min(V2_BYTES_MAX));
                let _ = source(&input[..length]);
                // A header has one end, however much of it has come.
                for end in 0..length {
                    assert!(header_length(&input[..end], accepted).is_ok_and(|end| end.is_none()));
                }
            }
        });
    }

    /// Sends these pieces one after the other; the address, and what can be read behind the header.
    async fn sent(pieces: &[&[u8]], accepted: ProxyProtocol) -> io::Result<(String, Vec<u8>)> {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut socket = Socket::from(near);
        let reading = tokio::spawn(async move {
            let address = read_header(&mut socket, accepted).await?;
            let mut behind = Vec::new();
            socket.read_to_end(&mut behind).await?;
            Ok((address.map_or_else(String::new, |address| address.to_string()), behind))
        });
        for piece in pieces {
            // It may be closed already.
            let _ = far.write_all(piece).await;
            tokio::task::yield_now().await;
        }
        drop(far);
        reading.await.unwrap()
    }

    #[tokio::test]
    async fn both_versions_name_the_client_and_nothing_behind_them_is_lost() {
        for header in [V1, V2_IPV4] {
            let whole = [header, b"hello"].concat();
            let (address, behind) = sent(&[&whole], ProxyProtocol::Any).await.unwrap();
            assert_eq!((address.as_str(), &*behind), ("192.0.2.7", &b"hello"[..]));
        }
        let mapped = b"PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n";
        assert_eq!(sent(&[mapped], ProxyProtocol::V1).await.unwrap().0, "192.0.2.7");
    }

    #[tokio::test]
    async fn a_header_may_come_in_pieces() {
        for header in [V1, V2_IPV4] {
            let pieces: Vec<_> = header.chunks(1).chain([&b"hello"[..]]).collect();
            let (address, behind) = sent(&pieces, ProxyProtocol::Any).await.unwrap();
            assert_eq!((address.as_str(), &*behind), ("192.0.2.7", &b"hello"[..]));
        }
    }

    #[tokio::test]
    async fn a_balancer_that_checks_health_is_itself() {
        for header in [&b"PROXY UNKNOWN\r\n"[..], b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"] {
            assert_eq!(sent(&[header], ProxyProtocol::Any).await.unwrap().0, "");
        }
    }

    #[tokio::test]
    async fn what_is_no_header_of_the_accepted_version_is_refused() {
        for (bytes, accepted) in [
            (V1, ProxyProtocol::V2),
            (V2_IPV4, ProxyProtocol::V1),
            (b"\x16\x03\x01\x02\0\x01\0\x01", ProxyProtocol::Any),
            (b"GET / HTTP/1.1\r\n\r\n", ProxyProtocol::Any),
            (b"PROXY TCP4 192.0.2.7\r\n", ProxyProtocol::Any),
            (b"PROXY TCP4 name.example 10.0.0.1 1 2\r\n", ProxyProtocol::Any),
            (&[b"PROXY TCP4 ", &[b' '; 120][..]].concat(), ProxyProtocol::Any),
            (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff", ProxyProtocol::Any),
            (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x04\x01\x02\x03\x04", ProxyProtocol::Any),
            (&V1[..20], ProxyProtocol::Any),
        ] {
            assert!(sent(&[bytes], accepted).await.is_err(), "{:?}", bytes.escape_ascii());
        }
    }
}
