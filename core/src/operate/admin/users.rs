//! Users: `GET` and `PATCH /admin/v1/users/{uuid}`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{Answer, Input, Refused, documents, ok};
use crate::Core;
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::audit::{self, Entry};
use crate::users::account::{self, Account};
use crate::users::erase::erase;
use crate::users::profile::Profile;
use rampart_types::{ClientId, JsonDecimal, UserId};

/// Most documents that one call sets.
const DOCUMENTS_MAX: usize = 32;
/// Limits that may be set for one user (API document, user limits).
const LIMITS: [&str; 6] = [
    "user_day_limit",
    "user_day_limit_fiat_to_coin",
    "user_day_limit_coin_to_fiat",
    "non_raised_limit_account_limit",
    "new_limited_account_limit",
    "number_of_non_raised_accounts_limit",
];

/// One user, with what identifies the person.
pub(super) async fn read(core: &Arc<Core>, input: Input) -> Answer {
    let mut conn = core.db.acquire().await?;
    let (client, user) = find(&mut conn, &input).await?;
    ok(&view(&mut conn, core, client, user).await?)
}

/// The client and id of the user that the path names.
pub(super) async fn find(
    conn: &mut PgConnection,
    input: &Input,
) -> Result<(ClientId, UserId), Refused> {
    let unknown = || Refused::not_found("user");
    let user: UserId = input.param("uuid").parse().map_err(|_| unknown())?;
    let client =
        sqlx::query_scalar!("select client_id from end_user where user_id = $1", user.uuid())
            .fetch_optional(conn)
            .await?
            .ok_or_else(unknown)?;
    Ok((client.into(), user))
}

async fn view(
    conn: &mut PgConnection,
    core: &Core,
    client: ClientId,
    user: UserId,
) -> Result<Value, Refused> {
    let unknown = || Refused::not_found("user");
    let account = Account::load(conn, core, client, user).await?.ok_or_else(unknown)?;
    let partner =
        sqlx::query_scalar!("select slug from client where client_id = $1", client.uuid())
            .fetch_one(&mut *conn)
            .await?;
    let mut shown = json!({
        "uuid": user,
        "partner": partner,
        "disabled": account.disabled_at.is_some(),
        "deleted": account.deleted_at.is_some(),
        "newsletterSubscription": account.newsletter,
        "limitOverrides": account.limit_overrides,
        "personal": account.personal,
        "documents": documents::sides(conn, client, user).await?,
    });
    shown["profile"] = json!(Profile::load(conn, core, account).await?);
    Ok(shown)
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<Level>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dac8_status: Option<Dac8>,
    #[serde(default, skip_serializing_if = "Verification::is_empty")]
    verification: Verification,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    documents: Vec<Document>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_overrides: Option<BTreeMap<String, JsonDecimal>>,
}

#[derive(Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Verification {
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amld5: Option<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    privacy_agreement: Option<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    residential_address: Option<AddressCheck>,
}

impl Verification {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "type")]
    kind: String,
    side: String,
    status: DocumentCheck,
}

/// Gives the values of a column their names, the same in JSON and as stored.
macro_rules! names {
    ($name:ident { $($value:ident $text:literal),+ }) => {
        #[derive(Clone, Copy, Deserialize, Serialize, PartialEq, Eq)]
        enum $name {
            $(#[serde(rename = $text)] $value,)+
        }

        impl $name {
            const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }
        }
    };
}

names!(Level { Bronze "bronze", Silver "silver", Gold "gold" });
names!(Dac8 { Unknown "unknown", Missing "missing", Pending "pending", Present "present" });
names!(Check { Pending "pending", Verified "verified", Failed "failed", Blocked "blocked" });
names!(AddressCheck {
    Missing "missing", Present "present", Pending "pending", Verified "verified",
    Failed "failed", Blocked "blocked"
});
names!(DocumentCheck {
    Missing "missing", Pending "pending", Verified "verified", Failed "failed", Blocked "blocked"
});

impl Change {
    fn check(&self) -> Result<(), Refused> {
        if self.deleted == Some(false) {
            return Err(Refused::unprocessable("deleted: a user cannot be brought back"));
        }
        if self.documents.len() > DOCUMENTS_MAX {
            return Err(Refused::unprocessable("documents: at most 32"));
        }
        for (name, amount) in self.limit_overrides.iter().flatten() {
            if !LIMITS.contains(&name.as_str()) {
                return Err(Refused::unprocessable(format!("limitOverrides: no limit {name}")));
            }
            if amount.0.is_sign_negative() {
                return Err(Refused::unprocessable(format!("limitOverrides: {name} is negative")));
            }
        }
        Ok(())
    }
}

/// Changes what is named; the rest stays. A deleted user is erased and takes no change any more.
pub(super) async fn change(core: &Arc<Core>, input: Input) -> Answer {
    let change: Change = input.json()?;
    change.check()?;
    let mut tx = core.db.begin().await?;
    let (client, user) = find(&mut tx, &input).await?;
    if !account::lock(&mut tx, client, user).await? {
        return Err(Refused::conflict("the user is deleted"));
    }
    let unknown = || Refused::not_found("user");
    let before = Account::load(&mut tx, core, client, user).await?.ok_or_else(unknown)?;
    write(&mut tx, core, (client, user), &change).await?;
    for document in &change.documents {
        let set = sqlx::query!(
            "update user_document set status = $5 \
             where client_id = $1 and user_id = $2 and type = $3 and side = $4",
            client.uuid(),
            user.uuid(),
            document.kind,
            document.side,
            document.status.as_str(),
        )
        .execute(&mut *tx)
        .await?;
        if set.rows_affected() == 0 {
            return Err(Refused::unprocessable("documents: the user has sent no such side"));
        }
    }
    let after = Account::load(&mut tx, core, client, user).await?.ok_or_else(unknown)?;
    tell(&mut tx, core, &before, &after).await?;
    if change.deleted == Some(true) {
        erase(&mut tx, core, client, user).await?;
    }
    // Every member is a name of our own or a number: nothing of the person.
    let detail = serde_json::to_value(&change)
        .map_err(|error| crate::platform::error::Error::internal("write an audit row", error))?;
    let target = user.to_string();
    let entry = Entry { actor: input.actor(), action: "user.change", target: &target, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    let shown = view(&mut tx, core, client, user).await?;
    tx.commit().await?;
    ok(&shown)
}

async fn write(
    conn: &mut PgConnection,
    core: &Core,
    (client, user): (ClientId, UserId),
    change: &Change,
) -> Result<(), Refused> {
    let checks = &change.verification;
    let limits = change.limit_overrides.as_ref().map(|limits| json!(limits));
    sqlx::query!(
        "update end_user set \
             disabled_at = case when $3::boolean is null then disabled_at \
                 when $3 then coalesce(disabled_at, $4) end, \
             level = coalesce($5, level), \
             dac8_status = coalesce($6, dac8_status), \
             email_status = coalesce($7, email_status), \
             activated_at = case when $7 = 'verified' then coalesce(activated_at, $4) \
                 else activated_at end, \
             identity_status = coalesce($8, identity_status), \
             amld5_status = coalesce($9, amld5_status), \
             privacy_agreement_status = coalesce($10, privacy_agreement_status), \
             residential_address_status = coalesce($11, residential_address_status), \
             limit_overrides = coalesce($12, limit_overrides) \
         where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
        change.disabled,
        core.clock.now(),
        change.level.map(Level::as_str),
        change.dac8_status.map(Dac8::as_str),
        checks.email.map(Check::as_str),
        checks.identity.map(Check::as_str),
        checks.amld5.map(Check::as_str),
        checks.privacy_agreement.map(Check::as_str),
        checks.residential_address.map(AddressCheck::as_str),
        limits,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Records for the partner what the change has made of the user.
async fn tell(
    conn: &mut PgConnection,
    core: &Core,
    before: &Account,
    after: &Account,
) -> Result<(), Refused> {
    let disabled = before.disabled_at.is_none() && after.disabled_at.is_some();
    let verified = !before.statuses.is_verified() && after.statuses.is_verified();
    let happened = [(disabled, EventType::UserDisabled), (verified, EventType::UserVerified)];
    for (_, kind) in happened.into_iter().filter(|(happened, _)| *happened) {
        let payload = json!({ "uuid": after.user });
        let event = NewEvent { kind, order_id: None, payload };
        events::record(conn, core, after.client, event, None).await?;
    }
    Ok(())
}
