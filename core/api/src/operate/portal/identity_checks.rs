//! Identity checks of a test client's users, which its staff end: the user by a name, and the outcome.

use maud::{Markup, html};
use serde_json::json;
use uuid::Uuid;

use super::page::Visit;
use crate::money::connectors::sandbox::checks::end_identity_check;
use crate::platform::error::Result;
use crate::users::by_email;
use crate::users::identifier::linked_user;
use rampart_types::{EmailAddress, UserId, UserIdentifier};

/// The user of this name, which may be an address, an identifier or an id.
pub(super) async fn find(visit: &Visit<'_>, name: &str) -> Result<Option<Uuid>> {
    let (core, client) = (visit.core, visit.session.client.id());
    if let Ok(email) = name.parse::<EmailAddress>() {
        let found = by_email::find(core, &visit.session.client, &email).await?;
        return Ok(found.map(UserId::uuid));
    }
    if let Ok(id) = name.parse::<Uuid>() {
        let found = sqlx::query_scalar!(
            "select user_id from end_user where client_id = $1 and user_id = $2",
            client.uuid(),
            id,
        )
        .fetch_optional(&core.db)
        .await?;
        if found.is_some() {
            return Ok(found);
        }
    }
    let Ok(identifier) = name.parse::<UserIdentifier>() else { return Ok(None) };
    let mut conn = core.db.acquire().await?;
    Ok(linked_user(&mut conn, core, client, &identifier).await?.map(UserId::uuid))
}

/// Ends the identity check of a test client's user as the form of this route says.
pub(super) async fn simulate_identity_check(
    visit: &Visit<'_>,
    route: &'static str,
    user: Uuid,
) -> Result<()> {
    let is_verified = visit.form().get("outcome") == "verified";
    let mut tx = visit.begin().await?;
    if visit.earlier_result(&mut tx, route).await?.is_some() {
        return Ok(());
    }
    let tenant = &visit.session.client.tenant;
    end_identity_check(&mut tx, visit.core, tenant, user.into(), "", is_verified).await?;
    let detail = json!({"user": user, "verified": is_verified});
    visit.record(&mut tx, "sandbox.identity", detail).await?;
    tx.commit().await?;
    Ok(())
}

/// The buttons that end an identity check.
pub(super) fn outcome_buttons() -> Markup {
    html! {
        div.row {
            button type="submit" name="outcome" value="verified" { "Pass" }
            button type="submit" name="outcome" value="failed" { "Fail" }
        }
    }
}
