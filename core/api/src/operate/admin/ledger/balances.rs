//! `GET /admin/v1/ledger/balances`: what is settled of each account, with the postings since. At an
//! earlier time it is that without the postings of what happened later.

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::ledger::settled;
use crate::money::payments::store::currency_of;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Paging, Search, check_after, limit};
use crate::platform::error::Result;
use rampart_types::JsonDecimal;

/// Most accounts of one answer.
const ACCOUNTS_MAX: i64 = 10_000;

/// `GET /admin/v1/ledger/balances`
pub struct ReadBalances;

impl Endpoint for ReadBalances {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/ledger/balances";
    const ROLES: &'static [Role] = &[Role::Viewer, Role::Treasury, Role::Compliance];
    const MAY_BE_STALE: bool = true;
    const DOC: Doc = Doc {
        summary: "Read the balances of accounts",
        details: "A debit is positive. In the order of partner, kind, currency and holder.",
        query: &[
            optional("partner", Kind::Text, "The partner's slug; `house` for nobody's."),
            optional("currency", Kind::Text, "A currency's code, or an asset's or CAIP-19 id."),
            optional("at", Kind::Format("date-time"), "Of entries up to then; now if left out."),
            AFTER,
            limit(ACCOUNTS_MAX),
        ],
        answer: r#"[{"accountId": "0199a000-0000-7000-8000-000000000023", "partner": "acme",
            "kind": "provider", "currency": "EUR", "holder": "manual", "balance": 250}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search<Criteria>;
    type Response = Page<Balance>;

    fn read(input: &Input, _: &Operator) -> Result<Search<Criteria>> {
        let criteria: Criteria = strict::query(input)?;
        let paging = Paging::of(&input.head, criteria.limit.as_deref(), ACCOUNTS_MAX)?;
        Ok(Search { criteria, paging })
    }

    async fn call(
        core: &Core,
        _: Operator,
        Search { criteria, paging }: Search<Criteria>,
    ) -> Result<Page<Balance>> {
        let mut tx = core.db.begin().await?;
        if let Some(after) = criteria.after {
            let exists = sqlx::query_scalar!(
                r#"select exists (select from ledger_account where account_id = $1) as "exists!""#,
                after,
            );
            check_after(exists.fetch_one(&mut *tx).await?)?;
        }
        let currency = criteria.currency.map(|text| currency_of(core, &text).0);
        let place = settled::place(&mut tx).await?;
        let rows = sqlx::query!(
            r#"
            with moved as (
                select p.client_id, p.account_id, sum(e.sign * p.amount) as amount
                from (
                    select client_id, entry_id, 1 as sign from ledger_entry
                    where entry_id > $6 and entry_id > (select settled_place from ledger_check)
                    union all
                    -- none if no time is asked for
                    select client_id, entry_id, -1 as sign from ledger_entry where occurred_at > $3
                ) e
                join client c on c.client_id = e.client_id
                join ledger_posting p on p.client_id = e.client_id and p.entry_id = e.entry_id
                where $1::text is null or c.slug = $1
                group by p.client_id, p.account_id
            )
            select a.account_id as "account_id!", c.slug as "slug!", a.kind as "kind!",
                a.currency as "currency!", a.holder as "holder!",
                coalesce(s.amount, 0) + coalesce(m.amount, 0) as "balance!"
            from ledger_account a join client c on c.client_id = a.client_id
            left join ledger_settled s
                on s.client_id = a.client_id and s.account_id = a.account_id
            left join moved m on m.client_id = a.client_id and m.account_id = a.account_id
            where ($1::text is null or c.slug = $1) and ($2::text is null or a.currency = $2)
                and ($5::uuid is null or (c.slug, a.kind, a.currency, a.holder, a.account_id) > (
                    select lc.slug, l.kind, l.currency, l.holder, l.account_id
                    from ledger_account l join client lc on lc.client_id = l.client_id
                    where l.account_id = $5))
            order by c.slug, a.kind, a.currency, a.holder, a.account_id limit $4
            "#,
            criteria.partner,
            currency,
            criteria.at,
            paging.rows_max(),
            criteria.after,
            place,
        )
        .fetch_all(&mut *tx)
        .await?;
        let balances = rows.into_iter().map(|row| Balance {
            account_id: row.account_id,
            partner: row.slug,
            kind: row.kind,
            currency: row.currency,
            holder: Some(row.holder).filter(|holder| !holder.is_empty()),
            balance: JsonDecimal(row.balance.normalize()),
        });
        Ok(paging.page(balances.collect(), |balance: &Balance| balance.account_id))
    }
}

/// Criteria of balances; one that is absent is met by all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criteria {
    partner: Option<String>,
    currency: Option<String>,
    at: Option<DateTime<Utc>>,
    after: Option<Uuid>,
    limit: Option<String>,
}

/// The balance of an account.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "LedgerBalance")]
#[serde(rename_all = "camelCase")]
pub struct Balance {
    /// The account's id.
    account_id: Uuid,
    /// Slug of the partner whose book it is in.
    partner: String,
    /// The account's kind, such as `provider` or `customer`.
    kind: String,
    /// A currency's or an asset's code.
    currency: String,
    /// The connector of a provider's account.
    holder: Option<String>,
    /// A debit is positive.
    balance: JsonDecimal,
}
