//! The KYC share token of a checkout: sealed until the first identity check of the user who has bought,
//! which it is given to, and erased by that.

use crate::Core;
use crate::platform::crypto::Secret;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::{ClientId, OfferId, UserKey};

/// The context that a share token is sealed for.
pub fn context(client: ClientId, offer: OfferId) -> String {
    format!("checkout share token/{client}/{offer}")
}

/// A share token in both sealed forms, one of which is stored.
pub(super) struct SealedShareToken {
    /// Sealed under the partner's key.
    pub(super) once: Vec<u8>,
    /// Sealed under that and the master key: stored once users' keys are.
    pub(super) twice: Vec<u8>,
}

/// Seals the share token of a checkout.
///
/// # Errors
/// Without entropy.
pub(super) fn seal(
    core: &Core,
    client: ClientId,
    offer: OfferId,
    token: &Secret,
) -> Result<SealedShareToken> {
    let (cipher, context, plain) =
        (core.cipher(client), context(client, offer), token.expose().as_bytes());
    Ok(SealedShareToken {
        once: cipher.seal(&context, plain)?,
        twice: cipher.seal_twice(&context, plain)?,
    })
}

/// Takes the share token of the newest checkout that the user has bought, and erases it with those of
/// the user's other ones, in the caller's transaction. A checkout that the partner made for somebody else
/// does not count, nor one for an identifier that is not the user's: its link works without it.
pub(crate) async fn take(
    conn: &mut Connection,
    core: &Core,
    UserKey { client, user }: UserKey,
) -> Result<Option<Secret>> {
    let taken = sqlx::query!(
        r#"
        with found as materialized (
            select k.offer_id, k.sealed_share_token, b.created_at from buy_order b
            join offer o on o.client_id = b.client_id and o.offer_id = b.offer_id
            join checkout k on k.client_id = b.client_id and k.offer_id = b.offer_id
            where b.client_id = $1 and b.user_id = $2 and k.sealed_share_token is not null
                and (o.user_id = $2 or o.user_id is null and (k.identifier_digest is null
                    or exists (select from user_identifier i where i.client_id = k.client_id
                        and i.identifier_digest = k.identifier_digest and i.user_id = $2)))
            for update of k
        ), erased as (
            update checkout c set sealed_share_token = null from found f
            where c.client_id = $1 and c.offer_id = f.offer_id
        )
        select offer_id as "offer_id!", sealed_share_token as "sealed!" from found
        order by created_at desc limit 1
        "#,
        client.uuid(),
        user.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    let Some(taken) = taken else { return Ok(None) };
    let context = context(client, OfferId::from(taken.offer_id));
    match core.cipher(client).open(&context, &taken.sealed).map(String::from_utf8) {
        Ok(Ok(text)) => Ok(Some(Secret::new(text))),
        // The check is possible without it.
        _ => {
            tracing::error!(%client, "a share token cannot be opened");
            Ok(None)
        }
    }
}
