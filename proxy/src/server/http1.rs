//! Pingora's loop for HTTP/1 keeps room for everything that a request needs while it waits for one;
//! here a request has that room from its head to its answer. An idle connection takes as much
//! memory as one of nginx (row g of `make bench`).

use pingora_core::apps::HttpServerApp as _;
use pingora_core::protocols::http::ServerSession;

use super::buffered_io::BufferedIo;
use super::connection_limits::ConnectionLimits;

/// Serves the requests of a connection one by one, within `limits`, until it ends or is idle when
/// such are closed.
pub(super) async fn serve(mut io: Box<BufferedIo>, limits: &ConnectionLimits) {
    let mut closing = limits.closing.subscribe();
    // The first request is no reuse.
    let mut reuses = limits.connection_requests_max.saturating_sub(1);
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
            // No bound for Pingora's wait for a head, which is there already.
            session.set_keepalive(Some(0));
            session.set_keepalive_reuses_remaining(Some(reuses));
            limits.proxy.process_new_http(session, &closing)
        };
        let Some(reused) = answering.await else { return };
        let (stream, _) = reused.consume();
        let Ok(same) = stream.into_any().downcast() else { return };
        (io, reuses) = (same, reuses.saturating_sub(1));
    }
}
