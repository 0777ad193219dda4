//! A deposit becomes an order: bought at once at the price of the moment, for what has arrived.

use rust_decimal::Decimal;
use serde_json::json;
use sqlx::PgConnection;

use crate::Core;
use crate::auth::caller::{Client, ClientMaybeUser, Credential};
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::error::{Code, Error, Refusal, Result};
use crate::trading::orders::WalletType;
use crate::trading::orders::confirm::checks;
use crate::trading::orders::status::{Cause, NotApplied, OrderEvent, OrderStatus, apply_in};
use crate::trading::quotes::create::{self, Request};
use crate::trading::quotes::{Quote, Side};
use rampart_types::{ClientId, CurrencyCode, OrderId, UserId};

/// How deposits arrive.
const METHOD: &str = "bankTransfer";

/// The plan that a deposit is for.
#[derive(Debug)]
pub(crate) struct DepositPlan {
    pub(crate) client: ClientId,
    pub(crate) code: String,
    pub(crate) user: UserId,
    pub(crate) crypto_currency: CurrencyCode,
    pub(crate) wallet_address: String,
    pub(crate) destination_tag: Option<String>,
}

/// What has arrived.
#[derive(Debug)]
pub(crate) struct Deposit<'a> {
    pub(crate) amount: Decimal,
    pub(crate) currency: CurrencyCode,
    /// The bank's own name for it.
    pub(crate) reference: &'a str,
}

/// What a deposit buys now, by the rules of every quote.
///
/// # Errors
/// As a quote and a confirm of it: the pair is unknown or closed, the amount is beyond its bounds,
/// the user is disabled or gone.
pub(crate) async fn quote(
    core: &Core,
    plan: &DepositPlan,
    deposit: &Deposit<'_>,
    request_id: &str,
) -> Result<Quote> {
    let snapshot = core.snapshots.current();
    let tenant = snapshot.tenants.get(&plan.client).cloned();
    let client = Client {
        tenant: tenant.ok_or_else(|| Error::broken("find the client of a savings plan"))?,
        catalogue: snapshot.catalogue.clone(),
        credential: Credential::Token,
        request_id: request_id.into(),
    };
    let catalogue = client.catalogue.clone();
    let pair = catalogue
        .pair_of(plan.crypto_currency, deposit.currency)
        .ok_or(Code::CurrencyPairUnknown)?;
    let method = catalogue.payment_method(METHOD).ok_or(Code::PaymentMethodUnavailable)?;
    let request = Request::purchase(pair.clone(), method.clone(), deposit.amount);
    let caller = ClientMaybeUser { client, user: Some(plan.user) };
    let quote = create::quote(core, &caller, Side::Buy, &request)?;
    let mut refusal = Refusal::new();
    checks::market(&catalogue, &quote, &mut refusal);
    checks::user(core, plan.client, plan.user, &mut refusal).await?;
    if refusal.is_empty() { Ok(quote) } else { Err(refusal.into()) }
}

/// Makes the order, paid, in the caller's transaction; `None` when the deposit was reported before,
/// and the transaction must then be given up.
///
/// # Errors
/// When the database refuses or cannot be reached.
pub(crate) async fn make_order(
    conn: &mut PgConnection,
    core: &Core,
    plan: &DepositPlan,
    deposit: &Deposit<'_>,
    quote: &Quote,
) -> Result<Option<OrderId>> {
    let order = OrderId::from_entropy(core.clock.random_u64()?);
    insert(conn, core, plan, quote, order).await?;
    let payload =
        json!({"orderId": order, "partnerOrderIdentifier": null, "status": OrderStatus::Pending});
    let created = NewEvent { kind: EventType::OrderCreated, order_id: Some(order), payload };
    events::record(conn, core, plan.client, created, None).await?;
    let noted = sqlx::query_scalar!(
        r#"
        insert into dca_deposit (client_id, reference, code, amount, currency, order_id, created_at)
        values ($1, $2, $3, $4, $5, $6, $7)
        on conflict (client_id, reference) do nothing returning order_id
        "#,
        plan.client.uuid(),
        deposit.reference,
        plan.code,
        deposit.amount,
        deposit.currency.as_str(),
        order.number(),
        core.clock.now(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    if noted.is_none() {
        return Ok(None);
    }
    let reference = Some(deposit.reference.to_owned());
    let paid = OrderEvent::PaymentReceived { amount: None, reference };
    match apply_in(conn, core, plan.client, order, &paid, "edge").await {
        Ok(_) => Ok(Some(order)),
        Err(NotApplied::Failed(error)) => Err(error),
        Err(_) => Err(Error::broken("let a deposit pay its own order")),
    }
}

/// The order and the first row of its timeline. Its rate is fixed: the money is there already.
async fn insert(
    conn: &mut PgConnection,
    core: &Core,
    plan: &DepositPlan,
    quote: &Quote,
    order: OrderId,
) -> Result<()> {
    let (pays, gets) = (quote.fiat_currency(), quote.crypto_currency());
    sqlx::query!(
        r#"
        with placed as (
            insert into buy_order (
                client_id, order_id, created_at, updated_at, quote_id, user_id, status,
                status_cause, pair, payment_method, wallet_address, destination_tag, wallet_type,
                fiat_amount, fiat_currency, crypto_amount, crypto_currency, price, partner_fee,
                partner_fee_percentage, provider_fee, payment_method_fee, network_fee, spread_fee,
                affiliate_fee, is_estimated_quote, is_dca_order, terms_digest, policy_decisions)
            values ($1, $2, $3, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                $18, $19, $20, $21, $22, $23, $24, false, true, '', $25)
        )
        insert into order_transition
            (client_id, order_id, transition_id, at, to_status, cause, actor)
        values ($1, $2, $26, $3, $6, $7, 'edge')
        "#,
        plan.client.uuid(),
        order.number(),
        core.clock.now(),
        quote.id.uuid(),
        plan.user.uuid(),
        OrderStatus::Pending.as_str(),
        Cause::Confirmed.as_str(),
        quote.pair.to_string(),
        quote.payment_method,
        plan.wallet_address,
        plan.destination_tag,
        WalletType::Unhosted.as_str(),
        quote.fiat,
        pays.as_str(),
        quote.crypto,
        gets.as_str(),
        quote.price,
        quote.fees.partner,
        quote.partner_fee_percentage,
        quote.fees.provider,
        quote.fees.payment_method,
        quote.fees.network,
        quote.fees.spread,
        quote.fees.affiliate,
        quote.policy_decisions,
        core.clock.uuid()?,
    )
    .execute(conn)
    .await?;
    Ok(())
}
