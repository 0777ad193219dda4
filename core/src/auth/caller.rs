//! Who calls, proven. Being handed a caller is the permission check, and it carries the tenant:
//! a statement that names `client_id` takes it from here, never from the request.

use std::sync::Arc;

use crate::Core;
use crate::auth::user_credentials;
use crate::endpoint::Surface;
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::{ApiKey, Tenant};
use crate::trading::catalogue::Catalogue;
use rampart_types::{ClientId, UserId};

/// A proven API client, with everything about it and the market that its answer may need, as of
/// one moment: nothing here changes while the request runs.
#[derive(Clone, Debug)]
pub struct Client {
    /// The client's settings, secrets and policies.
    pub tenant: Arc<Tenant>,
    /// The market.
    pub catalogue: Arc<Catalogue>,
    /// How it proved itself.
    pub credential: Credential,
    /// Id of the request that is being served.
    pub request_id: Arc<str>,
}

impl Client {
    /// The tenant's id, for statements.
    pub fn id(&self) -> ClientId {
        self.tenant.id
    }

    /// The client in whose name a page of ours speaks: the page's own link was the permission.
    /// `None` when it is gone or suspended.
    pub(crate) fn of_page(core: &Core, client: ClientId, request_id: &str) -> Option<Self> {
        let snapshot = core.snapshots.current();
        let tenant = snapshot.tenants.get(&client).filter(|tenant| !tenant.suspended)?;
        Some(Self {
            tenant: Arc::clone(tenant),
            catalogue: Arc::clone(&snapshot.catalogue),
            credential: Credential::Token,
            request_id: request_id.into(),
        })
    }

    /// Whether the client got in by an API key (and then names its user where that matters).
    pub fn by_api_key(&self) -> bool {
        matches!(self.credential, Credential::ApiKey(_))
    }
}

/// How a client proved itself.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A bearer token of `authenticate`.
    Token,
    /// An API key.
    ApiKey(Arc<ApiKey>),
}

/// Which user credential a caller brings: `User-Authorization`, `User-Identifier`, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserProof {
    /// None; one that is sent is not looked at.
    None,
    /// One, if there is a user.
    Optional,
    /// One, when the client proves itself by an API key; optional with a client token.
    WithApiKey,
    /// One always.
    Required,
    /// The token of a login always: an identifier alone is not enough.
    Token,
}

/// Who an endpoint lets in.
pub trait Caller: Sized + Send {
    /// The API that the caller uses.
    const SURFACE: Surface = Surface::Partners;
    /// Whether the edge must prove the client before anything else is read.
    const CLIENT: bool;
    /// Which user credential is wanted, for the OpenAPI document.
    const USER: UserProof;
    /// Codes with which the proof can fail.
    const ERRORS: &'static [Code];

    /// The proven user, if there is one.
    fn user(&self) -> Option<UserId>;

    /// Proves the rest of who calls: the client is proven already where [`Caller::CLIENT`] says so.
    fn identify(
        core: &Core,
        client: Option<Client>,
        input: &Input,
    ) -> impl Future<Output = Result<Self>> + Send;
}

/// Codes with which a client's proof can fail.
pub const CLIENT_ERRORS: &[Code] = &[
    Code::ClientTokenInvalid,
    Code::ClientTokenExpired,
    Code::ClientCredentialMissing,
    Code::ClientCredentialAmbiguous,
    Code::ApiKeyInvalid,
    Code::ApiKeyEmpty,
    Code::GeneralError,
    Code::RateLimited,
];

/// The same, and a user's.
pub const USER_ERRORS: &[Code] = &and_client_errors::<16>(&[
    Code::UserCredentialMissing,
    Code::UserTokenExpired,
    Code::UserTokenInvalid,
    Code::UserIdentifierMismatch,
    Code::UserIdentifierEmpty,
    Code::UserIdentifierNotLinked,
    Code::UserIdentifierMalformed,
    Code::UserNotFound,
]);

/// The codes of a client's proof, and these; `N` is how many that are.
const fn and_client_errors<const N: usize>(more: &[Code]) -> [Code; N] {
    let client = CLIENT_ERRORS;
    assert!(N == client.len() + more.len(), "N is the number of all codes");
    let mut all = [Code::GeneralError; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < client.len() { client[at] } else { more[at - client.len()] };
        at += 1;
    }
    all
}

/// Anybody: the endpoint proves its caller itself, or is public.
#[derive(Clone, Copy, Debug)]
pub struct Anyone;

impl Caller for Anyone {
    const CLIENT: bool = false;
    const USER: UserProof = UserProof::None;
    const ERRORS: &'static [Code] = &[Code::GeneralError, Code::RateLimited];

    fn user(&self) -> Option<UserId> {
        None
    }

    async fn identify(_: &Core, _: Option<Client>, _: &Input) -> Result<Self> {
        Ok(Self)
    }
}

impl Caller for Client {
    const CLIENT: bool = true;
    const USER: UserProof = UserProof::None;
    const ERRORS: &'static [Code] = CLIENT_ERRORS;

    fn user(&self) -> Option<UserId> {
        None
    }

    async fn identify(_: &Core, client: Option<Client>, _: &Input) -> Result<Self> {
        client.ok_or_else(|| Error::broken("find the client that admission has proven"))
    }
}

/// A client, and its user if a user credential came along.
#[derive(Clone, Debug)]
pub struct ClientMaybeUser {
    /// The client.
    pub client: Client,
    /// The user, proven to be this client's.
    pub user: Option<UserId>,
}

impl Caller for ClientMaybeUser {
    const CLIENT: bool = true;
    const USER: UserProof = UserProof::Optional;
    const ERRORS: &'static [Code] = USER_ERRORS;

    fn user(&self) -> Option<UserId> {
        self.user
    }

    async fn identify(core: &Core, client: Option<Client>, input: &Input) -> Result<Self> {
        let client = Client::identify(core, client, input).await?;
        let user = user_credentials::identify(core, &client, &input.head).await?;
        Ok(Self { client, user })
    }
}

/// A client and a user of it: CA + UA in the API document.
#[derive(Clone, Debug)]
pub struct ClientAndUser {
    /// The client.
    pub client: Client,
    /// The user.
    pub user: UserId,
}

impl Caller for ClientAndUser {
    const CLIENT: bool = true;
    const USER: UserProof = UserProof::Required;
    const ERRORS: &'static [Code] = USER_ERRORS;

    fn user(&self) -> Option<UserId> {
        Some(self.user)
    }

    async fn identify(core: &Core, client: Option<Client>, input: &Input) -> Result<Self> {
        let ClientMaybeUser { client, user } =
            ClientMaybeUser::identify(core, client, input).await?;
        Ok(Self { client, user: user.ok_or(Code::UserCredentialMissing)? })
    }
}

/// A client and a user who has logged in: the user's token counts, an identifier does not.
#[derive(Clone, Debug)]
pub struct LoggedIn {
    /// The client.
    pub client: Client,
    /// The user.
    pub user: UserId,
}

impl Caller for LoggedIn {
    const CLIENT: bool = true;
    const USER: UserProof = UserProof::Token;
    const ERRORS: &'static [Code] = &and_client_errors::<11>(&[
        Code::UserCredentialMissing,
        Code::UserTokenExpired,
        Code::UserTokenInvalid,
    ]);

    fn user(&self) -> Option<UserId> {
        Some(self.user)
    }

    async fn identify(core: &Core, client: Option<Client>, input: &Input) -> Result<Self> {
        let client = Client::identify(core, client, input).await?;
        let user = user_credentials::identify_token(core, &client, &input.head).await?;
        Ok(Self { client, user })
    }
}

/// A client that may see all of its own with a token, and one user's with an API key.
#[derive(Clone, Debug)]
pub struct Reader {
    /// The client.
    pub client: Client,
    /// The user to whom the view is narrowed; `None` is the whole client.
    pub user: Option<UserId>,
}

impl Caller for Reader {
    const CLIENT: bool = true;
    const USER: UserProof = UserProof::WithApiKey;
    const ERRORS: &'static [Code] = USER_ERRORS;

    fn user(&self) -> Option<UserId> {
        self.user
    }

    async fn identify(core: &Core, client: Option<Client>, input: &Input) -> Result<Self> {
        let ClientMaybeUser { client, user } =
            ClientMaybeUser::identify(core, client, input).await?;
        if client.by_api_key() && user.is_none() {
            return Err(Code::UserCredentialMissing.into());
        }
        Ok(Self { client, user })
    }
}
