//! `POST /api/v2/buy/offer`: stores an offer.

use chrono::{DateTime, TimeDelta, Utc};
use http::Method;
use rampart_plugins::contract::{Purpose, SignedPayload};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::signature::{self, Signable};
use super::terms::{MEMBERS, Terms};
use crate::Core;
use crate::caller::Client;
use crate::endpoint::{Body, Endpoint, Json};
use crate::error::{Code, Result};
use crate::exchange::Input;
use crate::fields::Fields;
use crate::openapi::doc::{Doc, Kind, Shape, optional};
use crate::policies;
use crate::types::{ClientId, OfferId};

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/buy/offer";
    const ERRORS: &'static [Code] = &[
        Code::ER047,
        Code::ER300,
        Code::ER301,
        Code::ER302,
        Code::ER303,
        Code::ER304,
        Code::ER305,
        Code::ER306,
        Code::ER307,
        Code::ER308,
        Code::ER309,
        Code::ER310,
        Code::ER311,
        Code::ER312,
        Code::ER313,
        Code::ER314,
        Code::ER315,
        Code::ER316,
        Code::ER317,
        Code::ER318,
        Code::ER319,
        Code::ER320,
        Code::ER321,
        Code::ER322,
        Code::ER323,
        Code::ER324,
        Code::ER325,
        Code::ER326,
        Code::ER327,
        Code::ER329,
        Code::ER330,
        Code::ER331,
        Code::ER332,
        Code::ER336,
        Code::ER337,
        Code::ER338,
        Code::ER339,
        Code::ER402,
        Code::ER403,
    ];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Create an offer",
        details: "Set `walletAddress`, `fee`, `returnUrl` or `callbackUrl`, and `signature` is \
                  required. It is the hex HMAC-SHA256, keyed with the partner's signing secret, \
                  of the members `callbackUrl`, `fee`, `returnUrl`, `walletAddress` and \
                  `walletAddressTag` that are set, in this order, as `name=value` joined by `&`, \
                  values percent-encoded by RFC 3986. A partner's own policy may want another.",
        body: Shape::Joined(&[
            MEMBERS,
            &[optional("signature", Kind::Text, "Proves that the offer is the partner's.")],
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
        let mut fields = Fields::of(&input.document)?;
        let terms = Terms::read(&mut fields, client);
        let proof = Proof::read(&mut fields, input, client);
        let request = terms.map(|terms| NewOffer { terms, proof });
        fields.finish(request)
    }

    async fn call(core: &Core, client: Client, request: NewOffer) -> Result<Json<Created>> {
        let NewOffer { terms, proof } = request;
        let decision = proof.check(core, &client).await?;
        let now = core.clock.now();
        let lifetime = terms.expire_seconds.unwrap_or(core.settings.lifetimes.offer.into());
        let expires_at = now + TimeDelta::seconds(lifetime);
        let offer = OfferId::from(core.clock.uuid()?);
        store(core, client.id(), offer, &terms, decision, (now, expires_at)).await?;
        Ok(Json(Created {
            offer_uuid: offer,
            return_url: terms.return_url.map(|url| url.as_str().to_owned()),
            expires_at,
        }))
    }
}

/// What is to be stored, and what proves that the partner said so.
#[derive(Debug)]
pub struct NewOffer {
    terms: Terms,
    proof: Proof,
}

/// What is checked before an offer is believed.
#[derive(Debug)]
enum Proof {
    /// Nothing that needs a signature is set, and there is none.
    NotNeeded,
    /// The built-in scheme.
    BuiltIn { canonical: String, signature: String },
    /// The partner's policy decides, whether or not there is a signature.
    Policy(Box<SignedPayload>),
}

impl Proof {
    fn read(fields: &mut Fields<'_>, input: &Input, client: &Client) -> Self {
        let signature = fields.text_or_null("signature", Code::ER338);
        if client.tenant.policies.signature.is_some() {
            return Self::Policy(Box::new(policies::signed_payload(Purpose::Offer, input)));
        }
        let signable = Signable::of(input);
        match signature.filter(|signature| !signature.is_empty()) {
            Some(signature) => Self::BuiltIn { canonical: signable.canonical(), signature },
            None => {
                let is_text = fields.value("signature").is_none_or(Value::is_string);
                if is_text && signable.needs_signature() {
                    fields.refuse(Code::ER339);
                }
                Self::NotNeeded
            }
        }
    }

    /// Whether the offer is the partner's; the policy's decision for the audit, if one had a say.
    async fn check(self, core: &Core, client: &Client) -> Result<Option<Value>> {
        match self {
            Self::NotNeeded => Ok(None),
            Self::BuiltIn { canonical, signature } => {
                let secrets = &client.tenant.signing_secrets;
                signature::check(secrets, core.clock.now(), &canonical, &signature)?;
                Ok(None)
            }
            Self::Policy(payload) => {
                let decision = policies::verify_signature(core, client, *payload).await?;
                Ok(decision.map(|decision| decision.decision))
            }
        }
    }
}

async fn store(
    core: &Core,
    client: ClientId,
    offer: OfferId,
    terms: &Terms,
    decision: Option<Value>,
    (created_at, expires_at): (DateTime<Utc>, DateTime<Utc>),
) -> Result<()> {
    sqlx::query!(
        "insert into offer (client_id, offer_id, base_currency, quote_currency, payment_method, \
         base_amount, quote_amount, return_url, callback_url, partner_reference, wallet_address, \
         wallet_address_tag, fee_percentage, fixed_amount, fixed_currency, fixed_payment_method, \
         show_wallet_address, signature_decision, created_at, expires_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, \
         $19, $20)",
        client.uuid(),
        offer.uuid(),
        terms.pair.code.base().to_string(),
        terms.pair.code.quote().to_string(),
        terms.payment_method,
        terms.base_amount,
        terms.quote_amount,
        terms.return_url.as_ref().map(|url| url.as_str()),
        terms.callback_url.as_ref().map(|url| url.as_str()),
        terms.partner_reference.as_ref().map(|reference| reference.as_str()),
        terms.wallet_address.as_ref().map(|address| address.as_str()),
        terms.wallet_address_tag.as_ref().map(ToString::to_string),
        terms.fee_percentage,
        terms.flags.fixed_amount,
        terms.flags.fixed_currency,
        terms.flags.fixed_payment_method,
        terms.flags.show_wallet_address,
        decision,
        created_at,
        expires_at,
    )
    .execute(&core.db)
    .await?;
    Ok(())
}

/// The offer, stored.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "Offer")]
#[serde(rename_all = "camelCase")]
pub struct Created {
    offer_uuid: OfferId,
    /// As sent; `null` when none was.
    return_url: Option<String>,
    expires_at: DateTime<Utc>,
}
