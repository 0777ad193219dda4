//! `POST /api/v2/sandbox/user/events`: simulates what an operator or a provider of identity checks
//! would decide about a test tenant's user.

use http::Method;

use crate::Core;
use crate::auth::caller::ClientAndUser;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, ClaimedKey, Endpoint, NoContent, Respond as _, save_reply};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::money::connectors::payouts::command_payouts_and_transfers;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::users::account::{self, Account, RowLock};
use crate::users::changed;
use crate::users::erase::erase;
use crate::users::session;
use rampart_types::UserKey;

/// A simulated event of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedUserEvent {
    /// Everything that is asked of the user is verified.
    Verified,
    /// The identity check is passed.
    IdentityVerified,
    /// The identity check is failed.
    IdentityFailed,
    /// The identity check has to be made.
    IdentityPending,
    /// The operator refuses the identity for good.
    IdentityBlocked,
    /// The operator disables the user.
    Disable,
    /// The operator enables the user again.
    Enable,
    /// The operator erases the user.
    Delete,
}

/// Columns of the user that an event sets; `None` leaves one as it is.
#[derive(Default)]
struct Change {
    identity: Option<&'static str>,
    disabled: Option<bool>,
    /// Verifies every check.
    all_verified: bool,
}

rampart_types::named_values! {
    pub(super) SimulatedUserEvent {
        Verified = "verified",
        IdentityVerified = "identity-verified",
        IdentityFailed = "identity-failed",
        IdentityPending = "identity-pending",
        IdentityBlocked = "identity-blocked",
        Disable = "disable",
        Enable = "enable",
        Delete = "delete",
    }
}

impl SimulatedUserEvent {
    fn change(self) -> Change {
        match self {
            Self::Verified => Change { all_verified: true, ..Change::default() },
            Self::IdentityVerified => Change::of_identity("verified"),
            Self::IdentityFailed => Change::of_identity("failed"),
            Self::IdentityPending => Change::of_identity("pending"),
            Self::IdentityBlocked => Change::of_identity("blocked"),
            Self::Disable => Change { disabled: Some(true), ..Change::default() },
            Self::Enable => Change { disabled: Some(false), ..Change::default() },
            Self::Delete => Change::default(),
        }
    }
}

impl Change {
    fn of_identity(status: &'static str) -> Self {
        Self { identity: Some(status), ..Self::default() }
    }
}

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/sandbox/user/events";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const TEST_ONLY: bool = true;
    const ERRORS: &'static [Code] = &[Code::RequestMalformed];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    // It may lose to a result or an erasure, which lock the user's commands and orders.
    const RETRIED: bool = true;
    const DOC: Doc = Doc {
        summary: "Simulate an event of a test user",
        details: "Simulates decisions of an operator or an identity check. `verified` passes \
                  every check, `delete` erases the user for good. Name a disabled user by the \
                  identifier: its tokens are ER702. For live clients there is no such route.",
        body: Shape::Members(&[required(
            "event",
            Kind::OneOf(&SimulatedUserEvent::NAMES),
            "The simulated event.",
        )]),
        request: r#"{"event": "identity-verified"}"#,
        also: &[(404, Code::RouteNotFound)],
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = SimulatedUserEvent;
    type Response = NoContent;

    fn read(input: &Input, _: &ClientAndUser) -> Result<SimulatedUserEvent> {
        let mut fields = Fields::from_object(&input.document)?;
        let event = fields.required("event", Code::RequestMalformed, |name| {
            SimulatedUserEvent::from_name(name.as_str()?)
        });
        fields.finish(event)
    }

    async fn call(
        core: &Core,
        caller: ClientAndUser,
        event: SimulatedUserEvent,
    ) -> Result<NoContent> {
        Self::call_with_key(core, caller, event, None).await
    }

    async fn call_with_key(
        core: &Core,
        caller: ClientAndUser,
        event: SimulatedUserEvent,
        key: Option<&ClaimedKey>,
    ) -> Result<NoContent> {
        let user = caller.client.key_of(caller.user);
        let mut tx = core.db.begin().await?;
        if !account::lock(&mut tx, user, RowLock::Update).await? {
            return Err(Code::UserNotFound.into());
        }
        let before = Account::load(&mut tx, core, user).await?;
        if event == SimulatedUserEvent::Enable {
            session::end_tokens_if_disabled(&mut tx, core, user).await?;
        }
        write(&mut tx, core, user, &event.change()).await?;
        let after = Account::load(&mut tx, core, user).await?;
        let (before, after) = before.zip(after).ok_or(Code::UserNotFound)?;
        changed::record_events(&mut tx, core, &before, &after).await?;
        if event == SimulatedUserEvent::Disable {
            session::end_logins(&mut tx, core, user).await?;
        }
        if event == SimulatedUserEvent::Delete {
            erase(&mut tx, core, user).await?;
        }
        command_payouts_and_transfers(&mut tx, core, user).await?;
        save_reply(key, core, &mut tx, &NoContent.respond()?).await?;
        tx.commit().await?;
        Ok(NoContent)
    }
}

/// Writes the change, unless the partner has gone live in the meantime (ER998).
async fn write(
    conn: &mut Connection,
    core: &Core,
    UserKey { client, user }: UserKey,
    change: &Change,
) -> Result<()> {
    let written = sqlx::query!(
        "update end_user set \
             disabled_at = case when $3::boolean is null then disabled_at \
                 when $3 then coalesce(disabled_at, $6) end, \
             identity_status = case when $5 then 'verified' \
                 else coalesce($4, identity_status) end, \
             email_status = case when $5 then 'verified' else email_status end, \
             activated_at = case when $5 then coalesce(activated_at, $6) else activated_at end, \
             amld5_status = case when $5 then 'verified' else amld5_status end, \
             privacy_agreement_status = case when $5 then 'verified' \
                 else privacy_agreement_status end, \
             residential_address_status = case when $5 then 'verified' \
                 else residential_address_status end, \
             dac8_status = case when $5 then 'present' else dac8_status end \
         where client_id = $1 and user_id = $2 \
             and exists (select from client c where c.client_id = $1 and c.mode = 'test')",
        client.uuid(),
        user.uuid(),
        change.disabled,
        change.identity,
        change.all_verified,
        core.clock.now(),
    )
    .execute(conn)
    .await?;
    if written.rows_affected() == 0 {
        return Err(Code::RouteNotFound.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_found_by_its_own_name_alone() {
        for event in SimulatedUserEvent::ALL {
            assert_eq!(SimulatedUserEvent::from_name(event.as_str()), Some(event));
        }
        assert_eq!(SimulatedUserEvent::from_name("Delete"), None);
    }
}
