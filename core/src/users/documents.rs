//! Images of identity documents in requests.
//!
//! The images go to the object store. The database has the received sides with time, type and size,
//! and a sealed digest of the bytes.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::account::{self, RowLock};
use super::one_time_token::lock_for_checks;
use super::{personal_data, uploads};
use crate::Core;
use crate::auth::caller::Client;
use crate::http::fields::Fields;
use crate::http::images::{ImageInfo, ReceivedImage};
use crate::http::upload::{UploadedBody, body};
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::platform::object_store::{StoredObject, retain_all};
use rampart_types::{UserId, UserKey};

#[cfg(test)]
mod tests;

/// Most sides in one request.
const DOCUMENTS_MAX: usize = 8;
/// Most sides of one user: announced, sent or decided on.
pub const SIDES_MAX: i64 = 32;
/// Characters of a document's type and of a side.
const NAME_CHARS_MAX: usize = 32;

/// One side of a document.
#[derive(Debug)]
pub(crate) struct Document {
    kind: String,
    side: String,
    /// `None` if the document is announced, but not sent.
    image: Option<ReceivedImage>,
}

/// Identity documents, with the required sides of each.
pub(crate) const IDENTITY_DOCUMENTS: [(&str, &[&str]); 3] = [
    ("passport", &["front"]),
    ("id-card", &["front", "back"]),
    ("driving-licence", &["front", "back"]),
];

/// The document that proves the residential address, and its only side on our page.
pub(crate) const ADDRESS_PROOF: (&str, &str) = ("proof-of-address", "front");

impl Document {
    /// A side of a document that was sent on a page.
    pub(crate) fn of_page(kind: &str, side: &str, image: ReceivedImage) -> Self {
        Self { kind: kind.to_owned(), side: side.to_owned(), image: Some(image) }
    }

    /// True if its image was sent.
    pub(super) const fn has_image(&self) -> bool {
        self.image.is_some()
    }

    /// True if both are the same side of the same document.
    fn is_same_side(&self, other: &Self) -> bool {
        self.kind == other.kind && self.side == other.side
    }
}

/// One side of a document whose image, if it has one, is in the object store.
#[derive(Debug)]
pub(super) struct StoredDocument {
    kind: String,
    side: String,
    image: Option<(ImageInfo, StoredObject)>,
}

/// Reads `identityDocument`, in either of the API document's spellings. Anything but a list of
/// objects with type and side, each side once, is ER048; an invalid image is ER078.
pub(super) fn read(fields: &mut Fields<'_>, upload: Option<&UploadedBody>) -> Vec<Document> {
    let Some(value) = fields.value("identityDocument").cloned() else { return Vec::new() };
    let Some(items) = value.as_array().filter(|items| items.len() <= DOCUMENTS_MAX) else {
        fields.refuse_with(
            Code::RequestMalformed,
            "identityDocument",
            "a list of at most 8 objects",
        );
        return Vec::new();
    };
    let mut documents: Vec<Document> = Vec::new();
    for item in items {
        match read_one(item, |text| body::image(upload, text)) {
            Ok(document) if documents.iter().any(|one| one.is_same_side(&document)) => {
                fields.refuse_with(Code::RequestMalformed, "identityDocument", "each side once");
            }
            Ok(document) => documents.push(document),
            Err((code, detail)) => fields.refuse_with(code, "identityDocument", detail),
        }
    }
    documents
}

fn read_one(
    item: &Value,
    decode: impl FnOnce(&str) -> Option<ReceivedImage>,
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
            let image = data.as_str().and_then(decode);
            Some(image.ok_or((Code::ImageInvalid, "identityDocument: data"))?)
        }
    };
    Ok(Document { kind, side, image })
}

/// True if a document or a side may have this name.
pub fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

/// Puts images into the object store, before a transaction begins: however long the store takes, no
/// lock and no connection waits for it. An image that is not retained is removed again.
///
/// # Errors
/// When the object store cannot be used.
pub(super) async fn put(
    core: &Core,
    personal_key: &PersonalDataKey,
    documents: Vec<Document>,
) -> Result<Vec<StoredDocument>> {
    let mut all = Vec::with_capacity(documents.len());
    for Document { kind, side, image } in documents {
        let image = match image {
            Some(image) => Some(image.store(core, personal_key).await?),
            None => None,
        };
        all.push(StoredDocument { kind, side, image });
    }
    Ok(all)
}

/// Puts images of a stored user into the object store, as [`put`] does.
///
/// # Errors
/// ER709 when the user is deleted; those of [`put`].
pub(super) async fn put_of_user(
    core: &Core,
    key: UserKey,
    documents: Vec<Document>,
) -> Result<Vec<StoredDocument>> {
    if !documents.iter().any(Document::has_image) {
        let announced = |Document { kind, side, .. }| StoredDocument { kind, side, image: None };
        return Ok(documents.into_iter().map(announced).collect());
    }
    let mut tx = core.db.begin().await?;
    // An erasure that is under way is waited for, since no key is made after it.
    if !account::lock(&mut tx, key, RowLock::NoKeyUpdate).await? {
        return Err(Code::UserNotFound.into());
    }
    let personal_key = personal_data::load_key(&mut tx, core, key).await?;
    tx.commit().await?;
    put(core, &personal_key, documents).await
}

/// Stores documents that the user has sent on a page, which this token of a sign-in has opened, or an
/// order's link.
///
/// # Errors
/// Code 920 above the rate of uploads, ER708 for a side that is pending review or verified; those of
/// [`lock_for_checks`].
pub(crate) async fn send(
    core: &Core,
    client: &Client,
    user: UserId,
    token: Option<&str>,
    documents: Vec<Document>,
) -> Result<()> {
    uploads::count(core, client, user)?;
    let key = client.key_of(user);
    let documents = put_of_user(core, key, documents).await?;
    let mut tx = core.db.begin().await?;
    lock_for_checks(&mut tx, key, token).await?;
    let personal_key = personal_data::load_key(&mut tx, core, key).await?;
    let images = record(&mut tx, core, key, &personal_key, documents).await?;
    retain_all(&mut tx, key.client, images).await?;
    tx.commit().await?;
    Ok(())
}

/// Records documents in the caller's transaction, which has locked the user's row; a side that failed
/// its check, or is wanted anew, is replaced by another image, not by the announcement of one. The
/// caller must retain the images right before it commits.
///
/// # Errors
/// ER708 for a side that is pending review or verified, ER048 above [`SIDES_MAX`].
pub(super) async fn record(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    personal_key: &PersonalDataKey,
    documents: Vec<StoredDocument>,
) -> Result<Vec<StoredObject>> {
    let mut all = Vec::with_capacity(documents.len());
    if documents.is_empty() {
        return Ok(all);
    }
    let known = sides(conn, key).await?;
    refuse_excess(&known, &documents)?;
    for StoredDocument { kind, side, image } in documents {
        // An announcement takes the place of no image.
        let is_wanted = |one: &Side| {
            one.kind == kind && one.side == side && matches!(&*one.status, "missing" | "failed")
        };
        if image.is_none() && known.iter().any(is_wanted) {
            continue;
        }
        let (info, stored) = image.unzip();
        let location = format!("user_document/{kind}/{side}");
        let sealed = match &info {
            Some(info) => Some(personal_key.seal(&core.clock, &location, &info.digest)?),
            None => None,
        };
        let id = match &stored {
            Some(stored) => stored.id(),
            None => core.clock.uuid()?,
        };
        replace(conn, key, &kind, &side, core.clock.now()).await?;
        let size = info.as_ref().and_then(|info| i64::try_from(info.size).ok());
        let written = sqlx::query!(
            "insert into user_document as known (client_id, user_id, type, side, document_id, \
                 status, media_type, size, sealed_digest, created_at) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             on conflict (client_id, user_id, type, side) do update \
             set document_id = excluded.document_id, status = excluded.status, \
                 media_type = excluded.media_type, size = excluded.size, \
                 sealed_digest = excluded.sealed_digest, created_at = excluded.created_at \
             where known.status in ('missing', 'failed')",
            key.client.uuid(),
            key.user.uuid(),
            kind,
            side,
            id,
            if info.is_some() { "pending" } else { "missing" },
            info.as_ref().map(|info| info.media_type),
            size,
            sealed,
            core.clock.now(),
        )
        .execute(&mut *conn)
        .await?;
        if written.rows_affected() == 0 {
            return Err(Code::DocumentPendingReview.into());
        }
        all.extend(stored);
    }
    Ok(all)
}

/// Refuses new sides above [`SIDES_MAX`], each of which may have an image.
fn refuse_excess(known: &[Side], documents: &[StoredDocument]) -> Result<()> {
    let is_new = |document: &&StoredDocument| {
        !known.iter().any(|one| one.kind == document.kind && one.side == document.side)
    };
    let new = documents.iter().filter(is_new).count();
    let all = i64::try_from(known.len() + new).unwrap_or(i64::MAX);
    if new == 0 || all <= SIDES_MAX {
        return Ok(());
    }
    let detail = "at most 32 sides of documents of one user";
    Err(Error::of_member_with(Code::RequestMalformed, "identityDocument", detail))
}

/// The facts that verified documents of a user do not prove any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outdated {
    /// The person is another one by name or birth date.
    pub(super) person: bool,
    /// The residential address is another one.
    pub(super) address: bool,
}

/// Wants the verified sides of a user anew whose name or address is another one (an address in
/// another country is), in the caller's transaction, which has locked the user's row. Their images
/// stay until others replace them.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn want_anew(
    conn: &mut Connection,
    key: UserKey,
    outdated: Outdated,
) -> Result<()> {
    sqlx::query!(
        "update user_document set status = 'missing' \
         where client_id = $1 and user_id = $2 and status = 'verified' \
             and case when type = $3 then $5::boolean else $4::boolean end",
        key.client.uuid(),
        key.user.uuid(),
        ADDRESS_PROOF.0,
        outdated.person,
        outdated.address,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Queues the image of a side that failed its check, or is wanted anew, for removal, because a new one
/// replaces it.
async fn replace(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
    kind: &str,
    side: &str,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "insert into document_removal (client_id, document_id, created_at) \
         select client_id, document_id, $5 from user_document \
         where client_id = $1 and user_id = $2 and type = $3 and side = $4 \
             and status in ('missing', 'failed') and media_type is not null \
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

/// A side of a document that the user has sent or announced, or an operator has decided on.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ProfileDocument")]
pub(crate) struct Side {
    /// Kind of document, such as `passport`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Side of the document, such as `front`.
    pub(crate) side: String,
    /// `missing`, `pending`, `verified` or `failed`.
    pub(crate) status: String,
}

impl Side {
    /// True if it was received, or seen by an operator, and not refused.
    pub(crate) fn counts(&self) -> bool {
        matches!(&*self.status, "pending" | "verified")
    }
}

/// True if an image of this side was received and not refused.
pub(crate) fn is_received(sides: &[Side], kind: &str, name: &str) -> bool {
    sides.iter().any(|side| side.kind == kind && side.side == name && side.counts())
}

/// True if every side of one of the identity documents was received and not refused.
pub(crate) fn has_identity_document(sides: &[Side]) -> bool {
    let mut documents = IDENTITY_DOCUMENTS.iter();
    documents.any(|(kind, names)| names.iter().all(|name| is_received(sides, kind, name)))
}

/// True if a proof of the address was received and not refused.
pub(crate) fn has_address_proof(sides: &[Side]) -> bool {
    sides.iter().any(|side| side.kind == ADDRESS_PROOF.0 && side.counts())
}

/// Every side that the user has sent or announced, or an operator has decided on.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn sides(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
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
