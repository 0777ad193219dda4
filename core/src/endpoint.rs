//! What an endpoint declares, and how one request runs through it.

pub mod admission;
mod idempotency;
pub mod openapi;
mod respond;

use std::sync::Arc;

use futures::future::BoxFuture;
use http::Method;
use schemars::SchemaGenerator;

use self::idempotency::Claim;
pub(crate) use self::idempotency::SavedAnswer;
pub use self::idempotency::{ClaimedKey, KeyClaims};
pub use self::respond::{Done, Json, NoContent, Respond, Success};
use crate::Core;
use crate::auth::caller::{Caller, Client, UserProof};
use crate::endpoint::openapi::doc::Doc;
use crate::http::fields;
use crate::http::reply::Reply;
use crate::http::request::{BODY_BYTES_MAX, Input};
use crate::platform::error::{Code, Result};

/// One method and path of one API version.
///
/// The checks run in the contract's order: client and its rates (by admission), JSON, user,
/// [`Endpoint::read`] (fields), [`Endpoint::call`] (state). The first stage that finds something
/// answers.
///
/// For the OpenAPI document, write [`Endpoint::DOC`] (a summary, the members of query and body, an
/// example of body and answer) and derive `schemars::JsonSchema` for what is answered. A new
/// endpoint compiles without the first; `tests/tests/contract/openapi.rs` then says what it lacks.
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
    /// What partners read about it: words, members and examples. Everything else in the document
    /// is known from the other declarations and from the types.
    const DOC: Doc = Doc::NONE;

    /// Who may call.
    type Caller: Caller + 'static;
    /// The request, read and valid: nobody checks it twice.
    type Request: Send + 'static;
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

    /// [`Endpoint::call`] with the request's `Idempotency-Key`, if it has one. For an endpoint that
    /// saves its answer in its transaction; otherwise it is saved afterwards.
    fn call_with_key(
        core: &Core,
        caller: Self::Caller,
        request: Self::Request,
        _: Option<&ClaimedKey>,
    ) -> impl Future<Output = Result<Self::Response>> + Send {
        Self::call(core, caller, request)
    }
}

/// How an endpoint takes its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// It takes none; what is sent is bounded and ignored.
    None,
    /// JSON up to [`BODY_BYTES_MAX`].
    Json,
    /// JSON with images in it, up to this many bytes; too large is ER078. Besides the images there
    /// may be [`BODY_BYTES_MAX`].
    JsonWithImage(usize),
    /// A form of one of our own pages, up to [`BODY_BYTES_MAX`].
    Form,
}

impl Body {
    /// The bound in bytes, and the code for a body above it.
    pub const fn bound(self) -> (usize, Code) {
        match self {
            Self::JsonWithImage(bytes) => (bytes, Code::ImageInvalid),
            _ => (BODY_BYTES_MAX, Code::RequestMalformed),
        }
    }

    const fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::JsonWithImage(_))
    }

    /// Whether what is above [`BODY_BYTES_MAX`] is read as an [`crate::http::upload::Upload`].
    pub const fn takes_images(self) -> bool {
        matches!(self, Self::JsonWithImage(_))
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
    /// Whether `Idempotency-Key` is honoured.
    pub idempotent: bool,
    /// Which user credential is wanted.
    pub user: UserProof,
    /// Words, members and examples for the document.
    pub doc: Doc,
    /// Every form of the answer, for the document.
    pub successes: fn(&mut SchemaGenerator) -> Vec<Success>,
    /// The declaration's type: module path and version.
    pub type_name: fn() -> &'static str,
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
        matches!(code, Code::RouteNotFound | Code::GeneralError | Code::RateLimited)
            || self.caller_errors.contains(&code)
            || self.errors.contains(&code)
            || (code == self.body.bound().1 || code == Code::RequestMalformed)
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
        idempotent: E::IDEMPOTENT,
        user: <E::Caller as Caller>::USER,
        doc: E::DOC,
        successes: E::Response::successes,
        type_name: std::any::type_name::<E>,
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
    let claim = match claimant {
        Some(client) if E::IDEMPOTENT => {
            idempotency::claim(core, (client, caller.user()), E::PATH, &input).await?
        }
        _ => Claim::NoKey,
    };
    let key = match claim {
        Claim::NoKey => None,
        Claim::Claimed(key) => Some(key),
        Claim::Answered(reply) => return Ok(reply),
    };
    let result = match E::read(&input, &caller) {
        Ok(request) => {
            E::call_with_key(core, caller, request, key.as_ref()).await.and_then(Respond::respond)
        }
        Err(error) => Err(error),
    };
    match key {
        Some(key) => key.settle(core, result, &input.head.request_id).await,
        None => result,
    }
}
