//! Consequences of a change of a user, in its transaction.

use serde_json::json;

use super::account::Account;
use crate::Core;
use crate::auth::caller::Client;
use crate::money::connectors::payouts::command_payouts_and_transfers;
use crate::money::connectors::screening::{Person, screen_person};
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Screens a user whose name or country has changed, and commands the payouts that waited for the
/// change.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn follow(
    conn: &mut Connection,
    core: &Core,
    client: &Client,
    account: &Account,
    needs_screening: bool,
) -> Result<()> {
    if let Some(person) = Person::of(account).filter(|_| needs_screening) {
        screen_person(conn, core, &client.tenant, person).await?;
    }
    let key = account.key();
    command_payouts_and_transfers(conn, core, key).await
}

/// Records the events of the partner's log that follow from a change of the user's state.
///
/// # Errors
/// When the database cannot be written.
pub async fn record_events(
    conn: &mut Connection,
    core: &Core,
    before: &Account,
    after: &Account,
) -> Result<()> {
    let disabled = before.disabled_at.is_none() && after.disabled_at.is_some();
    let verified = !before.statuses.is_verified() && after.statuses.is_verified();
    let events = [(disabled, EventType::UserDisabled), (verified, EventType::UserVerified)];
    for (_, kind) in events.into_iter().filter(|(is_due, _)| *is_due) {
        let payload = json!({ "uuid": after.user });
        let event = NewEvent { kind, order_id: None, payload };
        events::record(conn, core, after.client, event, None).await?;
    }
    Ok(())
}
