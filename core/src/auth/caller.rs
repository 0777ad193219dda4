//! The authenticated caller of an endpoint. Receiving one is the permission check, and it carries the
//! tenant: statements take `client_id` from here, never from the request.

use std::net::IpAddr;
use std::sync::Arc;

use crate::Core;
use crate::auth::user_credentials;
use crate::http::Surface;
use crate::http::request::Input;
use crate::platform::db::tenant;
use crate::platform::error::{Code, Error, Result};
use crate::platform::network::surrounding_network;
use crate::tenancy::tenants::{ApiKey, Tenant};
use crate::trading::catalogue::Catalogue;
use rampart_types::{ClientId, UserId, UserKey};

/// An authenticated API client, with a consistent view of its tenant and the market that does not
/// change while the request runs.
#[derive(Clone, Debug)]
pub struct Client {
    /// The client's settings, secrets and policies.
    pub tenant: Arc<Tenant>,
    /// The market.
    pub catalogue: Arc<Catalogue>,
    /// The credential that authenticated it.
    pub credential: Credential,
    /// Id of the current request.
    pub request_id: Arc<str>,
}

impl Client {
    /// The tenant's id, for statements.
    pub fn id(&self) -> ClientId {
        self.tenant.id
    }

    /// The key of one of its users.
    pub fn key_of(&self, user: UserId) -> UserKey {
        UserKey { client: self.id(), user }
    }

    /// The client of a page, authorised by the page's signed link. `None` when it is deleted or
    /// suspended.
    pub fn for_page(core: &Core, client: ClientId, request_id: &str) -> Option<Self> {
        Self::of_link(core, client, request_id).filter(|client| !client.tenant.suspended)
    }

    /// The client of a signed link to what has happened, such as a receipt: a suspended one too. `None`
    /// when it is deleted.
    pub(crate) fn of_link(core: &Core, client: ClientId, request_id: &str) -> Option<Self> {
        let snapshot = core.snapshots.current();
        let tenant = snapshot.tenants.get(&client)?;
        tenant::enter(client);
        Some(Self {
            tenant: Arc::clone(tenant),
            catalogue: Arc::clone(&snapshot.catalogue),
            credential: Credential::Page { network: None },
            request_id: request_id.into(),
        })
    }

    /// True if the URL of a page names the client, which has proven nothing itself.
    pub(crate) fn is_of_page(&self) -> bool {
        matches!(self.credential, Credential::Page { .. })
    }

    /// The client of a page that a visitor at this address has opened.
    pub(crate) fn visited_from(self, peer: IpAddr) -> Self {
        let network = Some(surrounding_network(peer));
        Self { credential: Credential::Page { network }, ..self }
    }

    /// The network that the visitor of its page is in, /24 in IPv4 and /48 in IPv6, where it is known.
    pub(crate) fn visitor_network(&self) -> Option<IpAddr> {
        match self.credential {
            Credential::Page { network } => network,
            Credential::Token | Credential::ApiKey(_) => None,
        }
    }

    /// True if the client authenticated with an API key (and then must name its user where required).
    pub fn by_api_key(&self) -> bool {
        matches!(self.credential, Credential::ApiKey(_))
    }
}

/// The credential of a client.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A bearer token of `authenticate`.
    Token,
    /// An API key.
    ApiKey(Arc<ApiKey>),
    /// None: the URL of a page names the client, whoever has it.
    Page {
        /// That of the visitor, where it is known.
        network: Option<IpAddr>,
    },
}

/// The user credential that an endpoint requires: `User-Authorization`, `User-Identifier`, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserProof {
    /// None; one that is sent is ignored.
    None,
    /// Optional.
    Optional,
    /// Required with an API key; optional with a client token.
    WithApiKey,
    /// Required.
    Required,
    /// The token of a login is required: an identifier is not sufficient.
    Token,
}

/// The kind of caller that an endpoint admits.
pub trait Caller: Clone + Send + Sync {
    /// The API that the caller uses.
    const SURFACE: Surface = Surface::Partners;
    /// True if the client is authenticated before anything else is read.
    const CLIENT: bool;
    /// The required user credential, for the OpenAPI document.
    const USER: UserProof;
    /// Codes with which authentication can fail.
    const ERRORS: &'static [Code];

    /// The authenticated user, if any.
    fn user(&self) -> Option<UserId>;

    /// The text that tells the caller from others whose `Idempotency-Key`s are the same tenant's.
    fn key_owner(&self) -> String {
        self.user().map(|user| user.to_string()).unwrap_or_default()
    }

    /// Authenticates the rest of the caller: the client was authenticated before if
    /// [`Caller::CLIENT`] is true.
    fn identify(
        core: &Core,
        client: Option<Client>,
        input: &Input,
    ) -> impl Future<Output = Result<Self>> + Send;
}

/// Codes with which client authentication can fail.
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

/// Codes of user authentication: ER700 to ER709, as the API document declares them wherever a user is
/// proven, and at the login. ER706 and ER708 come from the endpoints that link identifiers and take
/// images.
pub const USER_PROOF_ERRORS: [Code; 10] = [
    Code::UserCredentialMissing,
    Code::UserTokenExpired,
    Code::UserTokenInvalid,
    Code::UserIdentifierMismatch,
    Code::UserIdentifierEmpty,
    Code::UserIdentifierNotLinked,
    Code::UserIdentifierTaken,
    Code::UserIdentifierMalformed,
    Code::DocumentPendingReview,
    Code::UserNotFound,
];

/// [`CLIENT_ERRORS`] and [`USER_PROOF_ERRORS`].
pub const USER_ERRORS: &[Code] = &and_client_errors::<18>(&USER_PROOF_ERRORS);

/// [`CLIENT_ERRORS`] and these codes; `N` is their total number.
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

/// Any caller: the endpoint authenticates its caller itself, or is public.
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
        client.ok_or_else(|| Error::invariant("find the client that admission has authenticated"))
    }
}

/// A client, and its user if a user credential was sent.
#[derive(Clone, Debug)]
pub struct ClientMaybeUser {
    /// The client.
    pub client: Client,
    /// The user, which belongs to this client.
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

/// A client and a user who has logged in, by the user's token; an identifier is not accepted.
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

/// A client and a user with the token of a login. A `User-Identifier` beside it must be of the same
/// user; alone it proves no login.
#[derive(Clone, Debug)]
pub struct Session {
    /// The client.
    pub client: Client,
    /// The user.
    pub user: UserId,
}

impl Caller for Session {
    const CLIENT: bool = true;
    const USER: UserProof = UserProof::Token;
    const ERRORS: &'static [Code] = USER_ERRORS;

    fn user(&self) -> Option<UserId> {
        Some(self.user)
    }

    async fn identify(core: &Core, client: Option<Client>, input: &Input) -> Result<Self> {
        if !user_credentials::has_token(&input.head) {
            return Err(user_credentials::login_missing());
        }
        let ClientAndUser { client, user } = ClientAndUser::identify(core, client, input).await?;
        Ok(Self { client, user })
    }
}

/// A client that may read all of its data with a token, and one user's with an API key.
#[derive(Clone, Debug)]
pub struct Reader {
    /// The client.
    pub client: Client,
    /// The user to whom the result is restricted; `None` for the whole client.
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
        check_names_user(&client, user)?;
        Ok(Self { client, user })
    }
}

/// Checks that a client with an API key has named its user (ER700).
fn check_names_user(client: &Client, user: Option<UserId>) -> Result<()> {
    if client.by_api_key() && user.is_none() {
        return Err(Code::UserCredentialMissing.into());
    }
    Ok(())
}

/// A client that confirms a quote, for its user if there is one. The token of a disabled user names
/// that user here, so that the confirm is refused with ER124 and not as if a login would help.
#[derive(Clone, Debug)]
pub struct Confirmer {
    /// The client.
    pub client: Client,
    /// The user who trades; possibly disabled.
    pub user: Option<UserId>,
}

impl Caller for Confirmer {
    const CLIENT: bool = true;
    const USER: UserProof = UserProof::WithApiKey;
    const ERRORS: &'static [Code] = USER_ERRORS;

    fn user(&self) -> Option<UserId> {
        self.user
    }

    async fn identify(core: &Core, client: Option<Client>, input: &Input) -> Result<Self> {
        let client = Client::identify(core, client, input).await?;
        let user = user_credentials::identify_also_disabled(core, &client, &input.head).await?;
        check_names_user(&client, user)?;
        Ok(Self { client, user })
    }
}
