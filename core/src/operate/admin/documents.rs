//! Images that users have sent, for who decides about them: `GET /admin/v1/users/{uuid}/proofs/{id}`
//! and `GET /admin/v1/users/{uuid}/documents/{id}`.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};
use uuid::Uuid;

use super::users::find;
use super::{Answer, Input, Refused};
use crate::Core;
use crate::http::reply::Reply;
use crate::users::personal_data;
use rampart_types::{ClientId, UserId};

/// The image of a proof of ownership, as it came in.
pub(super) async fn proof(core: &Arc<Core>, input: Input) -> Answer {
    let mut wanted = Wanted::read(core, &input, "proof").await?;
    let media_type = sqlx::query_scalar!(
        "select media_type from ownership_proof p \
         join end_user u using (client_id, user_id) \
         where p.client_id = $1 and p.user_id = $2 and p.proof_id = $3 and u.deleted_at is null",
        wanted.client.uuid(),
        wanted.user.uuid(),
        wanted.id,
    )
    .fetch_optional(&mut *wanted.conn)
    .await?;
    wanted.image(core, media_type).await
}

/// The image of a side of an identity document, as it came in.
pub(super) async fn document(core: &Arc<Core>, input: Input) -> Answer {
    let mut wanted = Wanted::read(core, &input, "document").await?;
    let media_type = sqlx::query_scalar!(
        "select media_type from user_document d \
         join end_user u using (client_id, user_id) \
         where d.client_id = $1 and d.user_id = $2 and d.document_id = $3 and u.deleted_at is null",
        wanted.client.uuid(),
        wanted.user.uuid(),
        wanted.id,
    )
    .fetch_optional(&mut *wanted.conn)
    .await?;
    wanted.image(core, media_type.flatten()).await
}

/// An image of a user that is asked for by its id.
struct Wanted {
    conn: PoolConnection<Postgres>,
    client: ClientId,
    user: UserId,
    id: Uuid,
    /// What it shows, in the words of a refusal.
    what: &'static str,
}

impl Wanted {
    async fn read(core: &Core, input: &Input, what: &'static str) -> Result<Self, Refused> {
        let id = input.param("id").parse().map_err(|_| Refused::not_found(what))?;
        let mut conn = core.db.acquire().await?;
        let (client, user) = find(&mut conn, input).await?;
        Ok(Self { conn, client, user, id, what })
    }

    /// The image, if its row says of which type it is.
    async fn image(mut self, core: &Core, media_type: Option<String>) -> Answer {
        let media_type = media_type.ok_or_else(|| Refused::not_found(self.what))?;
        let media_type = match media_type.as_str() {
            "image/jpeg" => "image/jpeg",
            "image/png" => "image/png",
            _ => "application/pdf",
        };
        let personal_key =
            personal_data::load_key(&mut self.conn, core, self.client, self.user).await?;
        drop(self.conn);
        let (store, id) = (core.documents.clone(), self.id);
        let image = core.images.run(move || store.get(&personal_key, id)).await??;
        Ok(Reply::with_body(StatusCode::OK, media_type, image.into()))
    }
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
