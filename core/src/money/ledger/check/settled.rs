//! The settled sums of accounts against their postings.

use uuid::Uuid;

use super::{Page, Problem};
use crate::Core;
use crate::platform::error::Result;

/// Accounts of one page.
const PAGE_ACCOUNTS: i64 = 10;
/// Number of postings from which those of an account are not added up again: a statement could not read
/// them in time. The sums of its book come to zero all the same.
const POSTINGS_MAX: i64 = 20_000;

/// The cursor of the accounts after this one.
pub(super) fn after(client: Uuid, account: Uuid) -> String {
    format!("settled/{client}/{account}")
}

/// Checks the page of the accounts after this one, and with the last page every book.
pub(super) async fn check(core: &Core, client: Uuid, account: Uuid) -> Result<Page> {
    let rows = sqlx::query!(
        r#"
        with page as (
            select client_id, account_id from ledger_account
            where (client_id, account_id) > ($1, $2) order by client_id, account_id limit $3
        )
        select page.client_id as "client_id!", page.account_id as "account_id!",
            booked.postings < $4 and (booked.amount <> coalesce(s.amount, 0)
                or coalesce(alone.amount <> u.amount, false)) as "off!"
        from page
        cross join ledger_check c
        left join ledger_settled s
            on s.client_id = page.client_id and s.account_id = page.account_id
        left join ledger_settled_no_order u
            on u.client_id = page.client_id and u.account_id = page.account_id
        cross join lateral (
            select count(*) as postings,
                coalesce(sum(few.amount) filter (where few.is_settled), 0) as amount
            from (
                select p.amount, p.entry_id <= c.settled_place as is_settled
                from ledger_posting p
                where p.client_id = page.client_id and p.account_id = page.account_id limit $4
            ) few
        ) booked
        cross join lateral (
            -- of an account that has no such sum no entry is read
            select coalesce(sum(p.amount), 0) as amount
            from ledger_posting p
            cross join lateral (
                select from ledger_entry e
                where e.client_id = p.client_id and e.entry_id = p.entry_id
                    and e.order_id is null and e.entry_id <= c.no_order_place offset 0) e
            where u.amount is not null and booked.postings < $4
                and p.client_id = page.client_id and p.account_id = page.account_id
        ) alone
        order by page.client_id, page.account_id
        "#,
        client,
        account,
        PAGE_ACCOUNTS,
        POSTINGS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    let checked = rows.len();
    let is_full = i64::try_from(checked).is_ok_and(|rows| rows >= PAGE_ACCOUNTS);
    let last = rows.last().filter(|_| is_full);
    let next = last.map(|last| after(last.client_id, last.account_id));
    let off = rows.into_iter().filter(|row| row.off).map(|row| Problem {
        subject: format!("account {}", row.account_id),
        problem: "its settled sum is not that of its postings".into(),
    });
    let mut problems: Vec<Problem> = off.collect();
    if next.is_none() {
        problems.extend(books(core).await?);
    }
    Ok(Page { checked, problems, next })
}

/// The books whose settled sums do not come to zero, as every entry does.
async fn books(core: &Core) -> Result<Vec<Problem>> {
    let rows = sqlx::query!(
        r#"
        select c.slug as "slug!", a.currency as "currency!"
        from (
            select client_id, account_id, amount, false as without_order from ledger_settled
            union all
            select client_id, account_id, amount, true from ledger_settled_no_order
        ) s
        join ledger_account a on a.client_id = s.client_id and a.account_id = s.account_id
        join client c on c.client_id = s.client_id
        group by c.slug, a.currency, s.without_order having sum(s.amount) <> 0
        order by c.slug, a.currency, s.without_order
        "#,
    )
    .fetch_all(&core.db)
    .await?;
    let problems = rows.into_iter().map(|row| Problem {
        subject: format!("book {} {}", row.slug, row.currency),
        problem: "its settled sums do not come to zero".into(),
    });
    Ok(problems.collect())
}
