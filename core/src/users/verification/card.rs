//! `POST /api/v1/user/verify/card`: starts the verification of a card.

use http::Method;

use super::Started;
use crate::Core;
use crate::auth::caller::{Client, ClientAndUser};
use crate::endpoint::openapi::doc::{Doc, Kind as Member, Shape, required};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::money::connectors::accounts::{ended_verifications, is_simulated, verify_card};
use crate::money::connectors::answers::{self, Answer};
use crate::platform::error::{Code, Error, Refusal, Result};
use crate::tenancy::tenants::Scope;
use crate::users::accounts::{self, AccountType, PaymentAccount};
use rampart_types::UserId;

/// The reported type of a verification at the processor.
const PROCESSOR: &str = "processor";
/// The reported type of a simulated one.
const SANDBOX: &str = "sandbox";

/// The member that names the card.
const MEMBER: &str = "accountIdentifier";

/// Version 1, the only one.
pub struct V1;

impl Endpoint for V1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/user/verify/card";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] = &[
        Code::RequestMalformed,
        Code::AccountIdentifierInvalid,
        Code::AccountNotFound,
        Code::AccountDisabled,
        Code::AccountAlreadyVerified,
        Code::CardHolderMissing,
        Code::CardVerificationFailed,
    ];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Verify a card",
        details: "The processor verifies it within seconds, or else the code is ER400; an answer that \
                  comes later counts all the same. In the sandbox the card is verified at once.",
        body: Shape::Members(&[required(
            MEMBER,
            Member::Text,
            "Of a card among the user's accounts.",
        )]),
        request: r#"{"accountIdentifier": "411111******1234"}"#,
        answer: r#"{"type": "sandbox", "status": "initiated", "data": {}}"#,
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = String;
    type Response = Json<Started>;

    fn read(input: &Input, _: &ClientAndUser) -> Result<String> {
        let mut fields = Fields::from_object(&input.document)?;
        let identifier =
            fields.required(MEMBER, Code::AccountIdentifierInvalid, accounts::identifier);
        fields.finish(identifier)
    }

    async fn call(core: &Core, caller: ClientAndUser, identifier: String) -> Result<Json<Started>> {
        verify(core, &caller.client, caller.user, &identifier).await.map(Json)
    }
}

/// Verifies a card of the user: at its processor by the route of cards, or in the sandbox.
///
/// # Errors
/// The endpoint's; ER400 when the processor refuses or does not answer in time.
pub(crate) async fn verify(
    core: &Core,
    client: &Client,
    user: UserId,
    identifier: &str,
) -> Result<Started> {
    let mut conn = core.db.acquire().await?;
    let key = client.key_of(user);
    let account = accounts::find(&mut conn, core, key, identifier).await?;
    let account = account.ok_or_else(|| refused(Code::AccountNotFound))?;
    check(&account)?;
    let attempt = ended_verifications(&mut conn, key).await?;
    drop(conn);
    let command = verify_card(client, user, &account, attempt);
    let kind = if is_simulated(client) { SANDBOX } else { PROCESSOR };
    match answers::ask(core, command).await? {
        Answer::Done(_) => Ok(Started::initiated(kind)),
        Answer::Rejected(_) | Answer::None => Err(Code::CardVerificationFailed.into()),
    }
}

/// The refusal of the account that the request names.
fn refused(code: Code) -> Error {
    Error::of_member(code, MEMBER)
}

/// Refuses an account that is no card, or else a card for all that keeps it from being verified.
fn check(account: &PaymentAccount) -> Result<()> {
    if account.kind != AccountType::CreditCard {
        return Err(refused(Code::AccountIdentifierInvalid));
    }
    let mut refusal = Refusal::new();
    if account.disabled {
        refusal.add_of_member(Code::AccountDisabled, MEMBER);
    }
    if account.verified {
        refusal.add_of_member(Code::AccountAlreadyVerified, MEMBER);
    }
    if account.details.holder.is_empty() {
        refusal.add(Code::CardHolderMissing, None);
    }
    if refusal.is_empty() { Ok(()) } else { Err(refusal.into()) }
}
