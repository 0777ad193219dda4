//! A bounded body in, a reply out.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Response, StatusCode, header};
use pingora_core::protocols::http::ServerSession;
use pingora_error::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use rampart_core::Core;
use rampart_core::endpoint::Route;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::BODY_BYTES_MAX;
use rampart_core::http::request::Entity;
use rampart_core::http::upload::{self, Upload, UploadError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Slowest body that is waited for: bytes in [`PACE_WINDOW`] (section 1.2 of the contract).
const PACE_BYTES: usize = 10 * 1000;
/// Window over which the pace is averaged.
const PACE_WINDOW: Duration = Duration::from_secs(10);
/// Bytes behind one permit of the budget for bodies.
const BUDGET_UNIT: usize = 16 * 1024;
/// Most bytes that are thrown away after an answer to a body that was refused.
const DISCARDED_MAX: usize = 1024 * 1024;
/// Time in which they are thrown away.
const DISCARD_MAX: Duration = Duration::from_secs(1);
/// Most memory that is taken on the word of a `Content-Length`, before the bytes arrive.
const TRUSTED_LENGTH: usize = 256 * 1024;

/// How reading a body ended, when not with the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoBody {
    /// More than its bound.
    TooLarge,
    /// Slower than 1 kB/s.
    TooSlow,
    /// Too many other bodies are in memory.
    NoMemory,
    /// An upload that cannot go on.
    Upload(UploadError),
    /// Not delimited as announced.
    Malformed,
    /// The client left.
    Gone,
}

/// Memory for bodies, shared by all requests.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Semaphore>);

impl Budget {
    /// `bytes` in memory at once.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / BUDGET_UNIT).clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Makes `share` cover `bytes`; `false` when there is not that much left.
    pub(crate) fn cover(&self, share: &mut Option<OwnedSemaphorePermit>, bytes: usize) -> bool {
        let held = share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.div_ceil(BUDGET_UNIT).saturating_sub(held);
        let Ok(missing @ 1..) = u32::try_from(missing) else {
            return missing == 0;
        };
        match (Arc::clone(&self.0).try_acquire_many_owned(missing), share) {
            (Err(_), _) => false,
            (Ok(more), Some(share)) => {
                share.merge(more);
                true
            }
            (Ok(more), share) => {
                *share = Some(more);
                true
            }
        }
    }
}

/// A body, and the memory it takes of the budget: given back when the request is answered.
#[derive(Debug)]
pub(crate) struct Received<B = Bytes> {
    /// What came.
    pub(crate) body: B,
    /// Its part of the budget.
    pub(crate) share: Option<OwnedSemaphorePermit>,
}

/// Where the body of a request comes from.
pub(crate) trait Source: Send {
    /// The announced length.
    fn declared(&self) -> Option<u64>;

    /// Whether nothing follows the head.
    fn is_empty(&mut self) -> bool;

    /// Whether it was read to its end.
    fn is_done(&mut self) -> bool;

    /// Asks for a body that its sender keeps back (RFC 9110, section 10.1.1).
    ///
    /// # Errors
    /// When the sender has left.
    fn invite(&mut self) -> impl Future<Output = std::result::Result<(), NoBody>> + Send;

    /// What comes next; `None` at the end.
    ///
    /// # Errors
    /// Why nothing comes any more.
    fn next(&mut self) -> impl Future<Output = std::result::Result<Option<Bytes>, NoBody>> + Send;
}

impl Source for ServerSession {
    fn declared(&self) -> Option<u64> {
        declared_length(&self.req_header().headers)
    }

    fn is_empty(&mut self) -> bool {
        self.is_body_empty()
    }

    fn is_done(&mut self) -> bool {
        self.is_body_done()
    }

    /// Pingora turns keep-alive off whenever a header is written before the body is read; here the
    /// body follows, so it is restored.
    async fn invite(&mut self) -> std::result::Result<(), NoBody> {
        let waits = self
            .get_header(header::EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        if !waits || self.is_http2() {
            return Ok(());
        }
        let keepalive = self.get_keepalive();
        self.write_continue_response().await.map_err(|_| NoBody::Gone)?;
        self.set_keepalive(keepalive);
        Ok(())
    }

    async fn next(&mut self) -> std::result::Result<Option<Bytes>, NoBody> {
        let read = self.read_request_body().await;
        read.map_err(|error| if is_gone(&error) { NoBody::Gone } else { NoBody::Malformed })
    }
}

/// The announced length of the body. `framing` has seen that it is a number and there is one.
pub(crate) fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads a body of at most `max` bytes, and no slower than 1 kB/s averaged over 10 s.
///
/// # Errors
/// Why there is none; nothing more should be read from this source then.
pub(crate) async fn read_body(
    source: &mut impl Source,
    max: usize,
    budget: &Budget,
) -> std::result::Result<Received, NoBody> {
    let gathered = Gathered { max, ..Gathered::default() }.read(source, budget).await?;
    let Gathered { first, whole, share, .. } = gathered;
    Ok(Received { body: first.unwrap_or_else(|| whole.freeze()), share })
}

/// The same for a route that takes images: above the bound of an ordinary body it is an upload, with
/// a budget of its own, so that uploads take no memory from ordinary bodies.
///
/// # Errors
/// As [`read_body`].
pub(crate) async fn read_entity(
    source: &mut impl Source,
    route: &Route,
    (budget, uploads): (&Budget, &Budget),
    core: &Arc<Core>,
) -> std::result::Result<Received<Entity>, NoBody> {
    let uploads = route.body.takes_images().then(|| (Arc::clone(core), uploads.clone()));
    let gathered = Gathered { max: route.body.bound().0, uploads, ..Gathered::default() };
    let Gathered { first, whole, upload, share, .. } = gathered.read(source, budget).await?;
    let body = match upload {
        Some(upload) => Entity::Upload(upload.finish().await.map_err(NoBody::Upload)?),
        None => first.unwrap_or_else(|| whole.freeze()).into(),
    };
    Ok(Received { body, share })
}

/// What has arrived of a body. One that comes in one chunk is not copied.
#[derive(Default)]
struct Gathered {
    max: usize,
    declared: Option<u64>,
    first: Option<Bytes>,
    whole: BytesMut,
    /// There for a body that may become an upload: whose, and the budget of uploads.
    uploads: Option<(Arc<Core>, Budget)>,
    upload: Option<Upload>,
    share: Option<OwnedSemaphorePermit>,
}

impl Gathered {
    fn len(&self) -> usize {
        match &self.upload {
            Some(upload) => upload.size(),
            None => self.first.as_ref().map_or(self.whole.len(), Bytes::len),
        }
    }

    async fn read(
        mut self,
        source: &mut impl Source,
        budget: &Budget,
    ) -> std::result::Result<Self, NoBody> {
        self.declared = source.declared();
        if self.declared.is_some_and(|length| length > self.max as u64) {
            return Err(NoBody::TooLarge);
        }
        if source.is_empty() {
            return Ok(self);
        }
        source.invite().await?;
        loop {
            let before = self.len();
            match timeout(PACE_WINDOW, self.fill(source, budget)).await {
                Ok(filled) => {
                    filled?;
                    return Ok(self);
                }
                Err(_) if self.len() - before < PACE_BYTES => return Err(NoBody::TooSlow),
                Err(_) => {}
            }
        }
    }

    /// Reads to the end. May be stopped and called again.
    async fn fill(
        &mut self,
        source: &mut impl Source,
        budget: &Budget,
    ) -> std::result::Result<(), NoBody> {
        loop {
            if let Some(upload) = &mut self.upload {
                upload.ready().await.map_err(NoBody::Upload)?;
            }
            match source.next().await? {
                Some(chunk) => self.take(chunk, budget)?,
                None => return Ok(()),
            }
        }
    }

    fn take(&mut self, chunk: Bytes, budget: &Budget) -> std::result::Result<(), NoBody> {
        let seen = self.len() + chunk.len();
        if seen > self.max {
            return Err(NoBody::TooLarge);
        }
        if let Some(upload) = &mut self.upload {
            return upload.take(&chunk).map_err(NoBody::Upload);
        }
        if let Some((core, uploads)) = self.uploads.as_ref().filter(|_| seen > BODY_BYTES_MAX) {
            self.share = None;
            if !uploads.cover(&mut self.share, upload::MEMORY_BYTES) {
                return Err(NoBody::NoMemory);
            }
            let mut upload = Upload::begin(core);
            let before = self.first.take().unwrap_or_else(|| self.whole.split().freeze());
            for bytes in [before, chunk] {
                upload.take(&bytes).map_err(NoBody::Upload)?;
            }
            self.upload = Some(upload);
            return Ok(());
        }
        if !budget.cover(&mut self.share, seen) {
            return Err(NoBody::NoMemory);
        }
        match self.first.take() {
            None if self.whole.is_empty() => self.first = Some(chunk),
            None => self.whole.extend_from_slice(&chunk),
            Some(first) => {
                let expected = self.declared.and_then(|length| usize::try_from(length).ok());
                self.whole.reserve(expected.unwrap_or(seen).min(TRUSTED_LENGTH).max(seen));
                self.whole.extend_from_slice(&first);
                self.whole.extend_from_slice(&chunk);
            }
        }
        Ok(())
    }
}

/// Whether reading ended because the client left, rather than because of what it sent.
fn is_gone(error: &Error) -> bool {
    let io = error.root_cause().downcast_ref::<std::io::Error>();
    matches!(error.etype(), ErrorType::ReadError | ErrorType::ConnectionClosed | ErrorType::H2Error)
        && io.is_none_or(|io| io.kind() != std::io::ErrorKind::InvalidData)
}

/// Writes `reply` as the answer to a request with `method`; to `HEAD` without its body.
///
/// # Errors
/// When the client does not take it.
pub(crate) async fn write(
    session: &mut ServerSession,
    method: &Method,
    reply: Reply,
) -> Result<()> {
    let (mut head, ()) = Response::new(()).into_parts();
    (head.status, head.headers) = (reply.status, reply.headers);
    let mut head = ResponseHeader::from(head);
    let has_body = has_body(reply.status);
    if has_body {
        head.insert_header(header::CONTENT_LENGTH, reply.body.len())?;
    }
    session.write_response_header(Box::new(head)).await?;
    if !has_body || reply.body.is_empty() || method == Method::HEAD {
        session.finish_body().await
    } else {
        session.write_response_body(reply.body, true).await
    }
}

/// Whether an answer with this status has a body, be it an empty one.
pub(crate) fn has_body(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Reads and throws away what the client still sends after it has its answer: unread bytes cause
/// a reset, of the connection in HTTP/1 and of the stream in HTTP/2, and to that answers get lost.
pub(crate) async fn discard(source: &mut impl Source) {
    if source.is_done() {
        return;
    }
    let drain = async {
        let mut seen = 0;
        while let Ok(Some(chunk)) = source.next().await {
            seen += chunk.len();
            if seen > DISCARDED_MAX {
                return;
            }
        }
    };
    // At the deadline it is reset all the same.
    let _ = timeout(DISCARD_MAX, drain).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_covers_no_more_than_it_has() {
        let budget = Budget::new(3 * BUDGET_UNIT);
        let (mut one, mut other) = (None, None);
        assert!(budget.cover(&mut one, 1));
        assert!(budget.cover(&mut one, 2 * BUDGET_UNIT));
        assert!(budget.cover(&mut other, BUDGET_UNIT));
        assert!(!budget.cover(&mut other, BUDGET_UNIT + 1));
        drop(one);
        assert!(budget.cover(&mut other, 3 * BUDGET_UNIT));
    }
}
