//! `POST /api/v2/buy/orders/{id}/wallet-proof`: the partner asserts that the wallet is its user's.

use http::Method;
use rampart_plugins::contract::{PolicyKind, Purpose};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::Core;
use crate::auth::caller::Reader;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, ClaimedKey, Endpoint, Json, save_answer};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use crate::policies::kinds::signature::signed_payload;
use crate::tenancy::tenants::Scope;
use crate::trading::offers::proof::Proof as SignatureProof;
use crate::trading::offers::signature::canonical;
use crate::trading::orders::Order;
use crate::trading::orders::lookup::{ID, OrderName, find};
use crate::trading::wallet_proof::{Proof, record};
use rampart_types::{OrderId, OrderKey, WalletAddress, plain_text};

/// Name of the member with the signature.
const SIGNATURE: &str = "signature";
/// Longest reason, in characters.
const REASON_CHARS_MAX: usize = 255;
/// Order numbers are below 2^53.
const ORDER_ID_MAX: i64 = (1 << 53) - 1;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/buy/orders/{id}/wallet-proof";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const ERRORS: &'static [Code] = &[
        Code::OrderIdMissing,
        Code::OrderIdMalformed,
        Code::OrderNotFound,
        Code::RequestMalformed,
        Code::WalletAddressInvalid,
        Code::SignatureRequired,
        Code::SignatureNotString,
        Code::SignatureInvalid,
        Code::SigningSecretMissing,
        Code::SignaturePolicyFailed,
    ];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    // The answer, which is saved last, locks the user after the order.
    const RETRIED: bool = true;
    const DOC: Doc = Doc {
        summary: "Assert that an order's wallet is its user's",
        details: "For an unhosted wallet and more than 1000 EUR, where the partner has seen the \
                  user's proof itself. Signed like an offer, always: the covered fields are \
                  `orderId`, `reason` and `walletAddress`; a signature policy judges it as an \
                  offer. An order that is proven already, whose wallet is hosted, or that is \
                  final, stays as it is.",
        path: &[ID],
        body: Shape::Members(&[
            required("orderId", Kind::Integer(1, ORDER_ID_MAX), "The order's number."),
            required("walletAddress", Kind::Text, "The order's wallet."),
            required("reason", Kind::Sized(1, REASON_CHARS_MAX), "The proof that was seen."),
            required(SIGNATURE, Kind::Text, "The partner's signature."),
        ]),
        request: r#"{
            "orderId": 1742980455013377,
            "walletAddress": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "reason": "the user has signed our message",
            "signature": "3b4f1b2f4c58bd1c5f3b6a5e1f2d3c4b5a69788796a5b4c3d2e1f0a9b8c7d6e5"
        }"#,
        answer: r#"{"orderId": 1742980455013377, "recorded": true}"#,
        ..Doc::NONE
    };
    type Caller = Reader;
    type Request = (OrderName, Request);
    type Response = Json<Asserted>;

    fn read(input: &Input, caller: &Reader) -> Result<(OrderName, Request)> {
        let mut fields = Fields::from_object(&input.document)?;
        let name = OrderName::read_with(&mut fields, input);
        let order = fields
            .required("orderId", Code::RequestMalformed, |value| OrderId::new(value.as_i64()?));
        let address = fields.required("walletAddress", Code::WalletAddressInvalid, |value| {
            value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
        });
        let reason = fields.required("reason", Code::RequestMalformed, |value| {
            plain_text(value.as_str()?, REASON_CHARS_MAX)
        });
        // The signature covers the text as sent; the stored one is trimmed and normalized.
        let signed_reason = fields.value("reason").and_then(Value::as_str).unwrap_or_default();
        let signed_reason = signed_reason.to_owned();
        let is_policy = caller.client.tenant.policies.get(PolicyKind::Signature).is_some();
        let signature = match is_policy {
            false => Some(signature(&mut fields)),
            // It decides whether one is needed.
            true => {
                fields.text_or_null(SIGNATURE, Code::SignatureNotString);
                None
            }
        };
        let terms = name.zip(order).zip(address).zip(reason);
        let request = terms.map(|(((name, order), address), reason)| {
            let canonical = canonical([
                ("orderId", &*order.to_string()),
                ("reason", signed_reason.as_str()),
                ("walletAddress", address.as_str()),
            ]);
            let assertion = match signature {
                None => {
                    let payload = signed_payload(Purpose::Offer, input);
                    SignatureProof::Policy(Box::new(payload))
                }
                Some(signature) => SignatureProof::BuiltIn {
                    canonical,
                    // One that is missing is refused below.
                    signature: signature.unwrap_or_default(),
                },
            };
            (name, Request { order, address, reason, assertion })
        });
        fields.finish(request)
    }

    async fn call(
        core: &Core,
        caller: Reader,
        request: (OrderName, Request),
    ) -> Result<Json<Asserted>> {
        Self::call_with_key(core, caller, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        caller: Reader,
        (name, request): (OrderName, Request),
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Asserted>> {
        let Reader { client, user } = caller;
        let order = find(core, &client, user, &name).await?;
        if order.id != request.order {
            let detail = "it is another order's";
            return Err(Error::of_member_with(Code::OrderNotFound, "orderId", detail));
        }
        if !is_wallet_of(&order, &request.address) {
            let detail = "it is not the order's wallet";
            return Err(Error::of_member_with(Code::WalletAddressInvalid, "walletAddress", detail));
        }
        let decision = request.assertion.check(core, &client).await?;
        let proof = Proof::Partner { slug: &client.tenant.slug, reason: &request.reason };
        let mut tx = core.db.begin().await?;
        let recorded =
            record(&mut tx, core, OrderKey { client: client.id(), order: order.id }, proof).await?;
        // One that changes nothing may be repeated.
        if let Some(decision) = decision.filter(|_| recorded) {
            decision.consume(core, &mut tx).await?;
        }
        let answer = Asserted { order_id: order.id, recorded };
        save_answer(key, core, &mut tx, &answer).await?;
        tx.commit().await?;
        Ok(Json(answer))
    }
}

/// True if the text is the order's wallet, in any spelling that its chain takes for the same.
fn is_wallet_of(order: &Order, text: &str) -> bool {
    let is_same = |chain| {
        let parse = |spelling: &str| WalletAddress::parse(chain, spelling).ok();
        parse(text).is_some_and(|named| parse(&order.wallet_address) == Some(named))
    };
    let crypto = order.crypto_currency.crypto.as_ref();
    order.wallet_address == text || crypto.is_some_and(|crypto| is_same(crypto.chain))
}

/// ER339 when the signature is missing or empty, ER338 when it is no text.
fn signature(fields: &mut Fields<'_>) -> Option<String> {
    let code = match fields.value(SIGNATURE) {
        Some(value) if !value.is_string() => Code::SignatureNotString,
        _ => Code::SignatureRequired,
    };
    fields.required(SIGNATURE, code, |value| {
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    })
}

/// An assertion.
#[derive(Debug)]
pub struct Request {
    order: OrderId,
    address: String,
    reason: String,
    assertion: SignatureProof,
}

/// The answer to an assertion.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "WalletAssertion")]
#[serde(rename_all = "camelCase")]
pub struct Asserted {
    /// Number of the order.
    order_id: OrderId,
    /// `false` if the order stays as it is.
    recorded: bool,
}
