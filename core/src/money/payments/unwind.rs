//! Payout and exchange of an order that is given back.

use rust_decimal::Decimal;
use uuid::Uuid;

use super::return_fees::fee_account;
use super::sent::Sent;
use super::terms::OrderTerms;
use crate::Core;
use crate::money::ledger::AccountKind::{PayoutPayable, Suspense, Treasury};
use crate::money::ledger::entries::reversed;
use crate::money::ledger::{Position, Posting, Subject, post};
use crate::platform::db::Connection;
use crate::trading::quotes::Side;

/// The part of the payout of an exchanged order that has left.
struct Left {
    amount: Decimal,
    /// The part of it that a provider or a network has kept of what came back.
    kept: Decimal,
    sent: Sent,
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
        let sent = Sent::of(conn, terms.key, currency, Uuid::nil()).await?;
        let kept = (sent.kept() - excess).min(amount).max(Decimal::ZERO);
        Ok(Self { amount, kept, sent })
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
    let Left { amount, kept, sent } = Left::of(&mut *conn, terms, &position).await?;
    let mut postings = vec![
        Posting::new(PayoutPayable, currency, -amount),
        Posting::new(fee_account(amounts.side), currency, kept),
    ];
    match amounts.side {
        Side::Buy => postings.push(Posting::new(Treasury, currency, amount - kept)),
        Side::Sell => {
            postings.extend(at_providers(&position, &sent, currency, amount - kept));
        }
    }
    post(conn, core, "payout-returned", subject, &postings).await?;
    post(conn, core, "execution-reversed", subject, &reversed(amounts.execution())).await
}

/// A provider that money of a sale has left.
struct Source<'a> {
    provider: &'a str,
    left: Decimal,
    /// The part of it that is there again.
    back: Decimal,
}

/// Postings of a sale's money to the providers that it has left, each as far as it has left there: first
/// what no provider has kept. What they do not explain is at the first of them.
fn at_providers(
    position: &Position,
    sent: &Sent,
    currency: &str,
    mut amount: Decimal,
) -> Vec<Posting> {
    let mut sources = Vec::new();
    for (provider, left) in position.providers_below(currency) {
        let back = (left - sent.kept_by(provider)).min(amount).max(Decimal::ZERO);
        amount -= back;
        sources.push(Source { provider, left, back });
    }
    for source in &mut sources {
        let more = (source.left - source.back).min(amount).max(Decimal::ZERO);
        amount -= more;
        source.back += more;
    }
    match sources.first_mut() {
        Some(first) => first.back += amount,
        None => return vec![Posting::at("manual", currency, amount)],
    }
    sources.iter().map(|source| Posting::at(source.provider, currency, source.back)).collect()
}
