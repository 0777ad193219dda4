//! Payout and exchange of an order that is given back.

use rust_decimal::Decimal;
use uuid::Uuid;

use super::return_fees::fee_account;
use super::sent::Sent;
use super::terms::OrderTerms;
use crate::Core;
use crate::money::ledger::AccountKind::{PayoutPayable, Suspense};
use crate::money::ledger::entries::{holding, reversed};
use crate::money::ledger::{Position, Posting, Subject, post};
use crate::platform::db::Connection;
use crate::trading::quotes::Side;

/// The part of the payout of an exchanged order that has left.
struct Left {
    amount: Decimal,
    /// The part of it that a provider or a network has kept of what came back.
    kept: Decimal,
}

impl Left {
    async fn of(
        conn: &mut Connection,
        terms: &OrderTerms,
        position: &Position,
    ) -> Result<Self, sqlx::Error> {
        let (payout, currency) = terms.amounts.payout();
        let amount = payout - position.owed(PayoutPayable, currency);
        // What was kept beyond what was owed stands in suspense.
        let excess = position.sum(Suspense, currency).max(Decimal::ZERO);
        let kept = Sent::of(conn, terms.key, currency, Uuid::nil()).await?.kept() - excess;
        Ok(Self { amount, kept: kept.min(amount).max(Decimal::ZERO) })
    }
}

/// True if coins or money of an order have left for its user, and have not come back.
///
/// # Errors
/// The database's.
pub(super) async fn has_left(
    conn: &mut Connection,
    terms: &OrderTerms,
) -> Result<bool, sqlx::Error> {
    let position = Position::of_order(&mut *conn, terms.key).await?;
    if !position.is_executed(&terms.amounts.crypto_currency) {
        return Ok(false);
    }
    let left = Left::of(conn, terms, &position).await?;
    Ok(left.amount > left.kept)
}

/// Undoes payout and exchange of an order that is given back: its coins or its fiat are with us, but
/// for what was kept of what came back, which is a fee that we have paid until it comes back, too.
///
/// # Errors
/// The database's.
pub(super) async fn unwind(
    conn: &mut Connection,
    core: &Core,
    terms: &OrderTerms,
    subject: &Subject,
) -> Result<(), sqlx::Error> {
    let position = Position::of_order(&mut *conn, terms.key).await?;
    let amounts = &terms.amounts;
    if !position.is_executed(&amounts.crypto_currency) {
        return Ok(());
    }
    let (_, currency) = amounts.payout();
    let from = position.providers_below(currency).unwrap_or("manual");
    let Left { amount, kept } = Left::of(&mut *conn, terms, &position).await?;
    let postings = [
        Posting::new(PayoutPayable, currency, -amount),
        holding(amounts.side == Side::Buy, from, currency, amount - kept),
        Posting::new(fee_account(amounts.side), currency, kept),
    ];
    post(conn, core, "payout-returned", subject, &postings).await?;
    post(conn, core, "execution-reversed", subject, &reversed(amounts.execution())).await
}
