//! Images that users have sent, for who decides about them: `GET /admin/v1/users/{uuid}/proofs/{id}`
//! and `GET /admin/v1/users/{uuid}/documents/{id}`.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::users::find;
use super::{Answer, Input, Refused};
use crate::Core;
use crate::exchange::Reply;
use crate::types::{ClientId, UserId};
use crate::users::personal::Vault;

/// The image of a proof of ownership, as it came in.
pub(super) async fn proof(core: &Arc<Core>, input: Input) -> Answer {
    let unknown = || Refused::not_found("proof");
    let id: Uuid = input.param("id").parse().map_err(|_| unknown())?;
    let mut conn = core.db.acquire().await?;
    let (client, user) = find(&mut conn, &input).await?;
    let media_type = sqlx::query_scalar!(
        "select media_type from ownership_proof p \
         join end_user u using (client_id, user_id) \
         where p.client_id = $1 and p.user_id = $2 and p.proof_id = $3 and u.deleted_at is null",
        client.uuid(),
        user.uuid(),
        id,
    )
    .fetch_optional(&mut *conn)
    .await?
    .ok_or_else(unknown)?;
    let vault = Vault::of(&mut conn, core, client, user).await?;
    drop(conn);
    image(core, vault, id, &media_type).await
}

/// The image of a side of an identity document, as it came in.
pub(super) async fn document(core: &Arc<Core>, input: Input) -> Answer {
    let unknown = || Refused::not_found("document");
    let id: Uuid = input.param("id").parse().map_err(|_| unknown())?;
    let mut conn = core.db.acquire().await?;
    let (client, user) = find(&mut conn, &input).await?;
    let media_type = sqlx::query_scalar!(
        "select media_type from user_document d \
         join end_user u using (client_id, user_id) \
         where d.client_id = $1 and d.user_id = $2 and d.document_id = $3 and u.deleted_at is null",
        client.uuid(),
        user.uuid(),
        id,
    )
    .fetch_optional(&mut *conn)
    .await?
    .flatten()
    .ok_or_else(unknown)?;
    let vault = Vault::of(&mut conn, core, client, user).await?;
    drop(conn);
    image(core, vault, id, &media_type).await
}

async fn image(core: &Core, vault: Vault, id: Uuid, media_type: &str) -> Answer {
    let media_type = match media_type {
        "image/jpeg" => "image/jpeg",
        "image/png" => "image/png",
        _ => "application/pdf",
    };
    let store = core.documents.clone();
    let image = core.images.run(move || store.get(&vault, id)).await??;
    Ok(Reply::with_body(StatusCode::OK, media_type, image.into()))
}

/// The sides of documents that the user has sent, each with the id of its image.
pub(super) async fn sides(
    conn: &mut PgConnection,
    client: ClientId,
    user: UserId,
) -> Result<Vec<Value>, Refused> {
    let rows = sqlx::query!(
        "select type as kind, side, status, document_id, media_type, size, created_at \
         from user_document where client_id = $1 and user_id = $2 order by type, side",
        client.uuid(),
        user.uuid(),
    )
    .fetch_all(conn)
    .await?;
    let sides = rows.into_iter().map(|row| {
        json!({"type": row.kind, "side": row.side, "status": row.status,
            "id": row.media_type.is_some().then_some(row.document_id),
            "mediaType": row.media_type, "size": row.size, "createdAt": row.created_at})
    });
    Ok(sides.collect())
}
