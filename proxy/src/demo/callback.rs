//! The partner's side of a callback: a small receiver on loopback, and the check of a signature.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ring::hmac;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::serve::Fault;

/// Largest callback that is taken, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Callbacks that may wait to be looked at.
const WAITING_MAX: usize = 16;

/// A callback as it arrived.
pub(super) struct Received {
    /// Path and query.
    pub(super) target: String,
    /// Headers.
    pub(super) headers: HeaderMap,
    /// Body.
    pub(super) body: Bytes,
}

/// Takes callbacks until it is dropped.
pub(super) struct Receiver {
    /// Where it listens.
    pub(super) address: SocketAddr,
    received: mpsc::Receiver<Received>,
}

impl Receiver {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    /// When there is none.
    pub(super) async fn start() -> Result<Self, Fault> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(|e| Fault::new("no port for callbacks", &e))?;
        let address = listener.local_addr().map_err(|e| Fault::new("no port for callbacks", &e))?;
        let (sender, received) = mpsc::channel(WAITING_MAX);
        tokio::spawn(accept(listener, Arc::new(sender)));
        Ok(Self { address, received })
    }

    /// The next callback.
    pub(super) async fn next(&mut self) -> Option<Received> {
        self.received.recv().await
    }
}

async fn accept(listener: TcpListener, sender: Arc<mpsc::Sender<Received>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let sender = Arc::clone(&sender);
        let service = service_fn(move |request| take(request, Arc::clone(&sender)));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn take(
    request: Request<Incoming>,
    sender: Arc<mpsc::Sender<Received>>,
) -> Result<Response<Empty<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await?.to_bytes();
    let target = head.uri.to_string();
    sender.send(Received { target, headers: head.headers, body }).await?;
    Ok(Response::new(Empty::new()))
}

impl Received {
    /// Checks the signature as a partner would (Standard Webhooks): HMAC-SHA256 of id, timestamp
    /// and body under the secret behind `whsec_`.
    ///
    /// # Errors
    /// What does not fit.
    pub(super) fn verify(&self, secret: &str) -> Result<(), Fault> {
        let header = |name: &str| {
            let value = self.headers.get(name).and_then(|value| value.to_str().ok());
            value.ok_or_else(|| Fault::from(format!("the callback has no {name}")))
        };
        let broken = || Fault::from("the webhook secret is not whsec_ and base64".to_owned());
        let secret = secret.strip_prefix("whsec_").ok_or_else(broken)?;
        let secret = STANDARD.decode(secret).map_err(|_| broken())?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let signed = [
            header("webhook-id")?.as_bytes(),
            b".",
            header("webhook-timestamp")?.as_bytes(),
            b".",
            &self.body,
        ]
        .concat();
        let genuine = header("webhook-signature")?.split(' ').any(|one| {
            let tag = one.strip_prefix("v1,").and_then(|tag| STANDARD.decode(tag).ok());
            tag.is_some_and(|tag| hmac::verify(&key, &signed, &tag).is_ok())
        });
        if genuine {
            Ok(())
        } else {
            Err(Fault::from("the callback's signature is wrong".to_owned()))
        }
    }
}
