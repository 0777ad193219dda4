//! The declaration of an endpoint, and the run of one request through it.

pub mod admission;
mod approval;
mod deprecation;
mod dispatch;
/// The endpoint that the README shows.
#[cfg(test)]
pub mod example;
pub mod fault;
mod idempotency;
pub mod openapi;
pub mod private_api;
pub mod refusal_page;
mod respond;
pub mod router;
pub mod text_amounts;

use std::sync::Arc;

use futures::future::BoxFuture;
use http::{Method, StatusCode};
use schemars::SchemaGenerator;
use serde_json::Value;

pub use self::approval::Approver;
pub use self::deprecation::Deprecation;
pub use self::idempotency::{ClaimedKey, KeyClaims};
pub use self::idempotency::{FormUse, SavedAnswer, key_lost, save_answer, save_reply};
pub use self::respond::{
    Created, Done, Json, NoContent, OpenApiDocument, PreserializedJson, Respond, Success,
};
use crate::Core;
use crate::auth::caller::{Caller, Client, UserProof};
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::Doc;
use crate::http::Surface;
use crate::http::fields::{self, strict};
use crate::http::reply::Reply;
use crate::http::request::{BODY_BYTES_MAX, Input};
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;

/// One method and path of one API version, of the partners' API or the operators'.
///
/// The checks run in the contract's order: client and its rates or the operator (by admission),
/// JSON, user, [`Endpoint::read`] (fields), [`Endpoint::call`] (state). The first stage that finds
/// something answers.
///
/// For the OpenAPI document, write [`Endpoint::DOC`] (a summary, the members of query and body, an
/// example of body and answer) and derive `schemars::JsonSchema` for the answer. A new endpoint
/// compiles without the first; `tests/tests/contract/openapi.rs` then lists what is missing.
pub trait Endpoint: Sized + 'static {
    /// Method.
    const METHOD: Method;
    /// Path, with `{name}` for a segment that varies.
    const PATH: &'static str;
    /// Scope that an API key needs: every endpoint for clients declares one.
    const SCOPE: Option<Scope> = None;
    /// Codes of [`Endpoint::read`] and [`Endpoint::call`], beyond the caller's: partners' API.
    const ERRORS: &'static [Code] = &[];
    /// Statuses with which [`Endpoint::read`] and [`Endpoint::call`] refuse, beyond those of the
    /// caller and of reading: operators' API.
    const STATUSES: &'static [StatusCode] = &[];
    /// Roles of which an operator needs one: operators' API. An owner has all.
    const ROLES: &'static [Role] = &[];
    /// Roles of which the second operator needs one, where fewer may agree than call: operators' API.
    const APPROVERS: &'static [Role] = Self::ROLES;
    /// Action under which a read of personal data stands in the audit: operators' API.
    const READ_AUDIT: Option<&'static str> = None;
    /// `true` if [`Endpoint::call`] only reads, and may read what was true a few seconds ago: from a
    /// replica (`database.replica_urls`).
    const MAY_BE_STALE: bool = false;
    /// `true` if a second operator may have to agree first: operators' API; see
    /// [`Endpoint::needs_approval`]. A call that succeeds and has not used the approval up fails
    /// ([`Approver::settle`]).
    const APPROVAL: bool = false;
    /// `true` if a request that waits for a second operator is refused at once where [`Endpoint::call`]
    /// refuses it now: its transaction is undone, and nothing else of it has an effect.
    const DRY_RUN: bool = true;
    /// `true` if [`Endpoint::call`] is one transaction that locks rows in another order than others
    /// do: it is run again when Postgres gives it up to end a deadlock. For what locks orders and
    /// their commands. Others lock in this order: references of payments, partners, users, commands
    /// about users, offers, orders.
    const RETRIED: bool = false;
    /// `true` if [`Endpoint::call`] waits for a password's hash: a login or a registration. Its statements
    /// have connections of their own (`database.login_connections_max`).
    const IS_LOGIN: bool = false;
    /// Form of the body.
    const BODY: Body = Body::None;
    /// Caching of the answer.
    const CACHE: Cache = Cache::Never;
    /// `true` honours `Idempotency-Key`: every POST of partners that creates or changes something, quotes
    /// and credentials excepted, and one of operators that moves money each time. The latter saves
    /// its answer in its transaction, or it is not kept.
    const IDEMPOTENT: bool = false;
    /// `true` if there is no such route for live clients, whatever they send.
    const TEST_ONLY: bool = false;
    /// A bucket besides the client's.
    const BUCKET: Option<Bucket> = None;
    /// Requests that one with this query counts as in [`Endpoint::BUCKET`].
    const COST: fn(&Core, &Client, Option<&str>) -> u32 = |_, _, _| 1;
    /// The operation that replaces this one, which is served until its sunset.
    const DEPRECATION: Option<Deprecation> = None;
    /// Words, members and examples for the document. Everything else in it is known from the other
    /// declarations and from the types.
    const DOC: Doc = Doc::NONE;

    /// The proven caller.
    type Caller: Approver + 'static;
    /// The request, read and valid: not checked again later.
    type Request: Send + 'static;
    /// The success.
    type Response: Respond;

    /// Reads the request's members and reports every violation.
    ///
    /// # Errors
    /// All violations of the stage together.
    fn read(input: &Input, caller: &Self::Caller) -> Result<Self::Request>;

    /// `true` if a second operator has to agree to this request.
    fn needs_approval(
        _: &Core,
        _: &Self::Caller,
        _: &Self::Request,
    ) -> impl Future<Output = Result<bool>> + Send {
        async { Ok(Self::APPROVAL) }
    }

    /// Gives the answer to a request that waits for a second operator.
    fn hold(
        core: &Core,
        input: &Input,
        caller: &Self::Caller,
        request: &Self::Request,
    ) -> impl Future<Output = Result<Option<Reply>>> + Send {
        let needed = Self::needs_approval(core, caller, request);
        async move { if needed.await? { caller.hold::<Self>(core, input).await } else { Ok(None) } }
    }

    /// Carries the request out. Its only effect is its transaction.
    fn call(
        core: &Core,
        caller: Self::Caller,
        request: Self::Request,
    ) -> impl Future<Output = Result<Self::Response>> + Send;

    /// [`Endpoint::call`] with the request's `Idempotency-Key`, if it has one. Every idempotent
    /// endpoint with a transaction saves its answer in it; otherwise it is saved afterwards.
    fn call_with_key(
        core: &Core,
        caller: Self::Caller,
        request: Self::Request,
        _: Option<&ClaimedKey>,
    ) -> impl Future<Output = Result<Self::Response>> + Send {
        Self::call(core, caller, request)
    }
}

/// The form of an endpoint's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// None; one that is sent is bounded and ignored.
    None,
    /// JSON up to [`BODY_BYTES_MAX`].
    Json,
    /// JSON with images in it, up to this many bytes; too large is ER078. Besides the images there
    /// may be [`BODY_BYTES_MAX`].
    JsonWithImage(usize),
    /// A form of one of our own pages, up to [`BODY_BYTES_MAX`].
    Form,
    /// The same with a large file, up to this many bytes.
    LargeForm(usize),
    /// JSON of the operators' API: an unknown member is refused, an empty body is an empty object.
    StrictJson,
    /// Any bytes, in one of these media types.
    OneOf(&'static [&'static str]),
}

impl Body {
    /// The bound in bytes, and the code for a body above it.
    pub const fn bound(self) -> (usize, Code) {
        match self {
            Self::JsonWithImage(bytes) => (bytes, Code::ImageInvalid),
            Self::LargeForm(bytes) => (bytes, Code::RequestMalformed),
            _ => (BODY_BYTES_MAX, Code::RequestMalformed),
        }
    }

    /// The body as JSON; `Null` for any other form.
    fn parse(self, body: &[u8]) -> Result<Value> {
        match self {
            Self::Json | Self::JsonWithImage(_) => fields::parse(body),
            Self::StrictJson => strict::parse(body),
            Self::None | Self::Form | Self::LargeForm(_) | Self::OneOf(_) => Ok(Value::Null),
        }
    }

    /// `true` if a body above [`BODY_BYTES_MAX`] is read as an [`crate::http::upload::Upload`].
    pub const fn takes_images(self) -> bool {
        matches!(self, Self::JsonWithImage(_))
    }
}

/// Caching of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// None: `Cache-Control: no-store`.
    Never,
    /// By the client, under an `ETag` that a later request may name.
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
    /// The API that it belongs to.
    pub surface: Surface,
    /// Scope that an API key needs.
    pub scope: Option<Scope>,
    /// `true` if there is no such route for live clients.
    pub test_only: bool,
    /// Codes that the endpoint declares itself.
    pub errors: &'static [Code],
    /// Statuses that the endpoint declares itself.
    pub statuses: &'static [StatusCode],
    /// Roles of which an operator needs one.
    pub roles: &'static [Role],
    /// Roles of which the second operator needs one.
    pub approvers: &'static [Role],
    /// Action of the audit for a read of personal data.
    pub read_audit: Option<&'static str>,
    /// `true` if a second operator may have to agree first.
    pub approval: bool,
    /// Codes that its caller's proof declares.
    pub caller_errors: &'static [Code],
    /// `true` if the client is proven at admission.
    pub client: bool,
    /// Form of the body.
    pub body: Body,
    /// Caching of the answer.
    pub cache: Cache,
    /// A bucket besides the client's.
    pub bucket: Option<Bucket>,
    /// Requests that one with this query counts as in that bucket.
    pub cost: fn(&Core, &Client, Option<&str>) -> u32,
    /// `true` if `Idempotency-Key` is honoured.
    pub idempotent: bool,
    /// The operation that replaces it, if one does.
    pub deprecation: Option<Deprecation>,
    /// The user credential that is wanted.
    pub user: UserProof,
    /// Words, members and examples for the document.
    pub doc: Doc,
    /// Every form of the answer, for the document.
    pub successes: fn(&mut SchemaGenerator) -> Vec<Success>,
    /// The declaration's type: module path and version.
    pub type_name: fn() -> &'static str,
    handle: Handle,
}

type Handle =
    fn(Arc<Core>, Option<Client>, Input, Option<Error>) -> BoxFuture<'static, Result<Reply>>;

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Route {
    /// `true` for a read: it may be stopped when nobody waits for the answer.
    pub fn is_safe(&self) -> bool {
        self.method == Method::GET
    }

    /// `true` if its answer shows the catalogue, and then names the catalogue's version.
    pub fn shows_catalogue(&self) -> bool {
        self.client && (self.cache == Cache::Revalidate || self.bucket == Some(Bucket::Quotes))
    }

    /// `true` if a reply of this route may carry the code. The edge's own replies (size, framing,
    /// idempotency, no route) are declared for all.
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

    /// `true` if the endpoint reads anything of the request: path, query or body.
    pub fn takes_input(&self) -> bool {
        self.path.contains('{') || !self.doc.query.is_empty() || self.body != Body::None
    }

    /// Statuses of a private API with which the route may refuse: its own, and those that follow
    /// from the listener, the caller and the reading.
    pub fn refusals(&self) -> Vec<StatusCode> {
        let mut refusals = vec![
            StatusCode::UNAUTHORIZED,
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::INTERNAL_SERVER_ERROR,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        if self.surface == Surface::Operators {
            refusals.extend([
                StatusCode::FORBIDDEN,
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                StatusCode::MISDIRECTED_REQUEST,
            ]);
        }
        if self.body == Body::StrictJson {
            refusals.push(StatusCode::BAD_REQUEST);
        }
        if self.approval || self.idempotent {
            refusals.push(StatusCode::CONFLICT);
        }
        if self.takes_input() {
            refusals.push(StatusCode::UNPROCESSABLE_ENTITY);
        }
        refusals.extend(self.statuses);
        refusals.sort_unstable();
        refusals.dedup();
        refusals
    }

    /// `true` if a reply of this route of the operators' API may have the status.
    pub fn declares_status(&self, status: StatusCode) -> bool {
        !(status.is_client_error() || status.is_server_error()) || self.refusals().contains(&status)
    }

    /// Runs the request.
    pub(crate) fn run(
        &self,
        core: Arc<Core>,
        client: Option<Client>,
        input: Input,
    ) -> BoxFuture<'static, Result<Reply>> {
        let fault = fault::wanted(self, client.as_ref(), &input.head.headers);
        (self.handle)(core, client, input, fault)
    }
}

/// The row of an endpoint.
pub const fn route<E: Endpoint>() -> Route {
    assert!(
        E::SCOPE.is_some() == <E::Caller as Caller>::CLIENT,
        "clients have scopes, others none"
    );
    assert!(!E::TEST_ONLY || <E::Caller as Caller>::CLIENT, "only clients are of a mode");
    assert!(!E::RETRIED || !E::MAY_BE_STALE, "a read waits for no lock");
    Route {
        method: E::METHOD,
        path: E::PATH,
        surface: <E::Caller as Caller>::SURFACE,
        scope: E::SCOPE,
        test_only: E::TEST_ONLY,
        errors: E::ERRORS,
        statuses: E::STATUSES,
        roles: E::ROLES,
        approvers: E::APPROVERS,
        read_audit: E::READ_AUDIT,
        approval: E::APPROVAL,
        caller_errors: <E::Caller as Caller>::ERRORS,
        client: <E::Caller as Caller>::CLIENT,
        body: E::BODY,
        cache: E::CACHE,
        bucket: E::BUCKET,
        cost: E::COST,
        idempotent: E::IDEMPOTENT,
        deprecation: E::DEPRECATION,
        user: <E::Caller as Caller>::USER,
        doc: E::DOC,
        successes: E::Response::successes,
        type_name: std::any::type_name::<E>,
        handle: dispatch::dispatch::<E>,
    }
}
