//! The review queue: users and orders that wait for a person, each claimed by one operator at a time.

pub mod claim;
pub mod list;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::Core;
use crate::auth::roles::Role;
use crate::platform::error::Result;
use rampart_types::{ClientId, OrderId};

/// Roles that work on the queue.
const REVIEWERS: &[Role] = &[Role::Support, Role::Compliance];
/// Kinds of subjects, as stored.
const SUBJECTS: [&str; 2] = ["user", "order"];
/// A subject as it is shown; a macro, so that `concat!` takes it.
macro_rules! example {
    () => {
        r#"{"subject": "user", "id": "0199a000-0000-7000-8000-000000000005", "partner": "acme",
            "reasons": ["document"], "waitingSince": "2026-03-01T12:00:00Z",
            "claimedBy": null, "claimedUntil": null}"#
    };
}
use example;

/// A user or an order that waits for a person.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "Review")]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// `user` or `order`.
    subject: String,
    /// The user's uuid or the order's number.
    id: String,
    /// The partner's slug.
    partner: String,
    /// `document`, `account` or `screening` of a user; `blocked`, `disputed`, `excess`, `held`,
    /// `owed`, `returned`, `screening`, `shortfall`, `unknown` or `unpayable` of an order.
    reasons: Vec<String>,
    /// Since when it waits.
    waiting_since: DateTime<Utc>,
    /// The operator who looks at it.
    claimed_by: Option<String>,
    /// When the claim ends; null without one.
    claimed_until: Option<DateTime<Utc>>,
    #[serde(skip)]
    client: ClientId,
}

/// A search in the queue: every criterion that is there must hold.
#[derive(Debug, Default)]
pub struct Criteria {
    subject: Option<String>,
    partner: Option<String>,
    /// The last one of the page before.
    after: Option<(DateTime<Utc>, String)>,
    /// The id of a single one.
    id: Option<String>,
    limit: i64,
}

impl Criteria {
    /// Oldest first.
    #[expect(clippy::too_many_lines, reason = "one statement")]
    async fn find(self, core: &Core) -> Result<Vec<Review>> {
        let (since, after) = self.after.unzip();
        let rows = sqlx::query!(
            r#"
            with waiting as (
                select client_id, 'user' as subject, user_id, user_id::text as id,
                    'document' as reason, created_at as since
                from user_document where status = 'pending' and media_type is not null
                union all
                select a.client_id, 'user', a.user_id, a.user_id::text, 'account', p.created_at
                from ownership_proof p
                join payment_account a using (client_id, user_id, account_id)
                where a.verified_at is null and a.disabled_at is null and a.sealed is not null
                union all
                select client_id, case when user_id is null then 'order' else 'user' end,
                    user_id, coalesce(user_id::text, order_id::text), 'screening',
                    coalesce(decided_at, created_at)
                from screening s
                -- what a provider has blocked is nobody's decision yet
                where state in ('review', 'block') and (state = 'review' or decided_by is null
                    and (user_id is not null or exists (select from buy_order o
                        where o.client_id = s.client_id and o.order_id = s.order_id
                            and o.status in ('pending', 'in progress', 'blocked'))))
                union all
                -- paid, and held by a user who is disabled or by what an operator has blocked
                select o.client_id, 'order', null, o.order_id::text, 'held', o.updated_at
                from buy_order o cross join payout_gate(o.client_id, o.order_id, $7) g
                where o.status = 'in progress' and o.transaction_id is null
                    and o.status not in ('pending', 'completed', 'cancelled')
                    and g.is_held and ('user' = any (g.holds) or exists (select from screening s
                        where s.client_id = o.client_id and s.order_id = o.order_id
                            and s.state = 'block' and s.decided_by is not null)
                        or exists (select from screening s
                        where s.client_id = o.client_id and s.user_id = o.user_id
                            and s.state = 'block' and s.decided_by is not null))
                union all
                select o.client_id, 'order', null, o.order_id::text, 'held', o.updated_at
                from sell_order o join client k on k.client_id = o.client_id
                cross join transfer_gate(o.client_id, o.order_id, $7) g
                where o.status = 'in progress' and o.status not in ('completed', 'cancelled')
                    and g.is_held and (g.holds && array['user', 'account']
                        or is_sale_without_account(k.mode, o.user_id, o.account_id)
                        or exists (select from screening s
                        where s.client_id = o.client_id and s.user_id = o.user_id
                            and s.state = 'block' and s.decided_by is not null))
                    -- what is on its way already would be sent twice
                    and (select count(*) filter (where p.kind = 'transfer-sent')
                            <= count(*) filter (where p.kind = 'transfer-returned')
                        from payment p
                        where p.client_id = o.client_id and p.order_id = o.order_id)
                union all
                select client_id, 'order', null, order_id::text, 'blocked', updated_at
                from buy_order where status = 'blocked'
                union all
                select client_id, 'order', null, order_id::text, 'blocked', updated_at
                from sell_order where status = 'blocked'
                union all
                -- the provider has taken the payment back, and not told yet who is right
                select coalesce(m.to_client_id, p.client_id), 'order', null,
                    coalesce(m.order_id, p.order_id)::text, 'disputed', max(p.recorded_at)
                from payment p
                left join payment_match m
                    on m.client_id = p.client_id and m.payment_id = p.payment_id
                where p.kind in ('disputed', 'dispute-won', 'dispute-lost')
                    and coalesce(m.order_id, p.order_id) is not null
                group by 1, 4
                -- one that was lost may be won after all
                having count(*) filter (where p.kind = 'disputed')
                    > count(distinct (p.connector, p.provider_reference))
                        filter (where p.kind <> 'disputed')
                union all
                -- its payout came back when it was over, is more than it owes or lacks a part, or it
                -- owes what nobody gives back
                select client_id, 'order', null, order_id::text, reason, since
                from money_waiting() where payment_id is null and order_id is not null
                union all
                -- nobody knows if its money or coins have left, or its payer where to pay
                select c.client_id, 'order', null, c.order_id::text, c.review,
                    coalesce(c.finished_at, c.created_at)
                from command c
                where c.review is not null and c.order_id is not null
                    -- an edge of the version before ends a command and leaves its review
                    and (c.review = 'unknown' and c.state = 'open'
                        or c.review = 'unpayable' and exists (select from buy_order o
                            where o.client_id = c.client_id and o.order_id = c.order_id
                                and o.status = 'pending'))
            ), queue as (
                select client_id, subject, id, min(since) as since,
                    array_agg(distinct reason) as reasons
                from waiting w
                where subject = 'order' or exists (select from end_user u
                    where u.client_id = w.client_id and u.user_id = w.user_id
                        and u.deleted_at is null)
                group by client_id, subject, id
            )
            select q.client_id as "client_id!", c.slug as "slug!", q.subject as "subject!",
                q.id as "id!", q.since as "since!", q.reasons as "reasons!: Vec<String>",
                r.operator as "operator?", r.expires_at as "expires_at?"
            from queue q join client c using (client_id)
            left join review_claim r on r.client_id = q.client_id and r.subject = q.subject
                and r.id = q.id and r.expires_at > rampart_now()
            where ($1::text is null or q.subject = $1) and ($2::text is null or c.slug = $2)
                and ($3::text is null or q.id = $3)
                and ($4::timestamptz is null or (q.since, q.id) > ($4, $5::text))
            order by q.since, q.id limit $6
            "#,
            self.subject,
            self.partner,
            self.id,
            since,
            after,
            self.limit,
            core.settings.compliance.gate_of_live().as_str(),
        )
        .fetch_all(&core.db)
        .await?;
        let reviews = rows.into_iter().map(|row| Review {
            subject: row.subject,
            id: row.id,
            partner: row.slug,
            reasons: row.reasons,
            waiting_since: row.since,
            claimed_by: row.operator,
            claimed_until: row.expires_at,
            client: row.client_id.into(),
        });
        Ok(reviews.collect())
    }
}

/// The subject of this kind and id, if it waits for a person.
async fn find(core: &Core, subject: &str, id: &str) -> Result<Option<Review>> {
    let Some(id) = stored_id(id) else { return Ok(None) };
    let (subject, id) = (Some(subject.to_owned()), Some(id));
    let criteria = Criteria { subject, id, limit: 1, ..Criteria::default() };
    Ok(criteria.find(core).await?.pop())
}

/// An id as the queue compares it, as text: a user's uuid in its one spelling, or an order's number.
/// `None` for anything else.
fn stored_id(id: &str) -> Option<String> {
    let uuid = id.parse::<Uuid>().ok().map(|uuid| uuid.to_string());
    uuid.or_else(|| id.parse::<OrderId>().ok().map(|number| number.to_string()))
}
