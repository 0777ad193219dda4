//! The partner's side of a callback: a small receiver on loopback that checks signatures.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::startup_error::{Context as _, StartupError};

/// Largest callback that is taken, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Callbacks that are kept; the oldest makes room.
const CALLBACKS_MAX: usize = 100;

/// A callback as it arrived.
#[derive(Clone)]
pub(super) struct Received {
    /// Path and query.
    pub(super) target: String,
    /// The check of its signature, by which a partner knows it to be genuine.
    pub(super) signature: Result<(), String>,
    /// Body.
    pub(super) body: Bytes,
}

/// Takes callbacks on loopback as long as the demo runs: a POST is kept, a GET shows what was kept.
pub(super) struct Receiver {
    /// The address on which it listens.
    pub(super) address: SocketAddr,
    inbox: Arc<Inbox>,
}

/// The last callbacks, the oldest first.
struct Inbox {
    callbacks: watch::Sender<VecDeque<Received>>,
    /// Checks with the secret that signs genuine callbacks.
    webhook: Webhook,
}

impl Receiver {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    /// No port is free, or the secret is none.
    pub(super) async fn start(secret: &str) -> Result<Self, StartupError> {
        let no_port = "no port for callbacks";
        let listener = TcpListener::bind("127.0.0.1:0").await.context(no_port)?;
        let address = listener.local_addr().context(no_port)?;
        let webhook = Webhook::new(secret).context("the webhook secret cannot be used")?;
        let inbox = Arc::new(Inbox { callbacks: watch::Sender::default(), webhook });
        tokio::spawn(accept(listener, Arc::clone(&inbox)));
        Ok(Self { address, inbox })
    }

    /// The first callback, once it is there.
    pub(super) async fn first(&self) -> Option<Received> {
        let mut callbacks = self.inbox.callbacks.subscribe();
        // The sender is in the inbox: the wait does not fail.
        callbacks.wait_for(|all| !all.is_empty()).await.ok()?.front().cloned()
    }
}

impl Inbox {
    fn push(&self, callback: Received) {
        self.callbacks.send_modify(|callbacks| {
            callbacks.push_back(callback);
            if callbacks.len() > CALLBACKS_MAX {
                callbacks.pop_front();
            }
        });
    }

    /// A line of JSON for each.
    fn show(&self) -> String {
        let line = |callback: &Received| {
            let genuine = callback.signature.is_ok();
            let body: Value = serde_json::from_slice(&callback.body).unwrap_or_default();
            format!("{}\n", json!({"to": callback.target, "genuine": genuine, "body": body}))
        };
        self.callbacks.borrow().iter().map(line).collect()
    }
}

async fn accept(listener: TcpListener, inbox: Arc<Inbox>) {
    while let Ok((stream, _)) = listener.accept().await {
        let inbox = Arc::clone(&inbox);
        let service = service_fn(move |request| answer(request, Arc::clone(&inbox)));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    inbox: Arc<Inbox>,
) -> Result<Response<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
    if request.method() == Method::GET {
        return Ok(Response::new(inbox.show().into()));
    }
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await?.to_bytes();
    let signature = inbox.webhook.verify(&body, &head.headers).map_err(|error| error.to_string());
    inbox.push(Received { target: head.uri.to_string(), signature, body });
    Ok(Response::new(Full::default()))
}
