//! The people of a partner who work in the portal. An operator or an owner of the partner invites
//! them; a mailed link lets them set a password, and later another one.
//!
//! Their addresses are sealed with the master key and found by a keyed digest.

pub mod invitation;
pub mod second_factor;
pub mod session;
pub mod sign_in;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Core;
use crate::http::language::Language;
use crate::platform::crypto::Purpose;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::platform::mail::Kind;
use crate::users::security_notice::{Changed, notice};
use rampart_types::{ClientId, EmailAddress, StaffId};

/// Most staff members of one partner.
pub const STAFF_MAX: i64 = 100;

/// The role of a staff member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StaffRole {
    /// Does everything, and invites and removes others.
    Owner,
    /// Has API keys, webhooks, events and the sandbox.
    Developer,
    /// Looks orders and users up.
    Support,
}

rampart_types::named_values! {
    pub StaffRole {
        Owner = "owner",
        Developer = "developer",
        Support = "support",
    }
}

impl StaffRole {
    /// The role of a row.
    ///
    /// # Errors
    /// For a name that is none.
    fn from_stored(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| Error::invariant("read the role of a staff member"))
    }
}

/// A staff member, as operators and owners see it.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "StaffMember")]
#[serde(rename_all = "camelCase")]
pub struct StaffMember {
    /// The staff member's id, which its removal names.
    pub id: StaffId,
    /// The e-mail address, which signs in; null if no key opens it any more.
    pub(crate) email: Option<EmailAddress>,
    /// Role in the portal.
    pub role: StaffRole,
    /// `false` until the invitation is accepted.
    pub joined: bool,
    /// `true` if a code is asked for besides the password.
    pub second_factor: bool,
    /// Time of the invitation.
    pub created_at: DateTime<Utc>,
}

impl StaffMember {
    /// The address as pages show it.
    pub fn address(&self) -> &str {
        self.email.as_ref().map_or("unknown address", EmailAddress::as_str)
    }
}

/// The staff of a partner, oldest first.
pub async fn list(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
) -> Result<Vec<StaffMember>> {
    let rows = sqlx::query!(
        r#"
        select staff_id, sealed_email, role, password_hash is not null as "joined!",
            totp_confirmed_at is not null as "second_factor!", created_at
        from staff_member where client_id = $1 order by staff_id
        "#,
        client.uuid(),
    )
    .fetch_all(conn)
    .await?;
    let members = rows.into_iter().map(|row| {
        let id = StaffId::from(row.staff_id);
        // One whose address no key opens must not take the others away, and can be removed.
        let email = open_email(core, client, id, &row.sealed_email)
            .inspect_err(|error| tracing::warn!(%error, staff = %id, "an address is not opened"))
            .ok();
        Ok(StaffMember {
            id,
            email,
            role: StaffRole::from_stored(&row.role)?,
            joined: row.joined,
            second_factor: row.second_factor,
            created_at: row.created_at,
        })
    });
    members.collect()
}

/// Removes a staff member with its sessions and links. `by` is the owner who asks, who cannot remove
/// itself; `None` for an operator. False when there is none to remove.
pub async fn remove(
    conn: &mut Connection,
    client: ClientId,
    staff: StaffId,
    by: Option<StaffId>,
) -> Result<bool> {
    lock_staff(conn, client).await?;
    let removed = sqlx::query!(
        "delete from staff_member where client_id = $1 and staff_id = $2 and ($3::uuid is null or ( \
             staff_id <> $3 and exists ( \
                 select from staff_member \
                 where client_id = $1 and staff_id = $3 and role = 'owner')))",
        client.uuid(),
        staff.uuid(),
        by.map(StaffId::uuid),
    )
    .execute(conn)
    .await?;
    Ok(removed.rows_affected() > 0)
}

/// Makes changes of a partner's staff follow each other until the transaction ends. It is the first lock
/// of every transaction that locks several rows of members, their sessions and links: then their order
/// does not matter, and no two such transactions wait for each other.
async fn lock_staff(conn: &mut Connection, client: ClientId) -> Result<()> {
    sqlx::query!(
        "select client_id from client where client_id = $1 for no key update",
        client.uuid()
    )
    .fetch_optional(conn)
    .await?;
    Ok(())
}

/// Tells a member by mail of a change of how the portal is opened.
async fn notify(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    email: EmailAddress,
    changed: Changed,
) -> Result<()> {
    let partner = core.snapshots.current().tenants.get(&client).map(|one| one.name.clone());
    let Some(partner) = partner else { return Ok(()) };
    let notice = notice(Language::English.texts(), &partner, email, changed);
    notice.enqueue_to_partner(conn, core, client, Kind::SecurityNotice, true).await
}

/// The stored form of an address: a keyed digest.
fn email_index(core: &Core, client: ClientId, email: &EmailAddress) -> Result<Vec<u8>> {
    let message = format!("staff/{client}/{}", email.as_str());
    Ok(core.keys.mac(Purpose::BlindIndex, message.as_bytes())?.as_ref().to_vec())
}

/// The context that an address is sealed for.
pub fn email_context(client: ClientId, staff: StaffId) -> String {
    format!("staff_member/{client}/{staff}/email")
}

/// The context that the secret of a second factor is sealed for.
pub fn totp_context(client: ClientId, staff: StaffId) -> String {
    format!("staff_member/{client}/{staff}/totp")
}

fn open_email(
    core: &Core,
    client: ClientId,
    staff: StaffId,
    sealed: &[u8],
) -> Result<EmailAddress> {
    let plain = core.cipher(client).open(&email_context(client, staff), sealed)?;
    let text = String::from_utf8(plain).ok().and_then(|text| text.parse().ok());
    text.ok_or_else(|| Error::invariant("read the address of a staff member"))
}
