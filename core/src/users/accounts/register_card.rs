//! `POST /api/v2/user/accounts/cards/processor`: adds a card that the user has entered at the
//! processor as an account.

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::{AccountDetails, CardSession, HOLDER_CHARS_MAX, IDENTIFIER_BYTES_MAX, PaymentAccount};
use crate::Core;
use crate::auth::caller::ClientAndUser;
use crate::endpoint::openapi::doc::{Doc, Kind as Member, Shape, required};
use crate::endpoint::{Body, ClaimedKey, Endpoint, Json, save_answer};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::money::connectors::accounts::{NOT_INSTANT, is_simulated, register_card};
use crate::money::connectors::answers::{self, Answer};
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::users::account::{self, RowLock};
use rampart_types::{CurrencyCode, plain_text};

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/user/accounts/cards/processor";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] = &[
        Code::RequestMalformed,
        Code::CurrencyMissing,
        Code::CurrencyUnsupported,
        Code::InstantVerificationUnsupported,
        Code::TokenEmpty,
        Code::CardHolderMissing,
        Code::PaymentAccountFailed,
    ];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Add a card from a session with the card processor",
        details: "Adding the same card again answers the same account. A processor that refuses the \
                  session, or does not answer within seconds, is ER401; an answer that comes later \
                  counts all the same. In the sandbox \
                  `sandbox-not-instant` is ER188, `sandbox-refused` is ER401, \
                  `sandbox-unverifiable` is a card whose verification cannot be started, and \
                  `sandbox-disabled` one that is disabled; any other session is a card that works.",
        body: Shape::Members(&[
            required("sessionIdentifier", Member::Text, "Of the session that took the card."),
            required("cardHolderName", Member::Text, "The name on the card."),
            required("currencyCode", Member::Text, "A supported fiat currency (ISO 4217)."),
        ]),
        request: r#"{"sessionIdentifier": "session-1", "cardHolderName": "Ada Lovelace",
            "currencyCode": "EUR"}"#,
        answer: r#"{"accountIdentifier": "411111******1234",
            "accountHolderName": "Ada Lovelace"}"#,
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = CardSession;
    type Response = Json<Added>;

    fn read(input: &Input, caller: &ClientAndUser) -> Result<CardSession> {
        let mut fields = Fields::from_object(&input.document)?;
        let identifier = fields.required("sessionIdentifier", Code::TokenEmpty, |value| {
            let text = value.as_str().filter(|text| !text.is_empty());
            text.filter(|text| text.len() <= IDENTIFIER_BYTES_MAX).map(str::to_owned)
        });
        let holder = fields.required("cardHolderName", Code::CardHolderMissing, |value| {
            plain_text(value.as_str()?, HOLDER_CHARS_MAX)
        });
        let code = match fields.value("currencyCode").map(|value| value.as_str()) {
            None | Some(Some("")) => Code::CurrencyMissing,
            Some(_) => Code::CurrencyUnsupported,
        };
        let currency = fields.required("currencyCode", code, |value| {
            let code: CurrencyCode = value.as_str()?.parse().ok()?;
            let known = caller.client.catalogue.currencies.get(&code)?;
            known.crypto.is_none().then_some(code)
        });
        let session = identifier.zip(holder).zip(currency);
        fields.finish(session.map(|((identifier, holder), currency)| CardSession {
            identifier,
            holder,
            currency,
        }))
    }

    async fn call(core: &Core, caller: ClientAndUser, session: CardSession) -> Result<Json<Added>> {
        Self::call_with_key(core, caller, session, None).await
    }

    async fn call_with_key(
        core: &Core,
        caller: ClientAndUser,
        session: CardSession,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Added>> {
        from_processor(core, &caller, &session, key).await
    }
}

/// Adds the card that the processor names. Its account is opened where the result is reported.
async fn from_processor(
    core: &Core,
    caller: &ClientAndUser,
    session: &CardSession,
    key: Option<&ClaimedKey>,
) -> Result<Json<Added>> {
    let user = caller.client.key_of(caller.user);
    let command = register_card(core, &caller.client, caller.user, session)?;
    let (mut tx, answer) = if is_simulated(&caller.client) {
        // In the transaction that saves our own answer.
        let mut tx = core.db.begin().await?;
        let answer = answers::ask_sandbox(&mut tx, core, command).await?;
        (tx, answer)
    } else {
        let answer = answers::ask(core, command).await?;
        let mut tx = core.db.begin().await?;
        // An erasure finds our saved answer, which names the holder.
        if !account::lock(&mut tx, user, RowLock::NoKeyUpdate).await? {
            return Err(Code::UserNotFound.into());
        }
        (tx, answer)
    };
    let code = match &answer {
        Answer::Rejected(Some(reason)) if reason == NOT_INSTANT => {
            Code::InstantVerificationUnsupported
        }
        _ => Code::PaymentAccountFailed,
    };
    let Answer::Done(result) = answer else {
        tx.commit().await?;
        return Err(code.into());
    };
    let named = result["accountIdentifier"].as_str().unwrap_or_default();
    let account = super::find(&mut tx, core, user, named).await?;
    // One that the processor has disabled in this session was added all the same.
    let is_added = |one: &PaymentAccount| !one.disabled || result["disabled"] == true;
    let account = account.filter(is_added).ok_or(Code::PaymentAccountFailed)?;
    let AccountDetails { identifier, holder, .. } = account.details;
    let added = Added { account_identifier: identifier, account_holder_name: holder };
    save_answer(key, core, &mut tx, &added).await?;
    tx.commit().await?;
    Ok(Json(added))
}

/// The card's account.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "AddedCard")]
#[serde(rename_all = "camelCase")]
pub struct Added {
    /// IBAN, masked card number, or id at the wallet provider.
    account_identifier: String,
    /// Name of the holder.
    account_holder_name: String,
}
