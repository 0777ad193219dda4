//! The books: double entry, append-only, one book per client and currency or asset.
//!
//! The database lets no entry be that does not balance, and none be changed. [`post`] adds an entry
//! in the transaction of what it tells; [`Position`] is what an order's entries come to.

pub mod check;
pub(crate) mod entries;
pub(crate) mod position;
pub mod settled;
mod watch;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use uuid::Uuid;

pub use self::position::Position;
use crate::Core;
use crate::platform::db::Connection;
use rampart_types::ClientId;

/// The kind of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccountKind {
    /// Money at a payment provider or a bank, one account for each connector.
    Provider,
    /// Owed to users for orders that are not executed.
    Customer,
    /// Arrived, and wanted by no order yet.
    Suspense,
    /// The exchange of fiat and coins.
    Conversion,
    /// Our coins.
    Treasury,
    /// The partners' fees, with the affiliates' share.
    FeePartner,
    /// Our fee.
    FeeProvider,
    /// Fees of payment methods.
    FeePaymentMethod,
    /// Fees of networks.
    FeeNetwork,
    /// The spread, with the residue of rounding.
    Spread,
    /// Owed to payers whose refund is under way.
    RefundPayable,
    /// Owed to users of executed orders.
    PayoutPayable,
    /// Lost to disputes, or still disputed.
    Dispute,
}

rampart_types::named_values! {
    pub(crate) AccountKind {
        Provider = "provider",
        Customer = "customer",
        Suspense = "suspense",
        Conversion = "conversion",
        Treasury = "treasury",
        FeePartner = "fee_partner",
        FeeProvider = "fee_provider",
        FeePaymentMethod = "fee_payment_method",
        FeeNetwork = "fee_network",
        Spread = "spread",
        RefundPayable = "refund_payable",
        PayoutPayable = "payout_payable",
        Dispute = "dispute",
    }
}

/// One line of an entry. A debit is positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    pub(crate) kind: AccountKind,
    pub(crate) currency: String,
    /// The connector of a provider's account; empty for others.
    pub(crate) holder: String,
    pub(crate) amount: Decimal,
}

impl Posting {
    /// A posting to an account without a holder.
    pub(crate) fn new(kind: AccountKind, currency: &str, amount: Decimal) -> Self {
        Self { kind, currency: currency.to_owned(), holder: String::new(), amount }
    }

    /// A posting to a provider's account.
    pub(crate) fn at(connector: &str, currency: &str, amount: Decimal) -> Self {
        let holder = connector.to_owned();
        Self { kind: AccountKind::Provider, currency: currency.to_owned(), holder, amount }
    }
}

/// The subject of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) client: ClientId,
    pub(crate) order: Option<i64>,
    pub(crate) payment: Option<Uuid>,
    pub(crate) occurred_at: DateTime<Utc>,
}

/// Adds an entry, and the accounts that it is the first of. Postings of zero are left out; an entry
/// without any other is none.
///
/// # Errors
/// The database's: at the commit too, if the entry does not balance.
pub(crate) async fn post(
    conn: &mut Connection,
    core: &Core,
    kind: &'static str,
    subject: &Subject,
    postings: &[Posting],
) -> Result<(), sqlx::Error> {
    let lines: Vec<&Posting> = postings.iter().filter(|line| !line.amount.is_zero()).collect();
    if lines.is_empty() {
        return Ok(());
    }
    let kinds: Vec<String> = lines.iter().map(|line| line.kind.as_str().to_owned()).collect();
    let currencies: Vec<String> = lines.iter().map(|line| line.currency.clone()).collect();
    let holders: Vec<String> = lines.iter().map(|line| line.holder.clone()).collect();
    let amounts: Vec<Decimal> = lines.iter().map(|line| line.amount).collect();
    sqlx::query!(
        r#"
        with line as (
            select ordinality::smallint as line, kind, currency, holder, amount,
                ledger_account_id($1, kind, currency, holder) as account_id
            from unnest($2::text[], $3::text[], $4::text[], $5::numeric[])
                with ordinality as line (kind, currency, holder, amount, ordinality)
        ), opened as (
            insert into ledger_account (client_id, account_id, kind, currency, holder)
            select distinct $1::uuid, account_id, kind, currency, holder from line
            where not exists (select from ledger_account a
                where a.client_id = $1 and a.account_id = line.account_id)
            order by account_id
            on conflict do nothing
        ), entry as (
            insert into ledger_entry
                (client_id, entry_id, kind, order_id, payment_id, occurred_at)
            values ($1, $6, $7, $8, $9, $10)
        )
        insert into ledger_posting (client_id, entry_id, line, account_id, amount)
        select $1, $6, line, account_id, amount from line
        "#,
        subject.client.uuid(),
        &kinds,
        &currencies,
        &holders,
        &amounts,
        core.clock.uuid()?,
        kind,
        subject.order,
        subject.payment,
        subject.occurred_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}
