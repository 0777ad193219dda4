//! Sales of a user: `GET /api/v1/user/sell/orders`, newest first, and
//! `GET /api/v1/user/sell/orders/{id}`, by number or by the partner's own identifier.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::Sale;
use super::row::select_sales;
use crate::Core;
use crate::auth::caller::{Client, ClientAndUser};
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::checks::Hold;
use crate::trading::orders::BlockchainInfo;
use crate::trading::orders::list::{Cursor, Filter, PARAMETERS, Page};
use crate::trading::orders::lookup::{ID, ORDER_ERRORS, OrderName};
use crate::trading::orders::not_completed::{ACCOUNT_MISSING, Reason, blocked, incomplete_checks};
use crate::trading::orders::status::OrderStatus;
use crate::users::accounts::{self, PaymentAccount};
use rampart_types::{
    Amount, ClientId, CurrencyDetails, DestinationTag, JsonDecimal, OrderId, OrderKey, PairCode,
    Preserialized, UserId, UserKey,
};

/// The example of a sale in the OpenAPI document; a macro, so that `concat!` takes it.
macro_rules! sale_example {
    () => {
        r#"{
    "id": 4503599627370496, "date": "2026-03-01T14:00:00Z", "currencyPair": "BTC-EUR",
    "status": "pending", "feeAmount": {"amount": 2.88, "currencyCode": "EUR"},
    "partnerFee": {"amount": 0, "currencyCode": "EUR"}, "feePercentage": 0,
    "paymentMethodFee": {"amount": 0, "currencyCode": "EUR"},
    "networkFee": {"amount": 1.5, "currencyCode": "EUR"},
    "providerFee": {"amount": 0.9, "currencyCode": "EUR"},
    "spreadFee": {"amount": 0.48, "currencyCode": "EUR"},
    "partnerOrderIdentifier": null, "orderNotCompletedReasons": [],
    "price": {"amount": 87.12, "currencyCode": "EUR"},
    "value": {"amount": 0.001, "currencyCode": "BTC"}, "receivedAmount": null,
    "paymentMethod": "bankTransfer", "accountIdentifier": null,
    "walletAddress": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "destinationTag": null,
    "blockchainInfo": {
        "walletAddress": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
        "walletExplorer": "https://mempool.space/address/bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
        "transactionId": "", "transactionExplorer": ""
    },
    "orderExpireTime": "2026-03-01T14:30:00Z",
    "sourceCurrency": {
        "code": "BTC", "ticker": "BTC", "name": "Bitcoin",
        "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0"
    },
    "targetCurrency": {
        "code": "EUR", "ticker": "EUR", "name": "Euro", "caip19": "swift:0/iso4217:EUR"
    }
}"#
    };
}

/// The example of a sale.
pub const SALE_EXAMPLE: &str = sale_example!();

/// The list, version 1.
pub struct ListV1;

impl Endpoint for ListV1 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v1/user/sell/orders";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const ERRORS: &'static [Code] = &[Code::OrderIdMalformed, Code::RequestMalformed];
    const DOC: Doc = Doc {
        summary: "List a user's sell orders",
        details: "Newest first, a page at a time: follow `Link`, or send `X-Next-Cursor` as \
                  `cursor`.",
        query: PARAMETERS,
        answer: concat!("[", sale_example!(), "]"),
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = Filter;
    type Response = Page<SaleV1>;

    fn read(input: &Input, _: &ClientAndUser) -> Result<Filter> {
        Filter::read(input.head.query.as_deref())
    }

    async fn call(core: &Core, caller: ClientAndUser, filter: Filter) -> Result<Page<SaleV1>> {
        let ClientAndUser { client, user } = caller;
        let end = filter.end();
        let rows = select_sales!(
            "where client_id = $1 and user_id = $2 and ($3::text is null or partner_reference = $3) \
             and ($4::text is null or status = $4) and created_at >= $5 \
             and (created_at, order_id) < ($6, $7) \
             order by created_at desc, order_id desc limit $8",
            client.id().uuid(),
            user.uuid(),
            filter.reference.as_ref().map(|reference| reference.as_str()),
            filter.status.map(OrderStatus::as_str),
            filter.start(),
            end.created_at,
            end.order_id,
            filter.fetch_limit(),
        )
        .fetch_all(&core.db)
        .await?;
        let sales = rows.into_iter().map(|row| row.sale(&client.catalogue));
        let sales: Vec<Sale> = sales.collect::<Result<_>>()?;
        let mut conn = core.db.acquire().await?;
        let seller = Seller::read(&mut conn, core, &client, &sales).await?;
        drop(conn);
        let cursor = |sale: &SaleV1| Cursor::after(sale.date, sale.id);
        let sales = sales.into_iter().map(|sale| seller.view(core, sale));
        let sales: Vec<SaleV1> = sales.collect::<Result<_>>()?;
        Ok(filter.page(Self::PATH, sales, cursor))
    }
}

/// One sale, version 1.
pub struct ReadV1;

impl Endpoint for ReadV1 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v1/user/sell/orders/{id}";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const ERRORS: &'static [Code] = ORDER_ERRORS;
    const DOC: Doc = Doc {
        summary: "Read a user's sell order",
        details: "By the order's number or by your own identifier; of several with one \
                  identifier the newest answers.",
        path: &[ID],
        answer: sale_example!(),
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = OrderName;
    type Response = Json<SaleV1>;

    fn read(input: &Input, _: &ClientAndUser) -> Result<OrderName> {
        OrderName::read(input)
    }

    async fn call(core: &Core, caller: ClientAndUser, name: OrderName) -> Result<Json<SaleV1>> {
        let client = &caller.client;
        let sale = find(core, client, Some(caller.user), &name).await?;
        let mut conn = core.db.acquire().await?;
        let sales = std::slice::from_ref(&sale);
        let seller = Seller::read(&mut conn, core, client, sales).await?;
        drop(conn);
        Ok(Json(seller.view(core, sale)?))
    }
}

/// Finds a sale of this tenant, and of `user` if given; by one statement in every case, as for
/// orders.
///
/// # Errors
/// ER035 when there is none.
pub async fn find(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    name: &OrderName,
) -> Result<Sale> {
    let row = select_sales!(
        "where client_id = $1 and ($2::uuid is null or user_id = $2) \
         and (order_id = $3 or partner_reference = $4) \
         order by (order_id = $3) desc nulls last, created_at desc, order_id desc limit 1",
        client.id().uuid(),
        user.map(UserId::uuid),
        name.number.map(OrderId::number),
        name.reference.as_str(),
    )
    .fetch_optional(&core.db)
    .await?;
    row.ok_or(Code::OrderNotFound)?.sale(&client.catalogue)
}

/// The JSON of the sale of this client with our number, as the caller's transaction has left it.
///
/// # Errors
/// ER035 when there is none.
pub async fn view_in(
    conn: &mut Connection,
    core: &Core,
    client: &Client,
    number: OrderId,
) -> Result<SaleV1> {
    let row = select_sales!(
        "where client_id = $1 and order_id = $2",
        client.id().uuid(),
        number.number(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let sale = row.ok_or(Code::OrderNotFound)?.sale(&client.catalogue)?;
    let seller = Seller::read(conn, core, client, std::slice::from_ref(&sale)).await?;
    seller.view(core, sale)
}

/// Data of the user of sales; empty without a user.
struct Seller {
    client: ClientId,
    is_test: bool,
    accounts: Vec<PaymentAccount>,
    /// The open checks of sales that are not final, by their numbers.
    open: BTreeMap<i64, Vec<Hold>>,
}

impl Seller {
    /// Reads the user of these sales, which is the same for all.
    async fn read(
        conn: &mut Connection,
        core: &Core,
        client: &Client,
        sales: &[Sale],
    ) -> Result<Self> {
        let (client, is_test) = (client.id(), client.tenant.is_test());
        let Some(user) = sales.iter().find_map(|sale| sale.user) else {
            return Ok(Self { client, is_test, accounts: Vec::new(), open: BTreeMap::new() });
        };
        let waiting = sales.iter().filter(|sale| !sale.status.is_final());
        let numbers: Vec<i64> = waiting.map(|sale| sale.id.number()).collect();
        let open = Hold::of_sales(&mut *conn, client, &numbers).await?;
        let accounts = match sales.iter().any(|sale| sale.account.is_some()) {
            true => accounts::list(conn, core, UserKey { client, user }).await?,
            false => Vec::new(),
        };
        Ok(Self { client, is_test, accounts, open })
    }

    /// The sale's JSON.
    fn view(&self, core: &Core, sale: Sale) -> Result<SaleV1> {
        let reasons = self.reasons(core, &sale)?;
        Ok(SaleV1::new(sale, self, reasons))
    }

    /// Reasons that a sale is not completed; none once it is final.
    fn reasons(&self, core: &Core, sale: &Sale) -> Result<Vec<Reason>> {
        if sale.status.is_final() {
            return Ok(Vec::new());
        }
        let held = sale.status == OrderStatus::Blocked;
        let held = held.then(|| blocked(sale.cause));
        let open = self.open.get(&sale.id.number()).map(Vec::as_slice).unwrap_or_default();
        let key = OrderKey { client: self.client, order: sale.id };
        let open = incomplete_checks(core, key, open)?;
        // The sandbox pays out to nobody.
        let is_unpayable = sale.account.is_none() && !self.is_test;
        let unpayable = is_unpayable.then_some(ACCOUNT_MISSING);
        Ok(held.into_iter().chain(open).chain(unpayable).collect())
    }
}

/// A sale in version 1.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "SellOrder")]
#[serde(rename_all = "camelCase")]
pub struct SaleV1 {
    /// Number of the order.
    id: OrderId,
    /// Time of the confirm.
    date: DateTime<Utc>,
    /// Base and quote currency, such as `BTC-EUR`.
    currency_pair: PairCode,
    /// State of the order.
    status: OrderStatus,
    /// Sum of all fees.
    fee_amount: Amount,
    /// Fee of the partner.
    partner_fee: Amount,
    /// Fee of the partner, in percent.
    fee_percentage: JsonDecimal,
    /// Fee of the payment method.
    payment_method_fee: Amount,
    /// Fee of the network.
    network_fee: Amount,
    /// Fee of the service.
    provider_fee: Amount,
    /// Spread, with what rounding has left.
    spread_fee: Amount,
    /// The partner's own name for the order.
    partner_order_identifier: Option<String>,
    /// Everything that the order waits for.
    order_not_completed_reasons: Vec<Reason>,
    /// Amount that the user gets.
    price: Amount,
    /// Amount that the user sends.
    value: Amount,
    /// Amount that has arrived; null until then.
    received_amount: Option<Amount>,
    /// Code of the payout method.
    payment_method: String,
    /// The account for the payout; null if none was named, or it is erased.
    account_identifier: Option<String>,
    /// Deposit address of the coins.
    wallet_address: String,
    /// Tag or memo of the deposit address.
    destination_tag: Option<DestinationTag>,
    /// Deposit address and transaction on the chain.
    blockchain_info: BlockchainInfo,
    /// Time after which a deposit is late.
    order_expire_time: DateTime<Utc>,
    /// Currency that is given.
    source_currency: Arc<Preserialized<CurrencyDetails>>,
    /// Currency that is received.
    target_currency: Arc<Preserialized<CurrencyDetails>>,
}

impl SaleV1 {
    fn new(sale: Sale, seller: &Seller, reasons: Vec<Reason>) -> Self {
        let account = seller.accounts.iter().find(|account| Some(account.id) == sale.account);
        let transaction = sale.transaction_id.as_deref().unwrap_or_default();
        let amount = |value| Amount::new(value, sale.fiat.currency);
        Self {
            id: sale.id,
            date: sale.created_at,
            currency_pair: sale.pair,
            status: sale.status,
            fee_amount: amount(sale.fee_total),
            partner_fee: amount(sale.fees.partner),
            fee_percentage: sale.partner_fee_percentage.into(),
            payment_method_fee: amount(sale.fees.payment_method),
            network_fee: amount(sale.fees.network),
            provider_fee: amount(sale.fees.provider),
            spread_fee: amount(sale.fees.spread),
            order_not_completed_reasons: reasons,
            price: sale.fiat,
            value: sale.crypto,
            received_amount: sale.received,
            payment_method: sale.payment_method,
            account_identifier: account.map(|account| account.details.identifier.clone()),
            blockchain_info: BlockchainInfo::new(
                Some(&sale.crypto_currency),
                &sale.wallet_address,
                transaction,
            ),
            partner_order_identifier: sale.partner_reference,
            wallet_address: sale.wallet_address,
            destination_tag: sale.destination_tag,
            order_expire_time: sale.expires_at,
            source_currency: Arc::clone(&sale.crypto_currency.details),
            target_currency: Arc::clone(&sale.fiat_currency.details),
        }
    }
}
