//! HTTP/1 byte by byte over TLS, for what no client would send.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::answer::Answer;
use crate::certificate::{CERTIFICATE, Certificate};

/// Timeout of an answer; longer than the edge's own timeouts.
const PATIENCE: Duration = Duration::from_secs(45);

/// A TLS connection with this protocol, by ALPN, to who shows the certificate of the harness.
///
/// # Errors
/// When the connection is closed before it is open, or another certificate is shown.
pub async fn connect(edge: SocketAddr, protocol: &str) -> io::Result<TlsStream<TcpStream>> {
    connect_to(edge, &CERTIFICATE, protocol).await
}

/// The same from this address.
///
/// # Errors
/// The same.
pub async fn connect_from(
    own: Ipv4Addr,
    edge: SocketAddr,
    protocol: &str,
) -> io::Result<TlsStream<TcpStream>> {
    open_tls(Some(own.into()), edge, &[], CERTIFICATE.client(&[protocol]).into()).await
}

/// The same to who shows this certificate.
///
/// # Errors
/// The same.
pub async fn connect_to(
    edge: SocketAddr,
    certificate: &Certificate,
    protocol: &str,
) -> io::Result<TlsStream<TcpStream>> {
    open_tls(None, edge, &[], certificate.client(&[protocol]).into()).await
}

/// The TLS connection of a client from this address, with these bytes before the first one of TLS.
async fn open_tls(
    own: Option<IpAddr>,
    edge: SocketAddr,
    preamble: &[u8],
    client: Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let socket = if edge.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(own) = own {
        socket.bind((own, 0).into())?;
    }
    let mut tcp = socket.connect(edge).await?;
    tcp.set_nodelay(true)?;
    tcp.write_all(preamble).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(client).connect(name, tcp).await
}

/// One connection, and what came over it that was not looked at yet.
pub struct Wire<S = TlsStream<TcpStream>> {
    stream: S,
    held: Vec<u8>,
}

impl Wire {
    /// A connection to the public listener. Panics when there is none.
    pub async fn open(edge: SocketAddr) -> Self {
        Self::try_open(edge).await.unwrap()
    }

    /// A connection to the public listener.
    ///
    /// # Errors
    /// When it is closed before it is open.
    pub async fn try_open(edge: SocketAddr) -> io::Result<Self> {
        Ok(Self { stream: connect(edge, "http/1.1").await?, held: Vec::new() })
    }

    /// A connection that a balancer opens with this header of the PROXY protocol.
    ///
    /// # Errors
    /// When it is closed before it is open.
    pub async fn try_proxied(edge: SocketAddr, header: &[u8]) -> io::Result<Self> {
        let stream = open_tls(None, edge, header, CERTIFICATE.client(&["http/1.1"]).into()).await?;
        Ok(Self { stream, held: Vec::new() })
    }

    /// A connection to the public listener from this address.
    ///
    /// # Errors
    /// When it is closed before it is open.
    pub async fn try_open_from(own: Ipv4Addr, edge: SocketAddr) -> io::Result<Self> {
        Ok(Self { stream: connect_from(own, edge, "http/1.1").await?, held: Vec::new() })
    }

    /// A connection of this TLS client.
    ///
    /// # Errors
    /// When it is closed before it is open.
    pub async fn try_open_as(edge: SocketAddr, client: &Arc<ClientConfig>) -> io::Result<Self> {
        Ok(Self { stream: open_tls(None, edge, &[], Arc::clone(client)).await?, held: Vec::new() })
    }

    /// The client's side of TLS.
    pub fn tls(&self) -> &ClientConnection {
        self.stream.get_ref().1
    }

    /// The certificate that the edge showed.
    pub fn certificate(&self) -> CertificateDer<'_> {
        self.stream.get_ref().1.peer_certificates().unwrap()[0].clone()
    }
}

impl Wire<TcpStream> {
    /// A connection to a private listener, without TLS.
    pub async fn plain(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), held: Vec::new() }
    }

    /// The same from this address.
    pub async fn plain_from(own: Ipv4Addr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((own, 0).into()).unwrap();
        Self { stream: socket.connect(address).await.unwrap(), held: Vec::new() }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Sends these bytes. What the other side does not take any more is left: its answer counts.
    pub async fn send(&mut self, bytes: &[u8]) {
        let sent = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        let _ = timeout(PATIENCE, sent).await.expect("the edge takes what is sent");
    }

    /// Sends these bytes and reads the answer.
    pub async fn exchange(&mut self, bytes: &[u8]) -> Option<Answer> {
        self.send(bytes).await;
        self.answer().await
    }

    /// The next answer, an interim one too; `None` when the connection ends before it is whole.
    pub async fn answer(&mut self) -> Option<Answer> {
        let head = loop {
            if let Some(end) = self.held.windows(4).position(|four| four == b"\r\n\r\n") {
                break self.held.drain(..end + 4).collect::<Vec<u8>>();
            }
            self.more().await?;
        };
        let text = String::from_utf8(head).unwrap();
        let mut lines = text.trim_end().split("\r\n");
        let status: StatusCode = lines.next()?.split(' ').nth(1)?.parse().unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        let length =
            headers.get("content-length").map_or(0, |n| n.to_str().unwrap().parse().unwrap());
        while self.held.len() < length {
            self.more().await?;
        }
        let body: Bytes = self.held.drain(..length).collect();
        Some(Answer::new(status, headers, body))
    }

    /// True if the other side closes the connection, cleanly or not, without another byte.
    pub async fn is_closed(&mut self) -> bool {
        self.held.is_empty() && self.more().await.is_none()
    }

    async fn more(&mut self) -> Option<()> {
        let read = timeout(PATIENCE, self.stream.read_buf(&mut self.held)).await;
        match read.expect("the edge answers or closes") {
            Ok(1..) => Some(()),
            _ => None,
        }
    }
}
