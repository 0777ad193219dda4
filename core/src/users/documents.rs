//! Images of identity documents, as they come in a request.
//!
//! The images go into the store. The database keeps which sides came, when, of what type and size,
//! and a sealed digest of the bytes.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;

use crate::Core;
use crate::http::fields::Fields;
use crate::http::images::Picture;
use crate::http::upload::Uploaded;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::error::{Code, Result};
use crate::platform::object_store::Kept;
use rampart_types::{ClientId, UserId};

/// Most sides in one request.
const DOCUMENTS_MAX: usize = 8;
/// Characters of a document's type and of a side.
const NAME_CHARS_MAX: usize = 32;

/// One side of a document.
#[derive(Debug)]
pub(super) struct Document {
    kind: String,
    side: String,
    /// `None`: announced, not sent.
    image: Option<Picture>,
}

/// The sides of `identityDocument`, in either of the API document's spellings. A shape that is not
/// a list of objects with type and side is ER048; what is no image is ER078.
pub(super) fn read(fields: &mut Fields<'_>, upload: Option<&Uploaded>) -> Vec<Document> {
    let Some(value) = fields.value("identityDocument").cloned() else { return Vec::new() };
    let Some(items) = value.as_array().filter(|items| items.len() <= DOCUMENTS_MAX) else {
        fields.refuse_with(Code::RequestMalformed, "identityDocument: a list of at most 8 objects");
        return Vec::new();
    };
    let mut documents = Vec::new();
    for item in items {
        match read_one(item, |text| Picture::of(upload, text)) {
            Ok(document) => documents.push(document),
            Err((code, detail)) => fields.refuse_with(code, detail),
        }
    }
    documents
}

fn read_one(
    item: &Value,
    picture: impl FnOnce(&str) -> Option<Picture>,
) -> Result<Document, (Code, &'static str)> {
    let text = |names: [&str; 2]| names.iter().find_map(|name| item.get(name)?.as_str());
    let name = |names| text(names).filter(|name| is_name(name)).map(str::to_owned);
    let (Some(kind), Some(side)) =
        (name(["documentType", "document_type"]), name(["documentSide", "document_side"]))
    else {
        return Err((Code::RequestMalformed, "identityDocument: documentType and documentSide"));
    };
    let image = match item.get("data").filter(|data| !data.is_null()) {
        None => None,
        Some(data) => {
            let image = data.as_str().and_then(picture);
            Some(image.ok_or((Code::ImageInvalid, "identityDocument: data"))?)
        }
    };
    Ok(Document { kind, side, image })
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

/// Keeps what came in, in the caller's transaction; a side that failed its check may come again.
/// The images are for the caller to settle, right before it commits.
///
/// # Errors
/// ER708 for a side that waits for its review or has passed it.
pub(super) async fn keep(
    conn: &mut PgConnection,
    core: &Core,
    (client, user, vault): (ClientId, UserId, &PersonalDataKey),
    documents: Vec<Document>,
) -> Result<Vec<Kept>> {
    let mut all = Vec::with_capacity(documents.len());
    for Document { kind, side, image } in documents {
        let (image, kept) = match image {
            Some(picture) => Some(picture.keep(core, vault).await?).unzip(),
            None => (None, None),
        };
        let place = format!("user_document/{kind}/{side}");
        let sealed = match &image {
            Some(image) => Some(vault.seal(&core.clock, &place, &image.digest)?),
            None => None,
        };
        let id = match &kept {
            Some(kept) => kept.id(),
            None => core.clock.uuid()?,
        };
        replace(conn, (client, user), (&kind, &side), core.clock.now()).await?;
        let size = image.as_ref().and_then(|image| i64::try_from(image.size).ok());
        let written = sqlx::query!(
            "insert into user_document as known (client_id, user_id, type, side, document_id, \
                 status, media_type, size, sealed_digest, created_at) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             on conflict (client_id, user_id, type, side) do update \
             set document_id = excluded.document_id, status = excluded.status, \
                 media_type = excluded.media_type, size = excluded.size, \
                 sealed_digest = excluded.sealed_digest, created_at = excluded.created_at \
             where known.status in ('missing', 'failed')",
            client.uuid(),
            user.uuid(),
            kind,
            side,
            id,
            if image.is_some() { "pending" } else { "missing" },
            image.as_ref().map(|image| image.media_type),
            size,
            sealed,
            core.clock.now(),
        )
        .execute(&mut *conn)
        .await?;
        if written.rows_affected() == 0 {
            return Err(Code::DocumentPendingReview.into());
        }
        all.extend(kept);
    }
    Ok(all)
}

/// Notes that the image of a side that failed its check is to be removed: another one comes.
async fn replace(
    conn: &mut PgConnection,
    (client, user): (ClientId, UserId),
    (kind, side): (&str, &str),
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "insert into document_removal (client_id, document_id, created_at) \
         select client_id, document_id, $5 from user_document \
         where client_id = $1 and user_id = $2 and type = $3 and side = $4 \
             and status = 'failed' and media_type is not null \
         on conflict do nothing",
        client.uuid(),
        user.uuid(),
        kind,
        side,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A side that the user has sent or announced.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ProfileDocument")]
pub(crate) struct Side {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) side: String,
    pub(crate) status: String,
}

impl Side {
    /// Whether an image of it came that was not refused.
    pub(crate) fn counts(&self) -> bool {
        matches!(&*self.status, "pending" | "verified")
    }
}

/// Every side that the user has sent or announced.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn sides(
    conn: &mut PgConnection,
    client: ClientId,
    user: UserId,
) -> Result<Vec<Side>> {
    let sides = sqlx::query_as!(
        Side,
        "select type as kind, side, status from user_document \
         where client_id = $1 and user_id = $2 order by type, side",
        client.uuid(),
        user.uuid(),
    )
    .fetch_all(conn)
    .await?;
    Ok(sides)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    fn png(size: usize) -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.resize(size, 7);
        STANDARD.encode(bytes)
    }

    #[test]
    fn either_spelling_names_a_side() {
        let sample = json!({"documentType": "passport", "documentSide": "front", "data": png(64)});
        assert!(read_one(&sample, Picture::read).unwrap().image.is_some());
        let schema = json!({"document_type": "passport", "document_side": "front",
            "uploaded_file": {"test": true, "original_name": "me.png"}});
        assert!(read_one(&schema, Picture::read).unwrap().image.is_none());
        let codes = [
            (json!({"documentType": "passport"}), Code::RequestMalformed),
            (json!({"documentType": "a b", "documentSide": "front"}), Code::RequestMalformed),
            (json!("passport"), Code::RequestMalformed),
            (json!({"documentType": "p", "documentSide": "f", "data": 7}), Code::ImageInvalid),
            (json!({"documentType": "p", "documentSide": "f", "data": "AAAA"}), Code::ImageInvalid),
        ];
        for (item, code) in codes {
            assert_eq!(read_one(&item, Picture::read).unwrap_err().0, code, "{item}");
        }
    }
}
