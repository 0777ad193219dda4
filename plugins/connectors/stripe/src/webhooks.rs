//! The listener for webhooks: the first to tell of a fact. Off unless it is configured.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use rampart_connector::Secret;
use rampart_connector::listener::{self, Bounds};
use tokio::time::timeout;

use crate::Connector;
use crate::api::Event;
use crate::polling::now;
use crate::settings::WebhookSettings;
use crate::signature::verify;

/// Largest webhook in bytes.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Longest time for a request's head, and for its body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Bounds of connections.
const BOUNDS: Bounds =
    Bounds { connections: 64, head: REQUEST_TIMEOUT, connection: Duration::from_secs(60) };

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
    let socket = listener::bind("webhooks", settings.listen).await?;
    let listener = Arc::new(Listener { connector, secret });
    listener::serve(socket, BOUNDS, move |request| {
        let listener = Arc::clone(&listener);
        async move { listener.answer(request).await }
    })
    .await;
    Ok(())
}

impl Listener {
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
