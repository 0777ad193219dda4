//! A statement beside the books of its connector: what is new is recorded, and what only one side
//! has is listed.

mod alone;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use self::alone::{Begin, Coverage, in_books_alone, renamed};
use crate::Core;
use crate::money::payments::report::{PaymentKind, Recorded, Report};
use crate::money::payments::{record, store::currency_of};
use crate::platform::error::{Error, Result};
use crate::trading::orders::state::Cause;
use rampart_statement::Line;
use rampart_types::JsonDecimal;

/// Most differences that are listed; one more is kept, to tell that there are more.
pub const DIFFERENCES_MAX: usize = 1_000;

/// Something that only one side has, or that the two have differently.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema, Serialize)]
#[schemars(rename = "ReconciliationDifference")]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// `statement`, `books`, or `amount` where both have it.
    side: String,
    /// The provider's own name for the payment.
    provider_reference: String,
    /// By the statement; by the books where only they have it.
    amount: JsonDecimal,
    /// A currency's code, or an asset's code or CAIP-19 id.
    currency: String,
    /// By the books, where the two differ, or where an earlier line of the statement is that payment.
    booked_amount: Option<JsonDecimal>,
    /// IBAN of its account; empty where the statement names none. Kept for the check of the books, as
    /// what follows, and in no answer.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    account: String,
    /// References besides that its payment may have.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    other_references: Vec<String>,
    /// Kind of the payment that the books have alone; that of a payout's begin also for its end.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    kind: String,
}

impl Difference {
    /// The difference as answers have it.
    pub fn told(self) -> Self {
        Self { account: String::new(), other_references: Vec::new(), kind: String::new(), ..self }
    }
}

/// An account that a statement has lines of.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Account {
    /// The currency's code, or the asset's code or CAIP-19 id.
    currency: String,
    /// Its IBAN; empty where the statement names none.
    account: String,
}

/// The result of a reconciliation.
#[derive(Debug, Default)]
pub struct Reconciled {
    /// Lines that were payments on record.
    pub matched: i32,
    /// Lines that were recorded as new payments.
    pub recorded: i32,
    /// Lines and payments that do not agree.
    pub differences: Vec<Difference>,
    /// The statement's accounts; those of a reconciliation that is read again are left out.
    pub accounts: BTreeSet<Account>,
    /// The payments that the statement has, by reference and kind; left out as these.
    pub taken: BTreeSet<(String, String)>,
}

/// A payment of the connector in the books. What left is negative.
struct Booked {
    reference: String,
    /// Its kind; that of a payout's begin also for its end.
    kind: String,
    amount: Decimal,
    currency: String,
    occurred_at: DateTime<Utc>,
    /// Has a reference of the line's, be it one that it was given later.
    is_named: bool,
    /// Gives back, or takes, the payment that came in under its own reference.
    takes_back: bool,
    /// Its partner and order, if it names one.
    order: Option<String>,
}

impl Booked {
    fn is_same(&self, line: &Line) -> bool {
        self.amount == line.amount && self.currency == line.currency
    }

    /// Tells it from the connector's other payments.
    fn key(&self) -> (String, String) {
        (self.reference.clone(), self.kind.clone())
    }
}

/// Lays the lines beside the payments of `connector`. New incoming ones are recorded, each in a
/// transaction of its own: the same statement again goes on where it stopped. A payment is one line
/// of a statement: the next one that says the same is a difference. So is a transfer of ours that came
/// back, and that the books do not have. Money above `order_max`, and coins, find no order by it, but
/// wait to be matched; `None` bounds nothing.
pub async fn reconcile(
    core: &Core,
    connector: &str,
    order_max: Option<Decimal>,
    lines: Vec<Line>,
    actor: &str,
) -> Result<Reconciled> {
    let mut result = Reconciled::default();
    let mut seen = HashSet::new();
    let mut taken: BTreeSet<(String, String)> = BTreeSet::new();
    let coverage = Coverage::of(&lines);
    // A line of zero is a notice of the bank: it moves nothing.
    for line in lines.into_iter().filter(|line| !line.amount.is_zero()) {
        let references = references(&line);
        let mut booked = find(core, connector, &references, &line).await?;
        // An earlier name may be that of several payments: each is one line.
        booked.retain(|payment| payment.is_named || !taken.contains(&payment.key()));
        seen.extend(references);
        let free = |payment: &&Booked| payment.is_same(&line) && !taken.contains(&payment.key());
        let comes_in = line.amount > Decimal::ZERO && !is_return_of_ours(&line);
        if comes_in && is_before_its_dispute(&line, &booked) {
            booked.clear();
        }
        // What was told first of a payment that comes in has its reference, and is not that.
        let is_other = |payment: &&Booked| !(comes_in && payment.takes_back);
        if let Some(payment) = booked.iter().find(free) {
            seen.insert(payment.reference.clone());
            taken.insert(payment.key());
            result.matched += 1;
        } else if let Some(parts) = parts_of_line(&line, &booked, &taken) {
            seen.extend(parts.iter().map(|payment| payment.reference.clone()));
            taken.extend(parts.iter().map(|payment| payment.key()));
            result.matched += 1;
        } else if booked.iter().any(|payment| payment.is_same(&line))
            || parts_of_line(&line, &booked, &BTreeSet::new()).is_some()
        {
            // An earlier line is that.
            result.differences.push(difference("statement", &line, Some(line.amount)));
        } else if let Some(other) = booked.iter().find(is_other) {
            result.differences.push(difference("amount", &line, Some(other.amount)));
        } else if comes_in {
            let recorded = receive(core, connector, order_max, &line, actor).await?;
            Cause::count(core, recorded.causes);
            result.recorded += 1;
            let kind = arrival(core, &line).as_str().to_owned();
            taken.insert((line.provider_reference.clone(), kind));
        } else {
            result.differences.push(difference("statement", &line, None));
        }
    }
    let mut seen: Vec<String> = seen.into_iter().collect();
    for Begin { reference, kind, end } in renamed(core, connector, &seen).await? {
        if taken.contains(&(end, kind.clone())) {
            taken.insert((reference.clone(), kind));
        }
        seen.push(reference);
    }
    result.differences.extend(in_books_alone(core, connector, &coverage, &seen).await?);
    result.differences.truncate(DIFFERENCES_MAX + 1);
    result.accounts = coverage.accounts;
    result.taken = taken;
    Ok(result)
}

/// The payouts of a transaction that paid several orders, if its one line is all of them.
fn parts_of_line<'a>(
    line: &Line,
    booked: &'a [Booked],
    taken: &BTreeSet<(String, String)>,
) -> Option<Vec<&'a Booked>> {
    let is_part = |payment: &&Booked| {
        payment.kind == PaymentKind::PayoutSent.as_str()
            && payment.is_named
            && payment.order.is_some()
            && payment.currency == line.currency
            && !taken.contains(&payment.key())
    };
    let parts: Vec<&Booked> = booked.iter().filter(is_part).collect();
    let mut amounts = BTreeMap::new();
    for payment in &parts {
        // Begin and end of a payout are two reports of one amount.
        amounts.entry(&payment.order).or_insert(payment.amount);
    }
    let mut each = amounts.values();
    let whole = each.try_fold(Decimal::ZERO, |sum, amount| sum.checked_add(*amount));
    (amounts.len() > 1 && whole == Some(line.amount)).then_some(parts)
}

fn difference(side: &str, line: &Line, booked: Option<Decimal>) -> Difference {
    let mut other_references = references(line);
    other_references.retain(|name| *name != line.provider_reference);
    Difference {
        side: side.to_owned(),
        provider_reference: line.provider_reference.clone(),
        amount: JsonDecimal(line.amount),
        currency: line.currency.clone(),
        booked_amount: booked.map(JsonDecimal),
        account: line.account.clone(),
        other_references,
        kind: String::new(),
    }
}

/// True for a transfer that came back under an id of ours. It is its connector's to report, as a return
/// of that: recorded as a payment that came in, the same money would be booked twice.
fn is_return_of_ours(line: &Line) -> bool {
    !line.return_reason.is_empty() && !line.end_to_end_id.is_empty()
}

/// True for the line of a payment that the books have not, though they have what took it back under its
/// reference, and maybe the end of that dispute, which moved the same amount the same way: not on the
/// line's day, or the line is taken for that.
fn is_before_its_dispute(line: &Line, booked: &[Booked]) -> bool {
    let is_arrival = |payment: &Booked| {
        PaymentKind::from_name(&payment.kind).is_some_and(PaymentKind::is_arrival)
    };
    let takes_back = |payment: &Booked| {
        payment.is_named
            && payment.takes_back
            && line.at().is_none_or(|day| day <= payment.occurred_at)
    };
    let is_end = |payment: &Booked| {
        payment.kind == PaymentKind::DisputeWon.as_str()
            && payment.is_same(line)
            && line.date == Some(payment.occurred_at.date_naive())
    };
    !booked.iter().any(is_arrival) && booked.iter().any(takes_back) && !booked.iter().any(is_end)
}

/// The references that a payment of the line may have: the bank's; of a transfer of ours, that left or
/// came back, our own; and of one that came back that of its return. An incoming one names what its
/// payer likes.
fn references(line: &Line) -> Vec<String> {
    let mut references = vec![line.provider_reference.clone()];
    let is_ours = line.amount < Decimal::ZERO || !line.return_reason.is_empty();
    if is_ours && !line.end_to_end_id.is_empty() {
        references.push(line.end_to_end_id.clone());
    }
    if is_return_of_ours(line) {
        references.push(line.return_reference());
    }
    references
}

/// The payments of these references, and what was recorded of the line under an earlier name; a
/// payout's begin stands for its end.
async fn find(
    core: &Core,
    connector: &str,
    references: &[String],
    line: &Line,
) -> Result<Vec<Booked>> {
    let mut rows = sqlx::query_as!(
        Booked,
        r#"
        select reference as "reference!", currency as "currency!", occurred_at as "occurred_at!",
            kind as "kind!", amount as "amount!", is_named as "is_named!",
            takes_back as "takes_back!", of_order as "order?"
        from payments_of_line($1, $2, $3)
        order by recorded_at, payment_id
        "#,
        connector,
        references,
        &line.earlier_references,
    )
    .fetch_all(&core.db)
    .await?;
    rows.retain(|row| {
        let is_of_line = row.is_same(line) && line.at() == Some(row.occurred_at);
        !row.reference.is_empty() && (row.is_named || is_of_line)
    });
    // The line's own payment first: one of an earlier name may be another line's.
    rows.sort_by_key(|row| !row.is_named);
    Ok(rows)
}

/// The kind of a line that came in: coins are those of a sale.
fn arrival(core: &Core, line: &Line) -> PaymentKind {
    match currency_of(core, &line.currency) {
        (_, true) => PaymentKind::DepositReceived,
        (_, false) => PaymentKind::Received,
    }
}

/// Records a line as a payment that came in, of the order whose number its payer has written; of
/// none above `order_max`, or where it is a transfer that came back without an id.
async fn receive(
    core: &Core,
    connector: &str,
    order_max: Option<Decimal>,
    line: &Line,
    actor: &str,
) -> Result<Recorded> {
    let (currency, is_coins) = currency_of(core, &line.currency);
    let now = core.clock.now();
    let finds_order = order_max.is_none_or(|most| !is_coins && line.amount <= most);
    let digits = line.order_digits().filter(|_| finds_order && line.return_reason.is_empty());
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
        kind: arrival(core, line),
        amount: line.amount,
        currency,
        order,
        transaction_id: None,
        // The books have no entries of the future.
        occurred_at: line.at().map_or(now, |at| at.min(now)),
        actor: actor.to_owned(),
        reason: None,
        raw: Some(raw.to_string()),
    };
    let mut tx = core.db.begin().await?;
    let recorded = Box::pin(record(&mut tx, core, &report)).await?;
    tx.commit().await.map_err(Error::from)?;
    Ok(recorded)
}
