//! One order: `GET /api/v1/user/buy/orders/{id}` for its user, `GET /api/v2/buy/orders/{id}` for
//! its client. `{id}` is our number or the partner's own identifier.

use std::sync::Arc;

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::fees::Fees;
use super::lookup::{ID, ORDER_ERRORS, OrderName, find};
use super::not_completed::{Reason, reasons};
use super::status::OrderStatus;
use super::{BlockchainInfo, Order};
use crate::Core;
use crate::auth::caller::{ClientAndUser, Reader};
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Deprecation, Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use rampart_types::{
    Amount, CurrencyDetails, DestinationTag, JsonDecimal, OrderId, PairCode, Preserialized,
    Timestamp,
};

/// The example of an order of version 2; a macro, so that `concat!` takes it.
macro_rules! order_example {
    () => {
        r#"{
    "id": 1742980455013377,
    "date": "2026-03-01T12:00:00Z",
    "partnerOrderIdentifier": "order-7",
    "currencyPair": "BTC-EUR",
    "paymentMethod": "creditCard",
    "walletAddress": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    "destinationTag": null,
    "status": "pending",
    "isDcaOrder": false,
    "isEstimatedQuote": false,
    "fiatAmount": {"amount": 250, "currencyCode": "EUR"},
    "cryptoAmount": {"amount": 0.00262011, "currencyCode": "BTC"},
    "fees": {
        "partnerFee": {"amount": 2.5, "currencyCode": "EUR"},
        "paymentMethodFee": {"amount": 6.5, "currencyCode": "EUR"},
        "networkFee": {"amount": 1.5, "currencyCode": "EUR"},
        "providerFee": {"amount": 2.5, "currencyCode": "EUR"},
        "spreadFee": {"amount": 1.19, "currencyCode": "EUR"},
        "affiliateFee": {"amount": 0, "currencyCode": "EUR"},
        "partnerFeePercentage": 1
    },
    "blockchainInfo": {
        "walletAddress": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "walletExplorer": "", "transactionId": "", "transactionExplorer": ""
    },
    "expiresAt": "2026-03-01T12:15:00Z",
    "sourceCurrency": {
        "code": "EUR", "ticker": "EUR", "name": "Euro", "caip19": "swift:0/iso4217:EUR"
    },
    "targetCurrency": {
        "code": "BTC", "ticker": "BTC", "name": "Bitcoin",
        "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0"
    }
}"#
    };
}

pub(crate) use order_example;

/// The example of an order of version 2.
pub const ORDER_EXAMPLE: &str = order_example!();

/// Version 1: the user's own order, with the reasons that it is not completed.
pub struct V1;

impl Endpoint for V1 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v1/user/buy/orders/{id}";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const ERRORS: &'static [Code] = ORDER_ERRORS;
    const DEPRECATION: Option<Deprecation> = Some(Deprecation { successor: V2::PATH });
    const DOC: Doc = Doc {
        summary: "Read a user's order",
        details: "With what keeps it from completing, and where the user can act on it.",
        path: &[ID],
        answer: r#"{
            "id": 1742980455013377,
            "date": "2026-03-01T12:00:00Z",
            "currencyPair": "BTC-EUR",
            "status": "in progress",
            "feeAmount": {"amount": 14.19, "currencyCode": "EUR"},
            "partnerFee": {"amount": 2.5, "currencyCode": "EUR"},
            "feePercentage": 1,
            "paymentMethodFee": {"amount": 6.5, "currencyCode": "EUR"},
            "networkFee": {"amount": 1.5, "currencyCode": "EUR"},
            "providerFee": {"amount": 2.5, "currencyCode": "EUR"},
            "partnerOrderIdentifier": "order-7",
            "spreadFee": {"amount": 1.19, "currencyCode": "EUR"},
            "orderNotCompletedReasons": [],
            "price": {"amount": 250, "currencyCode": "EUR"},
            "value": {"amount": 0.00262011, "currencyCode": "BTC"},
            "paymentMethod": "creditCard",
            "walletAddress": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "destinationTag": null,
            "blockchainInfo": {
                "walletAddress": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
                "walletExplorer": "", "transactionId": "", "transactionExplorer": ""
            },
            "isDcaOrder": false,
            "isEstimatedQuote": false,
            "expiresAt": "2026-03-01T12:15:00Z",
            "sourceCurrency": {
                "code": "EUR", "ticker": "EUR", "name": "Euro", "caip19": "swift:0/iso4217:EUR"
            },
            "targetCurrency": {
                "code": "BTC", "ticker": "BTC", "name": "Bitcoin",
                "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0"
            }
        }"#,
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = OrderName;
    type Response = Json<OrderV1>;

    fn read(input: &Input, _: &ClientAndUser) -> Result<OrderName> {
        OrderName::read(input)
    }

    async fn call(core: &Core, caller: ClientAndUser, name: OrderName) -> Result<Json<OrderV1>> {
        let ClientAndUser { client, user } = caller;
        let order = find(core, &client, Some(user), &name).await?;
        let mut conn = core.db.acquire().await?;
        let reasons = reasons(&mut conn, core, client.id(), &order).await?;
        Ok(Json(OrderV1 { order_not_completed_reasons: reasons, ..order.into() }))
    }
}

/// Version 2: any order of the tenant; with an API key, of the user.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/buy/orders/{id}";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const ERRORS: &'static [Code] = ORDER_ERRORS;
    const DOC: Doc = Doc {
        summary: "Read an order",
        details: "A client token reads every order of its client, an API key those of the user \
                  whose credential comes with it.",
        path: &[ID],
        answer: order_example!(),
        ..Doc::NONE
    };
    type Caller = Reader;
    type Request = OrderName;
    type Response = Json<OrderV2>;

    fn read(input: &Input, _: &Reader) -> Result<OrderName> {
        OrderName::read(input)
    }

    async fn call(core: &Core, caller: Reader, name: OrderName) -> Result<Json<OrderV2>> {
        let Reader { client, user } = caller;
        Ok(Json(find(core, &client, user, &name).await?.into()))
    }
}

/// An order in version 1.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "BuyOrderV1")]
pub struct OrderV1 {
    /// Number of the order.
    id: OrderId,
    /// Time of the confirm.
    date: Timestamp,
    /// Base and quote currency, such as `BTC-EUR`.
    currency_pair: PairCode,
    /// State of the order.
    status: OrderStatus,
    /// Sum of all fees.
    fee_amount: Amount,
    /// Fee of the partner.
    partner_fee: Amount,
    /// Fee of the partner, in percent.
    fee_percentage: Option<JsonDecimal>,
    /// Fee of the payment method.
    payment_method_fee: Amount,
    /// Fee of the network.
    network_fee: Amount,
    /// Fee of the service.
    provider_fee: Amount,
    /// The partner's own name for the order.
    partner_order_identifier: Option<String>,
    /// Spread, with what rounding has left.
    spread_fee: Amount,
    /// Everything that the order waits for.
    order_not_completed_reasons: Vec<Reason>,
    /// Amount that the user pays.
    price: Amount,
    /// Amount that the user gets.
    value: Amount,
    /// Code of the payment method.
    payment_method: String,
    /// Address that the coins are sent to.
    wallet_address: String,
    /// Tag or memo that goes with the address.
    destination_tag: Option<DestinationTag>,
    /// Wallet and transaction on the chain.
    blockchain_info: BlockchainInfo,
    /// `true` for a purchase of a savings plan.
    is_dca_order: bool,
    /// `true` if the price is fixed when the payment arrives.
    is_estimated_quote: bool,
    /// End of the time to pay.
    expires_at: Option<Timestamp>,
    /// Currency that is given.
    source_currency: Arc<Preserialized<CurrencyDetails>>,
    /// Currency that is received.
    target_currency: Arc<Preserialized<CurrencyDetails>>,
}

impl From<Order> for OrderV1 {
    /// Leaves the reasons empty; the endpoint fills them in.
    fn from(order: Order) -> Self {
        let fees = &order.fees;
        let amount = |value| Amount::new(value, order.fiat.currency);
        Self {
            id: order.id,
            date: Timestamp(order.created_at),
            currency_pair: order.pair,
            status: order.status,
            fee_amount: amount(order.fee_total),
            partner_fee: amount(fees.partner),
            fee_percentage: order.partner_fee_percentage.map(JsonDecimal),
            payment_method_fee: amount(fees.payment_method),
            network_fee: amount(fees.network),
            provider_fee: amount(fees.provider),
            spread_fee: amount(fees.spread),
            order_not_completed_reasons: Vec::new(),
            blockchain_info: order.blockchain_info(),
            is_dca_order: order.is_dca,
            is_estimated_quote: order.is_estimated,
            expires_at: order.expires_at.map(Timestamp),
            source_currency: Arc::clone(&order.fiat_currency.details),
            target_currency: Arc::clone(&order.crypto_currency.details),
            partner_order_identifier: order.partner_reference,
            price: order.fiat,
            value: order.crypto,
            payment_method: order.payment_method,
            wallet_address: order.wallet_address,
            destination_tag: order.destination_tag,
        }
    }
}

/// An order in version 2.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "BuyOrder")]
pub struct OrderV2 {
    /// Number of the order.
    id: OrderId,
    /// Time of the confirm.
    date: Timestamp,
    /// The partner's own name for the order.
    partner_order_identifier: Option<String>,
    /// Base and quote currency, such as `BTC-EUR`.
    currency_pair: PairCode,
    /// Code of the payment method.
    payment_method: String,
    /// Address that the coins are sent to.
    wallet_address: String,
    /// Tag or memo that goes with the address.
    destination_tag: Option<DestinationTag>,
    /// State of the order.
    status: OrderStatus,
    /// `true` for a purchase of a savings plan.
    is_dca_order: bool,
    /// `true` if the price is fixed when the payment arrives.
    is_estimated_quote: bool,
    /// Amount of the quote currency.
    fiat_amount: Amount,
    /// Amount of the base currency.
    crypto_amount: Amount,
    /// Every fee.
    fees: Fees,
    /// Wallet and transaction on the chain.
    blockchain_info: BlockchainInfo,
    /// End of the time to pay.
    expires_at: Option<Timestamp>,
    /// Currency that is given.
    source_currency: Arc<Preserialized<CurrencyDetails>>,
    /// Currency that is received.
    target_currency: Arc<Preserialized<CurrencyDetails>>,
}

impl From<Order> for OrderV2 {
    fn from(order: Order) -> Self {
        Self {
            id: order.id,
            date: Timestamp(order.created_at),
            currency_pair: order.pair,
            status: order.status,
            is_dca_order: order.is_dca,
            is_estimated_quote: order.is_estimated,
            fees: Fees::of(&order),
            blockchain_info: order.blockchain_info(),
            expires_at: order.expires_at.map(Timestamp),
            source_currency: Arc::clone(&order.fiat_currency.details),
            target_currency: Arc::clone(&order.crypto_currency.details),
            partner_order_identifier: order.partner_reference,
            payment_method: order.payment_method,
            wallet_address: order.wallet_address,
            destination_tag: order.destination_tag,
            fiat_amount: order.fiat,
            crypto_amount: order.crypto,
        }
    }
}
