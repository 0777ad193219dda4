//! Pingora's loop for HTTP/2 answers a request with two hosts itself, without the envelope and the
//! request id that every answer has, and bounds neither the preface nor streams that were given up.

mod session;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use pingora_core::apps::HttpServerApp;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::v2::server::{H2Options, default_h2_options, handshake};
use pingora_core::protocols::{Digest, Stream};
use pingora_core::server::ShutdownWatch;
use tokio::time::timeout;

use self::session::Http2Session;
use super::connection_info::ConnectionInfo;

/// Streams of one HTTP/2 connection that run at once.
const STREAMS_MAX: u32 = 100;
/// Streams that may still run although the client gave up on some of them.
const RUNNING_MAX: usize = 2 * STREAMS_MAX as usize;
/// Receive window of a stream and of a connection, in bytes.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Time for the HTTP/2 preface and settings.
const PREFACE_MAX: Duration = Duration::from_secs(10);

/// Serves a connection, stream by stream, until it ends or is `idle`.
pub(super) async fn serve<A: HttpServerApp + Send + Sync + 'static>(
    app: &Arc<A>,
    stream: Stream,
    info: &ConnectionInfo,
    idle: Duration,
    shutdown: &ShutdownWatch,
) {
    let digest = Arc::new(Digest {
        ssl_digest: stream.get_ssl_digest(),
        timing_digest: stream.get_timing_digest(),
        proxy_digest: stream.get_proxy_digest(),
        socket_digest: stream.get_socket_digest(),
    });
    let Ok(Ok(mut h2)) = timeout(PREFACE_MAX, handshake(stream, Some(options()))).await else {
        return;
    };
    let mut stopping = shutdown.clone();
    let mut stopping = pin!(stopping.wait_for(|&stopping| stopping));
    let mut hostile = pin!(info.hostile());
    let mut leaving = false;
    let running = Arc::new(AtomicUsize::new(0));
    let mut used = true;
    let mut idle = tokio::time::interval(idle);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut hostile => return,
            _ = &mut stopping, if !leaving => {
                h2.graceful_shutdown();
                leaving = true;
                continue;
            }
            accepted = h2.accept() => accepted,
            _ = idle.tick() => {
                if !used && running.load(Ordering::Acquire) == 0 {
                    return;
                }
                used = false;
                continue;
            }
        };
        let Some(Ok((request, answer))) = accepted else { return };
        used = true;
        let running_stream = RunningStream::new(&running);
        if running.load(Ordering::Acquire) > RUNNING_MAX {
            return;
        }
        let session = Http2Session::new(request, answer, Arc::clone(&digest));
        let (app, shutdown) = (Arc::clone(app), shutdown.clone());
        tokio::spawn(async move {
            let session = ServerSession::new_custom(Box::new(session));
            let serving = AssertUnwindSafe(app.process_new_http(session, &shutdown));
            // A panic, which is in the log, ends the stream alone.
            let _ = serving.catch_unwind().await;
            drop(running_stream);
        });
    }
}

/// Bounds of an HTTP/2 connection. Pingora's own defaults come first: a bare builder has none.
fn options() -> H2Options {
    let mut options = default_h2_options();
    options
        .max_concurrent_streams(STREAMS_MAX)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    options
}

/// A running stream.
struct RunningStream(Arc<AtomicUsize>);

impl RunningStream {
    fn new(running: &Arc<AtomicUsize>) -> Self {
        running.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(running))
    }
}

impl Drop for RunningStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
