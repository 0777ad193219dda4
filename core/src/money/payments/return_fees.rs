//! Fees of payouts that came back: the rest that a provider or a network has kept, from the refund of
//! the order on, until it comes back, too.

use rust_decimal::Decimal;

use super::terms::OrderTerms;
use crate::money::ledger::AccountKind::{self, FeeNetwork, FeePaymentMethod};
use crate::platform::db::Connection;
use crate::trading::quotes::Side;

/// The account that such a fee of an order of this side is paid from.
pub(super) const fn fee_account(side: Side) -> AccountKind {
    match side {
        Side::Buy => FeeNetwork,
        Side::Sell => FeePaymentMethod,
    }
}

/// The part of such fees of an order that has not come back. Fees that a chain took for its payouts are
/// no part of it.
pub(super) async fn return_fee(
    conn: &mut Connection,
    order: &OrderTerms,
    currency: &str,
) -> Result<Decimal, sqlx::Error> {
    let fee = sqlx::query_scalar!(
        r#"
        select coalesce(sum(l.amount), 0) as "fee!"
        from ledger_entry e
        join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
        join ledger_account a on a.client_id = l.client_id and a.account_id = l.account_id
        -- not by value: of a partner newer than its statistics the planner expects no row
        where e.client_id = (select $1::uuid) and e.order_id = $2 and a.kind = $3
            and a.currency = $4
            and e.kind in ('payout-returned', 'payout-failed', 'transfer-returned')
        "#,
        order.key.client.uuid(),
        order.key.order.number(),
        fee_account(order.amounts.side).as_str(),
        currency,
    )
    .fetch_one(conn)
    .await?;
    Ok(fee.max(Decimal::ZERO))
}
