//! The listener for webhooks: the first to tell of a fact. Off unless it is configured.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rampart_connector::Secret;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::Connector;
use crate::api::Event;
use crate::polling::now;
use crate::settings::WebhookSettings;
use crate::signature::verify;

/// Largest webhook in bytes.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Connections that are served at the same time; later ones wait.
const CONNECTIONS_MAX: usize = 64;
/// Longest time for a request's head, and for its body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time of one connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest pause after connections could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

struct Listener {
    connector: Arc<Connector>,
    secret: Secret,
}

/// Takes webhooks without end.
///
/// # Errors
/// One sentence when the secret cannot be read or the address cannot be listened on.
pub(crate) async fn listen(
    connector: Arc<Connector>,
    settings: &WebhookSettings,
) -> Result<(), String> {
    let secret = settings.secret.read().map_err(|error| format!("webhooks.secret: {error}"))?;
    let cannot = |error| format!("webhooks.listen: {}: {error}", settings.listen);
    let socket = TcpListener::bind(settings.listen).await.map_err(cannot)?;
    let address = socket.local_addr().map_err(cannot)?;
    println!("listening webhooks={address}");
    let listener = Arc::new(Listener { connector, secret });
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let permit = Arc::clone(&permits).acquire_owned().await;
        match socket.accept().await {
            Ok((stream, _)) => {
                let listener = Arc::clone(&listener);
                tokio::spawn(async move {
                    // A connection that never ends would keep its permit.
                    let _ = timeout(CONNECTION_TIMEOUT, listener.serve(stream)).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a webhook's connection cannot be accepted");
                rampart_connector::pace::pause(ACCEPT_PAUSE).await;
            }
        }
    }
}

impl Listener {
    async fn serve(&self, stream: TcpStream) {
        let service = service_fn(async |request| Ok::<_, Infallible>(self.answer(request).await));
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_TIMEOUT)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        if let Err(error) = served {
            tracing::debug!(%error, "a webhook's connection has ended");
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, text) = match self.take(request).await {
            Ok(()) => (StatusCode::OK, "taken"),
            Err(refused) => refused,
        };
        let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
        *response.status_mut() = status;
        response
    }

    /// Takes one webhook. Whatever is not answered with 200 is sent again by the provider.
    async fn take(&self, request: Request<Incoming>) -> Result<(), (StatusCode, &'static str)> {
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "only POST"));
        }
        let header = request.headers().get("stripe-signature").and_then(|one| one.to_str().ok());
        let header = header.unwrap_or_default().to_owned();
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
        let body = match timeout(REQUEST_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => return Err((StatusCode::PAYLOAD_TOO_LARGE, "too large, or cut off")),
            Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, "too slow")),
        };
        let now = now().map_err(|_| (StatusCode::INTERNAL_SERVER_ERROR, "no time"))?;
        if let Err(reason) = verify(self.secret.expose(), &header, &body, now) {
            tracing::warn!(%reason, "a webhook is refused");
            return Err((StatusCode::BAD_REQUEST, "the signature is not the provider's"));
        }
        let event: Event = serde_json::from_slice(&body)
            .map_err(|_| (StatusCode::BAD_REQUEST, "this is no event"))?;
        let taken = self.connector.take(&event).await;
        taken.map_err(|_| (StatusCode::SERVICE_UNAVAILABLE, "later"))
    }
}
