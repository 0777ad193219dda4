//! `POST /api/v1/user/verify/payprovider`: verifies an account with the wallet provider by a token of
//! the provider.

use http::Method;

use super::Started;
use crate::Core;
use crate::auth::caller::ClientAndUser;
use crate::endpoint::openapi::doc::{Doc, Kind as Member, Shape, required};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::money::connectors::accounts::verify_wallet_account;
use crate::money::connectors::answers::{self, Answer};
use crate::money::connectors::payouts::command_payouts_of;
use crate::platform::crypto::{Secret, sha256};
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use crate::users::accounts::{self, AccountDetails, AccountType, NewAccount, OpenOutcome};

/// The reported type of this verification.
const KIND: &str = "walletpay";
/// The only token that the sandbox's provider refuses.
const REFUSED: &str = "sandbox-refused";
/// Bytes of the digest in a payer id of the sandbox.
const PAYER_BYTES: usize = 8;

/// Version 1, the only one.
pub struct V1;

impl Endpoint for V1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/user/verify/payprovider";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] =
        &[Code::RequestMalformed, Code::TokenEmpty, Code::DocumentPendingReview];
    const BODY: Body = Body::Json;
    const DOC: Doc = Doc {
        summary: "Verify an account with the wallet provider",
        details: "A provider that refuses the token is the status `failed`, one that does not answer \
                  within seconds 503; an answer that comes later counts all the same. In the \
                  sandbox any token names an account that is verified at once, except \
                  `sandbox-refused`, whose verification has the status `failed`.",
        body: Shape::Members(&[required("access_token", Member::Text, "Of the provider.")]),
        request: r#"{"access_token": "A21AAF"}"#,
        answer: r#"{"type": "walletpay", "status": "initiated", "data": {}}"#,
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = Secret;
    type Response = Json<Started>;

    fn read(input: &Input, _: &ClientAndUser) -> Result<Secret> {
        let mut fields = Fields::from_object(&input.document)?;
        let token = fields.text("access_token", Code::TokenEmpty).map(Secret::new);
        fields.finish(token)
    }

    async fn call(core: &Core, caller: ClientAndUser, token: Secret) -> Result<Json<Started>> {
        if !caller.client.tenant.is_test() {
            let command = verify_wallet_account(&caller.client.tenant, caller.user, &token);
            return match answers::ask(core, command).await? {
                Answer::Done(_) => Ok(Json(Started::initiated(KIND))),
                Answer::Rejected => Ok(Json(Started::failed(KIND))),
                Answer::None => Err(Error::unavailable("have the wallet provider answer in time")),
            };
        }
        if token.expose() == REFUSED {
            return Ok(Json(Started::failed(KIND)));
        }
        let digest = sha256(token.expose());
        let payer = hex::encode(digest.get(..PAYER_BYTES).unwrap_or_default());
        let account = NewAccount {
            kind: AccountType::Walletpay,
            details: AccountDetails {
                identifier: format!("payer-{payer}"),
                holder: String::new(),
                token: None,
            },
            is_stored_card: false,
            verified: true,
        };
        let owner = (caller.client.id(), caller.user);
        let mut tx = core.db.begin().await?;
        let started = match accounts::open(&mut tx, core, owner, account).await? {
            OpenOutcome::Created(_) => Started::initiated(KIND),
            OpenOutcome::Existing(account) if !account.disabled => {
                accounts::verify(&mut tx, core, owner, account.id).await?;
                Started::initiated(KIND)
            }
            OpenOutcome::Existing(_) | OpenOutcome::LimitReached => Started::failed(KIND),
        };
        command_payouts_of(&mut tx, core, owner).await?;
        tx.commit().await?;
        Ok(Json(started))
    }
}
