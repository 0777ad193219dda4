//! The books against themselves, the orders and the accounts at providers: every entry balances, the
//! postings of every order are those of its state, nothing is open of the last reconciliation, and
//! what is settled is what was posted.

mod accounts;
mod refunds;
mod settled;

use std::borrow::Cow;

use rust_decimal::Decimal;
use uuid::Uuid;

use crate::Core;
use crate::platform::error::{Denial, Result};
use crate::trading::orders::state::OrderStatus;
use rampart_types::ClientId;

/// Orders, or entries, of one page.
const PAGE_ROWS: i64 = 2_000;

/// Something that is off, and its place.
#[derive(Debug)]
pub struct Problem {
    /// Order, payment or account that it is about.
    pub subject: String,
    /// The problem, for an operator.
    pub problem: Cow<'static, str>,
}

/// A page of a check.
#[derive(Debug)]
pub struct Page {
    /// Rows that were checked.
    pub checked: usize,
    /// Problems found among them.
    pub problems: Vec<Problem>,
    /// The begin of the next page; `None` after the last one.
    pub next: Option<String>,
}

/// Checks the page that begins behind `after`; orders come first, then entries, then the accounts at
/// providers, then what is settled.
///
/// # Errors
/// 422 for another `after` than a page's; the database's.
pub async fn check(core: &Core, after: Option<&str>) -> Result<Page> {
    let unknown = || Denial::unprocessable("after: the `next` of the page before");
    let parse = |id: &str| id.parse::<Uuid>().map_err(|_| unknown());
    match after.map(|after| after.split_once('/')) {
        None => orders(core, 0).await,
        Some(Some(("orders", number))) => {
            orders(core, number.parse().map_err(|_| unknown())?).await
        }
        Some(Some(("entries", last))) => match last.split_once('/') {
            Some((client, entry)) => entries(core, parse(client)?.into(), parse(entry)?).await,
            // An earlier edge has kept an id alone, which says nothing in this order.
            None => {
                parse(last)?;
                entries(core, Uuid::nil().into(), Uuid::nil()).await
            }
        },
        Some(Some(("accounts", ""))) => {
            let page = accounts::check(core).await?;
            Ok(Page { next: Some(settled::after(Uuid::nil(), Uuid::nil())), ..page })
        }
        Some(Some(("settled", last))) => {
            let (client, account) = last.split_once('/').ok_or_else(unknown)?;
            settled::check(core, parse(client)?, parse(account)?).await
        }
        Some(_) => Err(unknown().into()),
    }
}

/// An order's row, and the sums of its postings.
#[derive(Debug)]
struct Booked {
    client_id: Uuid,
    order_id: i64,
    sold: bool,
    status: OrderStatus,
    fiat: Decimal,
    crypto: Decimal,
    /// All fees together.
    fees: Decimal,
    customer: Decimal,
    payable: Decimal,
    /// Coins that were exchanged.
    converted: Decimal,
    /// Fiat that was exchanged.
    converted_fiat: Decimal,
    /// Fees that were charged.
    charged: Decimal,
    /// Money is set aside for refunds that were asked for too long ago to be among what waits.
    has_set_aside: bool,
}

impl Booked {
    /// The first thing that does not fit. An order that `owes_refund` has set money aside for one that
    /// nobody makes.
    fn problem(&self, owes_refund: bool) -> Option<&'static str> {
        let zero = |amount: Decimal| amount.is_zero();
        let (payout, exchanged) = match self.sold {
            false => (self.crypto, self.crypto),
            true => (self.fiat, -self.crypto),
        };
        let is_executed = !zero(self.converted);
        if is_executed && self.converted != exchanged {
            return Some("another amount was exchanged than the order's");
        }
        if !self.has_own_fees(is_executed) {
            return Some("other fees were charged than the order's");
        }
        // A part may have been sent before more was released.
        let is_payable = is_executed && (-payout..Decimal::ZERO).contains(&self.payable);
        let is_sent = is_executed && zero(self.payable);
        let is_open = !is_executed && zero(self.payable);
        match self.status {
            OrderStatus::Pending | OrderStatus::Cancelled if !is_open || !zero(self.customer) => {
                Some("it has postings, and was never paid")
            }
            OrderStatus::InProgress if !zero(self.customer) && is_executed => {
                Some("a part of its payment is not exchanged")
            }
            OrderStatus::InProgress
                if !is_payable && !is_sent && self.customer >= Decimal::ZERO =>
            {
                Some("it is paid, and has no payment")
            }
            OrderStatus::Blocked if !(is_payable || is_sent || is_open) => {
                Some("its payout is neither owed nor sent")
            }
            OrderStatus::Completed if !is_sent || !zero(self.customer) => {
                Some("it is completed, and its payout was not booked")
            }
            OrderStatus::Refunded if !is_open || !zero(self.customer) => {
                Some("it is refunded, and its payment was not given back")
            }
            _ if owes_refund => Some("a refund that was asked for 90 days ago is not made"),
            _ => None,
        }
    }

    /// True if the order's fees were charged and the rest of its fiat was exchanged, or nothing if it
    /// is not executed.
    fn has_own_fees(&self, is_executed: bool) -> bool {
        let (exchanged, fees) = match (is_executed, self.sold) {
            (false, _) => (Decimal::ZERO, Decimal::ZERO),
            (true, false) => (self.fees - self.fiat, self.fees),
            (true, true) => (self.fees + self.fiat, self.fees),
        };
        self.converted_fiat == exchanged && self.charged == fees
    }
}

/// The orders after this number, at most a page.
async fn rows(core: &Core, after: i64) -> Result<Vec<Booked>> {
    let rows = sqlx::query_as!(
        Booked,
        r#"
        with page as (
            select client_id, order_id, false as sold, status, fiat_amount, fiat_currency,
                crypto_amount, crypto_currency, partner_fee + provider_fee + payment_method_fee
                    + network_fee + spread_fee + affiliate_fee as fees
            from buy_order where order_id > $1
            union all
            select client_id, order_id, true as sold, status, fiat_amount, fiat_currency,
                crypto_amount, crypto_currency, partner_fee + provider_fee + payment_method_fee
                    + network_fee + spread_fee + affiliate_fee as fees
            from sell_order where order_id > $1
            order by order_id limit $2
        )
        select page.client_id as "client_id!", page.order_id as "order_id!", page.sold as "sold!",
            page.status as "status!: OrderStatus", page.fiat_amount as "fiat!",
            page.crypto_amount as "crypto!", page.fees as "fees!", sums.customer as "customer!",
            sums.payable as "payable!", sums.converted as "converted!",
            sums.converted_fiat as "converted_fiat!", sums.charged as "charged!",
            sums.has_set_aside as "has_set_aside!"
        from page cross join lateral (
            select coalesce(sum(p.amount) filter (where a.kind = 'customer'), 0) as customer,
                coalesce(sum(p.amount) filter (where a.kind = 'payout_payable'), 0) as payable,
                coalesce(sum(p.amount) filter (where a.kind = 'conversion'
                    and a.currency = page.crypto_currency), 0) as converted,
                coalesce(sum(p.amount) filter (where a.kind = 'conversion'
                    and a.currency = page.fiat_currency), 0) as converted_fiat,
                -- not what a chain or a bank has taken since
                coalesce(-sum(p.amount) filter (where a.currency = page.fiat_currency
                    and a.kind in ('fee_partner', 'fee_provider', 'fee_payment_method',
                        'fee_network', 'spread')
                    and e.kind in ('opening', 'execution', 'execution-reversed')), 0) as charged,
                -- `money_waiting()` reads the books of later ones alone
                coalesce(sum(p.amount) filter (where a.kind = 'refund_payable') < 0
                    and max(e.recorded_at) filter (where e.kind = 'refund-requested')
                        <= rampart_now() - interval '90 days', false) as has_set_aside
            from ledger_entry e
            join ledger_posting p on p.client_id = e.client_id and p.entry_id = e.entry_id
            join ledger_account a on a.client_id = p.client_id and a.account_id = p.account_id
            where e.client_id = page.client_id and e.order_id = page.order_id
        ) sums
        order by page.order_id
        "#,
        after,
        PAGE_ROWS,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(rows)
}

async fn orders(core: &Core, after: i64) -> Result<Page> {
    let mut rows = rows(core, after).await?;
    let end = rows.last().filter(|_| is_full(rows.len())).map(|row| row.order_id);
    // More orders may have the last number of a full page: the next one has all of them.
    let before = rows.partition_point(|row| Some(row.order_id) < end);
    rows.truncate(if before > 0 { before } else { rows.len() });
    let next = match rows.last() {
        Some(last) if end.is_some() => format!("orders/{}", last.order_id),
        _ => entries_after(Uuid::nil().into(), Uuid::nil()),
    };
    let asked = rows.iter().filter(|row| row.has_set_aside);
    let (clients, orders): (Vec<_>, Vec<_>) =
        asked.map(|row| (row.client_id, row.order_id)).unzip();
    let unmade = refunds::unmade(core, &clients, &orders).await?;
    let (checked, mut problems) = (rows.len(), Vec::new());
    for row in rows {
        let owes_refund = unmade.contains(&(row.client_id, row.order_id));
        let subject = format!("order {}", row.order_id);
        let problem = row.problem(owes_refund).map(Cow::from);
        problems.extend(problem.map(|problem| Problem { subject, problem }));
    }
    Ok(Page { checked, problems, next: Some(next) })
}

/// The cursor of the entries after this one, in the order of clients and ids: that of the primary key.
fn entries_after(client: ClientId, entry: Uuid) -> String {
    format!("entries/{client}/{entry}")
}

/// The page of the entries after this one.
async fn entries(core: &Core, client: ClientId, entry: Uuid) -> Result<Page> {
    let rows = sqlx::query!(
        r#"
        with page as (
            select client_id, entry_id from ledger_entry
            where (client_id, entry_id) > ($1, $2) order by client_id, entry_id limit $3
        )
        select page.client_id as "client_id!", page.entry_id as "entry_id!",
            exists (
                select from ledger_posting p
                join ledger_account a on a.client_id = p.client_id and a.account_id = p.account_id
                where p.client_id = page.client_id and p.entry_id = page.entry_id
                group by a.currency having sum(p.amount) <> 0
            ) as "off!",
            not exists (
                select from ledger_posting p
                where p.client_id = page.client_id and p.entry_id = page.entry_id
            ) as "empty!"
        from page order by page.client_id, page.entry_id
        "#,
        client.uuid(),
        entry,
        PAGE_ROWS,
    )
    .fetch_all(&core.db)
    .await?;
    let last = rows.last().filter(|_| is_full(rows.len()));
    let next = last
        .map_or("accounts/".to_owned(), |last| entries_after(last.client_id.into(), last.entry_id));
    let (checked, mut problems) = (rows.len(), Vec::new());
    for row in rows {
        let problem = match (row.off, row.empty) {
            (true, _) => "it does not balance",
            (_, true) => "it has no postings",
            _ => continue,
        };
        let subject = format!("entry {}", row.entry_id);
        problems.push(Problem { subject, problem: problem.into() });
    }
    Ok(Page { checked, problems, next: Some(next) })
}

fn is_full(rows: usize) -> bool {
    i64::try_from(rows).is_ok_and(|rows| rows >= PAGE_ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn booked(status: OrderStatus, [customer, payable, converted]: [i64; 3]) -> Booked {
        let (converted_fiat, charged) = if converted == 0 { (0, 0) } else { (-90, 10) };
        Booked {
            client_id: Uuid::nil(),
            order_id: 1,
            sold: false,
            status,
            fiat: Decimal::from(100),
            crypto: Decimal::from(2),
            fees: Decimal::from(10),
            customer: customer.into(),
            payable: payable.into(),
            converted: converted.into(),
            converted_fiat: converted_fiat.into(),
            charged: charged.into(),
            has_set_aside: false,
        }
    }

    #[test]
    fn the_postings_of_an_order_are_those_of_its_state() {
        use OrderStatus::{Blocked, Cancelled, Completed, InProgress, Pending, Refunded};
        let (nothing, paid) = ([0, 0, 0], [-100, 0, 0]);
        let (owed, sent) = ([0, -2, 2], [0, 0, 2]);
        for (status, fitting) in [
            (Pending, &[nothing][..]),
            (InProgress, &[paid, owed, sent]),
            (Blocked, &[paid, owed, sent]),
            (Completed, &[sent]),
            (Cancelled, &[nothing]),
            (Refunded, &[nothing]),
        ] {
            for sums in [nothing, paid, owed, sent, [0, -1, 2], [-1, 0, 2], [0, 0, 1], [0, -2, 0]] {
                let fits = booked(status, sums).problem(false).is_none();
                // A blocked order may have been given back a part, or all, of its payment.
                let may = status == Blocked && (sums == nothing || sums == [-1, 0, 2]);
                // A part was sent before more was released.
                let may = may || matches!(status, InProgress | Blocked) && sums == [0, -1, 2];
                assert_eq!(fits, fitting.contains(&sums) || may, "{status:?} {sums:?}");
            }
        }
    }

    #[test]
    fn the_fees_and_the_fiat_of_an_order_are_those_of_its_postings() {
        let bought = || booked(OrderStatus::Completed, [0, 0, 2]);
        let [nine, eleven, fiat] = [9, 11, 101].map(Decimal::from);
        for wrong in [
            Booked { charged: nine, ..bought() },
            Booked { converted_fiat: Decimal::from(-91), ..bought() },
            Booked { fiat, ..bought() },
            // Both together leave the fiat that was exchanged as it is.
            Booked { fiat, fees: eleven, ..bought() },
            Booked { charged: nine, ..booked(OrderStatus::Pending, [0, 0, 0]) },
        ] {
            assert_eq!(wrong.problem(false), Some("other fees were charged than the order's"));
        }
        let sold = Booked {
            sold: true,
            converted: Decimal::from(-2),
            converted_fiat: Decimal::from(110),
            ..bought()
        };
        assert_eq!(sold.problem(false), None);
        assert!(Booked { fees: eleven, ..sold }.problem(false).is_some());
    }

    #[test]
    fn a_refund_that_is_owed_is_told_after_what_does_not_fit_the_state() {
        let owing = |sums: [i64; 3]| {
            let booked = booked(OrderStatus::Completed, sums);
            (booked.problem(false), booked.problem(true))
        };
        let (fits, owed) = owing([0, 0, 2]);
        assert_eq!((fits, owed.is_some()), (None, true));
        let (worse, told) = owing([0, -2, 2]);
        assert_eq!((worse.is_some(), told), (true, worse));
    }
}
