//! Screenings of wallets and persons, and the operators' decisions about them.

pub mod decide;
pub mod list;
pub mod read;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::page::check_after;
use crate::Core;
use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::platform::error::{Denial, Result};
use rampart_types::{OrderId, UserId};

/// The path's `{id}`.
const ID: Member = required("id", Kind::Format("uuid"), "The screening's id.");
/// The states of a screening.
const STATES: [&str; 4] = ["pending", "clear", "review", "block"];
/// A screening as it is shown; a macro, so that `concat!` takes it.
macro_rules! example {
    () => {
        r#"{"id": "0199a000-0000-7000-8000-000000000020", "partner": "acme",
            "orderId": 1742980455013377, "userId": null, "state": "review",
            "createdAt": "2026-03-01T12:00:00Z", "decidedAt": "2026-03-01T12:00:03Z",
            "decidedBy": null, "decisionReason": null}"#
    };
}
use example;

/// A screening.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Screening {
    /// The screening's id.
    id: Uuid,
    /// The partner's slug.
    partner: String,
    /// The order whose wallet it is of.
    order_id: Option<i64>,
    /// The person that it is of.
    user_id: Option<UserId>,
    /// `pending`, `clear`, `review` or `block`.
    state: String,
    /// When it was asked for.
    created_at: DateTime<Utc>,
    /// When it was decided; null before, and of a block once the user has taken another name or
    /// country.
    decided_at: Option<DateTime<Utc>>,
    /// The operator who has decided; null for a provider's decision.
    decided_by: Option<String>,
    /// The operator's reason.
    decision_reason: Option<String>,
}

/// A search for screenings: every criterion that is there must hold.
#[derive(Debug, Default)]
pub struct Criteria {
    partner: Option<String>,
    state: Option<String>,
    /// The order whose wallet it is of.
    order: Option<OrderId>,
    /// The person that it is of.
    user: Option<Uuid>,
    /// The last screening of the page before.
    after: Option<Uuid>,
    id: Option<Uuid>,
    limit: i64,
}

impl Criteria {
    /// Oldest first: ids begin with their time. One that is asked for anew keeps its id.
    async fn find(self, core: &Core) -> Result<Vec<Screening>> {
        let mut conn = core.db.acquire().await?;
        if let Some(after) = self.after {
            let exists = sqlx::query_scalar!(
                r#"select exists (select from screening where screening_id = $1) as "exists!""#,
                after,
            );
            check_after(exists.fetch_one(&mut *conn).await?)?;
        }
        let rows = sqlx::query!(
            r#"
            select s.screening_id, c.slug, s.order_id, s.user_id, s.state, s.created_at,
                s.decided_at, s.decided_by, s.decision_reason
            from screening s join client c on c.client_id = s.client_id
            where ($1::text is null or s.client_id = (select client_id from client where slug = $1))
                and ($2::text is null or s.state = $2)
                and ($3::uuid is null or s.screening_id > $3)
                and ($4::uuid is null or s.screening_id = $4)
                -- by the partner's rows, as the keys of screenings have them
                and ($5::bigint is null or s.order_id = $5 and s.client_id = any (array(
                        select o.client_id from buy_order o where o.order_id = $5)))
                and ($6::uuid is null or s.user_id = $6 and s.client_id = any (array(
                        select u.client_id from end_user u where u.user_id = $6)))
            order by s.screening_id limit $7
            "#,
            self.partner,
            self.state,
            self.after,
            self.id,
            self.order.map(OrderId::number),
            self.user,
            self.limit,
        )
        .fetch_all(&mut *conn)
        .await?;
        let screenings = rows.into_iter().map(|row| Screening {
            id: row.screening_id,
            partner: row.slug,
            order_id: row.order_id,
            user_id: row.user_id.map(UserId::from),
            state: row.state,
            created_at: row.created_at,
            decided_at: row.decided_at,
            decided_by: row.decided_by,
            decision_reason: row.decision_reason,
        });
        Ok(screenings.collect())
    }
}

/// The screening of this id.
///
/// # Errors
/// 404 when there is none.
async fn find(core: &Core, id: Uuid) -> Result<Screening> {
    let criteria = Criteria { id: Some(id), limit: 1, ..Criteria::default() };
    let found = criteria.find(core).await?.pop();
    found.ok_or_else(|| Denial::not_found("screening").into())
}

/// The id that the path names.
fn id(text: &str) -> Result<Uuid> {
    text.parse().map_err(|_| Denial::not_found("screening").into())
}
