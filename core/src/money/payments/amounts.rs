//! Other amounts of an order, written into its row and its timeline.

use super::bookings::Booking;
use super::reprice::Repriced;
use super::terms::OrderTerms;
use crate::platform::db::Connection;
use crate::trading::quotes::Side;

/// The cause of the timeline's line.
const REPRICED: &str = "repriced";

/// Writes the new amounts, which obey the fee identity, and says why.
pub(super) async fn write(
    conn: &mut Connection,
    booking: &Booking<'_>,
    terms: &OrderTerms,
    repriced: &Repriced,
    reason: &str,
) -> Result<(), sqlx::Error> {
    let amounts = &repriced.amounts;
    macro_rules! statement {
        ($order:literal, $transition:literal) => {
            sqlx::query!(
                "with moved as (update "
                    + $order
                    + " set fiat_amount = $3, \
                 limit_amount = round(limit_amount * $3 / fiat_amount, 8), crypto_amount = $4, \
                 price = $5, partner_fee = $6, provider_fee = $7, payment_method_fee = $8, \
                 network_fee = $9, spread_fee = $10, affiliate_fee = $11, updated_at = $12, \
                 partner_fee_percentage = coalesce($18, partner_fee_percentage) \
                 where client_id = $1 and order_id = $2) \
                 insert into "
                    + $transition
                    + " (client_id, order_id, transition_id, at, \
                 from_status, to_status, cause, reason, actor) \
                 values ($1, $2, $13, $12, $14, $14, $15, $16, $17)",
                terms.key.client.uuid(),
                terms.key.order.number(),
                amounts.fiat,
                amounts.crypto,
                amounts.price,
                amounts.fees.partner,
                amounts.fees.provider,
                amounts.fees.payment_method,
                amounts.fees.network,
                amounts.fees.spread,
                amounts.fees.affiliate,
                booking.now,
                booking.core.clock.uuid()?,
                terms.status.as_str(),
                REPRICED,
                reason,
                booking.actor,
                repriced.partner_fee_percentage,
            )
        };
    }
    match terms.amounts.side {
        Side::Buy => statement!("buy_order", "order_transition").execute(conn).await?,
        Side::Sell => statement!("sell_order", "sell_order_transition").execute(conn).await?,
    };
    Ok(())
}
