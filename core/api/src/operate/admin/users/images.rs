//! Images that users have sent, to decide about: `GET /admin/v1/users/{uuid}/proofs/{id}` and
//! `GET /admin/v1/users/{uuid}/documents/{id}`

use bytes::Bytes;
use http::{Method, StatusCode};
use schemars::SchemaGenerator;
use serde_json::json;
use uuid::Uuid;

use super::{UUID, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, required};
use crate::endpoint::{Endpoint, Respond, Success};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::db::PooledConnection;
use crate::platform::error::{Denial, Result};
use crate::users::personal_data;
use rampart_types::UserKey;

/// Media types of images, as stored.
const MEDIA_TYPES: [&str; 3] = ["image/jpeg", "image/png", "application/pdf"];

/// `GET /admin/v1/users/{uuid}/proofs/{id}`
pub struct ReadProof;

impl Endpoint for ReadProof {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/users/{uuid}/proofs/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Compliance];
    const READ_AUDIT: Option<&'static str> = Some("user.read-proof");
    const DOC: Doc = Doc {
        summary: "Read the image of a proof of ownership",
        details: "As the user sent it.",
        path: &[UUID, required("id", Kind::Format("uuid"), "The proof's id.")],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Wanted;
    type Response = Image;

    fn read(input: &Input, _: &Operator) -> Result<Wanted> {
        Wanted::read(input, "proof")
    }

    async fn call(core: &Core, _: Operator, wanted: Wanted) -> Result<Image> {
        let mut found = wanted.find(core).await?;
        let media_type = sqlx::query_scalar!(
            "select media_type from ownership_proof p \
             join end_user u using (client_id, user_id) \
             where p.client_id = $1 and p.user_id = $2 and p.proof_id = $3 \
                 and u.deleted_at is null",
            found.key.client.uuid(),
            found.key.user.uuid(),
            wanted.id,
        )
        .fetch_optional(&mut *found.conn)
        .await?;
        found.image(core, &wanted, media_type).await
    }
}

/// `GET /admin/v1/users/{uuid}/documents/{id}`
pub struct ReadDocument;

impl Endpoint for ReadDocument {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/users/{uuid}/documents/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Compliance];
    const READ_AUDIT: Option<&'static str> = Some("user.read-document");
    const DOC: Doc = Doc {
        summary: "Read the image of a side of an identity document",
        details: "As the user sent it.",
        path: &[UUID, required("id", Kind::Format("uuid"), "The image's id.")],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Wanted;
    type Response = Image;

    fn read(input: &Input, _: &Operator) -> Result<Wanted> {
        Wanted::read(input, "document")
    }

    async fn call(core: &Core, _: Operator, wanted: Wanted) -> Result<Image> {
        let mut found = wanted.find(core).await?;
        let media_type = sqlx::query_scalar!(
            "select media_type from user_document d \
             join end_user u using (client_id, user_id) \
             where d.client_id = $1 and d.user_id = $2 and d.document_id = $3 \
                 and u.deleted_at is null",
            found.key.client.uuid(),
            found.key.user.uuid(),
            wanted.id,
        )
        .fetch_optional(&mut *found.conn)
        .await?;
        found.image(core, &wanted, media_type.flatten()).await
    }
}

/// The path of an image.
#[derive(Debug)]
pub struct Wanted {
    user: String,
    id: Uuid,
    /// The subject of the image, for a refusal.
    subject: &'static str,
}

impl Wanted {
    fn read(input: &Input, subject: &'static str) -> Result<Self> {
        let id = input.param("id").parse().map_err(|_| Denial::not_found(subject))?;
        Ok(Self { user: input.param("uuid").to_owned(), id, subject })
    }

    async fn find(&self, core: &Core) -> Result<Found> {
        let mut conn = core.db.acquire().await?;
        let key = find(&mut conn, &self.user).await?;
        Ok(Found { conn, key })
    }
}

/// The user of an image, and the connection that it was found on.
struct Found {
    conn: PooledConnection,
    key: UserKey,
}

impl Found {
    /// The image, if its row has a media type.
    async fn image(
        mut self,
        core: &Core,
        wanted: &Wanted,
        media_type: Option<String>,
    ) -> Result<Image> {
        let stored = media_type.ok_or_else(|| Denial::not_found(wanted.subject))?;
        let vault = personal_data::load_key(&mut self.conn, core, self.key).await?;
        drop(self.conn);
        let sealed = core.documents.get(wanted.id).await?;
        let image = core.images.run(move || sealed.open(&vault)).await??;
        Ok(Image::new(&stored, image))
    }
}

/// An image.
pub struct Image {
    media_type: &'static str,
    bytes: Bytes,
}

impl Image {
    /// An image with its media type as stored.
    pub(super) fn new(stored: &str, bytes: Vec<u8>) -> Self {
        let [jpeg, png, pdf] = MEDIA_TYPES;
        let media_type = if stored == jpeg {
            jpeg
        } else if stored == png {
            png
        } else {
            pdf
        };
        Self { media_type, bytes: bytes.into() }
    }
}

impl Respond for Image {
    fn respond(self) -> Result<Reply> {
        Ok(Reply::with_body(StatusCode::OK, self.media_type, self.bytes))
    }

    fn successes(_: &mut SchemaGenerator) -> Vec<Success> {
        let of = |media_type| {
            let body = Some((media_type, json!({ "type": "string", "format": "binary" })));
            Success { status: 200, about: "The image.", body, headers: &[] }
        };
        MEDIA_TYPES.map(of).into()
    }
}
