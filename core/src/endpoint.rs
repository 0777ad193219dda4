//! What an endpoint declares, and how one request runs through it.

mod idempotency;

use std::sync::Arc;

use futures::future::BoxFuture;
use http::{Method, StatusCode};
use serde::Serialize;

use crate::Core;
use crate::caller::{Caller, Client};
use crate::error::{Code, Result};
use crate::exchange::{Input, Reply};
use crate::fields;

/// Largest body of an ordinary endpoint, in bytes (section 1 of the contract).
pub const BODY_BYTES_MAX: usize = 256 * 1024;

/// One method and path of one API version.
///
/// The checks run in the contract's order: client and its rates (by admission), JSON, user,
/// [`Endpoint::read`] (fields), [`Endpoint::call`] (state). The first stage that finds something
/// answers.
pub trait Endpoint: 'static {
    /// Method.
    const METHOD: Method;
    /// Path, with `{name}` for a segment that varies.
    const PATH: &'static str;
    /// What [`Endpoint::read`] and [`Endpoint::call`] may refuse with, beyond the caller's codes.
    const ERRORS: &'static [Code];
    /// How the body is read.
    const BODY: Body = Body::None;
    /// What may keep the answer.
    const CACHE: Cache = Cache::Never;
    /// Whether `Idempotency-Key` is honoured: every POST that creates something, quotes excepted.
    const IDEMPOTENT: bool = false;
    /// A bucket besides the client's.
    const BUCKET: Option<Bucket> = None;

    /// Who may call.
    type Caller: Caller;
    /// The request, read and valid: nobody checks it twice.
    type Request: Send;
    /// The success.
    type Response: Respond;

    /// Reads the request's members and says everything that is wrong with them.
    ///
    /// # Errors
    /// All violations of the stage together.
    fn read(input: &Input, caller: &Self::Caller) -> Result<Self::Request>;

    /// Does what the endpoint is for. Its only effect is its transaction.
    fn call(
        core: &Core,
        caller: Self::Caller,
        request: Self::Request,
    ) -> impl Future<Output = Result<Self::Response>> + Send;
}

/// How an endpoint takes its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// It takes none; what is sent is bounded and ignored.
    None,
    /// JSON up to [`BODY_BYTES_MAX`].
    Json,
    /// JSON with an image in it, up to this many bytes; too large is ER078.
    JsonWithImage(usize),
    /// A form of one of our own pages, up to [`BODY_BYTES_MAX`].
    Form,
}

impl Body {
    /// The bound in bytes, and the code for a body above it.
    pub const fn bound(self) -> (usize, Code) {
        match self {
            Self::JsonWithImage(bytes) => (bytes, Code::ER078),
            _ => (BODY_BYTES_MAX, Code::ER048),
        }
    }

    const fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::JsonWithImage(_))
    }
}

/// What may keep an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Nobody: `Cache-Control: no-store`.
    Never,
    /// The client, under an `ETag` that a later request may ask with.
    Revalidate,
}

/// A rate bucket besides the client's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// Quotes per client.
    Quotes,
}

/// A success that can be written.
pub trait Respond: Send {
    /// The answer.
    ///
    /// # Errors
    /// When it cannot be written, which is our fault.
    fn respond(self) -> Result<Reply>;
}

/// 200 with a JSON body.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize + Send> Respond for Json<T> {
    fn respond(self) -> Result<Reply> {
        Reply::json(StatusCode::OK, &self.0)
    }
}

/// 204.
#[derive(Debug)]
pub struct NoContent;

impl Respond for NoContent {
    fn respond(self) -> Result<Reply> {
        Ok(Reply::empty(StatusCode::NO_CONTENT))
    }
}

impl Respond for Reply {
    fn respond(self) -> Result<Reply> {
        Ok(self)
    }
}

/// An endpoint with its types erased: a row of the table in `api.rs`.
pub struct Route {
    /// Method.
    pub method: Method,
    /// Path as declared; also the label in metrics and logs.
    pub path: &'static str,
    /// Codes that the endpoint declares itself.
    pub errors: &'static [Code],
    /// Codes that its caller's proof declares.
    pub caller_errors: &'static [Code],
    /// Whether the client is proven at admission.
    pub client: bool,
    /// How the body is read.
    pub body: Body,
    /// What may keep the answer.
    pub cache: Cache,
    /// A bucket besides the client's.
    pub bucket: Option<Bucket>,
    handle: Handle,
}

type Handle = fn(Arc<Core>, Option<Client>, Input) -> BoxFuture<'static, Result<Reply>>;

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Route {
    /// Whether it only reads: it may be stopped when nobody waits for the answer.
    pub fn is_safe(&self) -> bool {
        self.method == Method::GET
    }

    /// Whether its answer shows the catalogue, whose version it then names.
    pub fn shows_catalogue(&self) -> bool {
        self.client && (self.cache == Cache::Revalidate || self.bucket == Some(Bucket::Quotes))
    }

    /// Whether a reply of this route may carry the code. What the edge itself answers (size,
    /// framing, idempotency, no route) is declared for all.
    pub fn declares(&self, code: Code) -> bool {
        matches!(code, Code::ER998 | Code::ER999 | Code::RateLimited)
            || self.caller_errors.contains(&code)
            || self.errors.contains(&code)
            || (code == self.body.bound().1 || code == Code::ER048)
    }

    /// The same for a code as it stands in an envelope.
    pub fn declares_text(&self, code: &str) -> bool {
        Code::ALL.iter().any(|known| known.as_str() == code && self.declares(*known))
    }

    /// Runs the request.
    pub(crate) fn run(
        &self,
        core: Arc<Core>,
        client: Option<Client>,
        input: Input,
    ) -> BoxFuture<'static, Result<Reply>> {
        (self.handle)(core, client, input)
    }
}

/// The row of an endpoint.
pub const fn route<E: Endpoint>() -> Route {
    Route {
        method: E::METHOD,
        path: E::PATH,
        errors: E::ERRORS,
        caller_errors: <E::Caller as Caller>::ERRORS,
        client: <E::Caller as Caller>::CLIENT,
        body: E::BODY,
        cache: E::CACHE,
        bucket: E::BUCKET,
        handle: |core, client, input| {
            Box::pin(async move { respond::<E>(&core, client, input).await })
        },
    }
}

async fn respond<E: Endpoint>(
    core: &Core,
    client: Option<Client>,
    mut input: Input,
) -> Result<Reply> {
    if E::BODY.is_json() {
        input.document = fields::parse(&input.body)?;
    }
    let claimant = client.as_ref().map(Client::id);
    let caller = E::Caller::identify(core, client, &input).await?;
    let request = E::read(&input, &caller)?;
    let work = async { E::call(core, caller, request).await?.respond() };
    match claimant {
        Some(client) if E::IDEMPOTENT => {
            idempotency::once(core, client, E::PATH, &input, work).await
        }
        _ => work.await,
    }
}
