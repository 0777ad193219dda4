//! Savings plans: opening one, reporting deposits to it, and reading both.

pub mod deposit;
pub mod list;
pub mod open;
pub mod read;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::page::check_after;
use crate::Core;
use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::platform::error::{Denial, Result};
use rampart_types::UserId;

/// The path's `{code}`.
const CODE: Member = required("code", Kind::Text, "The plan's code.");

/// A savings plan as it is listed, without its name and its wallet, which are the user's own.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ListedDcaPlan")]
#[serde(rename_all = "camelCase")]
pub struct ListedPlan {
    /// The code that a deposit must name.
    code: String,
    /// The partner's slug.
    partner: String,
    /// The user's uuid.
    user_id: UserId,
    /// Code of the currency that is bought.
    crypto_currency: String,
    #[serde(skip)]
    wallet_address: String,
    #[serde(skip)]
    destination_tag: Option<String>,
    /// IBAN of the account that deposits go to.
    bank_iban: String,
    /// In cents; shown, never acted on.
    intended_amount: Option<i64>,
    /// Shown, never acted on.
    frequency: Option<String>,
    /// `true` if the user does not want to see it.
    hidden: bool,
    /// When it was opened.
    created_at: DateTime<Utc>,
}

/// A search for savings plans: every criterion that is there must hold.
#[derive(Debug, Default)]
pub struct Criteria {
    partner: Option<String>,
    user: Option<Uuid>,
    code: Option<String>,
    /// The last code of the page before.
    after: Option<String>,
    limit: i64,
}

impl Criteria {
    /// Newest first.
    async fn find(self, core: &Core) -> Result<Vec<ListedPlan>> {
        let mut conn = core.db.acquire().await?;
        if let Some(after) = self.after.as_deref() {
            let exists = sqlx::query_scalar!(
                r#"select exists (select from dca_plan where code = $1) as "exists!""#,
                after,
            );
            check_after(exists.fetch_one(&mut *conn).await?)?;
        }
        let rows = sqlx::query!(
            r#"
            select p.code, c.slug, p.user_id, p.crypto_currency, p.wallet_address,
                p.destination_tag, p.bank_iban, p.intended_amount, p.frequency, p.hidden,
                p.created_at
            from dca_plan p join client c on c.client_id = p.client_id
            where ($1::text is null or p.client_id = (select client_id from client where slug = $1))
                -- by the partner's rows, as the index of users' plans has them
                and ($2::uuid is null or p.user_id = $2 and p.client_id = any (array(
                        select u.client_id from end_user u where u.user_id = $2)))
                and ($3::text is null or p.code = $3)
                and ($4::text is null or (p.created_at, p.code) <
                    (select created_at, code from dca_plan where code = $4 limit 1))
            order by p.created_at desc, p.code desc limit $5
            "#,
            self.partner,
            self.user,
            self.code,
            self.after,
            self.limit,
        )
        .fetch_all(&mut *conn)
        .await?;
        let plans = rows.into_iter().map(|row| ListedPlan {
            code: row.code,
            partner: row.slug,
            user_id: row.user_id.into(),
            crypto_currency: row.crypto_currency,
            wallet_address: row.wallet_address,
            destination_tag: row.destination_tag,
            bank_iban: row.bank_iban,
            intended_amount: row.intended_amount,
            frequency: row.frequency,
            hidden: row.hidden,
            created_at: row.created_at,
        });
        Ok(plans.collect())
    }
}

/// The only plan of a code.
///
/// # Errors
/// 404 without one, 409 when several partners have one.
fn only<T>(mut found: Vec<T>) -> Result<T, Denial> {
    let plan = found.pop().ok_or_else(|| Denial::not_found("savings plan"))?;
    if !found.is_empty() {
        return Err(Denial::conflict("several partners have a savings plan with this code"));
    }
    Ok(plan)
}
