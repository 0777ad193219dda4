//! The listener of a connector that others send to: HTTP/1.1 with one request a connection.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::pace::pause;

/// Longest pause after connections could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Bounds of a listener's connections.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections that are served at the same time; later ones wait.
    pub connections: usize,
    /// Longest time for a request's head.
    pub head: Duration,
    /// Longest time of one connection.
    pub connection: Duration,
}

/// Listens on the address that the table `name` of the settings states, and prints it.
///
/// # Errors
/// One sentence when the address cannot be listened on.
pub async fn bind(name: &str, address: SocketAddr) -> Result<TcpListener, String> {
    let cannot = |error| format!("{name}.listen: {address}: {error}");
    let socket = TcpListener::bind(address).await.map_err(cannot)?;
    println!("listening {name}={}", socket.local_addr().map_err(cannot)?);
    Ok(socket)
}

/// Answers requests without end.
pub async fn serve<A, F>(socket: TcpListener, bounds: Bounds, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(bounds.connections));
    loop {
        let permit = Arc::clone(&permits).acquire_owned().await;
        match socket.accept().await {
            Ok((stream, _)) => {
                let answer = answer.clone();
                let service = service_fn(move |request| {
                    let answered = answer(request);
                    async move { Ok::<_, Infallible>(answered.await) }
                });
                let served = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(bounds.head)
                    .keep_alive(false)
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move {
                    // A connection that never ends would keep its permit.
                    if let Ok(Err(error)) = timeout(bounds.connection, served).await {
                        tracing::debug!(%error, "a connection has ended");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                pause(ACCEPT_PAUSE).await;
            }
        }
    }
}
