//! Pingora's loop for HTTP/2 answers a request with two hosts itself, without the envelope and the
//! request id that every answer has, bounds neither the preface nor streams that were given up, and
//! drops a connection without a word; here each one ends with GOAWAY, the last stream and a reason.

mod frame_scan;
mod header_scan;
mod huffman;
mod refused_streams;
mod session;

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use pingora_core::apps::HttpServerApp as _;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::v2::server::{H2Options, default_h2_options, handshake};
use pingora_core::protocols::{Digest, Stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, interval, timeout};

pub(super) use self::frame_scan::{FrameScan, HeaderMemory, header_memory};
pub(super) use self::refused_streams::RefusedStreams;
use self::refused_streams::Verdict;
use self::session::Http2Session;
use super::connection_info::{ConnectionInfo, RESETS_AT_ONCE};
use super::connection_limits::ConnectionLimits;
use super::deadline::{Deadline, now};
use super::framing::BAD_URL;
use super::lifecycle::{Busy, Phase};

/// Streams of one HTTP/2 connection that run at once.
const STREAMS_MAX: u32 = 100;
/// Streams that may still run although the client gave up on some of them.
const RUNNING_MAX: usize = 2 * STREAMS_MAX as usize;
/// Most streams of a connection that clients share which wait to be accepted although they are reset:
/// each client may take back as many calls at once as on its own connection, [`RESETS_AT_ONCE`].
const SHARED_RESETS_MAX: usize = 10 * STREAMS_MAX as usize;
/// Receive window of a stream and of a connection, in bytes.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes of a stream that wait for the connection. With the 400 KiB of the h2 crate most answers have
/// left, by their own pace and time, before a client with wide windows has begun to read.
const SEND_BUFFER: usize = 32 * 1024;
/// Time for the HTTP/2 preface and settings.
const PREFACE_MAX: Duration = Duration::from_secs(10);
/// Time in which a client that was told to leave may still begin a stream: it is told which one is
/// the last as soon as it has said that it knows. One that comes while the process stops has it for
/// its first stream too.
const LEAVE_MAX: Duration = Duration::from_secs(2);
/// Time for the last frame of a connection.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// Serves a connection, stream by stream, until it ends or is to end, within `limits`.
pub(super) async fn serve(stream: Stream, info: &ConnectionInfo, limits: &ConnectionLimits) {
    let proxy_digest = stream.get_proxy_digest();
    let digest = Arc::new(Digest { proxy_digest, ..Digest::default() });
    let options = options(limits.clients.is_shared(info.peer));
    let Ok(Ok(mut h2)) = timeout(PREFACE_MAX, handshake(stream, Some(options))).await else {
        return;
    };
    let streams = Streams {
        limits,
        digest,
        permits: Arc::new(Semaphore::new(RUNNING_MAX)),
        last_end: Arc::new(Mutex::new(now())),
    };
    // Keeps the process from going before the last frame has left.
    let mut busy = None;
    let reason = accept_all(&mut h2, streams, info, &mut busy).await;
    let Some(reason) = reason else { return };
    h2.abrupt_shutdown(reason);
    // Whoever does not take the frame in time is gone, or as good as gone.
    let _ = timeout(CLOSE_MAX, poll_fn(|cx| h2.poll_closed(cx))).await;
}

/// Serves streams; why the connection is to be closed, or `None` when it has ended. Once its client
/// is told to leave it is `busy`.
async fn accept_all(
    h2: &mut Connection<Stream, Bytes>,
    streams: Streams<'_>,
    info: &ConnectionInfo,
    busy: &mut Option<Busy>,
) -> Option<Reason> {
    let limits = streams.limits;
    let lifecycle = &limits.lifecycle;
    // Calls that some of a balancer's clients gave up end no connection of the others.
    let is_shared = limits.clients.is_shared(info.peer);
    let mut hostile = pin!(info.hostile());
    let mut draining = pin!(lifecycle.reach(Phase::Draining));
    // One that comes while the process stops is told to leave by its first stream, or without one.
    let late = lifecycle.phase() >= Phase::Draining;
    *busy = late.then(|| lifecycle.begin());
    let age = if late { LEAVE_MAX } else { limits.connection_max_age };
    let mut old = pin!(timeout(age, pending::<()>()));
    let (mut idle, mut accepted) = (Deadline::default(), 0_u32);
    let mut idle_until = now() + limits.timeouts.idle;
    // Once the client is told to leave, each time that it has had LEAVE_MAX again.
    let (mut leaving, mut staying, mut is_over) = (interval(LEAVE_MAX), true, false);
    // The tick since which no stream runs: what is left of answers waits for the client alone.
    let mut answered = None;
    loop {
        let leave = tokio::select! {
            biased;
            () = &mut hostile => return Some(Reason::ENHANCE_YOUR_CALM),
            () = &mut draining, if staying && (!late || accepted > 0) => true,
            _ = &mut old, if staying => true,
            next = h2.accept() => {
                let (mut request, mut answer) = next?.ok()?;
                match info.refused_streams.judge(answer.stream_id().as_u32()) {
                    Verdict::Accepted => {}
                    Verdict::Refused => _ = request.extensions_mut().insert(BAD_URL),
                    Verdict::Unknown => return Some(Reason::PROTOCOL_ERROR),
                }
                accepted = accepted.saturating_add(1);
                let permit = Arc::clone(&streams.permits).try_acquire_owned().ok();
                match permit.filter(|_| !is_over) {
                    Some(permit) => streams.spawn(permit, request, answer),
                    // It may be sent again (RFC 9113, section 8.7), on another connection when this
                    // one is over.
                    None if is_over || is_shared => answer.send_reset(Reason::REFUSED_STREAM),
                    None => return Some(Reason::ENHANCE_YOUR_CALM),
                }
                accepted >= limits.connection_requests_max
            }
            tick = leaving.tick(), if !staying => {
                is_over = true;
                let waited =
                    streams.none_runs().then(|| tick.duration_since(*answered.get_or_insert(tick)));
                if waited.is_some_and(|waited| !h2.has_streams() || limits.bounds.is_over(waited)) {
                    return Some(Reason::NO_ERROR);
                }
                false
            }
            () = poll_fn(|cx| idle.poll_until(cx, idle_until)), if staying => {
                idle_until = streams.idle_since() + limits.timeouts.idle;
                idle_until <= now()
            }
        };
        if leave && staying {
            h2.graceful_shutdown();
            *busy = Some(lifecycle.begin());
            // From now on: the first tick of an interval comes at once.
            leaving.reset();
            staying = false;
        }
    }
}

/// The streams of one connection.
struct Streams<'a> {
    limits: &'a ConnectionLimits,
    digest: Arc<Digest>,
    /// A permit for each that may run.
    permits: Arc<Semaphore>,
    /// The end of the last one, or the begin of the connection.
    last_end: Arc<Mutex<Instant>>,
}

/// A stream that runs. Its permit is free once its end is noted.
struct RunningStream {
    last_end: Arc<Mutex<Instant>>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for RunningStream {
    fn drop(&mut self) {
        *self.last_end.lock().unwrap_or_else(PoisonError::into_inner) = now();
    }
}

impl Streams<'_> {
    fn none_runs(&self) -> bool {
        self.permits.available_permits() == RUNNING_MAX
    }

    /// The time since which none runs; now, while one does.
    fn idle_since(&self) -> Instant {
        match self.none_runs() {
            true => *self.last_end.lock().unwrap_or_else(PoisonError::into_inner),
            false => now(),
        }
    }

    /// Serves one, which has `permit` until it is over.
    fn spawn(
        &self,
        permit: OwnedSemaphorePermit,
        request: Request<RecvStream>,
        answer: SendResponse<Bytes>,
    ) {
        let (limits, digest) = (self.limits, Arc::clone(&self.digest));
        let session = Box::new(Http2Session::new(request, answer, digest, limits.bounds));
        let (app, shutdown) = (Arc::clone(&limits.proxy), limits.closing.subscribe());
        let running = RunningStream { last_end: Arc::clone(&self.last_end), _permit: permit };
        // A panic, which is in the log, ends the task alone.
        tokio::spawn(async move {
            let _running = running;
            let session = ServerSession::new_custom(session);
            app.process_new_http(session, &shutdown).await;
        });
    }
}

/// Bounds of an HTTP/2 connection, which clients may share. Pingora's own defaults come first: a bare
/// builder has none.
fn options(is_shared: bool) -> H2Options {
    let resets_max = if is_shared { SHARED_RESETS_MAX } else { RESETS_AT_ONCE as usize };
    let mut options = default_h2_options();
    options
        .max_concurrent_streams(STREAMS_MAX)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(resets_max);
    options
}
