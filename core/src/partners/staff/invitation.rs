//! Invitations of staff, and the mailed links by which a password is set, once each.

use chrono::TimeDelta;
use serde_json::json;

use super::{STAFF_MAX, StaffRole, email_context, email_index, lock_staff, notify, open_email};
use crate::Core;
use crate::auth::tokens::opaque;
use crate::platform::audit::{self, Entry};
use crate::platform::crypto::{Secret, sha256};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::mail::{Kind, Message};
use crate::tenancy::tenants::Tenant;
use crate::users::security_notice::Changed;
use rampart_types::{ClientId, EmailAddress, StaffId};

const INVITATION_LIFETIME: TimeDelta = TimeDelta::days(3);
/// Lifetime of a link for a forgotten password.
const RESET_LIFETIME: TimeDelta = TimeDelta::hours(1);
/// Lengths of a password, in characters.
pub const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 12..=128;

/// The outcome of an invitation.
#[derive(Debug)]
pub enum Invited {
    /// Its mail is on the way.
    Sent(StaffId),
    /// The address belongs to a member already.
    Joined,
    /// The partner has [`STAFF_MAX`] members.
    Full,
}

/// Invites an address, once more if its first invitation was not accepted. Invitations sent before
/// are void.
pub async fn invite(
    conn: &mut Connection,
    core: &Core,
    tenant: &Tenant,
    email: &EmailAddress,
    role: StaffRole,
) -> Result<Invited> {
    lock_staff(conn, tenant.id).await?;
    let id = StaffId::from(core.clock.uuid()?);
    let sealed =
        core.cipher(tenant.id).seal(&email_context(tenant.id, id), email.as_str().as_bytes())?;
    let staff = sqlx::query_scalar!(
        "insert into staff_member as m \
             (client_id, staff_id, email_index, sealed_email, role, created_at) \
         select $1, $2, $3, $4, $5, rampart_now() \
         where (select count(*) from staff_member where client_id = $1) < $6 \
             or exists (select from staff_member where client_id = $1 and email_index = $3) \
         on conflict on constraint staff_member_email_key do update set role = excluded.role \
             where m.password_hash is null \
         returning staff_id",
        tenant.id.uuid(),
        id.uuid(),
        email_index(core, tenant.id, email)?,
        sealed,
        role.as_str(),
        STAFF_MAX,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(staff) = staff.map(StaffId::from) else {
        return Ok(match is_member(conn, core, tenant.id, email).await? {
            true => Invited::Joined,
            false => Invited::Full,
        });
    };
    let link = Link::generate(core, tenant.id)?;
    link.store(conn, staff, INVITATION_LIFETIME).await?;
    let text = format!(
        "You are invited to the portal of {} (slug: {}), as {}. Choose a password within three \
         days:\n{}\n\n\
         If you did not expect this, ignore this mail.\n",
        tenant.name,
        tenant.slug,
        role.as_str(),
        link.url(core),
    );
    let subject = format!("Invitation to the portal of {}", tenant.name);
    let message = Message { to: email.clone(), subject, text, secrets: Some(vec![link.token]) };
    message.enqueue_to_partner(conn, core, tenant.id, Kind::StaffInvitation, true).await?;
    Ok(Invited::Sent(staff))
}

async fn is_member(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    email: &EmailAddress,
) -> Result<bool> {
    let is_member = sqlx::query_scalar!(
        r#"select exists (
            select from staff_member where client_id = $1 and email_index = $2
        ) as "is_member!""#,
        client.uuid(),
        email_index(core, client, email)?,
    )
    .fetch_one(conn)
    .await?;
    Ok(is_member)
}

/// Mails a link to set another password. The work is the same for an unknown address: a mail is
/// written and withheld.
pub async fn mail_reset_link(
    conn: &mut Connection,
    core: &Core,
    tenant: &Tenant,
    email: EmailAddress,
) -> Result<()> {
    lock_staff(conn, tenant.id).await?;
    let staff = sqlx::query_scalar!(
        "select staff_id from staff_member \
         where client_id = $1 and email_index = $2 and password_hash is not null",
        tenant.id.uuid(),
        email_index(core, tenant.id, &email)?,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let link = Link::generate(core, tenant.id)?;
    // Nobody's link, which is not stored, takes the same statements.
    link.store(conn, staff.unwrap_or_default().into(), RESET_LIFETIME).await?;
    let text = format!(
        "Choose a new password for the portal of {} within the next hour:\n{}\n\n\
         If you did not ask for this, ignore this mail.\n",
        tenant.name,
        link.url(core),
    );
    let subject = format!("A new password for the portal of {}", tenant.name);
    let message = Message { to: email, subject, text, secrets: Some(vec![link.token]) };
    message.enqueue_to_partner(conn, core, tenant.id, Kind::StaffPassword, staff.is_some()).await
}

/// A link to set a password. Its token exists here only in clear.
struct Link {
    token: String,
    client: ClientId,
}

impl Link {
    fn generate(core: &Core, client: ClientId) -> Result<Self> {
        Ok(Self { token: opaque::generate(&core.clock, client)?, client })
    }

    fn url(&self, core: &Core) -> String {
        format!("{}/portal/password/{}", core.settings.public_url, self.token)
    }

    /// Stores it in place of the member's earlier ones; nothing, by the same work, if there is no such
    /// member.
    async fn store(
        &self,
        conn: &mut Connection,
        staff: StaffId,
        lifetime: TimeDelta,
    ) -> Result<()> {
        sqlx::query!(
            "update staff_token set used_at = rampart_now() \
             where client_id = $1 and staff_id = $2 and used_at is null",
            self.client.uuid(),
            staff.uuid(),
        )
        .execute(&mut *conn)
        .await?;
        sqlx::query!(
            "insert into staff_token (client_id, token_digest, staff_id, expires_at, created_at) \
             select client_id, $2, staff_id, rampart_now() + $4::bigint * interval '1 second', \
                 rampart_now() \
             from staff_member where client_id = $1 and staff_id = $3",
            self.client.uuid(),
            &sha256(&self.token)[..],
            staff.uuid(),
            lifetime.num_seconds(),
        )
        .execute(conn)
        .await?;
        Ok(())
    }
}

/// The client of a link that can be used: it is unused and has not expired.
pub async fn usable(core: &Core, token: &str) -> Result<Option<ClientId>> {
    let Some(client) = opaque::parse_client(token) else { return Ok(None) };
    let found = sqlx::query_scalar!(
        "select staff_id from staff_token where client_id = $1 and token_digest = $2 \
             and used_at is null and expires_at > rampart_now()",
        client.uuid(),
        &sha256(token)[..],
    )
    .fetch_optional(&core.db)
    .await?;
    Ok(found.map(|_| client))
}

/// Redeems a link and sets the password: of several attempts at once, one succeeds. Every session of
/// the member ends; one who had another password is told by mail, and the change stands in the audit.
///
/// # Errors
/// When the password cannot be hashed or the database cannot be written.
pub async fn set_password(
    core: &Core,
    token: &str,
    password: Secret,
) -> Result<Option<(ClientId, StaffId)>> {
    let Some(client) = usable(core, token).await? else { return Ok(None) };
    let hash = core.passwords.hash(password).await?;
    let mut tx = core.db.begin().await?;
    lock_staff(&mut tx, client).await?;
    let set = sqlx::query!(
        r#"
        with redeemed as (
            update staff_token set used_at = rampart_now()
            where client_id = $1 and token_digest = $2 and used_at is null
                and expires_at > rampart_now()
            returning staff_id
        )
        update staff_member m set password_hash = $3
        from redeemed join staff_member earlier using (staff_id)
        where m.client_id = $1 and m.staff_id = redeemed.staff_id and earlier.client_id = $1
        returning m.staff_id, m.sealed_email,
            earlier.password_hash is not null as "had_password!"
        "#,
        client.uuid(),
        &sha256(token)[..],
        hash,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(set) = set else { return Ok(None) };
    let staff = StaffId::from(set.staff_id);
    // Under the lock of the member's row: it sees the session of a sign-in that held it before.
    sqlx::query!(
        "delete from staff_session where client_id = $1 and staff_id = $2",
        client.uuid(),
        staff.uuid(),
    )
    .execute(&mut *tx)
    .await?;
    if set.had_password {
        let email = open_email(core, client, staff, &set.sealed_email)?;
        notify(&mut tx, core, client, email, Changed::Password).await?;
        record_change(&mut tx, core, client, staff).await?;
    }
    tx.commit().await?;
    Ok(Some((client, staff)))
}

/// Records in the audit that a member has another password.
async fn record_change(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    staff: StaffId,
) -> Result<()> {
    let tenant = core.snapshots.current().tenants.get(&client).cloned();
    let target = tenant.as_ref().map_or("", |tenant| &*tenant.slug);
    let actor = format!("staff:{staff}");
    let entry = Entry { actor: &actor, action: "staff.password", target, detail: json!({}) };
    audit::record(conn, core, entry).await
}
