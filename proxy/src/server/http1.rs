//! Pingora's loop for HTTP/1 keeps room for everything that a request needs while it waits for one;
//! here a request has that room from its head to its answer. An idle connection takes as much
//! memory as one of nginx (row g of `make bench`).

use std::sync::Arc;

use pingora_core::apps::{HttpPersistentSettings, HttpServerApp as _};
use pingora_core::protocols::http::ServerSession;
use pingora_proxy::HttpProxy;
use tokio::sync::watch;

use super::buffered_io::BufferedIo;
use crate::gateway::Gateway;

/// Seconds for which Pingora may wait for a head, which is there already.
const HEAD_SECONDS: u64 = 60;

/// Serves the requests of a connection one by one, at most `requests_max`, until it ends or is idle
/// when `closing` turns true.
pub(super) async fn serve(
    app: &Arc<HttpProxy<Gateway>>,
    mut io: Box<BufferedIo>,
    requests_max: u32,
    mut closing: watch::Receiver<bool>,
) {
    let mut settings: Option<HttpPersistentSettings> = None;
    loop {
        tokio::select! {
            biased;
            is_there = io.next_request() => if !is_there { return },
            // An error means that the listener is gone, and with it whoever waits.
            _ = closing.wait_for(|closing| *closing) => return,
        }
        // Its own block: the connection's task has no room for a session, which moves on from here.
        let answering = {
            let mut session = ServerSession::new_http1(io);
            match settings.take() {
                Some(settings) => settings.apply_to_session(&mut session),
                None => {
                    session.set_keepalive(Some(HEAD_SECONDS));
                    session.set_keepalive_reuses_remaining(Some(requests_max));
                }
            }
            app.process_new_http(session, &closing)
        };
        let Some(reused) = answering.await else { return };
        let (stream, kept) = reused.consume();
        let Ok(same) = stream.into_any().downcast() else { return };
        (io, settings) = (same, kept);
    }
}
