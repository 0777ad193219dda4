//! Images of identity documents, as they come in a request.
//!
//! What is kept is which sides came, when, of what type and size, and a sealed digest of the bytes.

use base64::engine::general_purpose::STANDARD;
use base64::read::DecoderReader;
use ring::digest;
use serde_json::Value;
use sqlx::PgConnection;

use super::personal::Vault;
use crate::Core;
use crate::error::{Code, Result};
use crate::fields::Fields;
use crate::types::{ClientId, UserId};

/// Most sides in one request.
const DOCUMENTS_MAX: usize = 8;
/// Characters of a document's type and of a side.
const NAME_CHARS_MAX: usize = 32;
/// Bytes that are decoded at a time.
const CHUNK_BYTES: usize = 16 * 1024;
/// Fewest bytes of an image: what its type is told by.
const IMAGE_BYTES_MIN: u64 = 8;

/// One side of a document.
#[derive(Debug)]
pub(super) struct Document {
    kind: String,
    side: String,
    /// `None`: announced, not sent.
    image: Option<Image>,
}

/// An image that was looked through, not kept.
#[derive(Debug, PartialEq, Eq)]
struct Image {
    media_type: &'static str,
    size: u64,
    digest: Vec<u8>,
}

impl Image {
    /// Reads base64 (a data URL's head before it is ignored); `None` unless it is a JPEG, PNG or
    /// PDF by its first bytes.
    fn read(text: &str) -> Option<Self> {
        let encoded = match text.strip_prefix("data:") {
            Some(url) => url.split_once(";base64,")?.1,
            None => text,
        };
        let mut decoder = DecoderReader::new(encoded.as_bytes(), &STANDARD);
        let (mut context, mut size) = (digest::Context::new(&digest::SHA256), 0);
        let (mut chunk, mut media_type) = ([0; CHUNK_BYTES], None);
        loop {
            let count = fill(&mut decoder, &mut chunk)?;
            let read = chunk.get(..count)?;
            if size == 0 {
                media_type = sniff(read);
            }
            if count == 0 {
                break;
            }
            context.update(read);
            size += u64::try_from(count).ok()?;
        }
        let media_type = media_type.filter(|_| size >= IMAGE_BYTES_MIN)?;
        Some(Self { media_type, size, digest: context.finish().as_ref().to_vec() })
    }
}

/// Reads until the chunk is full or the text ends; `None` when it is not base64.
fn fill(decoder: &mut impl std::io::Read, chunk: &mut [u8]) -> Option<usize> {
    let mut filled = 0;
    while let Some(rest) = chunk.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match decoder.read(rest).ok()? {
            0 => break,
            count => filled += count,
        }
    }
    Some(filled)
}

fn sniff(start: &[u8]) -> Option<&'static str> {
    let types: [(&[u8], &str); 3] = [
        (&[0xff, 0xd8, 0xff], "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"%PDF-", "application/pdf"),
    ];
    types.into_iter().find(|(mark, _)| start.starts_with(mark)).map(|(_, name)| name)
}

/// The sides of `identityDocument`, in either of the API document's spellings. A shape that is not
/// a list of objects with type and side is ER048; what is no image is ER078.
pub(super) fn read(fields: &mut Fields<'_>) -> Vec<Document> {
    let Some(value) = fields.value("identityDocument").cloned() else { return Vec::new() };
    let Some(items) = value.as_array().filter(|items| items.len() <= DOCUMENTS_MAX) else {
        fields.refuse_with(Code::ER048, "identityDocument: a list of at most 8 objects");
        return Vec::new();
    };
    let mut documents = Vec::new();
    for item in items {
        match read_one(item) {
            Ok(document) => documents.push(document),
            Err((code, detail)) => fields.refuse_with(code, detail),
        }
    }
    documents
}

fn read_one(item: &Value) -> Result<Document, (Code, &'static str)> {
    let text = |names: [&str; 2]| names.iter().find_map(|name| item.get(name)?.as_str());
    let name = |names| text(names).filter(|name| is_name(name)).map(str::to_owned);
    let (Some(kind), Some(side)) =
        (name(["documentType", "document_type"]), name(["documentSide", "document_side"]))
    else {
        return Err((Code::ER048, "identityDocument: documentType and documentSide"));
    };
    let image = match item.get("data").filter(|data| !data.is_null()) {
        None => None,
        Some(data) => {
            let image = data.as_str().and_then(Image::read);
            Some(image.ok_or((Code::ER078, "identityDocument: data"))?)
        }
    };
    Ok(Document { kind, side, image })
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

/// Keeps what came in, in the caller's transaction; a side that failed its check may come again.
///
/// # Errors
/// ER708 for a side that waits for its review or has passed it.
pub(super) async fn keep(
    conn: &mut PgConnection,
    core: &Core,
    (client, user, vault): (ClientId, UserId, &Vault),
    documents: Vec<Document>,
) -> Result<()> {
    for Document { kind, side, image } in documents {
        let place = format!("user_document/{kind}/{side}");
        let sealed = match &image {
            Some(image) => Some(vault.seal(core, &place, &image.digest)?),
            None => None,
        };
        let size = image.as_ref().and_then(|image| i64::try_from(image.size).ok());
        let kept = sqlx::query!(
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
            core.clock.uuid()?,
            if image.is_some() { "pending" } else { "missing" },
            image.as_ref().map(|image| image.media_type),
            size,
            sealed,
            core.clock.now(),
        )
        .execute(&mut *conn)
        .await?;
        if kept.rows_affected() == 0 {
            return Err(Code::ER708.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn png(size: usize) -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.resize(size, 7);
        STANDARD.encode(bytes)
    }

    #[test]
    fn an_image_is_known_by_its_first_bytes() {
        for size in [8, 9, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 5] {
            let image = Image::read(&png(size)).unwrap();
            assert_eq!((image.media_type, image.size), ("image/png", size as u64));
        }
        let url = format!("data:image/png;base64,{}", png(100));
        assert_eq!(Image::read(&url), Image::read(&png(100)));
        assert_ne!(Image::read(&png(101)).unwrap().digest, Image::read(&png(100)).unwrap().digest);
        let html = STANDARD.encode("<html></html>");
        for bad in ["", "AAAA", "not base64!", &html, "/9j/", &png(20)[..21], "data:image/png,x"] {
            assert_eq!(Image::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn either_spelling_names_a_side() {
        let sample = json!({"documentType": "passport", "documentSide": "front", "data": png(64)});
        assert!(read_one(&sample).unwrap().image.is_some());
        let schema = json!({"document_type": "passport", "document_side": "front",
            "uploaded_file": {"test": true, "original_name": "me.png"}});
        assert!(read_one(&schema).unwrap().image.is_none());
        let codes = [
            (json!({"documentType": "passport"}), Code::ER048),
            (json!({"documentType": "a b", "documentSide": "front"}), Code::ER048),
            (json!("passport"), Code::ER048),
            (json!({"documentType": "p", "documentSide": "f", "data": 7}), Code::ER078),
            (json!({"documentType": "p", "documentSide": "f", "data": "AAAA"}), Code::ER078),
        ];
        for (item, code) in codes {
            assert_eq!(read_one(&item).unwrap_err().0, code, "{item}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".*", near in "iVBORw0KGgo[A-Za-z0-9+/=]{0,30}") {
            let _ = (Image::read(&text), Image::read(&near));
        }
    }
}
