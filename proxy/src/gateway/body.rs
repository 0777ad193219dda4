//! The body of a request, bounded in size, memory and time, and the memory of answers.

mod pace;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Version, header};
use pingora_core::protocols::http::ServerSession;
use pingora_error::{Error, ErrorType};
use rampart_core::Core;
use rampart_core::endpoint::{Body, Route};
use rampart_core::http::fields::document_bytes;
use rampart_core::http::request::{BODY_BYTES_MAX, Entity, FORM_BYTES_MAX};
use rampart_core::http::upload::{self, Upload, UploadError};
use rampart_core::platform::keyed_budget::{BudgetLimit, BudgetShare, KeyedBudget};
use rampart_core::platform::network::network;
use tokio::time::timeout;

use self::pace::Pace;

/// Bytes behind one permit of the budget for bodies.
const BUDGET_UNIT: usize = 16 * 1024;
/// Most bytes that are thrown away after an answer to a body that was refused.
const DISCARDED_MAX: usize = 1024 * 1024;
/// Time in which they are thrown away.
const DISCARD_MAX: Duration = Duration::from_secs(1);

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// More than its bound.
    TooLarge,
    /// Slower than 1 kB/s.
    TooSlow,
    /// Too many other bodies are in memory.
    NoMemory,
    /// Too many others of its sender are in memory.
    ShareUsedUp,
    /// An upload that cannot go on.
    Upload(UploadError),
    /// Not delimited as announced.
    Malformed,
    /// The client left.
    Gone,
}

/// The sender of a body: a partner that is proven, or else an address, in IPv6 a /64 network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sender {
    Partner(Arc<str>),
    Network(IpAddr),
}

impl Sender {
    /// The sender of a request from `address`, of `partner` if that is not empty.
    pub(super) fn of(address: IpAddr, partner: &Arc<str>) -> Self {
        match partner.is_empty() {
            true => Self::Network(network(address)),
            false => Self::Partner(Arc::clone(partner)),
        }
    }

    /// The partner; empty for an address.
    fn partner(&self) -> Arc<str> {
        match self {
            Self::Partner(partner) => Arc::clone(partner),
            Self::Network(_) => Arc::default(),
        }
    }
}

/// Memory for bodies and the documents in them, shared by all requests, of which no sender takes all.
#[derive(Debug)]
pub(super) struct BodyMemory {
    budget: KeyedBudget<Sender>,
    /// The part of it that addresses have, where that is not all.
    addresses: Option<AddressPart>,
    /// Most that one body takes of it.
    share_bytes_max: usize,
}

/// The part of a memory that addresses have together.
#[derive(Debug)]
struct AddressPart {
    budget: KeyedBudget<Sender>,
    /// Most that one of them has.
    share_bytes_max: usize,
}

impl BodyMemory {
    /// `bytes` in memory at once, of which one sender has at most `bytes_per_sender`.
    pub(super) fn new(bytes: usize, bytes_per_sender: usize) -> Self {
        let (all, of_sender) = (units(bytes), units(bytes_per_sender));
        let share_bytes_max = all.min(of_sender) * BUDGET_UNIT;
        Self { budget: KeyedBudget::new(all, of_sender), addresses: None, share_bytes_max }
    }

    /// `bytes` for large uploads, most of them for one partner. Forms of addresses have half of it
    /// together, and those of one a quarter; one form may take what it may have.
    pub(super) fn of_uploads(bytes: usize) -> Self {
        let form = |bytes: usize| bytes.max(FORM_BYTES_MAX);
        Self::new(bytes, form(bytes - bytes / 4)).with_addresses(form(bytes / 2), form(bytes / 4))
    }

    /// `bytes` for large answers that were not taken: a quarter for one partner, and half of it for
    /// addresses, of which one has an eighth.
    pub(super) fn of_answers(bytes: usize) -> Self {
        Self::new(bytes, bytes / 4).with_addresses(bytes / 2, bytes / 8)
    }

    /// The same, of which addresses have so much together, and one of them so much.
    fn with_addresses(self, bytes: usize, bytes_per_address: usize) -> Self {
        let (all, of_address) = (units(bytes), units(bytes_per_address));
        let budget = KeyedBudget::new(all, of_address);
        let share_bytes_max = self.share_bytes_max.min(all.min(of_address) * BUDGET_UNIT);
        Self { addresses: Some(AddressPart { budget, share_bytes_max }), ..self }
    }

    /// The part that is for `sender`.
    pub(super) const fn of<'a>(&'a self, sender: &'a Sender) -> Budget<'a> {
        Budget { memory: self, sender }
    }
}

/// The memory that is left to one sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget<'a> {
    memory: &'a BodyMemory,
    sender: &'a Sender,
}

/// The permits of a budget for this many bytes.
fn units(bytes: usize) -> usize {
    (bytes / BUDGET_UNIT).max(1)
}

/// Memory that a body takes, given back when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Share {
    of_all: Option<BudgetShare<Sender>>,
    /// Of the part that addresses have.
    of_addresses: Option<BudgetShare<Sender>>,
}

impl<'a> Budget<'a> {
    /// Makes `share` cover `bytes`.
    ///
    /// # Errors
    /// When there is not that much left, in all or to the sender.
    pub(super) fn cover(self, share: &mut Option<Share>, bytes: usize) -> Result<(), BodyError> {
        let Self { memory, sender } = self;
        let units = bytes.div_ceil(BUDGET_UNIT);
        let mut held = share.take().unwrap_or_default();
        let of_part = self
            .address_part()
            .map_or(Ok(()), |part| part.budget.extend(sender, &mut held.of_addresses, units));
        let extended = of_part.and_then(|()| memory.budget.extend(sender, &mut held.of_all, units));
        *share = Some(held).filter(|held| held.of_all.is_some());
        extended.map_err(|limit| match limit {
            BudgetLimit::Key => BodyError::ShareUsedUp,
            BudgetLimit::Total => BodyError::NoMemory,
        })
    }

    /// The part of the memory that is for addresses, if its sender is one.
    fn address_part(self) -> Option<&'a AddressPart> {
        self.memory.addresses.as_ref().filter(|_| matches!(self.sender, Sender::Network(_)))
    }

    /// Most that one body takes.
    fn share_bytes_max(self) -> usize {
        self.address_part().map_or(self.memory.share_bytes_max, |part| part.share_bytes_max)
    }

    /// Makes `share` cover an answer, if it is large and takes memory of its own, until it is taken. One
    /// that is larger than any share takes all that its reader may have.
    ///
    /// # Errors
    /// Those of [`Budget::cover`].
    pub(super) fn cover_answer(
        self,
        share: &mut Option<Share>,
        answer: &Bytes,
    ) -> Result<(), BodyError> {
        if answer.len() <= BUDGET_UNIT || !answer.is_unique() {
            return Ok(());
        }
        self.cover(share, answer.len().min(self.share_bytes_max()))
    }

    /// Makes the share of a whole body cover the document in it, too. One that is larger than any share
    /// takes all that a sender may have.
    ///
    /// # Errors
    /// Those of [`Budget::cover`].
    fn cover_document(self, share: &mut Option<Share>, body: &[u8]) -> Result<(), BodyError> {
        match document_bytes(body) {
            0 => Ok(()),
            bytes => self.cover(share, (body.len() + bytes).min(self.share_bytes_max())),
        }
    }
}

/// The announced length of the body. `framing` has seen that it is a number and there is one.
pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads a body of at most `max` bytes, and no slower than 1 kB/s averaged over 10 s. It comes with the
/// memory that it takes of `budget`, to be given back when the request is answered.
///
/// # Errors
/// Why there is none; nothing more should be read from this session then.
pub(super) async fn read_body(
    session: &mut ServerSession,
    max: usize,
    budget: Budget<'_>,
) -> Result<(Bytes, Option<Share>), BodyError> {
    let partial = PartialBody { max, ..PartialBody::default() }.read(session, budget).await?;
    let PartialBody { whole, mut share, .. } = partial;
    budget.cover_document(&mut share, &whole)?;
    Ok((whole.freeze(), share))
}

/// The same for a route: above the bound of an ordinary body images are an upload, and a form is large,
/// with a budget of their own, so that they take no memory from ordinary bodies.
pub(super) async fn read_entity(
    session: &mut ServerSession,
    route: &Route,
    budget: Budget<'_>,
    uploads: Budget<'_>,
    core: &Arc<Core>,
) -> Result<(Entity, Option<Share>), BodyError> {
    let large_form = matches!(route.body, Body::LargeForm(_)).then_some(uploads);
    let images = route.body.takes_images().then(|| (Arc::clone(core), uploads));
    let max = route.body.bound().0;
    let partial = PartialBody { max, uploads: images, large_form, ..PartialBody::default() };
    let PartialBody { whole, upload, mut share, .. } = partial.read(session, budget).await?;
    // The share is one of the budget that its body was read within.
    let (body, budget): (Entity, _) = match upload {
        Some(upload) => {
            (Entity::Upload(upload.finish().await.map_err(BodyError::Upload)?), uploads)
        }
        None => (whole.freeze().into(), budget),
    };
    if large_form.is_none() {
        budget.cover_document(&mut share, body.text())?;
    }
    Ok((body, share))
}

/// The part of a body that has arrived.
#[derive(Default)]
struct PartialBody<'a> {
    max: usize,
    whole: BytesMut,
    /// There for a body that may become an upload: whose, and the budget of uploads.
    uploads: Option<(Arc<Core>, Budget<'a>)>,
    upload: Option<Upload>,
    /// The budget of uploads, for a form of ours that may be large.
    large_form: Option<Budget<'a>>,
    share: Option<Share>,
}

impl PartialBody<'_> {
    fn len(&self) -> usize {
        match &self.upload {
            Some(upload) => upload.size(),
            None => self.whole.len(),
        }
    }

    async fn read(
        self,
        session: &mut ServerSession,
        budget: Budget<'_>,
    ) -> Result<Self, BodyError> {
        let declared = content_length(&session.req_header().headers);
        if declared.is_some_and(|length| length > self.max as u64) {
            return Err(BodyError::TooLarge);
        }
        if session.is_body_empty() {
            return Ok(self);
        }
        // On the heap: requests without a body do not carry the room of one around.
        Box::pin(self.receive(session, budget)).await
    }

    async fn receive(
        mut self,
        session: &mut ServerSession,
        budget: Budget<'_>,
    ) -> Result<Self, BodyError> {
        send_continue(session).await?;
        let mut pace = Pace::new();
        loop {
            if let Some(upload) = &mut self.upload {
                upload.ready().await.map_err(BodyError::Upload)?;
            }
            match pace.wait(self.len(), next(session)).await?? {
                Some(chunk) => self.take(chunk, budget)?,
                None => return Ok(self),
            }
        }
    }

    fn take(&mut self, chunk: Bytes, budget: Budget<'_>) -> Result<(), BodyError> {
        let seen = self.len() + chunk.len();
        if seen > self.max {
            return Err(BodyError::TooLarge);
        }
        if let Some(upload) = &mut self.upload {
            return upload.take(&chunk).map_err(BodyError::Upload);
        }
        if let Some((core, uploads)) = self.uploads.as_ref().filter(|_| seen > BODY_BYTES_MAX) {
            self.share = None;
            uploads.cover(&mut self.share, upload::MEMORY_BYTES)?;
            let mut upload = Upload::begin(core, uploads.sender.partner());
            for bytes in [&std::mem::take(&mut self.whole)[..], &chunk] {
                upload.take(bytes).map_err(BodyError::Upload)?;
            }
            self.upload = Some(upload);
            return Ok(());
        }
        let budget = match self.large_form {
            Some(uploads) if seen > BODY_BYTES_MAX => {
                if seen - chunk.len() <= BODY_BYTES_MAX {
                    self.share = None;
                }
                uploads
            }
            _ => budget,
        };
        budget.cover(&mut self.share, seen)?;
        self.whole.extend_from_slice(&chunk);
        Ok(())
    }
}

/// Asks for a body that its sender keeps back (RFC 9110, section 10.1.1). Pingora turns keep-alive
/// off whenever a header is written before the body is read; here the body follows.
async fn send_continue(session: &mut ServerSession) -> Result<(), BodyError> {
    let request = session.req_header();
    let waits = request
        .headers
        .get(header::EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    // HTTP/1.0 knows no interim answers: this one would be taken for the answer.
    if !waits || request.version != Version::HTTP_11 {
        return Ok(());
    }
    let keepalive = session.get_keepalive();
    session.write_continue_response().await.map_err(|_| BodyError::Gone)?;
    session.set_keepalive(keepalive);
    Ok(())
}

/// The next part of the body; `None` at its end.
async fn next(session: &mut ServerSession) -> Result<Option<Bytes>, BodyError> {
    let read = session.read_request_body().await;
    read.map_err(|error| if is_gone(&error) { BodyError::Gone } else { BodyError::Malformed })
}

/// Reads and throws away what the client still sends after it has its answer: unread bytes cause
/// a reset, of the connection in HTTP/1 and of the stream in HTTP/2, and to that answers get lost.
pub(super) async fn discard(session: &mut ServerSession) {
    let drain = async {
        let mut seen = 0;
        while let Ok(Some(chunk)) = next(session).await {
            seen += chunk.len();
            if seen > DISCARDED_MAX {
                return;
            }
        }
    };
    // At the deadline it is reset all the same.
    let _ = timeout(DISCARD_MAX, drain).await;
}

/// Reading ended because the client left, rather than because of what it sent.
fn is_gone(error: &Error) -> bool {
    let io = error.root_cause().downcast_ref::<std::io::Error>();
    matches!(error.etype(), ErrorType::ReadError | ErrorType::ConnectionClosed | ErrorType::H2Error)
        && io.is_none_or(|io| io.kind() != std::io::ErrorKind::InvalidData)
}

#[cfg(test)]
mod tests;
