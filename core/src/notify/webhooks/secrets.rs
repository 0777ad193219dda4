//! Secrets of single webhook endpoints. An endpoint without one is signed with the client's webhook
//! secret, and during its first rotation with both.

use chrono::TimeDelta;
use uuid::Uuid;

use crate::Core;
use crate::platform::crypto::Secret;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::tenancy::tenants::create::SecretKind;
use rampart_types::{ClientId, WebhookEndpointId};

/// Most earlier secrets of an endpoint that sign beside a new one.
const EARLIER_MAX: i64 = 4;

/// Gives an endpoint a new secret. Each earlier one signs beside it until the overlap ends, or its own
/// end if that is sooner: after a second rotation, because the first new secret was lost, the one in
/// use still signs. `None` when there is no such endpoint.
///
/// # Errors
/// Without entropy; when the database cannot be written.
pub async fn rotate(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    endpoint: WebhookEndpointId,
    overlap: TimeDelta,
) -> Result<Option<Secret>> {
    let secret = SecretKind::Webhook.generate(&core.clock)?;
    let id = core.clock.uuid()?;
    let context = secret_context(client.uuid(), id);
    let sealed = core.cipher(client).seal(&context, secret.expose().as_bytes())?;
    // The endpoint's row makes two rotations at once follow each other.
    let known = sqlx::query!(
        "update webhook_endpoint set client_secrets_until = least(client_secrets_until, \
             rampart_now() + $3::bigint * interval '1 second') \
         where client_id = $1 and endpoint_id = $2",
        client.uuid(),
        endpoint.uuid(),
        overlap.num_seconds(),
    )
    .execute(&mut *conn)
    .await?;
    if known.rows_affected() == 0 {
        return Ok(None);
    }
    sqlx::query!(
        "delete from webhook_endpoint_secret \
         where client_id = $1 and endpoint_id = $2 and (valid_until <= rampart_now() \
             or secret_id not in ( \
                 select secret_id from webhook_endpoint_secret \
                 where client_id = $1 and endpoint_id = $2 order by secret_id desc limit $3))",
        client.uuid(),
        endpoint.uuid(),
        EARLIER_MAX,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update webhook_endpoint_secret \
         set valid_until = least(valid_until, rampart_now() + $3::bigint * interval '1 second') \
         where client_id = $1 and endpoint_id = $2",
        client.uuid(),
        endpoint.uuid(),
        overlap.num_seconds(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "insert into webhook_endpoint_secret \
             (client_id, secret_id, endpoint_id, sealed, created_at) \
         values ($1, $2, $3, $4, rampart_now())",
        client.uuid(),
        id,
        endpoint.uuid(),
        sealed,
    )
    .execute(conn)
    .await?;
    Ok(Some(secret))
}

/// The context that a secret is sealed for.
pub fn secret_context(client: Uuid, secret: Uuid) -> String {
    format!("webhook_endpoint_secret/{client}/{secret}")
}

/// Opens the secret of a row.
///
/// # Errors
/// When it belongs to another row or was altered.
pub(crate) fn open(core: &Core, client: ClientId, id: Uuid, sealed: &[u8]) -> Result<Secret> {
    let plain = core.cipher(client).open(&secret_context(client.uuid(), id), sealed)?;
    let text = String::from_utf8(plain).map_err(|_| Error::invariant("read a webhook secret"))?;
    Ok(Secret::new(text))
}
