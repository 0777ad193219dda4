//! `POST /api/v2/buy/checkout`: stores an offer and returns the URL of its page.

use std::sync::Arc;

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{session, share_token};
use crate::Core;
use crate::auth::caller::Client;
use crate::auth::user_credentials::identifier_digest;
use crate::endpoint::openapi::doc::{Doc, Kind, Member, Shape, optional};
use crate::endpoint::{Body, ClaimedKey, Endpoint, Json, save_answer};
use crate::http::fields::{Fields, flag};
use crate::http::request::Input;
use crate::platform::crypto::Secret;
use crate::platform::error::{Code, Result, concat_codes};
use crate::tenancy::tenants::Scope;
use crate::trading::offers::errors::ERRORS;
use crate::trading::offers::login::{self, Login};
use crate::trading::offers::proof::{Proof, SignatureRequirement};
use crate::trading::offers::stored::StoredOffer;
use crate::trading::offers::terms::{CHECKOUT, MEMBERS, Terms};
use crate::users::identifiers;
use rampart_types::{ClientId, CurrencyDetails, OfferId, Preserialized, UserIdentifier};

/// Longest share token, in bytes.
const SHARE_TOKEN_BYTES_MAX: usize = 4096;

/// Members of a checkout besides an offer's terms.
const CHECKOUT_MEMBERS: &[Member] = &[
    optional(
        "identifier",
        Kind::Matching("^[A-Za-z0-9]{36,255}$"),
        "The partner's own identifier of the user, who is then linked to it.",
    ),
    optional(
        "kycShareToken",
        Kind::Sized(1, 4096),
        "Of an identity check elsewhere. Given once to the provider that checks the buyer's \
         identity, then erased; also erased with the buyer.",
    ),
    optional(
        "attemptDirectConfirm",
        Kind::Flag,
        "If true, a user who is logged in continues without confirming the quote.",
    ),
    optional("signature", Kind::Text, "As of an offer."),
];

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/buy/checkout";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const ERRORS: &'static [Code] = &concat_codes::<{ ERRORS.len() + 4 }>(&[
        &ERRORS,
        &[
            Code::UserIdentifierLengthInvalid,
            Code::CheckoutWalletInvalid,
            Code::ShareTokenInvalid,
            Code::ShareTokenBlank,
        ],
    ]);
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Create a checkout",
        details: "No signature is required; one that is sent must fit, as in an offer. Send the \
                  user to `checkoutUrl` as it is.",
        body: Shape::Joined(&[MEMBERS, login::MEMBERS, CHECKOUT_MEMBERS]),
        request: r#"{"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
            "quoteCurrencyAmount": 250, "returnUrl": "https://shop.example/back"}"#,
        answer: r#"{"checkoutUrl": "https://pay.example.com/checkout/AZyfXnwKfVKdPyuKTm8ccA",
            "identifier": null, "sourceCurrency": {"code": "EUR", "ticker": "EUR", "name": "Euro",
            "caip19": "swift:0/iso4217:EUR"}, "targetCurrency": {"code": "BTC", "ticker": "BTC",
            "name": "Bitcoin", "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0"}}"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = NewCheckout;
    type Response = Json<Created>;

    fn read(input: &Input, client: &Client) -> Result<NewCheckout> {
        let mut fields = Fields::from_object(&input.document)?;
        let terms = Terms::read(&mut fields, client, &CHECKOUT);
        let proof = Proof::read(&mut fields, input, client, SignatureRequirement::Never);
        let login = Login::read(&mut fields);
        let identifier =
            fields.optional("identifier", Code::UserIdentifierLengthInvalid, |value| {
                value.as_str()?.parse().ok()
            });
        let share_token = read_share_token(&mut fields);
        let direct_confirm = fields.optional("attemptDirectConfirm", Code::RequestMalformed, flag);
        let attempt_direct_confirm = direct_confirm.unwrap_or(false);
        let request = terms.map(|terms| NewCheckout {
            terms,
            proof,
            login,
            identifier,
            share_token,
            attempt_direct_confirm,
        });
        fields.finish(request)
    }

    async fn call(core: &Core, client: Client, request: NewCheckout) -> Result<Json<Created>> {
        Self::call_with_key(core, client, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        client: Client,
        request: NewCheckout,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Created>> {
        let decision = request.proof.check(core, &client).await?;
        let mut tx = core.db.begin().await?;
        let user = request.login.user(&mut tx, client.id()).await?;
        let (client_id, terms) = (client.id(), &request.terms);
        let stored = StoredOffer::write(&mut tx, core, client_id, user, terms, decision).await?;
        let id = stored.offer_id;
        let identifier = request.identifier.as_ref();
        let row = CheckoutRow {
            identifier_digest: identifier
                .map(|identifier| identifier_digest(core, client.id(), identifier))
                .transpose()?,
            share_token: request
                .share_token
                .map(|token| share_token::seal(core, client.id(), id, &token))
                .transpose()?,
            attempt_direct_confirm: request.attempt_direct_confirm,
        };
        row.write(&mut tx, client.id(), id).await?;
        let sealed = identifier
            .map(|identifier| identifiers::seal(core, client.id(), identifier))
            .transpose()?;
        let pair = &request.terms.pair;
        let created = Created {
            checkout_url: session::url(core, client.id(), id, sealed.as_deref())?,
            source_currency: Arc::clone(&pair.quote.details),
            target_currency: Arc::clone(&pair.base.details),
            identifier: identifier.map(|identifier| identifier.as_str().to_owned()),
        };
        save_answer(key, core, &mut tx, &created).await?;
        tx.commit().await?;
        Ok(Json(created))
    }
}

/// A checkout to store.
#[derive(Debug)]
pub struct NewCheckout {
    terms: Terms,
    proof: Proof,
    login: Login,
    identifier: Option<UserIdentifier>,
    share_token: Option<Secret>,
    attempt_direct_confirm: bool,
}

fn read_share_token(fields: &mut Fields<'_>) -> Option<Secret> {
    match fields.value("kycShareToken")? {
        Value::String(text) if text.trim().is_empty() => {
            fields.refuse_member(Code::ShareTokenBlank, "kycShareToken")
        }
        Value::String(text) if text.len() <= SHARE_TOKEN_BYTES_MAX => {
            return Some(Secret::new(text.as_str()));
        }
        Value::String(_) => {
            fields.refuse_with(Code::ShareTokenInvalid, "kycShareToken", "more than 4096 bytes")
        }
        _ => fields.refuse_member(Code::ShareTokenInvalid, "kycShareToken"),
    }
    None
}

/// The checkout's row, beside the one of its offer.
struct CheckoutRow {
    identifier_digest: Option<Vec<u8>>,
    share_token: Option<share_token::SealedShareToken>,
    attempt_direct_confirm: bool,
}

impl CheckoutRow {
    async fn write(
        self,
        tx: &mut crate::platform::db::Connection,
        client: ClientId,
        offer: OfferId,
    ) -> Result<()> {
        let (once, twice) = self.share_token.map(|token| (token.once, token.twice)).unzip();
        sqlx::query!(
            "insert into checkout (client_id, offer_id, identifier_digest, sealed_share_token, \
             attempt_direct_confirm) values ($1, $2, $3, \
                 case when exists (select from user_key_master_seal) then $6::bytea \
                     else $4::bytea end, $5)",
            client.uuid(),
            offer.uuid(),
            self.identifier_digest,
            once,
            self.attempt_direct_confirm,
            twice,
        )
        .execute(tx)
        .await?;
        Ok(())
    }
}

/// The stored checkout.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CreatedCheckout")]
pub struct Created {
    /// URL to send the user to, unchanged.
    checkout_url: String,
    /// As sent; `null` if omitted.
    identifier: Option<String>,
    /// Currency that the user pays.
    source_currency: Arc<Preserialized<CurrencyDetails>>,
    /// Currency that the user gets.
    target_currency: Arc<Preserialized<CurrencyDetails>>,
}
