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
use crate::platform::crypto::Secret;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use crate::users::accounts;

/// The reported type of this verification.
const KIND: &str = "walletpay";

/// Version 1, the only one.
pub struct V1;

impl Endpoint for V1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/user/verify/payprovider";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] = &[Code::RequestMalformed, Code::TokenEmpty];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
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
        let key = caller.client.key_of(caller.user);
        let command = verify_wallet_account(core, &caller.client.tenant, caller.user, &token)?;
        match answers::ask(core, command).await? {
            Answer::Done(result) => {
                let named = result["accountIdentifier"].as_str().unwrap_or_default();
                let mut conn = core.db.acquire().await?;
                let account = accounts::find(&mut conn, core, key, named).await?;
                let is_open = account.is_some_and(|account| !account.disabled);
                Ok(Json(if is_open { Started::initiated(KIND) } else { Started::failed(KIND) }))
            }
            Answer::Rejected(_) => Ok(Json(Started::failed(KIND))),
            Answer::None => Err(Error::unavailable("have the wallet provider answer in time")),
        }
    }
}
