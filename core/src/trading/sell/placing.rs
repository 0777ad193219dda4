//! The one transaction of a confirm.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Core;
use crate::auth::caller::Client;
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::db::retrying;
use crate::platform::error::{Error, Result};
use crate::trading::limits;
use crate::trading::orders::confirm::placing::{ORDER_ID_TRIES_MAX, may_have_run};
use crate::trading::orders::row::{currency, id, tag};
use crate::trading::orders::status::{Cause, OrderStatus};
use crate::trading::quotes::Quote;
use rampart_types::{
    ClientId, CurrencyCode, DestinationTag, OrderId, QuoteId, UserId, WalletAddress,
};

/// A sale about to be made.
pub(super) struct NewSale<'a> {
    pub(super) client: ClientId,
    pub(super) user: Option<UserId>,
    pub(super) quote: &'a Quote,
    pub(super) account: Option<Uuid>,
    pub(super) callback_url: Option<&'a str>,
    pub(super) partner_reference: Option<&'a str>,
    pub(super) terms_digest: [u8; 32],
    pub(super) now: DateTime<Utc>,
    pub(super) expires_at: DateTime<Utc>,
}

/// A sale that was made.
pub(super) struct Placed {
    pub(super) order: OrderId,
    pub(super) wallet_address: String,
    pub(super) destination_tag: Option<DestinationTag>,
    pub(super) expires_at: DateTime<Utc>,
}

/// What became of the transaction.
pub(super) enum Outcome {
    /// The sale is made.
    Placed(Placed),
    /// Nothing happened: the quote has become a sale before.
    QuoteUsed,
    /// Nothing happened: in the meantime the user's limit was reached, or the user or the account
    /// disabled.
    Forbidden,
    /// The connection was lost: nobody knows.
    Unknown(sqlx::Error),
}

/// Where the coins of a sale go.
pub(super) type Deposit = (WalletAddress, Option<DestinationTag>);

/// Makes the sale, the first row of its timeline and its event.
///
/// # Errors
/// When the database refuses or cannot be reached.
pub(super) async fn place(
    core: &Core,
    sale: &NewSale<'_>,
    deposit: impl Fn(OrderId) -> Result<Deposit>,
) -> Result<Outcome> {
    for _ in 0..ORDER_ID_TRIES_MAX {
        let order = OrderId::from_entropy(core.clock.random_u64()?);
        let (transition, to) = (core.clock.uuid()?, deposit(order)?);
        let attempt = || async {
            let mut tx = core.db.begin().await?;
            if !insert(&mut tx, sale, (order, transition), &to).await? {
                return Ok(Some(Failure::Forbidden));
            }
            let payload = json!({
                "orderId": order,
                "partnerOrderIdentifier": sale.partner_reference,
                "status": OrderStatus::Pending,
            });
            let created =
                NewEvent { kind: EventType::OrderCreated, order_id: Some(order), payload };
            events::record(&mut tx, core, sale.client, created, None).await?;
            tx.commit().await?;
            Ok(None)
        };
        let attempt = || async { attempt().await.or_else(judge) };
        match retrying(attempt).await? {
            None => {
                let (wallet_address, destination_tag) = to;
                let wallet_address = wallet_address.as_str().to_owned();
                let expires_at = sale.expires_at;
                let placed = Placed { order, wallet_address, destination_tag, expires_at };
                return Ok(Outcome::Placed(placed));
            }
            Some(Failure::QuoteUsed) => return Ok(Outcome::QuoteUsed),
            Some(Failure::Forbidden) => return Ok(Outcome::Forbidden),
            Some(Failure::Unknown(error)) => return Ok(Outcome::Unknown(error)),
            Some(Failure::NumberTaken) => {}
        }
    }
    Err(Error::broken("find a free order number"))
}

/// Why the transaction made no sale, or none that is known of.
enum Failure {
    QuoteUsed,
    Forbidden,
    NumberTaken,
    Unknown(sqlx::Error),
}

fn judge(error: sqlx::Error) -> Result<Option<Failure>, sqlx::Error> {
    let constraint = error.as_database_error().and_then(|error| error.constraint());
    match constraint {
        Some("sell_order_quote_id_key") => Ok(Some(Failure::QuoteUsed)),
        Some("sell_order_pkey") => Ok(Some(Failure::NumberTaken)),
        _ if may_have_run(&error) => Ok(Some(Failure::Unknown(error))),
        _ => Err(error),
    }
}

/// The sale and the first row of its timeline; `false`, and neither of them, where the user's limit
/// or the account forbids it. The user is held, so that the sales before it count.
async fn insert(
    conn: &mut PgConnection,
    sale: &NewSale<'_>,
    (order, transition): (OrderId, Uuid),
    (address, tag): &Deposit,
) -> Result<bool, sqlx::Error> {
    let quote = sale.quote;
    let bounds = match sale.user {
        None => None,
        Some(user) => {
            let held = limits::hold(conn, (sale.client, user), quote.side, sale.now).await?;
            let Some(bounds) = held else { return Ok(false) };
            Some(bounds)
        }
    };
    let (gets, pays) = (quote.fiat_currency(), quote.crypto_currency());
    let made = sqlx::query!(
        r#"
        with allowed as (
            select true as yes
            where ($31::numeric is null or trade_fits_day($1, $5, 'sell', $14, $31, $32, $33))
                and ($11::uuid is null or account_may_trade($1, $5, $11))
        ), placed as (
            insert into sell_order (
                client_id, order_id, created_at, updated_at, quote_id, user_id, partner_reference,
                status, status_cause, pair, payment_method, account_id, wallet_address,
                destination_tag, fiat_amount, fiat_currency, crypto_amount, crypto_currency, price,
                partner_fee, partner_fee_percentage, provider_fee, payment_method_fee, network_fee,
                spread_fee, affiliate_fee, callback_url, terms_digest, policy_decisions, expires_at)
            select $1, $2, $3, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29 from allowed
            returning order_id
        )
        insert into sell_order_transition
            (client_id, order_id, transition_id, at, to_status, cause, actor)
        select $1, order_id, $30, $3, $7, $8, 'edge' from placed
        "#,
        sale.client.uuid(),
        order.number(),
        sale.now,
        quote.id.uuid(),
        sale.user.map(UserId::uuid),
        sale.partner_reference,
        OrderStatus::Pending.as_str(),
        Cause::Confirmed.as_str(),
        quote.pair.to_string(),
        quote.payment_method,
        sale.account,
        address.as_str(),
        tag.as_ref().map(ToString::to_string),
        quote.fiat,
        gets.as_str(),
        quote.crypto,
        pays.as_str(),
        quote.price,
        quote.fees.partner,
        quote.partner_fee_percentage,
        quote.fees.provider,
        quote.fees.payment_method,
        quote.fees.network,
        quote.fees.spread,
        quote.fees.affiliate,
        sale.callback_url,
        &sale.terms_digest[..],
        quote.policy_decisions,
        sale.expires_at,
        transition,
        bounds.map(|bounds| bounds.side),
        bounds.map(|bounds| bounds.day),
        bounds.map(|bounds| bounds.since),
    )
    .execute(conn)
    .await?;
    Ok(made.rows_affected() == 1)
}

/// The sale that the quote has become before, if it has, and the digest of its terms.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn earlier(
    core: &Core,
    client: &Client,
    quote: QuoteId,
) -> Result<Option<(Placed, Vec<u8>)>> {
    let row = sqlx::query!(
        "select order_id, wallet_address, destination_tag, \
         crypto_currency as \"crypto_currency: CurrencyCode\", expires_at, terms_digest from sell_order where client_id = $1 and quote_id = $2",
        client.id().uuid(),
        quote.uuid(),
    )
    .fetch_optional(&core.db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let currency = currency(&client.catalogue, row.crypto_currency)?;
    let placed = Placed {
        order: id(row.order_id)?,
        wallet_address: row.wallet_address,
        destination_tag: tag(&currency, row.destination_tag)?,
        expires_at: row.expires_at,
    };
    Ok(Some((placed, row.terms_digest)))
}
