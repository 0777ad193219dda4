//! `POST /api/v2/buy/offer`: stores an offer.

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::errors::ERRORS;
use super::login::{self, Login};
use super::proof::{Proof, SignatureRequirement};
use super::stored::StoredOffer;
use super::terms::{MEMBERS, OFFER, Terms};
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional};
use crate::endpoint::{Body, ClaimedKey, Endpoint, Json, save_answer};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Result, concat_codes};
use crate::tenancy::tenants::Scope;
use rampart_types::OfferId;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/buy/offer";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const ERRORS: &'static [Code] =
        &concat_codes::<{ ERRORS.len() + 1 }>(&[&ERRORS, &[Code::QuoteCurrencyBlank]]);
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Create an offer",
        details: "Set `walletAddress`, `fee`, `returnUrl` or `callbackUrl`, and `signature` is \
                  required. It is the HMAC-SHA256 in lower-case hex or base64, keyed with the \
                  partner's signing secret, of the members `callbackUrl`, `fee`, `returnUrl`, \
                  `walletAddress` and `walletAddressTag` that are set, neither null nor blank, in \
                  this order, as `name=value` joined by `&`, values as they are sent and \
                  percent-encoded by RFC 3986. A partner's own policy may want another.",
        body: Shape::Joined(&[
            MEMBERS,
            login::MEMBERS,
            &[optional("signature", Kind::Text, "Proof that the offer is the partner's.")],
        ]),
        request: r#"{
            "baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
            "quoteCurrencyAmount": 250, "fixedAmount": true, "expireTime": 7200
        }"#,
        answer: r#"{
            "offerUuid": "019c1f5e-7c0a-7d52-9d3f-2b8a4e6f1c70",
            "returnUrl": null,
            "expiresAt": "2026-03-01T14:00:00Z"
        }"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = NewOffer;
    type Response = Json<Created>;

    fn read(input: &Input, client: &Client) -> Result<NewOffer> {
        let mut fields = Fields::from_object(&input.document)?;
        let terms = Terms::read(&mut fields, client, &OFFER);
        let proof = Proof::read(&mut fields, input, client, SignatureRequirement::ForCovered);
        let login = Login::read(&mut fields);
        let request = terms.map(|terms| NewOffer { terms, proof, login });
        fields.finish(request)
    }

    async fn call(core: &Core, client: Client, request: NewOffer) -> Result<Json<Created>> {
        Self::call_with_key(core, client, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        client: Client,
        request: NewOffer,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Created>> {
        let NewOffer { terms, proof, login } = request;
        let decision = proof.check(core, &client).await?;
        let mut tx = core.db.begin().await?;
        let user = login.user(&mut tx, client.id()).await?;
        let StoredOffer { offer_id, expires_at } =
            StoredOffer::write(&mut tx, core, client.id(), user, &terms, decision).await?;
        let created = Created {
            offer_uuid: offer_id,
            return_url: terms.return_url.map(|url| url.as_str().to_owned()),
            expires_at,
        };
        save_answer(key, core, &mut tx, &created).await?;
        tx.commit().await?;
        Ok(Json(created))
    }
}

/// An offer to store, with its signature.
#[derive(Debug)]
pub struct NewOffer {
    terms: Terms,
    proof: Proof,
    login: Login,
}

/// The stored offer.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "Offer")]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// Id of the offer, which a confirm names.
    offer_uuid: OfferId,
    /// As sent; `null` if omitted.
    return_url: Option<String>,
    /// Time until which it can be confirmed.
    expires_at: DateTime<Utc>,
}
