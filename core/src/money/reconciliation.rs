//! A statement beside the books of its connector: what is new is recorded, and what only one side
//! has is listed.

use std::collections::HashSet;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::Core;
use crate::money::payments::report::{PaymentKind, Recorded, Report};
use crate::money::payments::{record, store::currency_of};
use crate::platform::error::{Error, Result};
use rampart_statement::Line;
use rampart_types::JsonDecimal;

/// Most differences that are listed.
const DIFFERENCES_MAX: usize = 1_000;

/// Something that only one side has, or that the two have differently.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema, Serialize)]
#[schemars(rename = "ReconciliationDifference")]
#[serde(rename_all = "camelCase")]
pub(crate) struct Difference {
    /// `statement`, `books`, or `amount` where both have it.
    side: String,
    /// The provider's own name for the payment.
    provider_reference: String,
    /// By the statement; by the books where only they have it.
    amount: JsonDecimal,
    /// A currency's code, or an asset's code or CAIP-19 id.
    currency: String,
    /// By the books, where the two differ.
    booked_amount: Option<JsonDecimal>,
}

/// The result of a reconciliation.
#[derive(Debug, Default)]
pub(crate) struct Reconciled {
    pub(crate) matched: i32,
    pub(crate) recorded: i32,
    pub(crate) differences: Vec<Difference>,
}

/// A payment of the connector in the books. What left is negative.
struct Booked {
    reference: String,
    amount: Decimal,
    currency: String,
}

/// Lays the lines beside the payments of `connector`. New incoming ones are recorded, each in a
/// transaction of its own: the same statement again goes on where it stopped. Money above
/// `order_max`, and coins, find no order by it, but wait to be matched; `None` bounds nothing.
///
/// # Errors
/// The database's.
pub(crate) async fn reconcile(
    core: &Core,
    (connector, order_max): (&str, Option<Decimal>),
    lines: Vec<Line>,
    actor: &str,
) -> Result<Reconciled> {
    let mut result = Reconciled::default();
    let mut seen = HashSet::new();
    let days: Vec<_> = lines.iter().filter_map(Line::at).collect();
    for line in lines {
        let references = references(&line);
        let booked = find(core, connector, &references).await?;
        seen.extend(references);
        let same =
            |payment: &&Booked| payment.amount == line.amount && payment.currency == line.currency;
        if booked.iter().any(|payment| same(&payment)) {
            result.matched += 1;
        } else if let Some(other) = booked.first() {
            result.differences.push(difference("amount", &line, Some(other.amount)));
        } else if line.amount > Decimal::ZERO {
            let recorded = receive(core, (connector, order_max), &line, actor).await?;
            recorded.count(core);
            result.recorded += 1;
        } else {
            result.differences.push(difference("statement", &line, None));
        }
    }
    if let (Some(first), Some(last)) = (days.iter().min(), days.iter().max()) {
        // A transfer is told by its begin and by its end: the one that moved it has the entry.
        let until = *last + chrono::TimeDelta::days(1);
        let most = i64::try_from(DIFFERENCES_MAX).unwrap_or(i64::MAX) + 10_000;
        let rows = sqlx::query!(
            "select provider_reference, amount, currency from payment p \
             where connector = $1 and occurred_at >= $2 and occurred_at < $3 \
                 and kind in ('received', 'refunded', 'transfer-sent', 'transfer-completed', \
                     'transfer-returned', 'disputed', 'dispute-won') \
                 and (kind not in ('transfer-sent', 'transfer-completed') or exists ( \
                     select from ledger_entry e \
                     where e.client_id = p.client_id and e.payment_id = p.payment_id)) \
             order by occurred_at, payment_id limit $4",
            connector,
            first,
            until,
            most,
        )
        .fetch_all(&core.db)
        .await?;
        let missing = rows.into_iter().filter(|row| !seen.contains(&row.provider_reference));
        result.differences.extend(missing.map(|row| Difference {
            side: "books".to_owned(),
            provider_reference: row.provider_reference,
            amount: JsonDecimal(row.amount),
            currency: row.currency,
            booked_amount: None,
        }));
    }
    result.differences.truncate(DIFFERENCES_MAX);
    Ok(result)
}

fn difference(side: &str, line: &Line, booked: Option<Decimal>) -> Difference {
    Difference {
        side: side.to_owned(),
        provider_reference: line.provider_reference.clone(),
        amount: JsonDecimal(line.amount),
        currency: line.currency.clone(),
        booked_amount: booked.map(JsonDecimal),
    }
}

/// The references that a payment of the line may have: the bank's; and of a transfer of ours, that
/// left or came back, our own. An incoming one names what its payer likes.
fn references(line: &Line) -> Vec<String> {
    let mut references = vec![line.provider_reference.clone()];
    let is_ours = line.amount < Decimal::ZERO || !line.return_reason.is_empty();
    if is_ours && !line.end_to_end_id.is_empty() {
        references.push(line.end_to_end_id.clone());
    }
    references
}

/// The payments of these references; a transfer's begin stands for its end.
async fn find(core: &Core, connector: &str, references: &[String]) -> Result<Vec<Booked>> {
    let rows = sqlx::query_as!(
        Booked,
        r#"
        select provider_reference as reference, currency,
            case when kind in ('received', 'transfer-returned', 'dispute-won')
                then amount else -amount end as "amount!"
        from payment
        where connector = $1 and provider_reference = any ($2)
            and kind in ('received', 'refunded', 'transfer-sent', 'transfer-completed',
                'transfer-returned', 'disputed', 'dispute-won')
        order by recorded_at, payment_id
        "#,
        connector,
        references,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(rows.into_iter().filter(|row| !row.reference.is_empty()).collect())
}

/// Records a line as a payment that came in, of the order whose number its payer has written; of
/// none above `order_max`.
async fn receive(
    core: &Core,
    (connector, order_max): (&str, Option<Decimal>),
    line: &Line,
    actor: &str,
) -> Result<Recorded> {
    let (currency, is_coins) = currency_of(core, &line.currency);
    let finds_order = order_max.is_none_or(|most| !is_coins && line.amount <= most);
    let digits = line.order_digits().filter(|_| finds_order);
    let order = digits.and_then(|digits| digits.parse().ok());
    let raw = serde_json::json!({
        "date": line.date,
        "reference": line.reference,
        "name": line.name,
        "iban": line.iban,
    });
    let report = Report {
        client: None,
        connector: connector.to_owned(),
        provider_reference: line.provider_reference.clone(),
        original_reference: None,
        kind: PaymentKind::Received,
        amount: line.amount,
        currency,
        order,
        transaction_id: None,
        occurred_at: line.at().unwrap_or_else(|| core.clock.now()),
        actor: actor.to_owned(),
        reason: None,
        raw: Some(raw.to_string()),
    };
    let mut tx = core.db.begin().await?;
    let recorded = Box::pin(record(&mut tx, core, &report)).await?;
    tx.commit().await.map_err(Error::from)?;
    Ok(recorded)
}
