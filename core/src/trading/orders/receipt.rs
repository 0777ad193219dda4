//! `GET /api/v2/buy/orders/{id}/receipt`: what a completed order came to, signed.

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use super::Order;
use super::fees::Fees;
use super::lookup::{ID, ORDER_ERRORS, OrderName, find};
use super::status::OrderStatus;
use crate::Core;
use crate::auth::caller::{Client, Reader};
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::receipt_keys;
use rampart_types::{Amount, DestinationTag, OrderId, PairCode, Timestamp};

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/buy/orders/{id}/receipt";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const ERRORS: &'static [Code] = ORDER_ERRORS;
    const DOC: Doc = Doc {
        summary: "Read a completed order's receipt, signed",
        details: "`receipt` has the facts; `jws` is the same JSON, signed: a JWS in compact form \
                  (RFC 7515, EdDSA with Ed25519), whose header names the key by `kid`. Its public \
                  key stands at `/.well-known/jwks.json`, so that anybody can verify the receipt \
                  without asking for it. The fees obey `fiatAmount = cryptoAmount × price + the \
                  sum of all fees`, to the smallest unit of the currency. An order that is not \
                  completed is 409.",
        path: &[ID],
        answer: r#"{
            "receipt": {
                "iss": "https://pay.example.com", "iat": 1772366700,
                "orderId": 1742980455013377, "partner": "acme",
                "partnerOrderIdentifier": "order-7", "currencyPair": "BTC-EUR",
                "paymentMethod": "creditCard",
                "fiatAmount": {"amount": 250, "currencyCode": "EUR"},
                "cryptoAmount": {"amount": 0.00262011, "currencyCode": "BTC"},
                "price": {"amount": 90000, "currencyCode": "EUR"},
                "fees": {
                    "partnerFee": {"amount": 2.5, "currencyCode": "EUR"},
                    "paymentMethodFee": {"amount": 6.5, "currencyCode": "EUR"},
                    "networkFee": {"amount": 1.5, "currencyCode": "EUR"},
                    "providerFee": {"amount": 2.5, "currencyCode": "EUR"},
                    "spreadFee": {"amount": 1.19, "currencyCode": "EUR"},
                    "affiliateFee": {"amount": 0, "currencyCode": "EUR"},
                    "partnerFeePercentage": 1
                },
                "walletAddress": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "destinationTag": null,
                "transactionId": "f4184fc596403b9d638783cf57adfe4c75c605f6356fbc91338530e9831e9e16",
                "orderedAt": "2026-03-01T12:00:00Z", "paidAt": "2026-03-01T12:03:21Z",
                "completedAt": "2026-03-01T12:05:00Z"
            },
            "keyId": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
            "jws": "eyJ0eXAiOiJyZWNlaXB0K2p3dCJ9.eyJvcmRlcklkIjoxNzQyOTgwNDU1MDEzMzc3fQ.c2lnbmF0dXJl"
        }"#,
        also: &[(409, Code::GeneralError)],
        ..Doc::NONE
    };
    type Caller = Reader;
    type Request = OrderName;
    type Response = Json<SignedReceipt>;

    fn read(input: &Input, _: &Reader) -> Result<OrderName> {
        OrderName::read(input)
    }

    async fn call(core: &Core, caller: Reader, name: OrderName) -> Result<Json<SignedReceipt>> {
        let Reader { client, user } = caller;
        let order = find(core, &client, user, &name).await?;
        Ok(Json(SignedReceipt::of(core, &client, order).await?))
    }
}

/// A receipt with its signature.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignedReceipt {
    /// The facts, for reading.
    pub(crate) receipt: Receipt,
    /// The `kid` of the key that has signed.
    pub(crate) key_id: String,
    /// The receipt as a JWS in compact form.
    pub(crate) jws: String,
}

impl SignedReceipt {
    /// The receipt of an order, signed now.
    ///
    /// # Errors
    /// 409 for an order that is not completed; else when the database cannot be used.
    pub(crate) async fn of(core: &Core, client: &Client, order: Order) -> Result<Self> {
        if order.status != OrderStatus::Completed {
            let detail = format!("an order that is {} has no receipt", order.status.as_str());
            return Err(Error::with_status(Code::GeneralError, StatusCode::CONFLICT, detail));
        }
        let receipt = Receipt::load(core, client, order).await?;
        let payload = serde_json::to_vec(&receipt)
            .map_err(|error| Error::internal("write a receipt", error))?;
        let key = receipt_keys::signing(core).await?;
        let (key_id, jws) = (key.id().to_owned(), key.sign(&payload)?);
        Ok(Self { receipt, key_id, jws })
    }
}

/// The facts of a completed order. They do not change, so that neither does the signature of a key.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Receipt {
    /// The service's address.
    pub(crate) iss: String,
    /// `completedAt`, in seconds since 1970.
    iat: i64,
    /// Number of the order.
    pub(crate) order_id: OrderId,
    /// The partner's slug.
    partner: String,
    /// The partner's own name for the order.
    partner_order_identifier: Option<String>,
    /// Base and quote currency, such as `BTC-EUR`.
    currency_pair: PairCode,
    /// Code of the payment method.
    pub(crate) payment_method: String,
    /// Amount that was paid.
    pub(crate) fiat_amount: Amount,
    /// Amount that was sent.
    pub(crate) crypto_amount: Amount,
    /// Fiat for one unit of crypto.
    pub(crate) price: Amount,
    /// Every fee.
    pub(crate) fees: Fees,
    /// Address that the coins are sent to.
    pub(crate) wallet_address: String,
    /// Tag or memo that goes with the address.
    pub(crate) destination_tag: Option<DestinationTag>,
    /// Id of the transaction on the chain.
    pub(crate) transaction_id: String,
    /// Time of the confirm.
    pub(crate) ordered_at: Timestamp,
    /// The time at which the payment arrived, if it is known.
    pub(crate) paid_at: Option<Timestamp>,
    /// Time at which the coins had arrived.
    pub(crate) completed_at: Timestamp,
}

/// The facts of an order that only its receipt shows.
struct Settlement {
    price: rust_decimal::Decimal,
    paid_at: Option<DateTime<Utc>>,
    completed_at: DateTime<Utc>,
}

impl Receipt {
    async fn load(core: &Core, client: &Client, order: Order) -> Result<Self> {
        // Timelines are archived after some time; payments and the books stay. Nothing that is reported
        // later changes an answer: no other payment is the order's own, and a completed order is final.
        let settlement = sqlx::query_as!(
            Settlement,
            r#"
            select o.price, coalesce(
                (select min(p.occurred_at) from payment p where p.client_id = o.client_id
                    and p.order_id = o.order_id and p.kind = 'received' and not p.suspense),
                -- one that was matched may be in a book that the partner does not see
                (select min(e.occurred_at) from ledger_entry e where e.client_id = o.client_id
                    and e.order_id = o.order_id and e.kind = 'matched'),
                (select min(t.at) from order_transition t where t.client_id = o.client_id
                    and t.order_id = o.order_id and t.cause = 'payment-received')
            ) as "paid_at?", o.updated_at as completed_at
            from buy_order o where o.client_id = $1 and o.order_id = $2
            "#,
            client.id().uuid(),
            order.id.number(),
        )
        .fetch_one(&core.db)
        .await?;
        Ok(Self {
            iss: core.settings.public_url.clone(),
            iat: settlement.completed_at.timestamp(),
            order_id: order.id,
            partner: client.tenant.slug.to_string(),
            price: Amount::new(settlement.price, order.fiat.currency),
            fees: Fees::of(&order),
            fiat_amount: order.fiat,
            crypto_amount: order.crypto,
            currency_pair: order.pair,
            partner_order_identifier: order.partner_reference,
            payment_method: order.payment_method,
            wallet_address: order.wallet_address,
            destination_tag: order.destination_tag,
            transaction_id: order.transaction_id.unwrap_or_default(),
            ordered_at: Timestamp(order.created_at),
            paid_at: settlement.paid_at.map(Timestamp),
            completed_at: Timestamp(settlement.completed_at),
        })
    }
}
